"""The text of HTML without its structure: for pages that are too large, too deep or too odd to become Markdown.

Rule: one pass from start to end, in time that grows with the length alone, whatever the page is. Nothing of a page is
looked for twice: what does not end, reaches to the end.
"""

import html
import io
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from workers.web.visibility import UNSEEN_NAMES, Look, Visibility

_NAME: Final = re.compile(r"/?([a-zA-Z][a-zA-Z0-9-]{0,20})")
_SILENT_NAMES: Final = "script style template svg iframe textarea select canvas audio video object dialog"
_SILENT: Final = frozenset(_SILENT_NAMES.split())
"""Elements whose content is not for reading."""

_INLINE_NAMES: Final = (
    "a abbr b bdi bdo big cite code data del dfn em font i ins kbd label mark q rp rt ruby s samp small "
    "span strike strong sub sup time tt u var wbr"
)
_INLINE: Final = frozenset(_INLINE_NAMES.split())
"""Elements in the middle of a line; all others stand apart."""


_CELL: Final = (frozenset({"td", "th"}), frozenset({"tr", "table"}))
_TERM: Final = (frozenset({"dt", "dd"}), frozenset({"dl"}))
_BLOCKS: Final = (
    "p address article aside blockquote div dl fieldset footer form h1 h2 h3 h4 h5 h6 header hr main nav ol pre "
    "section table ul"
)
_AROUND: Final = frozenset({"div", "li", "td", "th", "dd", "blockquote", "section", "article", "main"})
ENDS: Final[Mapping[str, tuple[frozenset[str], frozenset[str]]]] = MappingProxyType(
    {
        "li": (frozenset({"li"}), frozenset({"ul", "ol", "menu"})),
        "td": _CELL,
        "th": _CELL,
        "tr": (frozenset({"tr"}), frozenset({"table", "thead", "tbody", "tfoot"})),
        "dt": _TERM,
        "dd": _TERM,
        **dict.fromkeys(_BLOCKS.split(), (frozenset({"p"}), _AROUND)),
    }
)
"""Whose start ends which element that is still open, if it stands within the same of others: end tags that HTML lets
its authors leave out, and that Python's parser misses."""

LOOK_BACK: Final = 16

_VOID: Final = frozenset(
    {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
)
_TAG_END: Final = re.compile(r"""(?:[^"'>]++|"[^"]*+"|'[^']*+'|["'])*+>""")
_ATTRIBUTE: Final = re.compile(r"""([^\s"'<>/=]{1,60})(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'=<>`]+)))?""")
_TELLING: Final = frozenset({"style", "class", "id", "hidden", "popover", "aria-hidden", "color", "bgcolor", "text"})
_ATTRIBUTES: Final = 100
"""Others of one element that are known to rules."""
_DEEPEST: Final = 2000
"""Elements within each other of which each is known; what is deeper looks like what it is in."""


def flat_text(page: str) -> tuple[str, str]:
    """Return the words of `page` that people see, a line for each block, and a note of what was left out."""
    text = io.StringIO()
    seen = Visibility(page)
    inside = _Inside(seen)
    at = 0
    while (start := page.find("<", at)) >= 0:
        if start > at:
            text.write(inside.seen(page[at:start]))
        if page.startswith("<!--", start):
            at = _after(page, "-->", start + 4)
            continue
        named = _NAME.match(page, start + 1)
        if named is None and page[start + 1 : start + 2] not in {"!", "?", "/"}:
            text.write(inside.seen("<"))
            at = start + 1
            continue
        end = _TAG_END.match(page, start + 1)
        at = end.end() if end is not None else _after(page, ">", start + 1)
        name = named[1].lower() if named else ""
        if name and page[start + 1] == "/":
            inside.leave(name)
        elif named and name not in _SILENT:
            inside.enter(name, page[named.end() : at - 1])
        if name in _SILENT and page[start + 1] != "/":
            at = _after_end(page, name, at)
        if name not in _INLINE:
            text.write("\n")
    text.write(inside.seen(page[at:]))
    return tidy(html.unescape(text.getvalue()), keep_indent=False), seen.note


class _Inside:
    """The elements that are open, and how a text in the last one looks."""

    def __init__(self, seen: Visibility) -> None:
        self._visibility = seen
        self._open: list[tuple[str, Look]] = [("", seen.root)]

    def seen(self, text: str) -> str:
        """Return a text if people see it."""
        look = self._open[-1][1]
        if look.shows_text or not text.strip():
            return text
        self._visibility.left_out += 1
        return ""

    def enter(self, name: str, attributes: str) -> None:
        ends, within_same = ENDS.get(name, (frozenset(), frozenset()))
        for at in range(len(self._open) - 1, max(0, len(self._open) - LOOK_BACK), -1) if ends else ():
            if self._open[at][0] in ends:
                del self._open[at:]
                break
            if self._open[at][0] in within_same:
                break
        if name in _VOID or len(self._open) > _DEEPEST:
            return
        found: dict[str, str] = {}
        if self._visibility.plain and not attributes and name not in UNSEEN_NAMES:
            self._open.append((name, self._open[-1][1]))
            return
        for each in _ATTRIBUTE.finditer(attributes):
            key = each[1].lower()
            if len(found) < _ATTRIBUTES or key in _TELLING:
                found.setdefault(key, html.unescape(each[2] or each[3] or each[4] or ""))
        self._open.append((name, self._visibility.look(name, found, self._open[-1][1])))

    def leave(self, name: str) -> None:
        """Take note of an end tag; one that ends nothing near counts for nothing."""
        for at in range(len(self._open) - 1, max(0, len(self._open) - 4 * LOOK_BACK), -1):
            if self._open[at][0] == name:
                del self._open[at:]
                return


def tidy(text: str, *, keep_indent: bool = True) -> str:
    """Return `text` without spaces at the ends of lines, and with no two empty lines together."""
    kept = io.StringIO()
    empty = True
    for line in io.StringIO(text, newline="\n"):
        tidied = line.rstrip() if keep_indent else " ".join(line.split())
        if tidied or not empty:
            kept.write(tidied + "\n")
        empty = not tidied
    return kept.getvalue().strip("\n")


def _after(page: str, mark: str, start: int) -> int:
    found = page.find(mark, start)
    return len(page) if found < 0 else found + len(mark)


def _after_end(page: str, name: str, start: int) -> int:
    found = re.compile(rf"</{name}\b", re.IGNORECASE).search(page, start)
    return len(page) if found is None else _after(page, ">", found.end())
