"""A file as it was seen: what tells whether it is still the same, by its status or by its digest.

Rule: what is compared is what is the same while a file is the same, also when it is renamed.
"""

import os
from typing import Final

import msgspec

from workers.changes.digest import sha256
from workers.errors import ToolError
from workers.files.text_limits import pieces
from workers.tree.attributes import read_attributes, unkept
from workers.tree.parent_dir import ParentDir, changed
from workers.tree.root import closing, open_beneath, regular

DIGESTED: Final = 64 * 2**20
"""Bytes of an old file that are read for its digest; a larger one is told apart by size and times."""

Identity = tuple[int, int, int, int, int]
"""Device, inode, mode, size and modification time: what is the same while a file is the same, also when renamed."""


class Old(msgspec.Struct, frozen=True):
    """A file as it was seen. `digest` is empty where it was not read, `content` is None where it was not kept."""

    identity: Identity
    changed_ns: int
    links: int
    digest: bytes = b""
    content: bytes | None = None
    attributes: dict[str, bytes] = {}
    group: int = -1
    loses: tuple[str, ...] = ()
    """As `workers.tree.attributes.unkept` says."""

    @property
    def size(self) -> int:
        """Bytes."""
        return self.identity[3]

    @property
    def mode(self) -> int:
        """All of its permission bits (07777)."""
        return self.identity[2] & 0o7777


def identity(status: os.stat_result) -> Identity:
    """Return what tells whether a file is still the one that was seen."""
    return status.st_dev, status.st_ino, status.st_mode, status.st_size, status.st_mtime_ns


def look(place: ParentDir, keep: int) -> Old | None:
    """Return the file at `place`, with its content if it has at most `keep` bytes; None where there is nothing.

    Raises:
        ToolError: something else than a regular file is there, or (`conflict`) it changed while it was read.
        OSError: it may not be written.
    """
    status = place.status()
    if status is None:
        return None
    if not place.plan:
        os.close(place.open(os.O_WRONLY))  # the kernel says whether this file may be written
    try:
        file = place.open(os.O_RDONLY)
    except PermissionError:
        loses = unkept(status, place.parent)
        return Old(identity(status), status.st_ctime_ns, status.st_nlink, group=status.st_gid, loses=loses)
    with closing(file):
        status = regular(os.fstat(file), place.path)
        attributes, others = read_attributes(file)
        more = attributes, status.st_gid, unkept(status, place.parent, others)
        old = Old(identity(status), status.st_ctime_ns, status.st_nlink, b"", None, *more)
        if old.size > DIGESTED:
            return old
        content = b"".join(pieces(file, old.size)) if old.size <= keep else None
        digest = sha256(content).digest() if content is not None else _digest(file, old.size)
        if identity(os.fstat(file)) != old.identity or (content is not None and len(content) != old.size):
            raise changed(place.path)
        return Old(old.identity, old.changed_ns, old.links, digest, content, *more)


def expect(place: ParentDir, old: Old | None) -> None:
    """Check that the file, or nothing, is there as it was seen, by its status alone.

    Raises:
        ToolError: `conflict`.
    """
    try:
        now = place.status()
    except ToolError as error:
        raise changed(place.path) from error
    seen = None if now is None else (identity(now), now.st_ctime_ns)
    if seen != (None if old is None else (old.identity, old.changed_ns)):
        raise changed(place.path)


def holds(directory: int, name: str, old: Old) -> bool:
    """Say whether a name holds the file that was seen, wherever it was then."""
    if identity(os.stat(name, dir_fd=directory, follow_symlinks=False)) != old.identity:
        return False
    if not old.digest:
        return True
    with closing(open_beneath(directory, name, os.O_RDONLY, links=False)) as file:
        return _digest(file, old.size) == old.digest and identity(os.fstat(file)) == old.identity


def _digest(file: int, size: int) -> bytes:
    digest = sha256()
    for piece in pieces(file, size):
        digest.update(piece)
    return digest.digest()
