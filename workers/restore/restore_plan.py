"""The plan of an undo: what is done about each name of a pack, judged by what is there now.

Rule: a name is restored if it is as the call left it, and left alone if it already is as it was before. Everything else
has changed since, and is only restored where a person insists; but what others have put there goes in no case.

    now              in the pack            is
    as after         anything               restored
    as before        anything               left
    anything else    anything               a conflict; restored by force
    as after         a file, not kept       lost; left by force
    a directory      was none, and others   a conflict; by force what is the call's own goes, and the directory stays
                     have put names there
"""

import errno
import os
from collections.abc import Iterator, Mapping
from typing import Final, Literal

import msgspec

from workers.changes.effects import NodeState
from workers.commit.preconditions import of_root
from workers.restore.pack import PackEntry
from workers.tree.root import closing, open_beneath
from workers.treediff.comparison import Comparison
from workers.treediff.effects_of import committable
from workers.treediff.snapshot import Node, Ration, look

_ELSEWHERE: Final = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)

Does = Literal["restore", "copy", "leave", "stay"]
"""`copy` is `restore` with the content that is there now; `stay` is a directory that others use by now."""


class RestoreStep(msgspec.Struct):
    """One name of the pack, and what is there now."""

    entry: PackEntry
    now: Node | None
    does: Does


class RestorePlan(msgspec.Struct):
    """What is to be done, and everything that speaks against it, by path."""

    steps: dict[str, RestoreStep]
    changed: dict[str, str] = {}
    """Why a name is no longer as the call left it."""
    lost: dict[str, int] = {}
    """The size of a file whose content was not kept."""
    dead: list[str] = []
    """Sockets and devices, which cannot be made again."""
    blocked: dict[str, str] = {}
    """What lies where a directory was that the call did not change."""


def survey(root: int, entries: Mapping[str, PackEntry]) -> RestorePlan:
    """Look at every name of a pack in the root, and plan.

    Raises:
        CannotRehearse: a directory cannot be looked through.
        OSError: a name cannot be looked at.
    """
    plan = RestorePlan({})
    ration = of_root()
    for path, entry in entries.items():
        now, lies = _look(root, entry, ration)
        plan.steps[path] = RestoreStep(entry, now, _does(plan, entry, now))
        if not lies and entry.before is not None and plan.steps[path].does != "leave":
            _find_parents(root, plan, entries, entry)
    for path in _shared(root, plan):
        plan.steps[path].does = "stay"
    return plan


def _does(plan: RestorePlan, entry: PackEntry, now: Node | None) -> Does:
    """Judge one name, and note what speaks against restoring it."""
    before, state = entry.before, now.state if now is not None else None
    left = _is_after(entry.after, state)
    if not left and _is_before(before, state):
        return "leave"
    if before is not None and before.kind in {"socket", "device"}:
        plan.dead.append(entry.path)
        return "leave"
    if not left:
        plan.changed[entry.path] = _word(entry.after, state)
    if before is None or before.kind != "file" or entry.kept:
        return "restore"
    if state is not None and _has_content(before, state):
        return "copy"
    plan.lost[entry.path] = before.size
    return "leave"


def _is_after(after: NodeState | None, now: NodeState | None) -> bool:
    """Say whether a name is as the call left it. A time of 0 was not known then."""
    if after is None or now is None:
        return after is now
    if after.kind == "dir":
        return (after.kind, after.mode) == (now.kind, now.mode)
    if after.mtime_ns:
        return _same(after, now) and after.mtime_ns == now.mtime_ns
    return _same(after, now) and (after.kind != "file" or bool(after.digest and now.digest))


def _is_before(before: NodeState | None, now: NodeState | None) -> bool:
    """Say whether a name already is as it was, but for the time of a file whose content is known."""
    if before is None or now is None:
        return before is now
    if before.attributes != now.attributes:
        return False
    known = before.kind != "file" or bool(before.digest and now.digest)
    return _same(before, now) and (known or before.mtime_ns == now.mtime_ns)


def _has_content(before: NodeState, now: NodeState) -> bool:
    """Say whether a file has the content that one had whose content was not kept."""
    if before.digest:
        return now.digest == before.digest
    return now.kind == "file" and (now.size, now.mtime_ns) == (before.size, before.mtime_ns)


def _same(one: NodeState, now: NodeState) -> bool:
    """Compare all but times and attributes; a digest only where both have one."""
    digests = {one.digest, now.digest} - {b""}
    kept, found = committable(one), committable(now)
    return len(digests) < 2 and (kept.kind, kept.mode, kept.size, kept.target, kept.raw_target) == (  # noqa: PLR2004
        found.kind,
        found.mode,
        found.size,
        found.target,
        found.raw_target,
    )


def _word(after: NodeState | None, now: NodeState | None) -> str:
    if now is None:
        return "it is gone"
    return "it is there again" if after is None else "it has changed since"


def _look(root: int, entry: PackEntry, ration: Ration) -> tuple[Node | None, bool]:
    """Return what is at a name, and whether its directory is there."""
    try:
        parent = open_beneath(root, entry.parent or ".", os.O_PATH | os.O_DIRECTORY, links=False)
    except OSError as error:
        if error.errno in _ELSEWHERE:
            return None, False
        raise
    with closing(parent):
        return look(parent, entry.path.rpartition("/")[2], ration, ours=False), True


def _find_parents(root: int, plan: RestorePlan, entries: Mapping[str, PackEntry], entry: PackEntry) -> None:
    """Note the first directory on the way to a name that is not there any more, and will not be restored."""
    for above in reversed(list(_above(entry.path))):
        known = entries.get(above)
        if known is not None and known.before is not None and known.before.kind == "dir":
            continue
        found, _ = _look(root, PackEntry(above, None, None, {}, kept=False, at=0), Ration(0, 0, strict=False))
        if found is not None and found.state.kind != "dir":
            plan.blocked[above] = found.state.kind
            return
        if found is None:
            plan.changed[entry.path] = "its directory is gone"
            return


def _shared(root: int, plan: RestorePlan) -> Iterator[str]:
    """Find the directories of the call's that others have put something into, and note what."""
    walked: set[str] = set()
    for path, step in list(plan.steps.items()):
        before = step.entry.before
        goes = step.now is not None and step.now.state.kind == "dir" and (before is None or before.kind != "dir")
        if step.does != "restore" or not goes or not walked.isdisjoint(_above(path)):
            continue
        walked.add(path)
        nothing = Ration(0, 0, strict=False)
        walk = Comparison(-1, root, above=nothing, below=nothing)
        walk.tree(path)
        for found in walk.differences:
            if found.path not in plan.steps:
                plan.changed[found.path] = f"it was put into {path!r} since"
                yield from (above for above in _above(found.path) if above in plan.steps and _in(above, path))


def _in(path: str, directory: str) -> bool:
    return path == directory or path.startswith(f"{directory}/")


def _above(path: str) -> Iterator[str]:
    """Yield the directories that a name is in, inner ones first, without the root."""
    while path := path.rpartition("/")[0]:
        yield path
