"""Files and directories opened safely: those of this user alone, made if need be, and any regular file; their locks.

Rule: what belongs to somebody else, or may be written by others, is refused by name. At a name where anything may stand
by now nobody is waited for, as the reader of a FIFO waits for its writer, and no device is touched. A lock belongs to
the open file and not to the process (open file description locks, fcntl(2)), so two that one process opened exclude
each other as well, and it ends with the last descriptor of the open file. Nobody
waits for one, but who changes a file that others may be changing.
"""

import errno
import fcntl
import os
import stat
import struct
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from supervisor.errors import ConfigError

AT_ONCE: Final = os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
"""Flags of `os.open` for a name where anything may stand: nobody is waited for, and no child inherits it."""
NO_LINK: Final = AT_ONCE | os.O_NOFOLLOW
"""The same for a file of our own, which is no link."""

_NO_NAMELESS: Final = frozenset({errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL, errno.ENOSYS})
"""What file systems and kernels answer that have no files without a name."""

_FLOCK: Final = struct.Struct("@hhqqi4x")
"""`struct flock` of Linux on 64 bits: type, whence, start, length, and a pid that must be 0 here."""


def secure_home(home: Path) -> None:
    """Make the home directory if need be, for its owner alone.

    Raises:
        ConfigError: others may write there, it is not ours, or it cannot be made.
    """
    if own_directory(home, "Set STRONGROOM_HOME to a directory of your own.") & 0o077:
        home.chmod(0o700)


def own_directory(directory: Path, advice: str) -> int:
    """Make a directory if need be, durably, for its owner alone, and what is missing above it; return its mode.

    Args:
        directory: One that is there already stays as it is.
        advice: What to do about a directory of another user.

    Raises:
        ConfigError: others may write there, it is not ours, or it cannot be made.
    """
    try:
        for each in (*reversed(directory.parents), directory):
            if not each.exists():
                each.mkdir(mode=0o700, exist_ok=True)
                with suppress(PermissionError):  # of a directory that nobody may list
                    sync_directory(each.parent)
        status = directory.stat()
        if not stat.S_ISDIR(status.st_mode):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
    except OSError as error:
        raise ConfigError(f"The directory {directory} cannot be used: {error.strerror}.") from error
    linked = directory.is_symlink()
    told = f"{directory} is a link to {directory.resolve()}, which" if linked else f"{directory}"
    if status.st_uid != os.geteuid():
        raise ConfigError(f"{told} belongs to another user. {advice}")
    if stat.S_IMODE(status.st_mode) & 0o022:
        mended = f"let {directory} lead to a directory of your own" if linked else f"chmod 700 {directory}"
        raise ConfigError(f"{told} can be written by others (insecure permissions): {mended}")
    return stat.S_IMODE(status.st_mode)


def own_file(path: Path, flags: int) -> int:
    """Open a file of ours, made if need be, with mode 0600 whatever the umask; return its descriptor.

    Raises:
        ConfigError: it is a link, no regular file or another user's, or it cannot be opened.
    """
    try:
        descriptor = os.open(path, flags | os.O_CREAT | NO_LINK, 0o600)
    except OSError as error:
        reason = "it is a symbolic link" if error.errno == errno.ELOOP else error.strerror
        raise ConfigError(f"{path} cannot be opened: {reason}.") from error
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
        os.close(descriptor)
        raise ConfigError(f"{path} is not a regular file of this user. Move it away.")
    os.fchmod(descriptor, 0o600)
    return descriptor


def read_bytes(path: Path, most: int = -1, *, own: bool = False) -> bytes:
    """Return the content of a regular file.

    Args:
        path: of the file; it may be a link unless it must be our own.
        most: bytes that there may be; -1 is any number.
        own: the file must be one that this user alone can write.

    Raises:
        OSError: it cannot be opened or read, it is no such file, or there is more in it; `strerror` says which.
        ValueError: no file can have that name.
    """
    descriptor = os.open(path, os.O_RDONLY | (NO_LINK if own else AT_ONCE))
    try:
        status = os.fstat(descriptor)
        if own and not (stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o022):
            raise PermissionError(errno.EPERM, "it is not a regular file that this user alone can write")
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file", str(path))
        with open(descriptor, "rb", closefd=False) as file:
            data = file.read(most + 1 if most >= 0 else -1)
    finally:
        os.close(descriptor)
    if 0 <= most < len(data):
        raise OSError(errno.EFBIG, f"it has more than {most} bytes", str(path))
    return data


