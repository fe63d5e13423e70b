"""Operations of a commit: units that each take one rename.

Rule: an operation is at a name whose directory stays. What is in a directory that is new or gone goes with it. So the
operations do not depend on each other.
"""

from collections.abc import Iterable
from typing import NamedTuple

from workers.treediff.comparison import Difference
from workers.treediff.snapshot import Node


class Operation(NamedTuple):
    """One name that becomes another, appears or goes; `number` names it in the staging directory."""

    number: str
    top: Difference
    inner: tuple[Difference, ...]

    @property
    def path(self) -> str:
        """The name with its way there, relative to the root."""
        return self.top.path

    @property
    def parent(self) -> str:
        """The directory that it is in, relative to the root."""
        return self.top.path.rpartition("/")[0] or "."

    @property
    def name(self) -> str:
        """The name in its directory; . for the root itself."""
        return self.top.path.rpartition("/")[2]

    @property
    def stays_directory(self) -> bool:
        """Whether only the mode or attributes of a directory change."""
        return is_directory(self.top.before) and is_directory(self.top.after)

    def lost(self) -> dict[str, Node]:
        """Return what was in the directory that goes, by path."""
        return {each.path: each.before for each in self.inner if each.before is not None}


def operations(differences: Iterable[Difference]) -> list[Operation]:
    """Group differences as a comparison finds them: each inner one follows the one that it goes with."""
    groups: list[list[Difference]] = []
    for each in differences:
        if each.inner:
            groups[-1].append(each)
        else:
            groups.append([each])
    return [Operation(str(number), group[0], tuple(group[1:])) for number, group in enumerate(groups)]


def is_directory(seen: Node | None) -> bool:
    """Say whether a directory was seen."""
    return seen is not None and seen.state.kind == "dir"
