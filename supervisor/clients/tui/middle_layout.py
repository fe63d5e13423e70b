"""Rows and columns of the middle of the screen, where a question or live output stands. Pure.

Rule: the history keeps a part of the screen, however small that is; a question's text and its effects stand beside each
other where there is width for both, else one above the other.
"""

from typing import Final, NamedTuple

WIDE: Final = 110
"""Columns from which on two panes stand beside each other."""
_FRAME: Final = 2
"""Rows, and columns, of a border."""
_OTHERS: Final = 7
"""Rows of everything else: a few of the history, the line, the bar, what is going on, and what has to be confirmed."""
_LEAST: Final = 4


class ScreenSpace(NamedTuple):
    """Columns and rows."""

    columns: int
    rows: int


class MiddleLayout(NamedTuple):
    """How the middle is divided; both with their borders."""

    beside: bool
    box: ScreenSpace
    """The most that the text which can be edited may take."""
    page: ScreenSpace
    """The most that its effects may take."""


def divided(space: ScreenSpace, box_rows: int | None = None) -> MiddleLayout:
    """Return how the middle is divided in a space; `box_rows`: rows of the text, where that is known."""
    middle = max(2 * _LEAST, min(space.rows - _OTHERS, space.rows * 3 // 4))
    if space.columns >= WIDE:
        left = space.columns * 9 // 20
        return MiddleLayout(True, ScreenSpace(left, middle), ScreenSpace(space.columns - left, middle))
    most = max(_LEAST - 1, middle * 2 // 5)
    box = most if box_rows is None else min(most, box_rows + _FRAME)
    return MiddleLayout(False, ScreenSpace(space.columns, most), ScreenSpace(space.columns, middle - box))
