"""The settlement of a commit that was killed: it is taken back, unless it was complete, and the root is compared.

Rule: what is taken back is what the plan in the commit's own staging directory says (`commit_plan`), by the same
renames; only a plan with the number of the call counts, which the journal has: anybody may have put there whatever else
lies in the root. What is said of the commit is what the root holds then, name by name. What somebody else has changed
since is left, and named.
"""

import os
import stat
import time
from collections.abc import Collection, Iterable, Mapping
from typing import Final, Literal

import msgspec

from workers.changes.effects import Change, NodeState
from workers.commit.commit_plan import PLAN, PlannedOperation, has_plan, read_plan
from workers.commit.exchange import Exchange
from workers.commit.operations import OpenParents, Operation, of_root
from workers.commit.staging import Staging, sync_directories
from workers.commit.staging_directory import BEGUN, RESCUED, sweep
from workers.commit.temporary_modes import forget, put_back
from workers.errors import ToolError
from workers.restore.pack import PackEntry
from workers.restore.restore_plan import is_after, is_before, look_at, named
from workers.tree.drafts import drafts_in, locks, remove_directory, sweep_directory
from workers.tree.root import DIRECTORY, closing, open_beneath
from workers.treediff.snapshot import Node

Fate = Literal["before", "after", "mixed"]
_LISTED: Final = 20
"""Names that are told."""

_DYING_S: Final = 10.0
_STAGING_S: Final = 0.5
_LOOK_S: Final = 0.01
"""How long, and how often, to look whether a process that was killed has let go of its staging directory. Less long
where that has no plan yet: then it may be another commit's, and nothing has been changed by it."""

_SWEPT: Final = 20
"""Directories in which what writers left that were killed is removed: a file tool changes one."""


class Settlement(msgspec.Struct, frozen=True):
    """What became of a commit."""

    fate: Fate
    others: tuple[str, ...] = ()
    """Names that are neither as they were before nor as they were to be; and what of that is kept where."""
    made: tuple[str, ...] = ()
    """Where it is mixed, the names that are as they were to be,"""
    undone: tuple[str, ...] = ()
    """and those that are as before."""


def entries_of(changes: Iterable[Change]) -> dict[str, PackEntry]:
    """Return changes as a pack has them."""
    paths = {os.fsdecode(each.raw_path) if each.raw_path else each.path: each for each in changes}
    return {
        path: PackEntry(path, each.before, each.after, each.before.attributes if each.before else {}, False, 0)
        for path, each in paths.items()
    }


def settle(root: int, number: int, entries: Mapping[str, PackEntry]) -> Settlement:
    """Take back what a killed commit has done, if it was not complete; say what there is now, durably.

    Args:
        root: where it was; its process must have ended, or be about to.
        number: of its call.
        entries: what it was to change, at least one name.

    Raises:
        ToolError: its process does not end.
        OSError: the root cannot be read.
    """
    with closing(open_beneath(root, ".", DIRECTORY, links=False)) as directory:
        stands = _taken_back(root, directory, number)
        sweep(root)
        above = {each.parent for each in entries.values()}
        for path in above if len(above) <= _SWEPT else ():
            _sweep(root, path)
        with OpenParents(root) as parents:
            now = {path: _state(look_at(parents, path, of_root())[0]) for path in entries}
        sync_directories(root, directory, {path or "." for path in above})
    undone = {path for path, each in entries.items() if _was(each.before, now[path])}
    made = {path for path, each in entries.items() if _becomes(each.after, now[path])} - undone
    others = (*stands, *_listed(entries.keys() - made - undone))
    if stands or bool(made) == bool(undone):
        return Settlement("mixed", others, _listed(made), _listed(undone))
    return Settlement("after" if made else "before", others)


def _listed(paths: Collection[str]) -> tuple[str, ...]:
    """Return the first names, and how many more there are."""
    more = len(paths) - _LISTED
    return (*(named(path) for path in sorted(paths)[:_LISTED]), *([f"and {more} more"] if more > 0 else []))


