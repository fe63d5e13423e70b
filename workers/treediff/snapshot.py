"""Snapshots of single names: state and identity, without following a link.

Rule: a name is looked at relative to an open directory, never by a path, and files are read by a descriptor that is
compared with what was seen. What a command wrote is hostile: how much is read for a digest is rationed.
"""

import errno
import hashlib
import os
import stat
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from types import MappingProxyType
from typing import Final, NamedTuple

from workers.changes.effects import Kind, NodeState
from workers.errors import TooMuch
from workers.tree.attributes import read_attributes, shortened, unkept
from workers.tree.root import closing

CHUNK: Final = 2**20
KEPT: Final = 2**23
"""Bytes of contents that one comparison keeps of each side, so that small files are read once."""
KEPT_EACH: Final = 2**16
"""The same of one file."""

BITS: Final = 0o7777

_OPEN: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_KINDS: Final[Mapping[int, Kind]] = MappingProxyType(
    {
        stat.S_IFREG: "file",
        stat.S_IFDIR: "dir",
        stat.S_IFLNK: "link",
        stat.S_IFIFO: "fifo",
        stat.S_IFSOCK: "socket",
        stat.S_IFBLK: "device",
        stat.S_IFCHR: "device",
    }
)


class Node(NamedTuple):
    """A state, and what tells this object from another one with the same state."""

    state: NodeState
    device: int
    inode: int
    changed_ns: int
    """st_ctime: of a change of anything but the name."""
    links: int
    content: bytes | None = None
    """Of a file, what its digest is of; None where that was not kept."""
    loses: tuple[str, ...] = ()
    """What an undo cannot give back, and a change may not keep, of a file or directory of the root: in words."""
    group: int = -1
    """The number of the group that it belongs to."""


Shows = Callable[[int, os.stat_result], None]
"""Takes an open file, for as long as the call lasts, and its status."""


class Ration:
    """How many bytes may still be read for digests.

    Where `strict`, more than that is `TooMuch`; else a file that does not fit has no digest. Small contents of at most
    `keeps` bytes in all stay with what was seen. Each file that is opened is shown to `shows` as well.
    """

    def __init__(self, total: int, each: int, *, strict: bool, keeps: int = 0, shows: Shows | None = None) -> None:
        self.shows: Final = shows
        self._left = total
        self._each = each
        self._strict = strict
        self._keeps = keeps

    def keeps(self, content: bytes) -> bool:
        """Say whether a content is kept, and count it."""
        if len(content) > min(self._keeps, KEPT_EACH):
            return False
        self._keeps -= len(content)
        return True

    def takes(self, size: int) -> bool:
        """Say whether a file of `size` bytes is read, and count it.

        Raises:
            TooMuch: it does not fit, and has to.
        """
        if size <= min(self._left, self._each):
            self._left -= size
            return True
        if self._strict:
            raise TooMuch("the command left more bytes behind than can be compared")
        return False


def look(directory: int, name: str, ration: Ration, *, ours: bool, known: Node | None = None) -> Node | None:
    """Return what is at `name` in the open directory; None where nothing is.

    Args:
        directory: A descriptor, O_PATH suffices.
        name: One component.
        ration: For the digest of a file.
        ours: The name is in a scratch directory of this process, whose modes may be changed to read it.
        known: What was seen there before. If nothing of that has changed since by its st_ctime, it is not read again;
            only what is written through a mapping may change without another time.
    """
    try:
        status = os.lstat(name, dir_fd=directory)
    except FileNotFoundError:
        return None
    if known is not None and _identity(status) == known[1:4]:
        return known
    kind = _KINDS[stat.S_IFMT(status.st_mode)]
    mode, content = status.st_mode & BITS, None
    loses: tuple[str, ...] = ()
    if kind == "file":
        digest, attributes, content, loses = _read(directory, name, status, ration, ours=ours)
        state = NodeState(kind, mode, status.st_size, status.st_mtime_ns, digest, attributes=attributes)
    elif kind == "dir":
        _, attributes, _, loses = _read(directory, name, status, None, ours=ours)
        state = NodeState(kind, mode, attributes=attributes)
    else:
        target = spoken(os.readlink(name, dir_fd=directory)) if kind == "link" else ("", b"")
        state = NodeState(kind, mode, 0, status.st_mtime_ns, b"", *target)
    return Node(state, *_identity(status), status.st_nlink, content, loses, status.st_gid)


