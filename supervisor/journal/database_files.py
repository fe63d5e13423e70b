"""Checks that the files of an open journal are still those that were opened, and complete.

Rule: SQLite writes on to files that have no name any more, or that were cut short, where nobody would find the facts
again; so whoever is about to write looks here first. The one file that is made here is an empty database.
"""

import ctypes
import fcntl
import os
import stat
import struct
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

from supervisor.errors import JournalError
from supervisor.system.safe_files import NO_LINK, set_lock
from workers.kernel import MACHINE, syscall

_SUFFIXES: Final = ("", "-shm", "-wal")
"""Of the database, SQLite's index of its log, and the log."""
_DATABASE, _INDEX, _LOG = _ALL = range(3)
"""Where they stand in this order."""
INDEX: Final = (_INDEX,)
_GONE: Final = "has been removed or moved away"
_REPLACED: Final = "has been replaced by another file"
_CUT: Final = "has been cut short"
_IF_NOT_THERE: Final = "Put it back as it was, or restart the daemon."
_IF_CUT: Final = (
    "Stop the daemon, keep all three files, and put a backup in their place or start with another STRONGROOM_HOME.",
    "Nothing that was recorded is lost: restart the daemon.",
    "What was recorded last may be lost with it: stop the daemon and move it away to go on with what {database} holds.",
)
"""What to do, for each of them."""
_SHARED: Final = (0x40000002, 510)
"""Where SQLite locks a database that it has open, and how many bytes (https://www.sqlite.org/lockingv3.html)."""
_STATX: Final = {"x86_64": 332, "aarch64": 291}.get(MACHINE, -1)
_AT_FDCWD: Final = -100
_AT_SYMLINK_NOFOLLOW: Final = 0x100
_STATX_INO_AND_SIZE: Final = 0x300
_Statx: Final = ctypes.c_char * 256
_FOUND: Final = struct.Struct("@32xQQ88xII")
"""Of `struct statx` (include/uapi/linux/stat.h): stx_ino, stx_size, stx_dev_major, stx_dev_minor."""
_INDEX_HEADER: Final = 48
"""Bytes that the index begins with, twice (https://www.sqlite.org/walformat.html, 2.1)."""
_INDEX_FIELDS: Final = struct.Struct("@14xHII72xI")
"""Of the index: bytes of a page (1 for 65536), frames of the log, pages of the database, and, behind both headers,
frames that are in the database as well."""
_LOG_HEADER: Final = 32
_FRAME_HEADER: Final = 24
"""Bytes in the log before all frames, and before the page of each."""
_LOG_BEGINS: Final = (b"\x37\x7f\x06\x82", b"\x37\x7f\x06\x83")
_LOOKS: Final = 100
"""Times that the index is read anew where another process has just changed it."""
_CHUNK: Final = 1 << 20


class FileIdentity(NamedTuple):
    """Identity and size of a file at a name; of a link itself."""

    file: tuple[int, int, int]
    """Inode and device."""
    size: int


class _Index(NamedTuple):
    """SQLite's index of the log, which tells how long the others are at least."""

    database_size: int
    """Bytes of the database once all of the log is in it."""
    log_size: int
    """Where the last frame of the log ends."""
    log_is_needed: bool
    """Whether the log holds what the database does not."""