def _taken_back(root: int, directory: int, number: int) -> list[str]:
    """Take back what the staging directory of the call says; return what stands, in words."""
    began, stands = time.monotonic(), list[str]()
    while True:
        ours = anybodys = False
        with os.scandir(directory) as found:
            rescued = [each.name for each in found if each.name.startswith(RESCUED)]
        for name in (*drafts_in(directory), *rescued):
            try:
                dead = open_beneath(directory, name, DIRECTORY, links=False)
            except OSError:
                continue  # it has just gone, or is none of ours
            with closing(dead):
                held, plan = locks(dead), read_plan(dead, number)
                ours |= not held and plan is not None
                anybodys |= not held and not has_plan(dead)
                if held and plan is not None and (os.fstat(dead).st_mode & BEGUN or name in rescued):
                    stands += _roll_back(root, name, dead, plan)
        if time.monotonic() >= began + (_DYING_S if ours else _STAGING_S if anybodys else 0.0):
            if not ours:
                return stands
            raise ToolError("internal", "The process that was to make these changes was killed, and does not end.")
        time.sleep(_LOOK_S)


def _roll_back(root: int, name: str, dead: int, plan: list[PlannedOperation]) -> list[str]:
    """Undo what was done of a plan, and remove the staging directory; return what stands, in words.

    Killed itself, it is done again: what it has undone lies in the staging directory as it was staged.
    """
    put_back(root, dead)
    staging = Staging(dead, name, root, -1, {})
    with OpenParents(root) as parents:
        exchange = Exchange(parents, -1, staging, [])
        renamed = [each for each in plan if not each.operation.stays_directory]
        altered = [each for each in plan if each.operation.stays_directory]
        strange = [each.operation for each in altered if not _is_ours(parents, each)]
        exchange.resume(
            [(each.operation, each.inode) for each in renamed if each.is_done(dead)],
            [(each.operation, _mode(each), each.attributes) for each in altered if each.operation not in strange],
        )
        exchange.roll_back()
    put_back(root, dead)
    staging.sync_root({each.operation.parent for each in plan})
    if staging.rescued:
        forget(dead)
        os.unlink(PLAN, dir_fd=dead)
    else:
        staging.mark(begun=False)
        remove_directory(root, name)
    return [*exchange.stands, *(_changed(each) for each in strange)]


def _is_ours(parents: OpenParents, planned: PlannedOperation) -> bool:
    """Say whether a directory that stays is the one that was seen, with the mode that it had or was to have."""
    now = look_at(parents, planned.operation.path, of_root())[0]
    known = [each.state.mode | stat.S_IRWXU for each in planned.operation.top[1:3] if each is not None]
    return now is not None and now.inode == planned.inode and now.state.mode | stat.S_IRWXU in known


def _mode(planned: PlannedOperation) -> int:
    before = planned.operation.top.before
    assert before is not None, "the directory was there"
    return before.state.mode


def _changed(operation: Operation) -> str:
    return f"{named(operation.path)}: somebody else changed it"


def _sweep(root: int, path: str) -> None:
    """Remove what writers that were killed have left in a directory, if it is there."""
    try:
        directory = open_beneath(root, path or ".", DIRECTORY, links=False)
    except OSError:
        return
    with closing(directory):
        sweep_directory(directory)


def _was(before: NodeState | None, now: NodeState | None) -> bool:
    """Say whether a name is as it was, its time included: what is renamed back has the time that it had."""
    same = is_before(before, now)
    return same and (before is None or now is None or not before.mtime_ns or before.mtime_ns == now.mtime_ns)


def _becomes(after: NodeState | None, now: NodeState | None) -> bool:
    """Say whether a name is as it was to be, a directory's attributes included."""
    if not is_after(after, now):
        return False
    return after is None or now is None or after.kind != "dir" or after.attributes == now.attributes


def _state(seen: Node | None) -> NodeState | None:
    return seen.state if seen is not None else None
