"""Style sheets of a page, as far as they can hide a part of it: rules, and which of them an element obeys. Pure.

Rule: a page is hostile. Reading is one pass; matching has a number of steps for all elements, and says when they are
used up. Rules for states (`:hover`), for other media, and for what stands before or behind an element do not count;
selectors that are not understood match nothing.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple

STEPS: Final = 500_000
"""Comparisons of a selector with an element, for a page."""
_RULES: Final = 10_000
_LONGEST: Final = 2000
"""Characters of one selector list; of a value."""
_WIDE: Final = 1280
"""Pixels of the screen that a rule for a screen is asked for."""
_PROPERTY_NAMES: Final = (
    "display visibility opacity color background background-color background-image font font-size position left top "
    "right bottom inset margin margin-left margin-top text-indent clip clip-path width height max-width max-height "
    "overflow overflow-x overflow-y transform scale translate filter content-visibility zoom letter-spacing "
    "line-height -webkit-text-fill-color"
)
_PROPERTIES: Final = frozenset(_PROPERTY_NAMES.split())
_STYLE: Final = re.compile(r"<!--|<(style|script|textarea|title|template|noscript|iframe|svg)\b", re.IGNORECASE)
_COMMENT: Final = re.compile(r"/\*.*?(?:\*/|\Z)|<!--|-->", re.DOTALL)
_STRING: Final = re.compile(r"""("[^"\n]*"|'[^'\n]*')""")
_BLOCK: Final = re.compile(r"([^{};]*)([{};]|\Z)")
_ESCAPE: Final = re.compile(r"\\(?:([0-9a-fA-F]{1,6})\s?|(.))", re.DOTALL)
_COMBINATOR: Final = re.compile(r"\s*([>+~])\s*|\s+")
_SIMPLE: Final = re.compile(
    r"""([.\#]?)((?:[-\w]|[^\x00-\x7f])+)|(\*)|\[\s*([-\w]+)\s*(?:([~|^$*]?)=\s*["']?([^"'\]]*?)["']?\s*[is]?\s*)?\]|(::?)([-a-z]+)(?:\(([^()]*)\))?"""
)
_PLAIN_NAMES: Final = (
    "root link any-link enabled read-only host scope defined last-child only-child first-of-type last-of-type "
    "only-of-type nth-last-child nth-of-type nth-last-of-type lang dir"
)
_PLAIN_PSEUDO: Final = frozenset(_PLAIN_NAMES.split())
"""Classes that any element may be of; also places that are not known before the end of what is around: in doubt, so."""
_NTH: Final = re.compile(r"([-+]?[0-9]{0,4})n\s*(?:([-+])\s*([0-9]{1,4}))?|([0-9]{1,4})")
_MEDIA: Final = re.compile(r"\(\s*(min|max)-(?:device-)?width\s*:\s*([0-9.]+)\s*(px|r?em)?\s*\)")
_OTHER_MEDIA: Final = re.compile(
    r"\bprint\b|\bspeech\b|\bdark\b|\bportrait\b|\breduce\b|\bforced-colors\s*:\s*active|\bnot\b"
)
_SILENT_AT: Final = ("@keyframes", "@-", "@font", "@page", "@property", "@counter", "@import", "@charset", "@namespace")


_COMPARED: Final[Mapping[str, Callable[[str, str], bool]]] = {
    "": lambda _value, _wanted: True,
    "=": str.__eq__,
    "^=": str.startswith,
    "$=": str.endswith,
    "*=": str.__contains__,
    "~=": lambda value, wanted: wanted in value.split(),
    "|=": lambda value, wanted: value == wanted or value.startswith(f"{wanted}-"),
}
"""How an attribute and a value are compared."""
_NO_CLASSES: Final[frozenset[str]] = frozenset()
_BEFORE: Final = 16
_DEEPEST: Final = 16
"""Elements that a selector names."""


