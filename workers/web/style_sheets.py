"""Style sheets of a page, as far as they can hide a part of it: rules, and which of them an element obeys. Pure.

Rule: a page is hostile. Reading is one pass; matching has a number of steps for all elements, and says when they are
used up. Rules for states (`:hover`), for other media, and for what stands before or behind an element do not count;
selectors that are not understood match nothing.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from workers.web.css_selectors import LONGEST, Compound, PageElement, matches, selector_of, unescaped, weight_of, within

STEPS: Final = 500_000
"""Comparisons of a selector with an element, for a page."""
_RULES: Final = 10_000
_WIDE: Final = 1280
"""Pixels of the screen that a rule for a screen is asked for."""
_PROPERTY_NAMES: Final = (
    "display visibility opacity color background background-color background-image font font-size position left top "
    "right bottom inset margin margin-left margin-top text-indent clip clip-path width height max-width max-height "
    "overflow overflow-x overflow-y transform scale translate filter content-visibility zoom letter-spacing "
    "line-height -webkit-text-fill-color padding-left padding-top contain"
)
_PROPERTIES: Final = frozenset(_PROPERTY_NAMES.split())
_LOGICAL: Final = re.compile(r"(margin|padding|inset)-(inline|block)(-start|)|(max-|)(inline|block)-size")
"""Names by the direction of a text, here that of English; CSS Logical Properties and Values, level 1."""
_STYLE: Final = re.compile(r"<!--|<(style|script|textarea|title|template|noscript|iframe|svg)\b", re.IGNORECASE)
_COMMENT: Final = re.compile(r"/\*.*?(?:\*/|\Z)|<!--|-->", re.DOTALL)
_STRING: Final = re.compile(r"""("[^"\n]*"|'[^'\n]*')""")
_BLOCK: Final = re.compile(r"([^{};]*)([{};]|\Z)")
_MEDIA: Final = re.compile(r"\(\s*(min|max)-(?:device-)?width\s*:\s*([0-9.]+)\s*(px|r?em)?\s*\)")
_OTHER_MEDIA: Final = re.compile(
    r"\bprint\b|\bspeech\b|\bdark\b|\bportrait\b|\breduce\b|\bforced-colors\s*:\s*active|\bnot\b"
)
_SILENT_AT: Final = ("@keyframes", "@-", "@font", "@page", "@property", "@counter", "@import", "@charset", "@namespace")


class StyleRule(NamedTuple):
    """A selector, the last element first, and what it declares: values, and whether they are important."""

    selector: tuple[Compound, ...]
    weight: tuple[int, int, int, int]
    """Of its ids, of classes and attributes, of tags; and its number."""
    values: Mapping[str, tuple[str, bool]]


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
        return not self._by_key

    def values_of(self, element: PageElement) -> dict[str, str]:
        """Return the values that the rules, and its own style, give an element."""
        won: dict[str, tuple[bool, tuple[int, ...], str]] = {}
        keys = ["*", element.tag, *(f".{each}" for each in element.classes), f"#{element.attributes.get('id', '')}"]
        for rule in (rule for key in keys for rule in self._by_key.get(key, ())):
            if self._obeys(element, rule.selector):
                _win(won, rule.values, rule.weight)
        if style := element.attributes.get("style"):
            _win(won, declared(style[: 50 * LONGEST]), (1_000_000,))
        return {name: value for name, (_, _, value) in won.items()}

    def _obeys(self, element: PageElement, selector: tuple[Compound, ...]) -> bool:
        if self._steps <= 0:
            self.exhausted = True
            return False
        self._steps -= 1
        compound, *rest = selector
        if not matches(element, compound):
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
                    blocks.append((counts, within(selectors, head)))
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
            if self._count <= _RULES and (selector := selector_of(each)):
                ids, classes, tags = (sum(counts) for counts in zip(*map(weight_of, selector), strict=True))
                rule = StyleRule(selector, (ids, classes, tags, self._count), values)
                last = selector[0]
                key = f"#{last.ids[0]}" if last.ids else f".{last.classes[0]}" if last.classes else last.tag or "*"
                self._by_key.setdefault(key, []).append(rule)


def declared(text: str) -> dict[str, tuple[str, bool]]:
    """Return the declarations that can hide something, by name, each with whether it is important."""
    values: dict[str, tuple[str, bool]] = {}
    for each in _COMMENT.sub(" ", text).split(";"):
        name, colon, value = each[:LONGEST].partition(":")
        if not colon:
            continue
        name = unescaped(name).strip()
        name = name if name.startswith("--") else _physical(name.lower())
        if name in _PROPERTIES or name.startswith("--"):
            plain, mark, _ = unescaped(value).lower().strip().partition("!")
            important = bool(mark)
            if important or not values.get(name, ("", False))[1]:
                values[name] = plain.strip(), important
    return values


def _physical(name: str) -> str:
    """Return the name of a property by the sides of the screen."""
    found = _LOGICAL.fullmatch(name)
    if found is None:
        return name
    kind, way, _start, most, extent = found.groups()
    if extent:
        return f"{most}{'width' if extent == 'inline' else 'height'}"
    side = "left" if way == "inline" else "top"
    return side if kind == "inset" else f"{kind}-{side}"


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


def _win(
    won: dict[str, tuple[bool, tuple[int, ...], str]], values: Mapping[str, tuple[str, bool]], weight: tuple[int, ...]
) -> None:
    for name, (value, important) in values.items():
        if name not in won or (important, weight) >= won[name][:2]:
            won[name] = important, weight, value
