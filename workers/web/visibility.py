"""Parts of a page that people do not see: what its markup and its styles make of each element.

Rule: as a browser with scripts and a screen of 1280 by 800 would show it, as far as the page itself says; what a sheet
elsewhere says is not known. In doubt a part counts as hidden. Each one that is left out is counted.
"""

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from workers.web.css_colours import BLACK, WHITE, Colour, colour, contrast
from workers.web.css_selectors import PageElement
from workers.web.style_sheets import StyleSheets

UNSEEN_NAMES: Final = frozenset({"noscript", "noframes", "noembed", "template", "datalist", "rp"})
"""Elements that no browser shows which runs scripts."""
_LENGTH: Final = re.compile(
    r"([-+]?(?:[0-9]{1,9}\.?[0-9]{0,6}|\.[0-9]{1,6}))(px|r?em|ex|ch|pt|pc|cm|mm|in|v[wh]|vmin|vmax|%)?"
)
_PIXELS: Final[Mapping[str, float]] = {
    "": 1,
    "px": 1,
    "em": 16,
    "rem": 16,
    "ex": 8,
    "ch": 8,
    "pt": 4 / 3,
    "pc": 16,
    "cm": 37.8,
    "mm": 3.78,
    "in": 96,
    "vw": 12.8,
    "vh": 8,
    "vmin": 8,
    "vmax": 12.8,
    "%": 12.8,
}
_SIZES: Final[Mapping[str, float]] = {
    "xx-small": 9,
    "x-small": 10,
    "small": 13,
    "medium": 16,
    "large": 18,
    "x-large": 24,
    "xx-large": 32,
    "smaller": 13,
    "larger": 19,
}
_VAR: Final = re.compile(r"var\(\s*(--[-\w]+)\s*(?:,([^()]*))?\)")
_EMPTY_CLIP: Final = re.compile(
    r"inset\(\s*(?:[5-9][0-9]|100)[0-9.]*%|(?:circle|ellipse)\(\s*0|rect\((?:\s*(?:0|1px|0px|auto)[,\s]*){4}\)|polygon\((?:\s*0\S*\s+0[^,)]*,?)+\)"
    r"|inset\(\s*[0-9]{3,9}px|xywh\([^()]*\s0[a-z%]*\s+0[a-z%]*\s*\)"
)
_SCALE: Final = re.compile(
    r"scale(?:3d|x|y)?\(\s*0*(?:\.0\d*)?\s*[,)]|matrix\((?:\s*0(?:\.0\d*)?\s*,){4}|rotate[xy]\(\s*-?(?:90|270)deg"
)
_AWAY: Final = re.compile(r"(?:translate(?:3d|x|y)?|matrix(?:3d)?)\(([^()]*)\)")
_TRANSPARENT: Final = re.compile(
    r"opacity\(\s*(?:0?\.0\d*|0|[0-9](?:\.\d*)?%)\s*\)|blur\(\s*(?:[5-9]|\d\d+)[\d.]*px|contrast\(\s*0%?\s*\)"
)
_UNSHOWN: Final = frozenset({"hidden", "popover", "aria-hidden"})
_FONT_SIZE: Final = re.compile(r"(?:^|\s)(?:(0)()(?=[/\s])|([0-9.]{1,9})(px|r?em|pt|%))")
_BODY: Final = re.compile("<body", re.IGNORECASE)
_EXTENTS: Final = ("width", "height", "max-width", "max-height", "line-height")
_FAINT: Final = 0.1
_TINY: Final = 3.0
_OFF: Final = -400.0
_FAR: Final = 2500.0
_ALIKE: Final = 1.25
"""A contrast below which nobody reads a text; WCAG 2 asks for 4.5."""


class Look(NamedTuple):
    """How an element is seen, and what its children inherit."""

    gone: bool = False
    """It and all that is in it."""
    hidden: bool = False
    """By `visibility`, which a child may take back."""
    opacity: float = 1.0
    size: float = 16.0
    indent: float = 0.0
    ink: Colour = BLACK
    paper: Colour = WHITE
    variables: Mapping[str, str] = {}
    element: PageElement | None = None

    shows_text: bool = True
    """Whether a text that stands here is seen."""


class Visibility:
    """The looks of one page's elements, and how many parts nobody sees."""

    def __init__(self, page: str) -> None:
        self.left_out = 0
        self._sheets = StyleSheets(page)
        self.root = Look()
        """What is around all elements: a body, also where the page does not write it."""
        for tag in ("html", "body") if not _BODY.search(page) else ():
            self.root = self.look(tag, {}, self.root)

    @property
    def plain(self) -> bool:
        """Whether the page has no rules."""
        return self._sheets.empty

    @property
    def note(self) -> str:
        """What the model is told of it; empty where nothing was left out."""
        parts = "" if self.left_out == 1 else "s"
        said = f"{self.left_out} hidden part{parts} {'were' if parts else 'was'} left out" if self.left_out else ""
        unsure = "it has too many style rules to say what else is hidden" if self._sheets.exhausted else ""
        return "; ".join(each for each in (said, unsure) if each)

    def look(self, tag: str, attributes: Mapping[str, str], outer: Look) -> Look:
        """Return how an element looks in another."""
        if outer.gone or (self._sheets.empty and not attributes and tag not in UNSEEN_NAMES):
            return outer
        element = PageElement(tag, attributes, outer.element)
        values = _hints(tag, attributes) | self._sheets.values_of(element)
        if not values and tag not in UNSEEN_NAMES and _UNSHOWN.isdisjoint(attributes):
            return outer._replace(element=element)
        own = {name: value for name, value in values.items() if name.startswith("--")}
        variables = {**outer.variables, **own} if own and len(outer.variables) < 500 else outer.variables  # noqa: PLR2004
        values = {name: _resolved(value, variables) for name, value in values.items() if name not in own}
        return _computed(values, outer._replace(element=element, variables=variables), tag, attributes)


