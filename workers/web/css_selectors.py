"""CSS selectors, and the elements of a page that they name. Pure.

Rule: a page is hostile. A selector that is not understood names nothing; whether an element is the last of its kind is
not known while it is read, and taken for granted.
"""

import re
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

LONGEST: Final = 2000
"""Characters of one selector list; of a value."""
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


def within(outer: list[str], head: str) -> list[str]:
    """Return the selectors of a block, beneath those around it."""
    inner = [each.strip() for each in _split(head[:LONGEST])]
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
        )[:LONGEST]
    return text.split(",")


def selector_of(text: str) -> tuple[Compound, ...]:
    """Return a selector, its last element first; nothing where it is not understood."""
    parts = _COMBINATOR.split(unescaped(text).strip())
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


def weight_of(compound: Compound) -> tuple[int, int, int]:
    """Return how many ids, classes and attributes, and tags it names."""
    return (
        len(compound.ids),
        len(compound.classes) + len(compound.attributes) + (compound.nth != (1, 0)),
        int(bool(compound.tag)),
    )


def matches(element: PageElement, compound: Compound) -> bool:
    """Say whether an element is what a part of a selector names."""
    return (
        compound.tag in ("", element.tag)
        and all(element.attributes.get("id") == each for each in compound.ids)
        and element.classes.issuperset(compound.classes)
        and (compound.nth == (1, 0) or _is_nth(element.nth + 1, *compound.nth))
        and not any(matches(element, each) for each in compound.but)
        and all(_has(element.attributes.get(name), kind, value) for name, kind, value in compound.attributes)
    )


def _is_nth(place: int, step: int, begin: int) -> bool:
    return place == begin if step == 0 else (place - begin) % step == 0 and (place - begin) // step >= 0


def _has(value: str | None, kind: str, wanted: str) -> bool:
    return value is not None and _COMPARED[kind](value, wanted)


def unescaped(text: str) -> str:
    """Return a text of a sheet with its escapes read."""
    if "\\" not in text:
        return text
    return _ESCAPE.sub(lambda found: _char(found[1]) if found[1] else found[2], text)


def _char(digits: str) -> str:
    code = int(digits, 16)
    return chr(code) if 0 < code < 0x110000 and not 0xD800 <= code < 0xE000 else "\ufffd"  # noqa: PLR2004 - as CSS says
