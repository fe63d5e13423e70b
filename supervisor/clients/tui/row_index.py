"""Rows of many blocks, one below the other, where most heights are only guessed. Pure.

Rule: asking where a block begins, or which one a row belongs to, costs nothing that grows with what was not changed.
"""

from bisect import bisect_right
from itertools import accumulate


class RowIndex:
    """The heights of blocks, in rows."""

    def __init__(self) -> None:
        self._heights: list[int] = []
        self._ends: list[int] = []
        """Of the first blocks; those after a change are added up again when they are asked for."""

    def __len__(self) -> int:
        return len(self._heights)

    @property
    def total(self) -> int:
        return self._summed()[-1] if self._heights else 0

    def append(self, height: int) -> None:
        self._heights.append(height)

    def pop(self) -> None:
        self._heights.pop()
        del self._ends[len(self._heights) :]

    def height(self, block: int) -> int:
        return self._heights[block]

    def resize(self, block: int, height: int) -> None:
        if self._heights[block] != height:
            self._heights[block] = height
            del self._ends[block:]

    def start(self, block: int) -> int:
        return self._summed()[block - 1] if block else 0

    def at(self, row: int) -> tuple[int, int]:
        """Return the block that a row belongs to, and which row of it that is; beyond the end, those of the end."""
        ends = self._summed()
        block = min(bisect_right(ends, max(0, row)), len(ends) - 1)
        return block, max(0, row) - self.start(block)

    def _summed(self) -> list[int]:
        done = len(self._ends)
        if done < len(self._heights):
            before = self._ends[-1] if done else 0
            sums = accumulate(self._heights[done:], initial=before)
            next(sums)
            self._ends.extend(sums)
        return self._ends