class Compound(NamedTuple):
    """What one element must be; `before` says how it stands to the one that the rest of the selector names."""

    before: str = ""
    tag: str = ""
    ids: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    attributes: tuple[tuple[str, str, str], ...] = ()
    nth: tuple[int, int] = (1, 0)
    """As in `:nth-child(2n+1)`: a step, and where it begins."""
    but: tuple["Compound", ...] = ()
    """What it is not."""


class StyleRule(NamedTuple):
    """A selector, the last element first, and what it declares: values, and whether they are important."""

    selector: tuple[Compound, ...]
    weight: tuple[int, int, int, int]
    """Of its ids, of classes and attributes, of tags; and its number."""
    values: Mapping[str, tuple[str, bool]]


class PageElement:
    """An element of a page, with those around it and a few before it."""

    __slots__ = ("attributes", "before", "classes", "last", "nth", "parent", "tag")

    def __init__(self, tag: str, attributes: Mapping[str, str], parent: "PageElement | None") -> None:
        self.tag = tag
        self.attributes = attributes
        self.classes = frozenset(attributes.get("class", "").split()) if "class" in attributes else _NO_CLASSES
        self.parent = parent
        self.before = parent.last if parent is not None else None
        self.last: PageElement | None = None
        self.nth: int = self.before.nth + 1 if self.before is not None else 0
        if self.before is not None and self.nth % _BEFORE == 0:
            self.before.before = None  # a page of a million elements holds on to few of them
        if parent is not None:
            parent.last = self


class StyleSheets:
    """The rules of one page."""

    def __init__(self, page: str) -> None:
        self.exhausted = False
        """Whether not all rules could be asked."""
        self._steps = STEPS
        self._by_key: dict[str, list[StyleRule]] = {}
        self._count = 0
        for css in _sheets(page):
            self._add(css)

    @property
    def empty(self) -> bool:
        """Whether there is no rule."""
        return not self._by_key

    def values_of(self, element: PageElement) -> dict[str, str]:
        """Return the values that the rules, and its own style, give an element."""
        won: dict[str, tuple[bool, tuple[int, ...], str]] = {}
        keys = ["*", element.tag, *(f".{each}" for each in element.classes), f"#{element.attributes.get('id', '')}"]
        for rule in (rule for key in keys for rule in self._by_key.get(key, ())):
            if self._obeys(element, rule.selector):
                _win(won, rule.values, rule.weight)
        if style := element.attributes.get("style"):
            _win(won, declared(style[: 50 * _LONGEST]), (1_000_000,))
        return {name: value for name, (_, _, value) in won.items()}

    def _obeys(self, element: PageElement, selector: tuple[Compound, ...]) -> bool:
        if self._steps <= 0:
            self.exhausted = True
            return False
        self._steps -= 1
        compound, *rest = selector
        if not _is(element, compound):
            return False
        if not rest:
            return True
        near = element.parent if compound.before in " >" else element.before
        while near is not None:
            if self._obeys(near, tuple(rest)):
                return True
            if compound.before in ">+":
                return False
            near = near.parent if compound.before == " " else near.before
        return False

    def _add(self, css: str) -> None:
        """Read a sheet: blocks within blocks, of which those with `@` say whether what is in them counts."""
        text = _STRING.sub(lambda found: re.sub("[{};]", "", found[0]), _COMMENT.sub(" ", css))
        blocks: list[tuple[bool, list[str]]] = []
        pending: list[str] = []
        for found in _BLOCK.finditer(text):
            head, mark = found[1].strip(), found[2]
            if mark == "{":
                counts, selectors = blocks[-1] if blocks else (True, [])
                if head.startswith("@"):
                    blocks.append((counts and at_rule_counts(head.lower()), selectors))
                else:
                    self._take(pending, blocks)
                    blocks.append((counts, _within(selectors, head)))
            else:
                pending += [head] if blocks else []
                if mark == "}":
                    self._take(pending, blocks)
                    blocks = blocks[:-1]

    def _take(self, pending: list[str], blocks: list[tuple[bool, list[str]]]) -> None:
        """Make rules of the declarations that were read."""
        text = ";".join(pending)
        pending.clear()
        counts, selectors = blocks[-1] if blocks else (False, [])
        values = declared(text) if counts and text else {}
        for each in selectors if values else ():
            self._count += 1
            self.exhausted |= self._count > _RULES
            if self._count <= _RULES and (selector := _selector(each)):
                ids, classes, tags = (sum(counts) for counts in zip(*map(_weight, selector), strict=True))
                rule = StyleRule(selector, (ids, classes, tags, self._count), values)
                last = selector[0]
                key = f"#{last.ids[0]}" if last.ids else f".{last.classes[0]}" if last.classes else last.tag or "*"
                self._by_key.setdefault(key, []).append(rule)


