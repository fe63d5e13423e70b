"""Text in the columns of a terminal: how wide it is, cut, and broken between words. Pure.

Rule: a line is never wider than was asked for, whatever is in it: a character of East Asian scripts, or an emoji, takes
two columns, a mark that joins another takes none. What comes in is visible already (`supervisor.display.escape`).
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Final

from supervisor.display.escape import one_line

_WORD: Final = re.compile("( *)([^ ]+)")
_NARROWEST: Final = 8
"""Columns below which nothing is broken any further."""
_ROOM: Final = 16
"""Columns that the last cell of a row must have beside the others; with fewer it goes below them."""
_TAB: Final = 4
_GAP: Final = "  "
_BELOW: Final = "    "
_STROKES: Final = "\u2500-\u259f\u2308-\u230f\u239b-\u23b3\u23b8-\u23bf\u2758-\u275a\uff5c\u2223\u2225\u01c0\uffe8"
"""What the frame of a review is drawn with, and what looks like it."""
_FRAMED: Final = f"(?m)^((?:\x1b\\[[0-9;]*m)*)(?=[{_STROKES}])"
_NOTHING: Final = frozenset({"Mn", "Me", "Cf"})
"""Categories of what is drawn upon the character before it."""


def width(text: str) -> int:
    """Return how many columns a line takes."""
    return len(text) if text.isascii() else sum(map(_width_of, text))


def _width_of(char: str) -> int:
    if unicodedata.category(char) in _NOTHING:
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def cut(text: str, columns: int) -> str:
    """Return a text on one line of at most `columns`, safe to show."""
    flat = one_line(text, len(text) * 10)  # an escape has ten characters at most
    return flat if width(flat) <= columns else flat[: _fitting(flat, columns - 3)] + "..."[: max(0, columns)]


def wrapped(text: str, columns: int, first: str = "", rest: str | None = None) -> list[str]:
    """Return a line as lines of at most `columns`, broken between words, and within those that are too long.

    Args:
        text: without line ends.
        columns: at least eight, or as good as.
        first: what the first line begins with.
        rest: what the others begin with; the same by default.
    """
    columns = max(_NARROWEST, columns)
    indent = first if rest is None else rest
    lines: list[str] = []
    line, bare = first, True
    for gap, whole in _WORD.findall(text.expandtabs(_TAB)):
        if width(line) + width(gap) + width(whole) <= columns:
            line, bare = line + gap + whole, False
        else:
            word = whole
            if not bare:
                lines.append(line)
                line = indent
            while word and width(line) + width(word) > columns:
                end = max(1, _fitting(word, columns - width(line)))
                lines.append(line + word[:end])
                line, word = indent, word[end:]
            line, bare = line + word, not word
    return lines if bare and lines else [*lines, line]


def off_frame(lines: str) -> str:
    """Return lines, with the codes of a terminal, of which none begins as the frame of a review does."""
    return re.sub(_FRAMED, r"\1 ", lines)


def broken(line: str, columns: int) -> list[str]:
    """Return a line as pieces of at most `columns`, broken wherever it is full; tabs become blanks."""
    text = line.expandtabs(_TAB)
    if text.isascii():
        return [text[at : at + columns] for at in range(0, len(text), max(1, columns))] or [text]
    pieces, begin, used = [], 0, 0
    for at, char in enumerate(text):
        takes = _width_of(char)
        if used + takes > columns and at > begin:
            pieces.append(text[begin:at])
            begin, used = at, 0
        used += takes
    return [*pieces, text[begin:]]


def _fitting(text: str, columns: int) -> int:
    used = 0
    for at, char in enumerate(text):
        used += _width_of(char)
        if used > columns:
            return at
    return len(text)


def rows_of(lines: Iterable[str], columns: int) -> int:
    """Return how many rows of a screen lines take that it breaks where they are too long."""
    return sum(max(1, -(-width(line) // max(1, columns))) for line in lines)


def table(rows: Sequence[Sequence[str]], columns: int) -> str:
    """Return rows in columns; the last cell is broken between words, and goes below the others where room is scarce."""
    *widths, widest = [max(map(width, cells)) for cells in zip(*rows, strict=True)]
    indent = " " * (sum(widths) + len(_GAP) * len(widths))
    beside = columns - len(indent) >= min(_ROOM, widest)
    lines: list[str] = []
    for *cells, last in rows:
        head = "".join(cell + " " * (size - width(cell)) + _GAP for cell, size in zip(cells, widths, strict=True))
        if beside:
            lines += wrapped(last, columns, head, indent)
        else:
            lines += wrapped(head.rstrip(), columns, rest=_BELOW)
            lines += wrapped(last, columns, _BELOW) if last else []
    return "\n".join(line.rstrip() for line in lines)