def replace_file(path: Path, data: bytes, *, durable: bool) -> None:
    """Write a file of ours at once or not at all, by a draft beside it that ends in ".new"; mode 0600.

    Args:
        path: of the file.
        data: all that it shall hold.
        durable: it is on the disk when this returns. Else a loss of power may leave it torn.

    Raises:
        ConfigError: the draft is not ours, or cannot be opened.
        OSError: it cannot be written, or another process is just writing it (EAGAIN, ENOENT).
    """
    draft = path.with_suffix(".new")
    descriptor = own_file(draft, os.O_WRONLY)
    with open(descriptor, "wb") as file:
        set_lock(descriptor, fcntl.F_WRLCK, 0, 0)
        if not os.path.samestat(os.fstat(descriptor), os.lstat(draft)):
            raise FileNotFoundError(errno.ENOENT, "another process has just written it")
        file.truncate()
        file.write(data)
        file.flush()
        if durable:
            os.fsync(descriptor)
        os.replace(draft, path)
    if durable:
        sync_directory(path.parent)


def write_new(path: Path, parts: Iterable[bytes], mode: int) -> None:
    """Write a file that is not there yet, durably: it gets its name once it is whole, whenever we are killed.

    Where the file system has no files without a name, it has its name meanwhile.

    Args:
        path: of the file.
        parts: its content; they may be made meanwhile.
        mode: as the umask leaves it.

    Raises:
        FileExistsError: something has that name.
        OSError: it cannot be written; nothing is left of it.
    """
    directory = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        try:
            named, file = False, os.open(".", os.O_WRONLY | os.O_TMPFILE | os.O_CLOEXEC, mode, dir_fd=directory)
        except OSError as error:
            if error.errno not in _NO_NAMELESS:
                raise
            named, file = (
                True,
                os.open(path.name, os.O_WRONLY | os.O_EXCL | os.O_CREAT | NO_LINK, mode, dir_fd=directory),
            )
        with open(file, "wb") as stream:
            try:
                stream.writelines(parts)
                stream.flush()
                os.fsync(file)
                if not named:
                    os.link(f"/proc/self/fd/{file}", path.name, dst_dir_fd=directory, follow_symlinks=True)
            except BaseException:
                if named:
                    os.unlink(path.name, dir_fd=directory)
                raise
    finally:
        os.close(directory)


@contextmanager
def locked_for_change(path: Path) -> Iterator[None]:
    """Keep other processes from changing a file of ours, by a lock beside it that ends with the process.

    Raises:
        ConfigError: the lock is not ours, or cannot be opened.
    """
    lock = own_file(path.with_suffix(".lock"), os.O_RDWR)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def sync_directory(directory: Path) -> None:
    """Make the names in a directory durable."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def set_lock(descriptor: int, kind: int, start: int, length: int) -> None:
    """Set a lock of a `kind` (fcntl.F_RDLCK, F_WRLCK, F_UNLCK) on bytes of a file.

    Raises:
        OSError: somebody else has it (EAGAIN, EACCES), or the file system has no such locks.
    """
    fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, _FLOCK.pack(kind, os.SEEK_SET, start, length, 0))


def is_locked(descriptor: int, start: int, length: int) -> bool:
    """Say whether somebody else has a lock on bytes of a file.

    Raises:
        OSError: the file system has no such locks.
    """
    asked = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, start, length, 0)
    return bool(_FLOCK.unpack(fcntl.fcntl(descriptor, fcntl.F_OFD_GETLK, asked))[0] != fcntl.F_UNLCK)