def declared(text: str) -> dict[str, tuple[str, bool]]:
    """Return the declarations that can hide something, by name, each with whether it is important."""
    values: dict[str, tuple[str, bool]] = {}
    for each in _COMMENT.sub(" ", text).split(";"):
        name, colon, value = each[:_LONGEST].partition(":")
        if not colon:
            continue
        name = _unescaped(name).strip()
        name = name if name.startswith("--") else name.lower()
        if name in _PROPERTIES or name.startswith("--"):
            plain, mark, _ = _unescaped(value).lower().strip().partition("!")
            important = bool(mark)
            if important or not values.get(name, ("", False))[1]:
                values[name] = plain.strip(), important
    return values


def at_rule_counts(head: str) -> bool:
    """Say whether what is in a block, such as `@media screen`, counts on a screen."""
    if head.startswith(_SILENT_AT):
        return False
    if not head.startswith("@media"):
        return True
    return any(_medium_counts(each) for each in head[len("@media") :].split(","))


def _medium_counts(query: str) -> bool:
    if query.strip().startswith("not "):
        return not _medium_counts(query.strip()[4:])
    widths = [(bound, float(number or 0) * (16 if "em" in unit else 1)) for bound, number, unit in _widths(query)]
    if any(number > _WIDE if bound == "min" else number < _WIDE for bound, number in widths):
        return False
    return not _OTHER_MEDIA.search(query)


def _widths(query: str) -> Iterator[tuple[str, str, str]]:
    for bound, number, unit in _MEDIA.findall(query):
        yield bound, number if number.replace(".", "", 1).isdigit() else "0", unit


def _sheets(page: str) -> Iterator[str]:
    """Yield the text of each `style` that is one: not in a comment, a script or the like."""
    at = 0
    while found := _STYLE.search(page, at):
        if found[1] is None:
            at = page.find("-->", found.end()) + 3
            if at < 3:  # noqa: PLR2004 - there is none
                return
            continue
        name = found[1].lower()
        end = re.compile(rf"</{name}\b", re.IGNORECASE).search(page, found.end())
        begin = page.find(">", found.end()) + 1
        at = end.end() if end else len(page)
        head = page[found.end() : begin].lower()
        medium = re.search(r"""media\s*=\s*["']?([^"'>]*)""", head)
        if name == "style" and begin and (medium is None or at_rule_counts(f"@media {medium[1]}")):
            yield page[begin : end.start() if end else len(page)]
        elif name == "svg":
            at = found.end()


def _within(outer: list[str], head: str) -> list[str]:
    """Return the selectors of a block, beneath those around it."""
    inner = [each.strip() for each in _split(head[:_LONGEST])]
    if not outer:
        return inner
    return [each.replace("&", above) if "&" in each else f"{above} {each}" for above in outer[:8] for each in inner][
        :64
    ]


def _split(text: str) -> list[str]:
    """Return a list of selectors one by one, with `:is` and `:where` written out."""
    for _ in range(4):
        found = re.search(r":(?:is|where|matches|-webkit-any)\(([^()]*)\)", text)
        if found is None:
            break
        each = [part for part in text.split(",") if part] if "," not in found[0] else [text]
        text = ",".join(
            one.replace(found[0], choice.strip())
            for one in each
            for choice in (found[1].split(",") if found[0] in one else [""])
        )[:_LONGEST]
    return text.split(",")


