"""Preconditions of a commit: the root must still be what it was when the effects were determined.

Rule: every name that a commit touches is looked at again, with all that is in the directories that go, before the first
one changes. What cannot be looked at is a conflict. Where the file system cannot exchange names, nothing is
proposed; one that is not known is believed to be able to.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from workers.changes.effects import Conflict, NodeState
from workers.commit.operations import Operation, is_directory
from workers.errors import CannotRehearse
from workers.tree.root import closing, open_beneath
from workers.treediff.comparison import Comparison, Difference
from workers.treediff.effects_of import changed_since
from workers.treediff.snapshot import Node, Ration, look, spoken

TOTAL: Final = 2 * 2**30
EACH: Final = 2**28
"""Bytes of the root that are read for digests, of all files and of one. A file that does not fit is told apart by its
inode and the time of its last change of any kind."""


_EXCHANGE_NOTHING: Final = frozenset(
    {"9p", "ceph", "cifs", "ecryptfs", "exfat", "hfsplus", "nfs", "nfs4", "ntfs3", "smb3", "vboxsf"}
)
"""Their rename2 in the kernel's fs/ refuses RENAME_EXCHANGE, some also RENAME_NOREPLACE."""

_OVERLAY: Final = "overlay"
"""Refuses to move a directory that was there when it was mounted (EXDEV), unless it was told otherwise."""


def obstacle(root: int, differences: Sequence[Difference]) -> str:
    """Return why these differences could not be committed to the root; empty where nothing is known to prevent it."""
    kind = _kind_of(root) if differences else ""
    if kind in _EXCHANGE_NOTHING:
        return f"the root's file system ({kind}) cannot exchange names"
    for path, before, after, inner in differences if kind == _OVERLAY else ():
        if is_directory(before) and not is_directory(after) and not inner:
            return f"the root lies on an overlay itself, which cannot let a directory go in one step ({path!r})"
    return ""


def _kind_of(root: int) -> str:
    """Return the name of the root's file system as /proc has it; empty where it does not say."""
    device = os.fstat(root).st_dev
    wanted = f"{os.major(device)}:{os.minor(device)}"
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
            lines = [line.split() for line in file]
    except OSError:
        return ""
    return next((line[line.index("-") + 1] for line in lines if line[2] == wanted), "")


def of_root() -> Ration:
    """Return what may be read of the root at one time."""
    return Ration(TOTAL, EACH, strict=False)


def open_parent(root: int, operation: Operation) -> int:
    """Open the directory of an operation's name, through no link and on the root's file system; the caller closes it.

    Raises:
        OSError: it is not there any more.
    """
    parent = open_beneath(root, operation.parent, os.O_PATH | os.O_DIRECTORY, links=False)
    if os.fstat(parent).st_dev != os.fstat(root).st_dev:
        os.close(parent)
        raise OSError(0, "another file system", operation.parent)
    return parent


def overtaken(differences: Iterable[Difference], since_ns: int) -> Iterator[Conflict]:
    """Find what somebody else changed while the command ran."""
    for each in differences:
        if changed_since(each, since_ns):
            yield conflict(each.path, "somebody else changed it while the command ran")


def conflicts(root: int, operation: Operation, ration: Ration) -> Iterator[Conflict]:
    """Find what is another now, at the operation's name and in a directory that goes."""
    try:
        parent = open_parent(root, operation)
    except OSError:
        yield conflict(operation.path, "its directory is gone, or is a link now")
        return
    try:
        with closing(parent):
            now = look(parent, operation.name, ration, ours=False)
    except OSError:
        yield conflict(operation.path, "it cannot be looked at any more")
        return
    before = operation.top.before
    if not same(before, now):
        yield conflict(operation.path, _word(before, now))
    elif is_directory(before) and not operation.stays_directory:
        yield from lost_conflicts(root, operation.path, operation.path, operation.lost(), ration)


def anchor_conflicts(root: int, anchors: Mapping[int, tuple[str, Node]], ration: Ration) -> Iterator[Conflict]:
    """Find what is another now among the files that get another name."""
    for path, before in anchors.values():
        yield from conflicts(root, Operation("", Difference(path, before, None), ()), ration)


def lost_conflicts(root: int, place: str, path: str, lost: Mapping[str, Node], ration: Ration) -> Iterator[Conflict]:
    """Find what is another now in the directory `place`, which was `path` when `lost` was seen in it."""
    walk = Comparison(-1, root, above=ration, below=ration)
    try:
        walk.tree(place)
    except (CannotRehearse, OSError):
        yield conflict(path, "it cannot be looked through any more")
        return
    now = {path + each.path[len(place) :]: each.before for each in walk.differences}
    for each in sorted(now.keys() | lost.keys()):
        if not same(lost.get(each), now.get(each)):
            yield conflict(each, _word(lost.get(each), now.get(each)))


def same(before: Node | None, now: Node | None) -> bool:
    """Say whether nothing changed in between."""
    if before is None or now is None:
        return before is now
    if before.state.kind == "file" and not (before.state.digest and now.state.digest):
        one = before.device, before.inode, before.changed_ns, undigested(before.state)
        return one == (now.device, now.inode, now.changed_ns, undigested(now.state))
    return before.state == now.state


def untouched(directory: int, operation: Operation) -> bool:
    """Say whether nobody has written into what was made for an operation, which is in `directory` under its number."""
    nothing = Ration(0, 0, strict=False)
    walk = Comparison(-1, directory, above=nothing, below=nothing)
    cut = len(operation.number)
    try:
        top = look(directory, operation.number, nothing, ours=False)
        if is_directory(top):
            walk.tree(operation.number)
    except (CannotRehearse, OSError):
        return False  # for all that is known
    now = {operation.path + each.path[cut:]: _written(each.before) for each in walk.differences}
    made = {each.path: _written(each.after) for each in operation.inner if each.after is not None}
    return now == made and _written(top) == _written(operation.top.after)


def _written(seen: Node | None) -> tuple[str, int, int]:
    return (seen.state.kind, seen.state.size, seen.state.mtime_ns) if seen is not None else ("", 0, 0)


def undigested(state: NodeState) -> NodeState:
    """Return a state as if its content had not been read."""
    return msgspec.structs.replace(state, digest=b"")


def conflict(path: str, why: str) -> Conflict:
    """Return a conflict for people."""
    return Conflict(spoken(path)[0], why)


def _word(before: Node | None, now: Node | None) -> str:
    if before is None:
        return "somebody else made it"
    return "it is gone" if now is None else "somebody else changed it"
