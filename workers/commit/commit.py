"""The commit: exactly the approved effects happen in the root, or nothing.

Rule: look at everything first; make everything ready; then rename, what is new before what goes, and take it all back
at the first surprise. Killed at any moment it leaves each file whole, old or new, and one staging directory;
directories that it had made writable have their modes again after the next sweep. A failure says what is in the root
now, and what to do instead.
"""

import errno
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Final, NamedTuple

from workers.changes.effects import CommitFailed, CommitOutcome, Committed, Conflict, Conflicted
from workers.commit.commit_plan import write_plan
from workers.commit.exchange import Exchange, Overtaken
from workers.commit.operations import (
    OpenParents,
    Operation,
    anchor_conflicts,
    conflicts,
    of_root,
    operations,
    overtaken,
)
from workers.commit.staging import Staging, staging
from workers.errors import ToolError
from workers.tree.drafts import LOCK
from workers.tree.root import PROBLEMS, shown
from workers.treediff.comparison import Difference
from workers.treediff.snapshot import Node, spoken

LISTED: Final = 100
"""Conflicts and paths that an outcome lists."""

_NAMED: Final = 10
"""Paths that a message names."""

_TOLD: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EPERM, errno.EROFS})
"""What is no failure of ours."""


class TreeDiff(NamedTuple):
    """A command's differences, and where they are: descriptors of the root and of the upper layer."""

    root: int
    upper: int
    differences: Sequence[Difference]
    unchanged: Mapping[int, tuple[str, Node]]
    since_ns: int


def commit(diff: TreeDiff, held: list[int], number: int = 0) -> CommitOutcome:
    """Apply the differences to the root. The process must have one thread: its umask is 0 meanwhile.

    Args:
        diff: what is to be done.
        held: gets old content that has no name any more, which the caller lets go of when it has time
            (`kernel.let_go`).
        number: of the call, by which this commit is known if it is killed; 0 where none could settle it.
    """
    if not diff.differences:
        return Committed(0)
    todo = operations(diff.differences)
    added = {each.after.inode for each in diff.differences if each.after is not None and each.after.links > 1}
    anchors = {inode: anchor for inode, anchor in diff.unchanged.items() if inode in added}
    found = list(_conflicts(diff, todo, anchors))
    if found:
        return _conflicted(found)
    path = "."
    try:
        with _no_umask(), staging(diff.root, diff.upper, anchors, len(diff.differences)) as place:
            for each in todo:
                path = each.path
                if each.top.after is not None and not each.stays_directory:
                    place.build(each)
            place.sync()
            with OpenParents(diff.root) as parents:
                if number:
                    write_plan(diff.root, place.fd, number, todo, place.inodes)
                return _apply(Exchange(parents, diff.upper, place, held), todo, place)
    except OSError as error:
        if error.errno == errno.ESTALE:
            return _conflicted([Conflict(spoken(path)[0], "it changed while the commit was made ready")])
        return CommitFailed(f"{_told(error, path)} Nothing was changed.", errno=error.errno or 0)


def committed(outcome: CommitOutcome, again: str) -> str:
    """Return what is to be remarked on a commit that took place; empty if nothing is.

    Args:
        outcome: of the commit.
        again: What to do where it did not, a sentence.

    Raises:
        ToolError: it did not take place: `conflict`, or what the system refused.
    """
    match outcome:
        case Committed(remark=remark):
            return remark
        case Conflicted(conflicts=conflicts, more=more):
            told = [f'"{shown(each.path)}": {each.why}' for each in conflicts[:_NAMED]]
            rest = more + len(conflicts) - len(told)
            others = f"; and {rest} more" if rest else ""
            raise ToolError(
                "conflict",
                f"Nothing was changed, because the root is no longer what it was: {'; '.join(told)}{others}. {again}",
                path=shown(conflicts[0].path),
            )
        case CommitFailed(message=message, stands=stands, errno=code):
            now = f" This is in the root now: {'; '.join(stands[:_NAMED])}." if stands else ""
            kind = PROBLEMS[code].kind if code in _TOLD else "internal"
            raise ToolError(kind, f"{message}{now} Tell the person.")


def _conflicts(
    diff: TreeDiff, todo: Sequence[Operation], anchors: Mapping[int, tuple[str, Node]]
) -> Iterator[Conflict]:
    ration = of_root()
    yield from overtaken(diff.differences, diff.since_ns)
    with OpenParents(diff.root) as parents:
        yield from chain.from_iterable(conflicts(parents, each, ration) for each in todo)
        yield from anchor_conflicts(parents, anchors, ration)


def _apply(exchange: Exchange, todo: Sequence[Operation], place: Staging) -> CommitOutcome:
    path = "."
    try:
        place.mark(begun=True)
        for each in sorted(todo, key=_turn):
            path = each.path
            if each.stays_directory:
                exchange.alter(each)
            else:
                exchange.apply(each)
        place.sync_root({each.parent for each in todo})
        place.mark(begun=False)
    except Overtaken as error:
        _roll_back(exchange, place)
        if not exchange.stands:
            return _conflicted(error.conflicts)
        told = "; ".join(f'"{each.path}": {each.why}' for each in error.conflicts[:LISTED])
        return CommitFailed(f"Somebody else changed the root meanwhile ({told}).", tuple(exchange.stands))
    except OSError as error:
        _roll_back(exchange, place)
        end = "Not everything could be taken back." if exchange.stands else "Nothing was changed."
        return CommitFailed(f"{_told(error, path)} {end}", tuple(exchange.stands), error.errno or 0)
    except BaseException:
        _roll_back(exchange, place)
        raise
    exchange.discard()
    found = [f"what a commit that was killed had taken out is kept in {each}" for each in place.found]
    return Committed(sum(1 + len(each.inner) for each in todo), "; ".join(found + exchange.remarks))


def _roll_back(exchange: Exchange, place: Staging) -> None:
    """Undo what was done; from there on what is staged may go, for nothing of it is needed any more."""
    exchange.roll_back()
    if not place.rescued:
        place.mark(begun=False)


def _turn(operation: Operation) -> tuple[int, int]:
    """Return when an operation is done: what comes, what goes, then the modes of directories, inner ones first."""
    if operation.stays_directory:
        return 2, -operation.path.count("/") - (operation.path != ".")
    return int(operation.top.after is None), 0


def _conflicted(found: Sequence[Conflict]) -> Conflicted:
    unique = list(dict.fromkeys(found))
    return Conflicted(tuple(unique[:LISTED]), max(0, len(unique) - LISTED))


def _told(error: OSError, path: str) -> str:
    code = error.errno or 0
    problem = PROBLEMS.get(code)
    if error.filename == "renameat2" and code in {errno.EINVAL, errno.ENOSYS, errno.EXDEV}:
        what = "The root's file system cannot exchange names there"
    elif error.filename == LOCK:
        what = f"The root's file system does not lock directories ({errno.errorcode.get(code, code)})"
    else:
        what = problem.what if problem else f"The system failed with {errno.errorcode.get(code, code)}"
    name = "the root itself" if path == "." else f'"{spoken(path)[0]}"'
    return f"{what}: {name}."


@contextmanager
def _no_umask() -> Iterator[None]:
    before = os.umask(0)
    try:
        yield
    finally:
        os.umask(before)
