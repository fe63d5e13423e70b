"""Lines in pieces, each with a tone; how they are broken, and the terminal's codes for them. Pure.

Rule: texts are visible already (`supervisor.display.escape`); escape sequences come from `styled` alone.
"""

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from supervisor.display.columns import broken
from supervisor.display.themes import DARK, ToneTable

Line = tuple[str, str]
"""A tone ("" for none; several words together) and a text."""

Fragments = list[Line]
"""Pieces of one line."""

_FURTHER: Final = "↪"
"""What rows of a line begin with that are not its first."""
_NARROWEST: Final = 8
"""Columns below which nothing is broken any further."""


def styled(fragments: Fragments, *, colour: bool, theme: ToneTable = DARK) -> str:
    """Return fragments with the terminal's codes; without colour, only weight is left."""
    parts = []
    for tone, text in fragments:
        codes = theme.codes(tone, colour=colour)
        parts.append(f"\x1b[{codes}m{text}\x1b[0m" if codes else text)
    return "".join(parts)


def plain(fragments: Fragments) -> str:
    """Return fragments without tones."""
    return "".join(text for _, text in fragments)


def rows_within(fragments: Fragments, columns: int, less: int = 0) -> Iterator[Fragments]:
    """Yield a line as rows of at most `columns`, all but the first of `less`, broken wherever one is full."""
    tabs = any("\t" in text for _, text in fragments)  # how wide one is depends on what stands before it
    left = [(fragments[0][0], plain(fragments))] if tabs else fragments
    first, *rest = broken(plain(left), columns)
    for row in (first, *(broken("".join(rest), columns - less) if rest else ())):
        taken, left = _parted(left, len(row)) if not tabs else ([(left[0][0], row)], left)
        yield taken


def _parted(fragments: Fragments, length: int) -> tuple[Fragments, Fragments]:
    """Return the first `length` characters of a line, and the others."""
    taken: Fragments = []
    for at, (tone, text) in enumerate(fragments):
        if len(text) > length:
            return [*taken, *([(tone, text[:length])] if length else [])], [(tone, text[length:]), *fragments[at + 1 :]]
        taken.append((tone, text))
        length -= len(text)
    return taken, []


def marked_rows(fragments: Fragments, columns: int) -> Iterator[Fragments]:
    """Yield a line as rows of at most `columns`, 0 for one row; all but the first are marked as such."""
    if not columns:
        yield fragments
        return
    first, *further = rows_within(fragments, columns, len(_FURTHER))
    yield first
    yield from ([("dim", _FURTHER), *row] for row in further)


class ReportPage(NamedTuple):
    """The page of a report: how wide it is, 0 where that does not matter, and whether tones are seen."""

    columns: int = 0
    toned: bool = False

    def rows(self, lines: Iterable[Fragments], indent: str) -> Iterator[str]:
        """Yield lines as they are printed, all rows of them further in."""
        columns = max(_NARROWEST, self.columns - len(indent)) if self.columns else 0
        for line in lines:
            for row in marked_rows(line, columns):
                yield indent + (styled(row, colour=True) if self.toned else plain(row))