def plain_node(status: os.stat_result, digest: bytes, content: bytes) -> Node:
    """Return what `look` finds of a file of ours that has no attributes."""
    state = NodeState("file", status.st_mode & BITS, status.st_size, status.st_mtime_ns, digest)
    return Node(state, *_identity(status), status.st_nlink, content, (), status.st_gid)


class _Unlocked:
    """What `opened` gives of a file or directory whose mode forbids to read it."""

    def __init__(self, directory: int, name: str, status: os.stat_result) -> None:
        self._seen = directory, name, status

    def __enter__(self) -> int:
        self._let_read(stat.S_IRUSR)
        try:
            self._file = open_seen(*self._seen)
        except BaseException:
            self._let_read(0)
            raise
        return self._file

    def __exit__(self, *_raised: object) -> None:
        os.close(self._file)
        self._let_read(0)

    def _let_read(self, more: int) -> None:
        directory, name, status = self._seen
        os.chmod(name, stat.S_IMODE(status.st_mode) | more, dir_fd=directory)


def opened(directory: int, name: str, status: os.stat_result, *, ours: bool) -> AbstractContextManager[int, None]:
    """Return a file or a directory that was seen, open to be read in the body.

    A mode that forbids to read what is ours is lifted for the body: it also decides about attributes of an open file.

    Raises:
        OSError: it cannot be read; ESTALE, it is another one by now. Some of it is raised as the body begins.
    """
    if ours and not status.st_mode & stat.S_IRUSR:
        return _Unlocked(directory, name, status)
    return closing(open_seen(directory, name, status))


def open_seen(directory: int, name: str, status: os.stat_result) -> int:
    """Open a file or a directory that was seen; the caller closes it.

    Raises:
        OSError: it cannot be read; ESTALE, it is another one by now.
    """
    file = _open(directory, name)
    now = os.fstat(file)
    if (now.st_ino, now.st_dev) != (status.st_ino, status.st_dev):
        os.close(file)
        raise OSError(errno.ESTALE, "replaced while it was opened", name)
    return file


def _open(directory: int, name: str) -> int:
    """Open to read and, where the file is one's own, without a trace."""
    try:
        return os.open(name, _OPEN | os.O_NOATIME, dir_fd=directory)
    except PermissionError:
        return os.open(name, _OPEN, dir_fd=directory)


def spoken(name: str) -> tuple[str, bytes]:
    """Return a name as text, and its bytes if these are not UTF-8 (then the text has them escaped)."""
    try:
        name.encode()
    except UnicodeEncodeError:
        raw = os.fsencode(name)
        return raw.decode("utf-8", "backslashreplace"), raw
    return name, b""


def _identity(status: os.stat_result) -> tuple[int, int, int]:
    return status.st_dev, status.st_ino, status.st_ctime_ns


def _read(
    directory: int, name: str, status: os.stat_result, ration: Ration | None, *, ours: bool
) -> tuple[bytes, dict[str, bytes], bytes | None, tuple[str, ...]]:
    """Return digest, attributes, kept content and `loses` of a file or directory; little where it is closed.

    Only a file has a ration.
    """
    digest, content = b"", None
    attributes: dict[str, bytes] = {}
    loses: tuple[str, ...] = ()
    try:
        with opened(directory, name, status, ours=ours) as file:
            attributes, others = read_attributes(file)
            if attributes:
                attributes = shortened(attributes)
            if not ours:
                loses = unkept(status, directory, others)
            if ration is not None and ration.takes(status.st_size):
                digest, content = _digest(file, status.st_size, ration)
            if ration is not None and ration.shows is not None:
                ration.shows(file, status)
    except OSError:
        loses = () if ours else unkept(status, directory)
        if ours and ration is not None:
            raise
    return digest, attributes, content, loses


def _digest(file: int, size: int, ration: Ration) -> tuple[bytes, bytes | None]:
    """Hash at most `size` bytes: a file that grows meanwhile has another state anyway; also return what is kept."""
    if size <= CHUNK:
        content = os.read(file, size)
        return hashlib.sha256(content).digest(), content if len(content) == size and ration.keeps(content) else None
    total = hashlib.sha256()
    while size and (chunk := os.read(file, min(CHUNK, size))):
        total.update(chunk)
        size -= len(chunk)
    return total.digest(), None
