"""Changes by their exact names, as rules compare them.

Rule: pure. What a person is shown is escaped and cut; what is compared is the name as it is.
"""

from typing import NamedTuple

from workers.changes.effects import Change, Effects


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
