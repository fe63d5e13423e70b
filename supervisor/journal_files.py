"""The files of an open journal: what stands at their names, and that it is what was opened.

Rule: SQLite writes on to files that have no name any more, where nobody would find the facts again; so whoever is about
to write looks here first. The one file that is made here is an empty database.
"""

import ctypes
import fcntl
import os
import stat
import struct
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final

from supervisor.errors import JournalError
from workers.kernel import MACHINE, syscall

_SUFFIXES: Final = ("", "-shm", "-wal")
"""Of the database, SQLite's index of its log, and the log."""
_SHARED: Final = (0x40000002, 510)
"""Where SQLite locks a database that it has open, and how many bytes (https://www.sqlite.org/lockingv3.html)."""
_FLOCK: Final = struct.Struct("@hhqqi4x")
"""`struct flock` of Linux on 64 bits: type, whence, start, length, pid."""
_STATX: Final = {"x86_64": 332, "aarch64": 291}.get(MACHINE, -1)
_AT_FDCWD: Final = -100
_AT_SYMLINK_NOFOLLOW: Final = 0x100
_STATX_INO: Final = 0x100
_STATX_BYTES: Final = 256
_INODE_AND_DEVICE: Final = struct.Struct("@32xQ96xII")
"""Of `struct statx` (include/uapi/linux/stat.h): stx_ino, stx_dev_major, stx_dev_minor."""


class Files:
    """The three files that a connection has open.

    None of them changes as long as any connection is open, whoever reads, writes or checkpoints: SQLite removes the
    index and the log when the last one closes (https://www.sqlite.org/walformat.html, 1.2). An inode that is open is
    not used again, so what has the same number is the same file.
    """

    def __init__(self, path: Path) -> None:
        self._names = [os.path.abspath(f"{path}{suffix}") for suffix in _SUFFIXES]
        self._opened = [file_at(name) for name in self._names]

    def check(self) -> None:
        """See that everything still stands at its name.

        Raises:
            JournalError: something was removed, moved away or replaced; what is written now would be lost.
        """
        if name := self.missing():
            what = "has been replaced by another file" if os.path.lexists(name) else "has been removed or moved away"
            advice = "Put it back as it was, or restart the daemon."
            raise JournalError("journal_io", f"The journal cannot be used: {name} {what}. Nothing was done. {advice}")

    def missing(self) -> str:
        """Return the first name at which no longer stands what was opened; the log's only where all else is right."""
        for name, opened in zip(self._names, self._opened, strict=True):
            if opened is None or file_at(name) != opened:
                return name
        return ""

    def have_lost_only_the_log(self) -> bool:
        """Say whether the log has no name, and all else is as it was opened."""
        name = self.missing()
        return name == self._names[-1] and not os.path.lexists(name)

    def belong_to_others(self) -> bool:
        """Say whether SQLite would harm others by what it does as the last one closes.

        It would copy to the database what it takes for its log, and remove what stands at the log's name. Where the
        database itself has gone, it does neither.
        """
        return self.missing() not in ("", self._names[0]) and not self.have_lost_only_the_log()


@contextmanager
def not_the_last(path: Path) -> Iterator[None]:
    """Let SQLite believe that another process has the database open."""
    with ExitStack() as meanwhile:
        with suppress(OSError):
            database = meanwhile.enter_context(open(path, "rb"))
            fcntl.fcntl(database, fcntl.F_OFD_SETLK, _FLOCK.pack(fcntl.F_RDLCK, os.SEEK_SET, *_SHARED, 0))
        yield


def file_at(name: str) -> tuple[int, int, int] | None:
    """Return what stands at a name, a link itself, as inode and device; None where nothing does that can be seen.

    Not lstat, which asks for the times as well: since Linux 6.13 the next write must then note a time of its own, and
    a commit takes a third longer.
    """
    found = ctypes.create_string_buffer(_STATX_BYTES)
    try:
        syscall("statx", _STATX, _AT_FDCWD, os.fsencode(name), _AT_SYMLINK_NOFOLLOW, _STATX_INO, found)
    except OSError:
        return file_by_lstat(name)  # where nothing is there, or an outer sandbox does not know the call
    inode, major, minor = _INODE_AND_DEVICE.unpack_from(found)
    return inode, major, minor


def file_by_lstat(name: str) -> tuple[int, int, int] | None:
    """Return the same by the older call."""
    try:
        status = os.lstat(name)
    except OSError:
        return None
    return status.st_ino, os.major(status.st_dev), os.minor(status.st_dev)


def check_file(path: Path) -> None:
    """Make sure of what SQLite will open: never a link, a FIFO or a directory; mode 0600 whatever the umask.

    A file that is there is not opened: closing it would drop the locks that this process already holds on it
    (https://www.sqlite.org/howtocorrupt.html, 2.2).
    """
    try:
        with suppress(FileExistsError):
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        mode = os.lstat(path).st_mode
    except OSError as error:
        message = f"The journal {path} cannot be opened: {error.strerror}. It must be a plain file of your own."
        raise JournalError("journal_io", message) from error
    if not stat.S_ISREG(mode):
        raise JournalError("journal_io", f"The journal {path} is not a regular file. Move it away and try again.")
