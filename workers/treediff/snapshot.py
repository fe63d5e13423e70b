"""Snapshots of single names: state and identity, without following a link.

Rule: a name is looked at relative to an open directory, never by a path, and files are read by a descriptor that is
compared with what was seen. What a command wrote is hostile: how much is read for a digest is rationed.
"""

import errno
import hashlib
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Final, NamedTuple

from workers.changes.effects import Kind, NodeState
from workers.errors import TooMuch
from workers.tree.root import closing
from workers.treediff.overlay import INTERNAL

CHUNK: Final = 2**20
SHORT: Final = 64
"""Bytes from which on an attribute's value stands as its digest, which is longer."""

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
_LISTS: Final = ("system.posix_acl_access", "system.posix_acl_default")


class Node(NamedTuple):
    """A state, and what tells this object from another one with the same state."""

    state: NodeState
    device: int
    inode: int
    changed_ns: int
    """st_ctime: of a change of anything but the name."""
    links: int


class Ration:
    """How many bytes may still be read for digests.

    Where `strict`, more than that is `TooMuch`; else a file that does not fit has no digest.
    """

    def __init__(self, total: int, each: int, *, strict: bool) -> None:
        self._left = total
        self._each = each
        self._strict = strict

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


def look(directory: int, name: str, ration: Ration, *, ours: bool) -> Node | None:
    """Return what is at `name` in the open directory; None where nothing is.

    Args:
        directory: A descriptor, O_PATH suffices.
        name: One component.
        ration: For the digest of a file.
        ours: The name is in a scratch directory of this process, whose modes may be changed to read it.
    """
    try:
        status = os.lstat(name, dir_fd=directory)
    except FileNotFoundError:
        return None
    kind = _KINDS[stat.S_IFMT(status.st_mode)]
    mode = status.st_mode & BITS
    if kind == "file":
        state = _file(directory, name, status, ration, ours=ours)
    elif kind == "dir":
        state = NodeState("dir", mode, attributes=_of_directory(directory, name, status, ours=ours))
    elif kind == "link":
        target = os.readlink(name, dir_fd=directory)
        text, raw = spoken(target)
        state = NodeState("link", mode, mtime_ns=status.st_mtime_ns, target=text, raw_target=raw)
    else:
        state = NodeState(kind, mode, mtime_ns=status.st_mtime_ns)
    return Node(state, status.st_dev, status.st_ino, status.st_ctime_ns, status.st_nlink)


@contextmanager
def opened(directory: int, name: str, status: os.stat_result, *, ours: bool) -> Iterator[int]:
    """Open a file or a directory that was seen, to read it in the body.

    A mode that forbids to read what is ours is lifted for the body: it also decides about attributes of an open file.

    Raises:
        OSError: it cannot be read; ESTALE, it is another one by now.
    """
    mode = stat.S_IMODE(status.st_mode)
    closed = ours and mode & stat.S_IRUSR == 0
    if closed:
        os.chmod(name, mode | stat.S_IRUSR, dir_fd=directory)
    try:
        with closing(open_seen(directory, name, status)) as file:
            yield file
    finally:
        if closed:
            os.chmod(name, mode, dir_fd=directory)


def open_seen(directory: int, name: str, status: os.stat_result) -> int:
    """Open a file or a directory that was seen; the caller closes it.

    Raises:
        OSError: it cannot be read; ESTALE, it is another one by now.
    """
    file = _open(directory, name)
    if not os.path.samestat(os.fstat(file), status):
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


def attributes_of(file: int) -> dict[str, bytes]:
    """Return the extended attributes of an open file that a commit carries over, unshortened."""
    try:
        names = os.listxattr(file)
        kept = [
            name for name in names if name in _LISTS or (name.startswith("user.") and not name.startswith(INTERNAL))
        ]
        return {name: os.getxattr(file, name) for name in sorted(kept)}
    except OSError:
        return {}


def _file(directory: int, name: str, status: os.stat_result, ration: Ration, *, ours: bool) -> NodeState:
    digest = b""
    attributes: dict[str, bytes] = {}
    try:
        with opened(directory, name, status, ours=ours) as file:
            attributes = shortened(attributes_of(file))
            if ration.takes(status.st_size):
                digest = _digest(file, status.st_size)
    except OSError:
        if ours:
            raise
    mode = status.st_mode & BITS
    return NodeState("file", mode, status.st_size, status.st_mtime_ns, digest, attributes=attributes)


def _of_directory(directory: int, name: str, status: os.stat_result, *, ours: bool) -> dict[str, bytes]:
    try:
        with opened(directory, name, status, ours=ours) as file:
            return shortened(attributes_of(file))
    except OSError:
        return {}


def _digest(file: int, size: int) -> bytes:
    """Hash at most `size` bytes: a file that grows meanwhile has another state anyway."""
    if size <= CHUNK:
        return hashlib.sha256(os.read(file, size)).digest()
    total = hashlib.sha256()
    while size and (chunk := os.read(file, min(CHUNK, size))):
        total.update(chunk)
        size -= len(chunk)
    return total.digest()


def shortened(attributes: dict[str, bytes]) -> dict[str, bytes]:
    """Return attributes as a state has them."""
    return {
        name: value if len(value) < SHORT else b"sha256:" + hashlib.sha256(value).hexdigest().encode()
        for name, value in attributes.items()
    }
