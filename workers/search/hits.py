"""The first so many of what was found, in one order, whatever the order in which it is found.

Rule: pure, and bounded: at most twice as many as are wanted are kept. The order is by the components of the path, then
by line: paths are kept as keys of `workers.tree.glob`. What is not to be shown is left out here, and counted where
somebody should know of it.
"""

from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Final, Generic, TypeVar

from workers.tree.drafts import DRAFT, is_draft
from workers.tree.glob import SEPARATOR, Pattern

BEGINNING: Final = "./"
"""What ripgrep puts before every path."""


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
        """How many there were that may be shown; of files, at least so many: those after the first are not counted."""
        self.files = 0
        """In how many files, where those of one file come together."""
        self.not_utf8 = 0
        """How many there were whose paths are not UTF-8."""
        self._kept: list[tuple[str, int, _T]] = []
        self._bound = ""
        """The key of the last one that is wanted, once there are enough."""
        self._last = ""
        self._pattern = pattern

    def add(self, path: str, line: int, what: _T) -> None:
        """Take one, if its path may be shown."""
        key = path.removeprefix(BEGINNING).replace("/", SEPARATOR)
        if self.shown([key]):
            self.count += 1
            self.files += key != self._last
            self._last = key
            self._keep([(key, line, what)])

    def add_files(self, keys: Sequence[str], what: _T) -> None:
        """Take files, of those that may be shown; what comes after the first of them is not even matched."""
        bound = self._bound
        shown = self.shown([key for key in keys if key < bound] if bound else keys)
        self.count += len(shown)
        self._keep([(key, 0, what) for key in shown])

    def first(self) -> Iterable[tuple[str, int, _T]]:
        """Return the first of them: path, line and the rest."""
        self._order()
        return [(key.replace(SEPARATOR, "/"), line, what) for key, line, what in self._kept]

    def shown(self, keys: Iterable[str]) -> list[str]:
        """Return the keys of those paths, relative to the root, that are asked for."""
        found = keys if self._pattern is None else self._pattern.select(keys)
        return [key for key in found if DRAFT not in key or not is_draft(key.rpartition(SEPARATOR)[2])]

    @property
    def more(self) -> bool:
        """Whether there are more than are wanted."""
        return self.count > self.most

    def _keep(self, more: list[tuple[str, int, _T]]) -> None:
        self._kept += more
        if len(self._kept) > 2 * self.most:
            self._order()
            self._bound = self._kept[-1][0]

    def _order(self) -> None:
        self._kept = sorted(self._kept, key=itemgetter(0, 1))[: self.most]