def _selector(text: str) -> tuple[Compound, ...]:
    """Return a selector, its last element first; nothing where it is not understood."""
    parts = _COMBINATOR.split(_unescaped(text).strip())
    if len(parts) > 2 * _DEEPEST:
        return ()
    compounds: list[Compound] = []
    for at in range(0, len(parts), 2):
        before = "" if at == 0 else parts[at - 1] or " "
        compound = _compound(parts[at] or "", before)
        if compound is None:
            return ()
        compounds.append(compound)
    return tuple(reversed(compounds))


def _compound(text: str, before: str) -> Compound | None:
    found = Compound(before)
    at = 0
    while at < len(text):
        part = _SIMPLE.match(text, at)
        more = _with_part(found, part) if part is not None else None
        if part is None or more is None:
            return None
        found, at = more, part.end()
    return found if text else None


def _with_part(found: Compound, part: re.Match[str]) -> Compound | None:
    """Return what an element must be, with one more condition; None where that is not understood."""
    match part.groups():
        case ("#", str(word), *_):
            return found._replace(ids=(*found.ids, word))
        case (".", str(word), *_):
            return found._replace(classes=(*found.classes, word))
        case ("", str(word), *_):
            return found._replace(tag=word.lower())
        case (_, _, _, str(word), kind, value, *_):
            wanted = (word.lower(), "" if value is None else f"{kind}=", value or "")
            return found._replace(attributes=(*found.attributes, wanted))
        case (*_, ":", str(word), inner):
            return _with_class(found, word, inner or "")
    return found if part[3] else None


def _with_class(found: Compound, name: str, inner: str) -> Compound | None:
    if name == "not":
        but = [_compound(each.strip(), "") for each in inner.split(",")]
        return found._replace(but=tuple(each for each in but if each is not None)) if all(but) else None
    if name == "first-child":
        return found._replace(nth=(0, 1))
    if name == "nth-child":
        plain = {"odd": "2n+1", "even": "2n"}.get(inner.strip(), inner.strip())
        nth = _NTH.match(plain)
        if nth is None:
            return None
        if nth[4]:
            return found._replace(nth=(0, int(nth[4])))
        step = int(nth[1] + "1" if nth[1] in ("", "+", "-") else nth[1])
        return found._replace(nth=(step, int(f"{nth[2]}{nth[3]}") if nth[3] else 0))
    return found._replace(tag="html" if name == "root" else found.tag) if name in _PLAIN_PSEUDO else None


def _weight(compound: Compound) -> tuple[int, int, int]:
    return (
        len(compound.ids),
        len(compound.classes) + len(compound.attributes) + (compound.nth != (1, 0)),
        int(bool(compound.tag)),
    )


def _is(element: PageElement, compound: Compound) -> bool:
    return (
        compound.tag in ("", element.tag)
        and all(element.attributes.get("id") == each for each in compound.ids)
        and element.classes.issuperset(compound.classes)
        and (compound.nth == (1, 0) or _is_nth(element.nth + 1, *compound.nth))
        and not any(_is(element, each) for each in compound.but)
        and all(_has(element.attributes.get(name), kind, value) for name, kind, value in compound.attributes)
    )


def _is_nth(place: int, step: int, begin: int) -> bool:
    return place == begin if step == 0 else (place - begin) % step == 0 and (place - begin) // step >= 0


def _has(value: str | None, kind: str, wanted: str) -> bool:
    return value is not None and _COMPARED[kind](value, wanted)


def _win(
    won: dict[str, tuple[bool, tuple[int, ...], str]], values: Mapping[str, tuple[str, bool]], weight: tuple[int, ...]
) -> None:
    for name, (value, important) in values.items():
        if name not in won or (important, weight) >= won[name][:2]:
            won[name] = important, weight, value


def _unescaped(text: str) -> str:
    if "\\" not in text:
        return text
    return _ESCAPE.sub(lambda found: _char(found[1]) if found[1] else found[2], text)


def _char(digits: str) -> str:
    code = int(digits, 16)
    return chr(code) if 0 < code < 0x110000 and not 0xD800 <= code < 0xE000 else "\ufffd"  # noqa: PLR2004 - as CSS says
