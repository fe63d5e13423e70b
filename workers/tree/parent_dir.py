"""The place of a write: the descriptor of the parent directory, and one name in it.

Rule: a write never goes through a symbolic link. So the components that are left after lexical resolution are
exactly the ones that the kernel walks, and the check for protected names cannot be led astray. A place is looked at
first and written later, when its way has to be the same: the same directories there, and the same ones missing.
"""

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import msgspec

from workers.errors import ToolError
from workers.tree.git_config import GitConfigs
from workers.tree.protected import refuse_in_repository, refuse_protected
from workers.tree.root import Root, about, closing, declined, open_beneath, parts_of, regular, shown

_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY
_ANOTHER_WAY: Final = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EXDEV})
_NO_NAMELESS: Final = frozenset({errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL, errno.ENOSYS})


class ParentDir(msgspec.Struct, frozen=True):
    """One name in an open directory, or in directories beneath it that are `missing`.

    `path` is relative to the root, for messages.
    """

    parent: int
    name: str
    path: str
    missing: tuple[str, ...] = ()
    plan: bool = False
    """Nothing will be written here, and the process has no right to: the kernel cannot be asked whether one could."""

    def status(self) -> os.stat_result | None:
        """Return the status of the regular file here, or None where there is nothing.

        Raises:
            ToolError: there is something else: a directory, a link, a FIFO, a socket, a device.
        """
        if self.missing:
            return None
        try:
            return regular(os.stat(self.name, dir_fd=self.parent, follow_symlinks=False), self.path)
        except FileNotFoundError:
            return None

    def open(self, flags: int) -> int:
        """Open what is here, never through a link; the caller closes it."""
        return open_beneath(self.parent, self.name, flags, links=False)

    def mode_of_new(self, mode: int) -> int:
        """Return the mode that a file gets which is made here with `mode`: the directory may have a say in it.

        A file without a name is made for that, which leaves nothing; where the file system has none, `mode` is
        returned.

        Raises:
            OSError: no file can be made here.
        """
        if self.plan:
            return mode
        flags = os.O_WRONLY | os.O_TMPFILE | os.O_EXCL
        try:
            with closing(open_beneath(self.parent, ".", flags, links=False, mode=mode)) as file:
                return stat.S_IMODE(os.fstat(file).st_mode)
        except OSError as error:
            if error.errno in _NO_NAMELESS:
                return mode
            raise


class PathToParent(msgspec.Struct, frozen=True):
    """How a place was reached."""

    parts: tuple[str, ...]
    missing: int
    """How many of its directories were not there."""
    device: int
    inode: int
    """Of the last directory that was."""

    @property
    def path(self) -> str:
        """The place, relative to the root."""
        return "/".join(self.parts)


@contextmanager
def looking(root: Root, path: str) -> Iterator[ParentDir]:
    """Open the parent of `path` for the body, or what there is of it, and close it.

    Raises:
        ToolError: the path leads out, through a link or to a protected name, or an OSError of the body.
    """
    parts = parts_of(path)
    if not parts or path.endswith(("/", "/.", "/..")):
        raise declined(OSError(errno.EISDIR, ""), path)
    refuse_protected(path, parts, GitConfigs(root.fd))
    with about(path):
        parent, there = _deepest(root, parts[:-1])
        with closing(parent):
            if there == len(parts) - 1 and _has(parent, "HEAD"):
                refuse_in_repository(path, parts[-1])
            yield ParentDir(parent, parts[-1], "/".join(parts), parts[there:-1], root.plan)


def path_to_parent(place: ParentDir) -> PathToParent:
    """Return how to reach the place again, when its descriptor is closed."""
    status = os.fstat(place.parent)
    return PathToParent(tuple(place.path.split("/")), len(place.missing), status.st_dev, status.st_ino)


@contextmanager
def reached(root: Root, way: PathToParent) -> Iterator[ParentDir]:
    """Go the way again, for the body, up to where directories are missing as before.

    Raises:
        ToolError: `conflict`, it is another way now; or an OSError of the body.
    """
    there = len(way.parts) - 1 - way.missing
    with about(way.path):
        try:
            directory = open_beneath(root.fd, "/".join(way.parts[:there]) or ".", _DIRECTORY, links=False)
        except OSError as error:
            if error.errno in _ANOTHER_WAY:
                raise changed(way.path) from error
            raise
        with closing(directory):
            status = os.fstat(directory)
            if (status.st_dev, status.st_ino) != (way.device, way.inode):
                raise changed(way.path)
            yield ParentDir(directory, way.parts[-1], way.path, way.parts[there:-1])


def changed(path: str, more: str = "") -> ToolError:
    """Return the error for a file or its way that somebody else changed between seeing and writing."""
    message = f'"{shown(path)}" was changed meanwhile; nothing was written. Read it again, then repeat the call.{more}'
    return ToolError("conflict", message, path=shown(path))


def _deepest(root: Root, parts: Sequence[str]) -> tuple[int, int]:
    """Open the last directory that is there; return it and how many of `parts` there are."""
    there = len(parts)
    while True:
        try:
            return open_beneath(root.fd, "/".join(parts[:there]) or ".", _DIRECTORY, links=False), there
        except FileNotFoundError:
            if not there:
                raise
            there -= 1


def _has(directory: int, name: str) -> bool:
    """Say whether there is anything of that name, a link that leads nowhere included."""
    try:
        os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True
