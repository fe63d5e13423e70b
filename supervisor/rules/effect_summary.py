"""Effects of a call in a few words, and by their exact names.

Rule: pure. Every name was chosen by a command that nobody trusts: it is shown escaped and cut, and compared as it is.
"""

import heapq
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

from supervisor.display.changes import blocked, changed
from supervisor.display.escape import one_line
from supervisor.rules.rule import quoted
from workers.changes.effects import Change, Effects, What

_TOLD: Final = 6
"""Changes that are named one by one."""
_WIDTH: Final = 100
"""Characters of one name."""

_ORDER: Final[Mapping[What, int]] = MappingProxyType(
    {"deleted": 0, "replaced": 0, "modified": 1, "added": 2, "mode": 3, "attributes": 3, "times": 4}
)
"""The order in which changes are named."""


class NamedChange(NamedTuple):
    """One change by its exact name; bytes that are not UTF-8 are surrogates, as os.fsdecode makes them."""

    path: str
    change: Change


def exact_path(change: Change) -> str:
    """Return the path of a change as it is; bytes that are not UTF-8 become surrogates, as os.fsdecode makes them."""
    return change.raw_path.decode("utf-8", "surrogateescape") if change.raw_path else change.path


def essential_changes(effects: Effects) -> list[NamedChange]:
    """Return the changes without the directories that merely come, or go, with what changes in them."""
    named = [NamedChange(exact_path(change), change) for change in effects.changes]
    parents = {path.rpartition("/")[0] for path, _change in named}
    return [each for each in named if not (each.path in parents and _is_directory(each.change))]


def _is_directory(change: Change) -> bool:
    """Say whether it is a directory that is there only afterwards, or was there only before."""
    state = change.after if change.before is None else change.before
    return change.what in {"added", "deleted"} and state is not None and state.kind == "dir"


def count_changed(effects: Effects) -> int:
    """Return how many names a call would change, also those that are not listed."""
    return max(sum(effects.totals.values()), len(effects.changes) + sum(effects.left_out.values()))


def changes_nothing(effects: Effects) -> bool:
    """Say whether everything stays as it is."""
    return count_changed(effects) == 0


def summary(effects: Effects) -> str:
    """Return the changes as a clause."""
    return f"{_subject(effects)} would change ({_told(effects)})"


def protected_changes(effects: Effects) -> str:
    """Return the changes that are always asked about, each with the reason; empty if there are none."""
    found = [change for change in effects.changes if change.protected]
    told = [f"{_name(change)} ({one_line(change.protected, _WIDTH)})" for change in found[:_TOLD]]
    return _with_more(told, len(found) - len(told))


def blocked_attempts(effects: Effects) -> str:
    """Return the attempts of a command that the sandbox has blocked; empty if there were none."""
    told = [blocked(one_line(each.what, _WIDTH), each.kind, each.count) for each in effects.refused[:_TOLD]]
    return _with_more(told, len(effects.refused) - len(told) + effects.refused_left_out)


def tried_network(effects: Effects) -> bool:
    """Say whether a command tried the network, or may have, among attempts that are not listed."""
    return bool(effects.refused_left_out) or any(each.kind == "network" for each in effects.refused)


def _subject(effects: Effects) -> str:
    states = [state.kind for change in effects.changes for state in (change.before, change.after) if state]
    number = count_changed(effects)
    noun = "file" if not effects.left_out and "dir" not in states else "name"
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _told(effects: Effects) -> str:
    first = heapq.nsmallest(_TOLD, effects.changes, key=_weight)
    return _with_more([changed(_name(change), change.what) for change in first], count_changed(effects) - len(first))


def _weight(change: Change) -> tuple[bool, int, str]:
    return not change.protected, _ORDER[change.what], change.path


def _name(change: Change) -> str:
    path = change.path
    return quoted(path if len(path) <= _WIDTH else f"{path[: _WIDTH // 2]}...{path[-_WIDTH // 2 :]}")


def _with_more(told: Sequence[str], more: int) -> str:
    return ", ".join([*told, f"{more} more"] if more > 0 else told)
