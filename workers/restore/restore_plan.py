"""The plan of an undo: what is done about each name of a pack, judged by what is there now.

Rule: a name is restored if it is as the call left it, and left alone if it already is as it was before. Everything else
has changed since, and is only restored where a person insists; but what others have put into a directory goes in no
case. A refusal names the first paths that it is about, and what to do instead.

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
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Final, Literal

import msgspec

from workers.changes.effects import NodeState
from workers.commit.operations import OpenParents, of_root
from workers.errors import ToolError
from workers.restore.pack import PackEntry
from workers.tree.attributes import names_others
from workers.tree.git_index import INDEX, gist
from workers.tree.root import closing, shown
from workers.treediff.comparison import Difference, everything_in
from workers.treediff.effects_of import committable
from workers.treediff.snapshot import KEPT, Node, Ration, look, spoken

_ELSEWHERE: Final = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EXDEV)

_NAMED: Final = 10
"""Paths that a message names."""

_FORCE: Final = "Use --force to take it back all the same."

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
    unlisted: list[str] = []
    """Names whose access lists name others, which cannot be given back."""
    blocked: dict[str, str] = {}
    """What lies where a directory was that the call did not change."""


def survey(root: int, entries: Mapping[str, PackEntry]) -> RestorePlan:
    """Look at every name of a pack in the root, and plan.

    Raises:
        CannotRehearse: a directory cannot be looked through.
        OSError: a name cannot be looked at.
    """
    plan = RestorePlan({})
    ration = of_root(keeps=KEPT)
    with OpenParents(root) as parents:
        for path, entry in entries.items():
            above = plan.steps.get(entry.parent)
            gone = above is not None and above.now is None  # then nothing is in it, and a look that fails is dear
            now, lies = (None, False) if gone else look_at(parents, path, ration)
            entry = _with_index(parents, entry, now)  # noqa: PLW2901 - it stands for the other
            plan.steps[path] = RestoreStep(entry, now, _does(plan, entry, now))
            if not lies and entry.before is not None and plan.steps[path].does != "leave":
                _find_parents(parents, plan, entries, entry)
    for path in _shared(root, plan):
        plan.steps[path].does = "stay"
    return plan


def _with_index(parents: OpenParents, entry: PackEntry, now: Node | None) -> PackEntry:
    """Return what a pack says of a name, with what is there now if that is git's index as the call left it.

    Git writes it anew when it merely looks, with other times of the same files.
    """
    if not entry.gist or entry.after is None or now is None or now.state.kind != "file":
        return entry
    name, flags = entry.path.rpartition("/")[2], os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with suppress(OSError), closing(os.open(name, flags, dir_fd=parents.of(entry.parent))) as file:
        if now.state.mode == entry.after.mode and gist(_all_of(file)) == entry.gist:
            return entry._replace(after=now.state)
    return entry


def _all_of(file: int) -> bytes:
    with open(file, "rb", closefd=False) as content:
        return content.read(INDEX)


def _does(plan: RestorePlan, entry: PackEntry, now: Node | None) -> Does:
    """Judge one name, and note what speaks against restoring it."""
    before, state = entry.before, now.state if now is not None else None
    left = is_after(entry.after, state)
    if not left and is_before(before, state):
        return "leave"
    if before is not None and before.kind in {"socket", "device"}:
        plan.dead.append(entry.path)
        return "leave"
    if not left:
        plan.changed[entry.path] = _word(entry.after, state)
    if names_others(entry.attributes):
        plan.unlisted.append(entry.path)
    if before is None or before.kind != "file" or entry.kept:
        return "restore"
    if state is not None and _has_content(before, state):
        return "copy"
    plan.lost[entry.path] = before.size
    return "leave"


def is_after(after: NodeState | None, now: NodeState | None) -> bool:
    """Say whether a name is as the call left it. A time of 0 was not known then."""
    if after is None or now is None:
        return after is now
    if after.kind == "dir":
        return (after.kind, after.mode) == (now.kind, now.mode)
    if after.mtime_ns:
        return _same(after, now) and after.mtime_ns == now.mtime_ns
    return _same(after, now) and (after.kind != "file" or bool(after.digest and now.digest))


def is_before(before: NodeState | None, now: NodeState | None) -> bool:
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
    return (one.digest == now.digest or not (one.digest and now.digest)) and _plain(one) == _plain(now)


def _plain(state: NodeState) -> NodeState:
    return msgspec.structs.replace(committable(state), mtime_ns=0, digest=b"", attributes={})


def _word(after: NodeState | None, now: NodeState | None) -> str:
    if now is None:
        return "it is gone"
    return "it is there again" if after is None else "it has changed since"


def look_at(parents: OpenParents, path: str, ration: Ration) -> tuple[Node | None, bool]:
    """Return what is at a name, and whether its directory is there."""
    above, _, name = path.rpartition("/")
    try:
        parent = parents.of(above)
    except OSError as error:
        if error.errno in _ELSEWHERE:
            return None, False
        raise
    return look(parent, name, ration, ours=False), True


def _find_parents(parents: OpenParents, plan: RestorePlan, entries: Mapping[str, PackEntry], entry: PackEntry) -> None:
    """Note the first directory on the way to a name that is not there any more, and will not be restored."""
    for above in reversed(list(above_of(entry.path))):
        known = entries.get(above)
        if known is not None and known.before is not None and known.before.kind == "dir":
            continue
        found, _ = look_at(parents, above, Ration(0, 0, strict=False))
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
        if step.does != "restore" or not goes or not walked.isdisjoint(above_of(path)):
            continue
        walked.add(path)
        for found in everything_in(root, path, Ration(0, 0, strict=False)):
            if found not in plan.steps:
                plan.changed[found] = f"it was put into {path!r} since"
                yield from (above for above in above_of(found) if above in plan.steps and _in(above, path))


def _in(path: str, directory: str) -> bool:
    return path == directory or path.startswith(f"{directory}/")


def above_of(path: str) -> Iterator[str]:
    """Yield the directories that a name is in, inner ones first, without the root."""
    while path := path.rpartition("/")[0]:
        yield path


# --- in words ------------------------------------------------------------------------------------------------------


def judge(plan: RestorePlan, *, force: bool) -> None:
    """Raise what speaks against a plan.

    Raises:
        ToolError: `conflict`, or `too_large` where something was not kept.
    """
    if plan.blocked:
        told = _told(f'"{named(path)}" is a {kind} now' for path, kind in plan.blocked.items())
        raise ToolError("conflict", f"Directories are needed where something else is: {told}. Move it away.")
    if plan.changed and not force:
        told = _told(f'"{named(path)}": {why}' for path, why in plan.changed.items())
        message = f"It has changed since: {told}. {_FORCE}"
        raise ToolError("conflict", message, path=named(next(iter(plan.changed))))
    if plan.unlisted and not force:
        told = _told(f'"{named(path)}"' for path in plan.unlisted)
        message = f"Access lists that name others cannot be given back: {told}. Use --force to restore the rest."
        raise ToolError("permission_denied", message, path=named(plan.unlisted[0]))
    if plan.lost and not force:
        told = _told(f'"{named(path)}" ({size} bytes)' for path, size in plan.lost.items())
        message = (
            f"The old content was too large to keep, or could not be read: {told}. Use --force to restore the rest."
        )
        raise ToolError("too_large", message, path=named(next(iter(plan.lost))))


def remarks(plan: RestorePlan, left: Iterable[str] = ()) -> Iterator[str]:
    """Say what is not restored, and what is `left` to others."""
    stays = [path for path, step in plan.steps.items() if step.does == "stay"]
    for paths, why in (
        (list(left), "Left as others have made it"),
        (stays, "Left standing, because others have put something there"),
        (list(plan.lost), "Left as it is, because the old content was not kept"),
        (plan.unlisted, "Without its access list, which names others"),
        (plan.dead, "Not restored, because a socket or a device cannot be made again"),
    ):
        if paths:
            yield f"{why}: {_told(named(path) for path in paths)}."


def sentence(differences: Iterable[Difference]) -> str:
    """Say how much is restored and removed."""
    restored: Counter[bool] = Counter()
    removed: Counter[bool] = Counter()
    for _path, before, after, _inner in differences:
        seen = before if after is None else after
        counter = removed if after is None else restored
        counter[seen is not None and seen.state.kind == "dir"] += 1
    parts = [f"{word} {_counted(each)}" for word, each in (("restored", restored), ("removed", removed)) if each]
    return f"{', '.join(parts).capitalize()}."


def named(path: str) -> str:
    """Return a path as a message names it."""
    return shown(spoken(path)[0])


def _counted(counter: Counter[bool]) -> str:
    words = {False: ("file", "files"), True: ("directory", "directories")}
    return " and ".join(f"{count} {words[kind][count != 1]}" for kind, count in sorted(counter.items()))


def _told(items: Iterable[str]) -> str:
    each = list(items)
    more = f"; and {len(each) - _NAMED} more" if len(each) > _NAMED else ""
    return "; ".join(each[:_NAMED]) + more
