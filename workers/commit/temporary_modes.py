"""The directories of the root that a commit makes writable or readable for itself, and how they get their modes back.

Rule: before one is loosened, the mode that it is to have is on disk in the staging directory. So if the commit is
killed, the sweep that finds the staging directory puts the mode back. That only ever takes rights away from the owner:
whatever is written there, it opens nothing to anybody.
"""

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import Final

from workers.commit.operations import OpenParents, Operation
from workers.tree.attributes import attributes_of, set_attributes
from workers.tree.root import DIRECTORY, HANDLE, closing, open_beneath, sync_directory
from workers.treediff.snapshot import BITS

NOTES: Final = "modes"
"""The file in the staging directory. A note is a NUL byte, inode, mode and path; of one directory the last counts."""

_MOST: Final = 2**26
"""Bytes of notes that are read."""

_APPEND: Final = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
_WRITE: Final = stat.S_IWUSR | stat.S_IXUSR


class TemporaryModes:
    """The directories of one commit, by operations at names in them or at their own."""

    def __init__(self, parents: OpenParents, staging: int) -> None:
        """Take the directories of the root, and a descriptor of the staging directory; they stay the caller's."""
        self.may_fail = False
        """Whether a directory is loosened though that cannot be noted: a full disk must not stop what takes back."""
        self._parents = parents
        self._staging = staging
        self._modes: dict[int, int] = {}

    def resume(self) -> None:
        """Know what a process noted that was killed."""
        self._modes |= {inode: mode for inode, (_path, mode) in _read(self._staging).items()}

    def remember(self, path: str, inode: int, mode: int) -> None:
        """Note the mode that a directory is to have, if it may get another one for a time.

        Raises:
            OSError: that cannot be written.
        """
        if self._modes.get(inode, mode | stat.S_IRWXU) == mode:
            return
        try:
            self._write(b"\0%d %o %s" % (inode, mode, os.fsencode(path)))
        except OSError:
            if not self.may_fail:
                raise
        self._modes[inode] = mode

    def loosen(self, parent: int, operation: Operation) -> None:
        """Let the directory at a name be moved and emptied."""
        status = os.lstat(operation.name, dir_fd=parent)
        if stat.S_ISDIR(status.st_mode):
            self.remember(operation.path, status.st_ino, status.st_mode & BITS)
            loosen(parent, operation.name)

    def give(self, directory: int, operation: Operation, attributes: dict[str, bytes], mode: int) -> None:
        """Let the directory at a name have these attributes and no others, and then this mode."""
        self.remember(operation.path, os.fstat(directory).st_ino, mode)
        os.fchmod(directory, mode | stat.S_IRWXU)
        for name in attributes_of(directory).keys() - attributes.keys():
            os.removexattr(directory, name)
        set_attributes(directory, attributes, mode)

    def parent(self, operation: Operation) -> AbstractContextManager[int]:
        """Open the directory of a name, writable for the body even if it is not to others."""
        parent = self._parents.of(operation.parent)
        status = os.fstat(parent)
        mode = status.st_mode & BITS
        if status.st_uid != os.geteuid() or mode & _WRITE == _WRITE:
            return nullcontext(parent)
        self.remember(operation.parent, status.st_ino, mode)
        return _with_rights(parent, mode, _WRITE)

    @contextmanager
    def directory(self, operation: Operation) -> Iterator[int]:
        """Open the directory that an operation alters; it is made readable for that if it is not."""
        path = operation.path
        try:
            directory = open_beneath(self._parents.root, path, DIRECTORY, links=False)
        except PermissionError:
            with closing(open_beneath(self._parents.root, path, HANDLE, links=False)) as handle:
                status = os.fstat(handle)
                mode = status.st_mode & BITS
                self.remember(path, status.st_ino, mode)
                with _with_rights(handle, mode, stat.S_IRUSR):
                    directory = open_beneath(self._parents.root, path, DIRECTORY, links=False)
        with closing(directory):
            yield directory

    def _write(self, note: bytes) -> None:
        with closing(os.open(NOTES, _APPEND, 0o600, dir_fd=self._staging)) as file:
            if os.write(file, note) != len(note):
                raise OSError(errno.ENOSPC, "a short write", NOTES)
            os.fsync(file)
        if not self._modes:
            sync_directory(self._staging)


def put_back(root: int, staging: int) -> None:
    """Give directories that a killed commit left loosened the modes that they are to have.

    One that is another by now, or has other rights than the owner's more, is left as it is.
    """
    device = os.fstat(staging).st_dev
    for inode, (path, mode) in sorted(_read(staging).items(), key=lambda note: note[1], reverse=True):
        with suppress(OSError), closing(open_beneath(root, path, HANDLE, links=False)) as handle:
            status = os.fstat(handle)
            now = status.st_mode & BITS
            looser = now != mode and now & mode == mode and now | stat.S_IRWXU == mode | stat.S_IRWXU
            if looser and (status.st_dev, status.st_ino) == (device, inode):
                change_mode(handle, mode)


def forget(staging: int) -> None:
    """Remove the notes from a staging directory that stays."""
    with suppress(OSError):
        os.unlink(NOTES, dir_fd=staging)


def _read(staging: int) -> dict[int, tuple[str, int]]:
    """Return path and mode of each directory that is noted, by inode."""
    noted: dict[int, tuple[str, int]] = {}
    with suppress(OSError):
        with closing(open_beneath(staging, NOTES, os.O_RDONLY, links=False)) as file:
            data = os.pread(file, _MOST, 0)
        for note in data.split(b"\0")[1:]:
            with suppress(ValueError):  # one that was cut off
                inode, mode, path = note.split(b" ", 2)
                noted[int(inode)] = os.fsdecode(path), int(mode, 8)
    return noted


def loosen(parent: int, name: str) -> None:
    """Let a directory be moved and emptied: that takes the right to write it."""
    _set_mode(parent, name, lambda now: now | stat.S_IRWXU)


def set_mode(parent: int, name: str, mode: int) -> None:
    """Give a directory its mode, if it has another."""
    _set_mode(parent, name, lambda _now: mode)


def _set_mode(parent: int, name: str, wanted: Callable[[int], int]) -> None:
    with closing(os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)) as handle:
        status = os.fstat(handle)
        now = status.st_mode & BITS
        if stat.S_ISDIR(status.st_mode) and wanted(now) != now:
            change_mode(handle, wanted(now))


def change_mode(handle: int, mode: int) -> None:
    """Change the mode of what an O_PATH descriptor stands for, which fchmod(2) does not do."""
    os.chmod(f"/proc/self/fd/{handle}", mode)


@contextmanager
def _with_rights(handle: int, mode: int, more: int) -> Iterator[int]:
    """Add rights to the mode of a directory for the body."""
    change_mode(handle, mode | more)
    try:
        yield handle
    finally:
        change_mode(handle, mode)
