"""The first so many of what was found, in one order, whatever the order in which it is found.

Rule: pure, and bounded: at most twice as many as are wanted are kept. The order is by the components of the path, then
by line. What is not to be shown is left out here, and counted where somebody should know of it.
"""

from collections.abc import Iterable
from typing import Final, Generic, NamedTuple, TypeVar

from workers.tree.drafts import is_draft
from workers.tree.glob import Pattern

BEGINNING: Final = "./"
"""What ripgrep puts before every path."""


class MatchPosition(NamedTuple):
    """Where something was found. The order of these is the order of what is shown."""

    parts: tuple[str, ...]
    line: int = 0


_T = TypeVar("_T")


class First(Generic[_T]):
    """Keeps the first `most` of what it is given.

    Args:
        most: How many are wanted.
        pattern: What their paths must match, if it matters.
    """

    def __init__(self, most: int, pattern: Pattern | None) -> None:
        self.most = most
        self.count = 0
        """How many there were that may be shown."""
        self.files = 0
        """In how many files, where those of one file come together."""
        self.not_utf8 = 0
        """How many there were whose paths are not UTF-8."""
        self._kept: list[tuple[MatchPosition, _T]] = []
        self._last = ""
        self._pattern = pattern

    def add(self, path: str, line: int, what: _T) -> None:
        """Take one, if its path may be shown."""
        path = path.removeprefix(BEGINNING)
        if self.shows(path):
            self.count += 1
            self.files += path != self._last
            self._last = path
            self._kept.append((MatchPosition(tuple(path.split("/")), line), what))
            if len(self._kept) > 2 * self.most:
                self._kept = self._ordered()

    def first(self) -> Iterable[tuple[str, int, _T]]:
        """Return the first of them: path, line and the rest."""
        return [("/".join(place.parts), place.line, what) for place, what in self._ordered()]

    @property
    def more(self) -> bool:
        """Whether there are more than are wanted."""
        return self.count > self.most

    def _ordered(self) -> list[tuple[MatchPosition, _T]]:
        return sorted(self._kept, key=lambda each: each[0])[: self.most]

    def shows(self, path: str) -> bool:
        """Say whether a path, relative to the root, is one that was asked for."""
        return not is_draft(path.rpartition("/")[2]) and (self._pattern is None or self._pattern.matches(path))
