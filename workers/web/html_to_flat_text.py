"""The text of HTML without its structure: for pages that are too large, too deep or too odd to become Markdown.

Rule: one pass from start to end, in time that grows with the length alone, whatever the page is. Nothing of a page is
looked for twice: what does not end, reaches to the end.
"""

import html
import io
import re
from typing import Final

_NAME: Final = re.compile(r"/?([a-zA-Z][a-zA-Z0-9-]{0,20})")
_SILENT: Final = frozenset({"script", "style", "template", "svg", "iframe", "textarea", "select", "canvas"})
"""Elements whose content is not for reading."""

_INLINE_NAMES: Final = (
    "a abbr b bdi bdo big cite code data del dfn em font i ins kbd label mark q rp rt ruby s samp small "
    "span strike strong sub sup time tt u var wbr"
)
_INLINE: Final = frozenset(_INLINE_NAMES.split())
"""Elements in the middle of a line; all others stand apart."""


def flat_text(page: str) -> str:
    """Return the words of `page`, a line for each block."""
    text = io.StringIO()
    at = 0
    while (start := page.find("<", at)) >= 0:
        if start > at:
            text.write(page[at:start])
        if page.startswith("<!--", start):
            at = _after(page, "-->", start + 4)
            continue
        named = _NAME.match(page, start + 1)
        if named is None and page[start + 1 : start + 2] not in {"!", "?", "/"}:
            text.write("<")
            at = start + 1
            continue
        at = _after(page, ">", start + 1)
        name = named[1].lower() if named else ""
        if name in _SILENT and page[start + 1] != "/":
            at = _after_end(page, name, at)
        if name not in _INLINE:
            text.write("\n")
    text.write(page[at:])
    return tidy(html.unescape(text.getvalue()), keep_indent=False)


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
