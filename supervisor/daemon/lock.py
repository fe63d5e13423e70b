"""One daemon a home: whoever holds the kernel's lock on `daemon.lock`.

Rule: the lock alone says that a daemon runs, so it ends with its process, however that ends. What stands in the file is
information for people and clients, worth nothing unless the lock is held. Nothing here imports trio: clients look
here before they connect.

A client that looks holds a shared lock for a moment. A daemon that starts just then is refused by that, but not
together with an exclusive one: so it asks for a shared lock too, and where it gets one, tries again.
"""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from supervisor.config import Settings, own_file, secure_home
from supervisor.errors import ConfigError, DaemonRuns
from supervisor.version import VERSION

_TRIES: Final = 2000
_PAUSE_S: Final = 0.001
"""Between two tries of a daemon whose way is blocked by clients that look."""
_LONGEST: Final = 16_384


class Published(msgspec.Struct, frozen=True):
    """What a daemon says of itself; pid 0 and empty texts while it starts or ends."""

    pid: int = 0
    version: str = ""
    socket: str = ""


_decoder: Final[msgspec.json.Decoder[Published]] = msgspec.json.Decoder(Published)


class Lock:
    """The lock of this home, held; use `hold`."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def publish(self, socket: Path) -> None:
        """Say in the file who we are and where we listen; call it when clients can connect.

        Raises:
            ConfigError: the disk is full.
        """
        where = str(socket).encode("utf-8", "replace").decode()
        line = msgspec.json.encode(Published(os.getpid(), VERSION, where)) + b"\n"
        try:
            os.pwrite(self._descriptor, line, 0)
        except OSError as error:
            raise ConfigError(f"The daemon's lock file cannot be written: {error.strerror}.") from error


@contextmanager
def hold(settings: Settings) -> Iterator[Lock]:
    """Hold the lock of the home directory, which is made if need be, as long as the block lasts.

    Raises:
        DaemonRuns: another process holds it.
        ConfigError: the home directory or the lock's file cannot be used.
    """
    secure_home(settings.home)
    descriptor = own_file(settings.lock, os.O_RDWR)
    try:
        _take(settings.lock, descriptor)
        os.ftruncate(descriptor, 0)  # what a killed daemon said
        try:
            yield Lock(descriptor)
        finally:
            os.ftruncate(descriptor, 0)
    finally:
        os.close(descriptor)


def running(settings: Settings) -> Published | None:
    """Return what the daemon of this home says of itself; None where none runs.

    Raises:
        ConfigError: the lock's file cannot be opened.
    """
    try:
        descriptor = os.open(settings.lock, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise ConfigError(f"{settings.lock} cannot be opened: {error.strerror}.") from error
    try:
        return None if _locks(settings.lock, descriptor, fcntl.LOCK_SH) else _published(descriptor)
    finally:
        os.close(descriptor)


def _take(path: Path, descriptor: int) -> None:
    for _ in range(_TRIES):
        if _locks(path, descriptor, fcntl.LOCK_EX):
            return
        if not _locks(path, descriptor, fcntl.LOCK_SH):
            break
        fcntl.flock(descriptor, fcntl.LOCK_UN)
        time.sleep(_PAUSE_S)
    found = _published(descriptor)
    raise DaemonRuns(found.pid, found.socket)


def _locks(path: Path, descriptor: int, kind: int) -> bool:
    """Take a lock if it can be had at once."""
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        raise ConfigError(f"{path} cannot be locked: {error.strerror}.") from error
    return True


def _published(descriptor: int) -> Published:
    try:
        return _decoder.decode(os.pread(descriptor, _LONGEST, 0))
    except msgspec.DecodeError:
        return Published()  # not yet, or no longer