class Files:
    """The three files that a connection has open.

    None of them changes as long as any connection is open, whoever reads, writes or checkpoints: SQLite removes the
    index and the log when the last one closes (https://www.sqlite.org/walformat.html, 1.2). An inode that is open is
    not used again, so what has the same number is the same file.

    None of them shrinks by what we do. Another program may empty the log when all of it is in the database, or pack
    the database into fewer pages; then the index says so.
    """

    def __init__(self, path: Path) -> None:
        self._names = [os.path.abspath(f"{path}{suffix}") for suffix in _SUFFIXES]
        found = [file_at(name) for name in self._names]
        self._opened = [each and each.file for each in found]
        self._largest = [each.size if each else 0 for each in found]
        index = self._read_index()
        if index and index.log_is_needed:
            self._largest[_LOG] = max(self._largest[_LOG], index.log_size)

    @property
    def log_size(self) -> int:
        """Bytes of the log at the last check."""
        return self._largest[_LOG]

    def write_to_log(self, data: bytes, at: int) -> None:
        """Write behind the end of the log.

        Raises:
            OSError: as of any write.
        """
        descriptor = _descriptor_of(self._opened[_LOG])
        if descriptor is not None:
            os.pwrite(descriptor, data, at)

    def check(self) -> None:
        """See that everything still stands at its name, and is no shorter than it was.

        Raises:
            JournalError: something was removed, moved away, replaced or cut short; what is written now would be lost.
        """
        for at, what in self._faults():
            raise self._as_error(at, what)

    def check_is_whole(self, which: Sequence[int] = _ALL) -> None:
        """See that nothing was cut short; what was removed or replaced can still be read.

        A cut `INDEX` ends the process by SIGBUS when SQLite touches it: nothing helps who cuts it after this look.

        Raises:
            JournalError: something was.
        """
        for at, what in self._faults(which):
            if what == _CUT:
                raise self._as_error(at, what)

    def _as_error(self, at: int, what: str) -> JournalError:
        advice = _IF_CUT[at].format(database=self._names[_DATABASE]) if what == _CUT else _IF_NOT_THERE
        message = f"The journal cannot be used: {self._names[at]} {what}. Nothing was done. {advice}"
        return JournalError("journal_io", message)

    def _faults(self, which: Sequence[int] = _ALL) -> Iterator[tuple[int, str]]:
        """Yield which file is not as it was, and why; the log first only where all else is right."""
        for at in which:
            name = self._names[at]
            found = file_at(name)
            if found is None or found.file != self._opened[at]:
                yield at, _REPLACED if os.path.lexists(name) else _GONE
            elif found.size < self._largest[at] and self._is_too_short(at):
                yield at, _CUT
            else:
                self._largest[at] = found.size

    def _is_too_short(self, at: int) -> bool:
        """Say whether a file holds less than the index says, or nobody can know; it may have no name any more."""
        if at == _INDEX:
            return True
        for _ in range(_LOOKS):
            index, descriptor = self._read_index(), _descriptor_of(self._opened[at])
            size = 0 if descriptor is None else os.fstat(descriptor).st_size
            if index and index == self._read_index():
                return size < (index.log_size if at == _LOG else index.database_size)
        return True

    def _read_index(self) -> _Index | None:
        """Return what the index begins with; None where it cannot be read or is just being written.

        By SQLite's own descriptor: closing one of ours would drop the locks on the file.
        """
        descriptor = _descriptor_of(self._opened[_INDEX])
        begin = b"" if descriptor is None else os.pread(descriptor, _INDEX_FIELDS.size, 0)
        first, second = begin[:_INDEX_HEADER], begin[_INDEX_HEADER : 2 * _INDEX_HEADER]
        if len(begin) != _INDEX_FIELDS.size or first != second or not any(first):
            return None
        size, frames, pages, copied = _INDEX_FIELDS.unpack(begin)
        page = (size & 0xFE00) + ((size & 1) << 16)
        log_size = _LOG_HEADER + frames * (_FRAME_HEADER + page) if frames else 0
        return _Index(page * pages, log_size, log_is_needed=copied < frames)

    def have_lost_only_the_log(self) -> bool:
        """Say whether the log has no name, is whole, and all else is as it was opened."""
        return next(self._faults(), None) == (_LOG, _GONE) and not self._is_too_short(_LOG)

    def belong_to_others(self) -> bool:
        """Say whether SQLite would do harm by what it does as the last one closes.

        It would copy to the database what it takes for its log, and remove what stands at the log's name: files of
        others, or what is left of a journal that was cut short. Where the database itself has gone, it does neither.
        """
        at, what = next(self._faults(), (_DATABASE, _GONE))
        return (at != _DATABASE or what == _CUT) and not self.have_lost_only_the_log()


