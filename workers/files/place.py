"""Where a write goes: the descriptor of the parent directory, and one name in it.

Rule: a write never goes through a symbolic link. So the components that are left after lexical resolution are
exactly the ones that the kernel walks, and the check for protected names cannot be led astray.
"""

import errno
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Final, NamedTuple

from workers.files.protected import refuse_protected
from workers.paths import Root, about, declined, open_beneath, parts_of, regular

_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY


class Place(NamedTuple):
    """One name in an open directory. `path` is relative to the root, for messages."""

    parent: int
    name: str
    path: str

    def status(self) -> os.stat_result | None:
        """Return the status of the regular file here, or None where there is nothing.

        Raises:
            ToolError: there is something else: a directory, a link, a FIFO, a socket, a device.
        """
        try:
            return regular(os.stat(self.name, dir_fd=self.parent, follow_symlinks=False), self.path)
        except FileNotFoundError:
            return None

    def open(self, flags: int) -> int:
        """Open what is here, never through a link; the caller closes it."""
        return open_beneath(self.parent, self.name, flags, links=False)


@contextmanager
def writing(root: Root, path: str, *, make_parents: bool) -> Iterator[Place]:
    """Open the parent of `path` for the body, and close it. If the body fails, directories made are removed.

    Raises:
        ToolError: the path leads out, through a link or to a protected name, or an OSError of the body.
    """
    parts = parts_of(path)
    if not parts or path.endswith(("/", "/.", "/..")):
        raise declined(OSError(errno.EISDIR, ""), path)
    refuse_protected(path, parts)
    made: list[tuple[str, ...]] = []
    with about(path):
        try:
            parent = _parent(root, parts[:-1], made if make_parents else None)
            try:
                yield Place(parent, parts[-1], "/".join(parts))
            finally:
                os.close(parent)
        except BaseException:
            _unmake(root, made)
            raise


def sync_directory(directory: int) -> None:
    """Make the names in a directory durable, where its file system can (EINVAL means: it cannot)."""
    try:
        os.fsync(directory)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise


def _parent(root: Root, parts: Sequence[str], made: list[tuple[str, ...]] | None) -> int:
    try:
        return open_beneath(root.fd, "/".join(parts) or ".", _DIRECTORY, links=False)
    except FileNotFoundError:
        if made is None:
            raise
    directory = open_beneath(root.fd, ".", _DIRECTORY, links=False)
    for depth, part in enumerate(parts, start=1):
        try:
            if _make(directory, part, 0o777 & ~root.umask):
                made.append(tuple(parts[:depth]))
                sync_directory(directory)
            below = open_beneath(directory, part, _DIRECTORY, links=False)
        finally:
            os.close(directory)
        directory = below
    return directory


def _make(directory: int, name: str, mode: int) -> bool:
    try:
        os.mkdir(name, mode, dir_fd=directory)
    except FileExistsError:
        return False
    return True


def _unmake(root: Root, made: list[tuple[str, ...]]) -> None:
    """Remove directories, deepest first; rmdir(2) spares those in which somebody has put something."""
    for parts in reversed(made):
        with suppress(OSError):
            parent = open_beneath(root.fd, "/".join(parts[:-1]) or ".", _DIRECTORY, links=False)
            try:
                os.rmdir(parts[-1], dir_fd=parent)
            finally:
                os.close(parent)
