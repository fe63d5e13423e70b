"""Changes as rules compare them: by exact name, and by kind, which is finer than the one word of an effect.

Rule: pure. What a person is shown is escaped and cut; what is compared is the name as it is. A change has every kind
that it is. A link leads outside unless its text, read without any other link, stays beneath the root; executable bits
count as those of a program unless the worker saw text.
"""

from typing import Final, NamedTuple

from supervisor.rules.rule import ChangeKind
from workers.changes.effects import Change, Effects, NodeState, new_executable_bits

NEVER_MADE: Final[frozenset[ChangeKind]] = frozenset({"program", "setuid", "link-outside", "special"})
"""What no rule covers that a person made with a yes."""

ONLY_BY_NAME: Final[frozenset[ChangeKind]] = frozenset({"link-outside", "special"})
"""What a rule covers only where it names the kind."""

_OTHERS_WRITE: Final = 0o002
_SET_ID: Final = 0o6000
_SET_USER_ID: Final = 0o4000
_NOT_ORDINARY: Final = 0o6113
"""Bits of a new file that are a kind of their own."""
_CONTENT: Final[frozenset[ChangeKind]] = frozenset({"content"})


def kinds_of(change: Change) -> frozenset[ChangeKind]:
    """Return all that a change is."""
    before, after = change.before, change.after
    if (
        change.what == "added"
        and after is not None
        and after.kind == "file"
        and not after.mode & _NOT_ORDINARY
        and not (after.attributes or change.same_as or change.withheld)
    ):
        return _CONTENT  # as nearly all of a large tree are
    kinds: set[ChangeKind] = set()
    if after is None or change.what in {"deleted", "replaced"}:
        kinds.add("deletion")
    if after is None or change.what == "deleted":
        return frozenset(kinds)
    if change.what in {"added", "modified", "replaced"}:
        kinds |= _new_content(change, after)
    if after.kind != "link":
        kinds |= _bits(change, before, after)
    if after.attributes != (before.attributes if before is not None else {}):
        kinds.add("attributes")
    return frozenset(kinds)


def _new_content(change: Change, after: NodeState) -> set[ChangeKind]:
    if after.kind == "link":
        return {"link-outside" if change.leaves or leads_outside(change, after) else "link"}
    if after.kind in {"file", "dir"}:
        return {"content", "link"} if change.same_as else {"content"}
    return {"special"}


def _bits(change: Change, before: NodeState | None, after: NodeState) -> set[ChangeKind]:
    """Return what the permission bits are: those of a new name are ordinary unless anybody may write it."""
    kinds: set[ChangeKind] = set()
    gained = new_executable_bits(before, after) if after.kind == "file" else 0
    if gained:
        kinds.add("executable" if change.script else "program")
    if change.withheld or after.mode & (_SET_ID if after.kind == "file" else _SET_USER_ID):
        kinds.add("setuid")
    if before is None or before.kind != after.kind:
        if after.mode & _OTHERS_WRITE:
            kinds.add("mode")
    elif (before.mode | gained) != after.mode:
        kinds.add("mode")
    return kinds


def leads_outside(change: Change, link: NodeState) -> bool:
    """Say whether a link's text leads out of the root, or could by way of other links: any `..` behind a name may."""
    target = link.raw_target.decode("utf-8", "surrogateescape") if link.raw_target else link.target
    path = change.raw_path.decode("utf-8", "surrogateescape") if change.raw_path else change.path
    if target.startswith("/"):
        return True
    parts = [part for part in target.split("/") if part not in ("", ".")]
    up = next((at for at, part in enumerate(parts) if part != ".."), len(parts))
    return up > path.count("/") or ".." in parts[up:]


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
