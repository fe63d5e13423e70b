"""Operations of a commit, units that each take one rename, and what must hold of the root before they are done.

Rule: an operation is at a name whose directory stays. What is in a directory that is new or gone goes with it. So the
operations do not depend on each other. Every name that a commit touches is looked at again, with all that is in the
directories that go, before the first one changes. What cannot be looked at is a conflict. Where the file system cannot
exchange names, nothing is proposed; one that is not known is believed to be able to.
"""

import errno
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple, Self

import msgspec

from workers.changes.effects import Conflict, NodeState
from workers.errors import CannotRehearse
from workers.tree.root import HANDLE, open_beneath
from workers.treediff.comparison import Difference, everything_in
from workers.treediff.effects_of import changed_since
from workers.treediff.snapshot import Node, Ration, Shows, look, spoken

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


def obstacle(root: int, differences: Sequence[Difference]) -> str:
    """Return why these differences could not be committed to the root; empty where nothing is known to prevent it.

    Directories of an overlay with something below have one link (ovl_getattr of fs/overlayfs/inode.c). Those that are
    in one lower layer alone show by nothing that they cannot be renamed: their commit fails, and is taken back.
    """
    kind = _kind_of(root) if differences else ""
    if kind in _EXCHANGE_NOTHING:
        return f"the root's file system ({kind}) cannot exchange names"
    for path, before, after, inner in differences if kind == _OVERLAY else ():
        if before is not None and before.links == 1 and is_directory(before) and not is_directory(after) and not inner:
            return f"the root lies on an overlay itself, where no directory of a lower layer can be removed ({path!r})"
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


def of_root(keeps: int = 0, shows: Shows | None = None) -> Ration:
    """Return what may be read of the root at one time."""
    return Ration(TOTAL, EACH, strict=False, keeps=keeps, shows=shows)


class OpenParents:
    """The directories of names beneath `directory`, through no link and on its file system, one open at a time.

    Names follow each other directory by directory, and each is opened once for all that are in it.
    """

    def __init__(self, directory: int) -> None:
        """Take a descriptor, which stays the caller's."""
        self.root: Final = directory
        self._open: tuple[str, int] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_raised: object) -> None:
        self.close()

    def close(self) -> None:
        """Close what is open, if anything is."""
        if self._open is not None:
            os.close(self._open[1])
            self._open = None

    def of(self, path: str) -> int:
        """Return a descriptor of the directory `path`, good until another one is asked for.

        Raises:
            OSError: it is not there, or on another file system.
        """
        if self._open is None or self._open[0] != path:
            self.close()
            self._open = path, open_beneath(self.root, path or ".", HANDLE, links=False)
            if os.fstat(self._open[1]).st_dev != os.fstat(self.root).st_dev:
                self.close()
                raise OSError(errno.EXDEV, "another file system", path)
        return self._open[1]


def overtaken(differences: Iterable[Difference], since_ns: int) -> Iterator[Conflict]:
    """Find what somebody else changed while the command ran."""
    for each in differences:
        if changed_since(each, since_ns):
            yield conflict(each.path, "somebody else changed it while the command ran")


def conflicts(parents: OpenParents, operation: Operation, ration: Ration, *, stays: bool = False) -> Iterator[Conflict]:
    """Find what is another now, at the operation's name and in a directory that goes.

    What has not changed since it was seen, by its times, is read when it is out of the root; now, if it `stays` there.
    """
    before = operation.top.before
    why = "its directory is gone, or is a link now"
    try:
        parent = parents.of(operation.parent)
        why = "it cannot be looked at any more"
        now = look(parent, operation.name, ration, ours=False, known=None if stays else before)
    except OSError:
        yield conflict(operation.path, why)
        return
    if not same(before, now):
        yield conflict(operation.path, _word(before, now))
    elif is_directory(before) and not operation.stays_directory:
        path, lost = operation.path, operation.lost()
        yield from lost_conflicts(parents.root, path, path, lost, ration, known=lost)


def anchor_conflicts(
    parents: OpenParents, anchors: Mapping[int, tuple[str, Node]], ration: Ration
) -> Iterator[Conflict]:
    """Find what is another now among the files that get another name."""
    for path, before in anchors.values():
        yield from conflicts(parents, Operation("", Difference(path, before, None), ()), ration, stays=True)


def lost_conflicts(
    root: int,
    place: str,
    path: str,
    lost: Mapping[str, Node],
    ration: Ration,
    known: Mapping[str, Node] = MappingProxyType({}),
) -> Iterator[Conflict]:
    """Find what is another now in the directory `place`, which was `path` when `lost` was seen in it.

    What is `known` there is not read again where it is as it was.
    """
    try:
        found = everything_in(root, place, ration, known)
    except (CannotRehearse, OSError):
        yield conflict(path, "it cannot be looked through any more")
        return
    now = {path + each[len(place) :]: seen for each, seen in found.items()}
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
    try:
        top = look(directory, operation.number, nothing, ours=False)
        found = everything_in(directory, operation.number, nothing) if is_directory(top) else {}
    except (CannotRehearse, OSError):
        return False  # for all that is known
    cut = len(operation.number)
    now = {operation.path + path[cut:]: _written(seen) for path, seen in found.items()}
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