def _computed(values: Mapping[str, str], outer: Look, tag: str, attributes: Mapping[str, str]) -> Look:
    opacity = outer.opacity * _share(values.get("opacity", "1"))
    unshown = "hidden" in attributes or "popover" in attributes
    gone = (
        tag in UNSEEN_NAMES
        or attributes.get("aria-hidden") == "true"
        or values.get("display", "none" if unshown else "") == "none"
        or values.get("content-visibility") == "hidden"
        or opacity < _FAINT
        or _is_away(values)
        or _is_cut_off(values)
        or bool(_TRANSPARENT.search(values.get("filter", "")))
    )
    visibility = values.get("visibility", "")
    hidden = visibility in ("hidden", "collapse") or (outer.hidden and visibility not in ("visible", "initial"))
    background = f"{values.get('background', '')} {values.get('background-color', '')}".strip()
    ink_value = values.get("-webkit-text-fill-color") or values.get("color", "")
    ink = colour(ink_value) or outer.ink
    own_paper = (
        ink if "currentcolor" in background else colour(values.get("background-color") or "") or colour(background)
    )
    indent = _pixels(values["text-indent"], outer.size) if "text-indent" in values else outer.indent
    size = _size(values, outer.size) * min(1.0, _share(values.get("zoom", "1")))
    spacing = _pixels(values.get("letter-spacing", ""), size) or 0.0
    indent = outer.indent if indent is None else indent
    paper = outer.paper if own_paper is None else own_paper.over(outer.paper)
    legible = ink.opaque >= _FAINT and contrast(ink.over(paper), paper) >= _ALIKE
    return outer._replace(
        gone=gone,
        hidden=hidden,
        opacity=opacity,
        size=size,
        indent=indent,
        ink=ink,
        paper=paper,
        shows_text=legible and not (gone or hidden) and size >= _TINY and spacing * 2 > -size and _OFF < indent < _FAR,
    )


def _is_away(values: Mapping[str, str]) -> bool:
    """Say whether an element stands where no screen is."""
    placed = values.get("position", "static") not in ("static", "")
    names = ["margin", "margin-left", "margin-top", "padding-left", "padding-top"]
    names += ["left", "top", "right", "bottom", "inset", "translate"] if placed or "translate" in values else []
    moved = [*(values.get(name, "") for name in names), *_AWAY.findall(values.get("transform", ""))]
    lengths = [_number(each) for value in moved for each in _LENGTH.findall(value)]
    return any(each <= _OFF or each >= _FAR for each in lengths)


def _is_cut_off(values: Mapping[str, str]) -> bool:
    """Say whether nothing of an element is left to be seen."""
    if _EMPTY_CLIP.search(f"{values.get('clip', '')} {values.get('clip-path', '')}"):
        return True
    if _SCALE.search(values.get("transform", "")) or values.get("scale", "1").split()[:1] in (["0"], ["0%"]):
        return True
    overflow = " ".join(values.get(name, "") for name in ("overflow", "overflow-x", "overflow-y", "contain"))
    cut = any(word in overflow for word in ("hidden", "clip", "scroll", "auto", "paint", "strict", "content"))
    sizes = (_pixels(values[name], 16) for name in _EXTENTS if name in values)
    return cut and any(size is not None and size <= 1 for size in sizes)


def _size(values: Mapping[str, str], outer: float) -> float:
    value = values.get("font-size") or values.get("font", "")
    word = value.split(" ")[0]
    if word in _SIZES:
        return _SIZES[word]
    if "font-size" not in values:
        found = _FONT_SIZE.search(value)
        return outer if found is None else _em((found[1] or found[3], found[4] or ""), outer)
    found = _LENGTH.search(value)
    return outer if found is None else _em((found[1], found[2] or ""), outer)


def _em(found: tuple[str, str], outer: float) -> float:
    number = float(found[0]) if found[0].count(".") < 2 and found[0] != "." else outer  # noqa: PLR2004
    return number * outer if found[1] == "em" else number * outer / 100 if found[1] == "%" else _number(found)


def _pixels(value: str, em: float) -> float | None:
    found = _LENGTH.search(value)
    return None if found is None else float(found[1]) * em if found[2] == "em" else _number((found[1], found[2] or ""))


def _number(found: tuple[str, str]) -> float:
    return float(found[0]) * _PIXELS[found[1]]


def _share(value: str) -> float:
    found = _LENGTH.search(value)
    return 1.0 if found is None else max(0.0, min(1.0, float(found[1]) / (100 if found[2] == "%" else 1)))


def _resolved(value: str, variables: Mapping[str, str]) -> str:
    for _ in range(8):
        if "var(" not in value:
            break
        value = _VAR.sub(lambda found: variables.get(found[1], found[2] or ""), value)[:2000]
    return value


def _hints(tag: str, attributes: Mapping[str, str]) -> dict[str, str]:
    """Return what old attributes say of colours."""
    found = {"background-color": attributes.get("bgcolor", "").lower()} if "bgcolor" in attributes else {}
    ink = attributes.get("color") if tag == "font" else attributes.get("text") if tag == "body" else None
    return found if ink is None else found | {"color": ink.lower()}