def _descriptor_of(file: tuple[int, int, int] | None) -> int | None:
    """Return a descriptor that this process has of a file."""
    with suppress(OSError):
        for number in map(int, os.listdir("/proc/self/fd")):
            with suppress(OSError):
                if _found(os.fstat(number)).file == file:
                    return number
    return None


@contextmanager
def not_the_last(path: Path) -> Iterator[None]:
    """Let SQLite believe that another process has the database open."""
    with ExitStack() as meanwhile:
        with suppress(OSError):
            database = meanwhile.enter_context(open(path, "rb"))
            set_lock(database.fileno(), fcntl.F_RDLCK, *_SHARED)
        yield


def file_at(name: str) -> FileIdentity | None:
    """Return what stands at a name; None where nothing does that can be seen.

    Not lstat, which asks for the times as well: since Linux 6.13 the next write must then note a time of its own, and
    a commit takes a third longer.
    """
    found = _Statx()
    try:
        syscall("statx", _STATX, _AT_FDCWD, os.fsencode(name), _AT_SYMLINK_NOFOLLOW, _STATX_INO_AND_SIZE, found)
    except OSError:
        return file_by_lstat(name)  # where nothing is there, or an outer sandbox does not know the call
    inode, size, major, minor = _FOUND.unpack_from(found)
    return FileIdentity((inode, major, minor), size)


def file_by_lstat(name: str) -> FileIdentity | None:
    """Return the same by the older call."""
    try:
        return _found(os.lstat(name))
    except OSError:
        return None


def _found(status: os.stat_result) -> FileIdentity:
    return FileIdentity((status.st_ino, os.major(status.st_dev), os.minor(status.st_dev)), status.st_size)


def is_empty(path: Path) -> bool:
    """Say whether a file has no bytes, or is not there."""
    found = file_at(str(path))
    return found is None or found.size == 0


def check_log(path: Path) -> None:
    """Make sure that SQLite will not throw away what the log beside the database holds.

    It removes a log beside an empty database, and passes over one whose header it does not know. What is shorter than
    a header, or all zeros, a loss of power may leave: the header is synced before any frame, so nothing is lost there.
    The log is looked at first: while others make or use the journal, its database has bytes before its log has, and
    the first four of the log never change. SQLite has no locks on the log, so it may be opened and closed here.

    Raises:
        JournalError: the database is empty or gone and the log is not, or the log has lost its beginning.
    """
    log = f"{path}{_SUFFIXES[_LOG]}"
    begin, holds_more = b"", False
    with suppress(OSError), open(log, "rb", buffering=0, opener=_open_log) as file:
        begin = file.read(_LOG_HEADER) or b""
        if len(begin) == _LOG_HEADER and begin[:4] not in _LOG_BEGINS:
            holds_more = any(any(chunk) for chunk in iter(lambda: file.read(_CHUNK), b""))
    if begin and is_empty(path):
        message = (
            f"The journal {path} is empty or gone, but its log {log} is not, and would be removed if it were opened so."
            f" Nothing was done. Put {path} back as it was, or move {log} away to begin anew."
        )
        raise JournalError("journal_corrupt", message)
    if holds_more:
        message = (
            f"The log {log} of the journal has been cut short or overwritten, and what was recorded last is lost with "
            f"it. Nothing was done. Move it away to go on with what {path} holds."
        )
        raise JournalError("journal_corrupt", message)


def _open_log(name: str, flags: int) -> int:
    return os.open(name, flags | NO_LINK)


def check_file(path: Path) -> None:
    """Make sure of what SQLite will open: never a link, a FIFO or a directory; mode 0600 whatever the umask.

    A file that is there is not opened: closing it would drop the locks that this process already holds on it
    (https://www.sqlite.org/howtocorrupt.html, 2.2).
    """
    try:
        with suppress(FileExistsError):
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | NO_LINK, 0o600))
        mode = os.lstat(path).st_mode
    except OSError as error:
        message = f"The journal {path} cannot be opened: {error.strerror}. STRONGROOM_HOME can name another directory."
        raise JournalError("journal_io", message) from error
    if not stat.S_ISREG(mode):
        raise JournalError("journal_io", f"The journal {path} is not a regular file. Move it away and try again.")
