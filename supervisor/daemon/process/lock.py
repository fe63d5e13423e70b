"""One daemon a home: whoever holds the kernel's lock on `daemon.lock`.

Rule: the lock alone says that a daemon runs, so it ends with its process, however that ends. What stands in the file is
information for people and clients, worth nothing unless the lock is held, and anybody may have changed it: a pid in it
counts only where the kernel says the same. Nothing here imports trio: clients look here before they connect.

A client that looks holds a shared lock for a moment. A daemon that starts just then is refused by that, but not
together with an exclusive one: so it asks for a shared lock too, and where it gets one, tries again.
"""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Final

import msgspec

from supervisor.config.settings import Settings
from supervisor.errors import ConfigError, DaemonRuns
from supervisor.system.safe_files import NO_LINK, own_file, secure_home
from supervisor.version import VERSION

_TRIES: Final = 2000
_PAUSE_S: Final = 0.001
"""Between two tries of a daemon whose way is blocked by clients that look."""
_LONGEST: Final = 16_384
_HELD: Final = Path("/proc/locks")


class Published(msgspec.Struct, frozen=True):
    """What a daemon says of itself; pid 0 and empty texts while it starts or ends, or where the file was changed."""

    pid: int = 0
    """0 also where the kernel does not say that this process holds the lock, or was not asked."""
    version: str = ""
    socket: str = ""
    """Empty beside a version: it takes no clients any more, and only finishes what runs."""


_decoder: Final[msgspec.json.Decoder[Published]] = msgspec.json.Decoder(Published)


class Lock:
    """The lock of this home, held; use `hold`.

    Args:
        path: of the file.
        descriptor: of it, locked. This and the next are closed by `close`.
        home: a descriptor of its directory.
    """

    def __init__(self, path: Path, descriptor: int, home: int) -> None:
        self.path = path
        self._descriptor = descriptor
        self._home = home
        self._said = b""

    def close(self) -> None:
        """Let go of it; the file says nothing any more."""
        try:
            os.ftruncate(self._descriptor, 0)
        finally:
            os.close(self._descriptor)
            os.close(self._home)

    def publish(self, socket: Path) -> None:
        """Say in the file who we are and where we listen; call it when clients can connect.

        Raises:
            ConfigError: the disk is full.
        """
        self._say(str(socket).encode("utf-8", "replace").decode())

    def retire(self) -> None:
        """Say in the file that nobody is let in any more."""
        with suppress(ConfigError):  # then clients believe that we still listen, and are told that the socket is gone
            self._say("")

    def renew(self) -> bool:
        """Say again what was said, if the file says something else by now; return whether it did.

        Raises:
            ConfigError: the disk is full.
        """
        if os.pread(self._descriptor, _LONGEST, 0) == self._said:
            return False
        self._write()
        return True

    def is_named(self) -> bool:
        """Say whether the file is still at its name: if not, the home was moved or removed, or may be another's."""
        return is_at(self.path, self._descriptor)

    def reclaim(self) -> bool:
        """Hold a file at the name again, if somebody took ours from a home that is where it was; return whether so.

        Raises:
            DaemonRuns: another process was faster.
            ConfigError: the file cannot be used, or the disk is full.
        """
        if self.is_named() or not is_at(self.path.parent, self._home, through_links=True):
            return False
        descriptor = own_file(self.path, os.O_RDWR)
        try:
            _take(self.path, descriptor)
        except BaseException:
            os.close(descriptor)
            raise
        os.close(self._descriptor)
        self._descriptor = descriptor
        self._write()
        return True

    def _say(self, socket: str) -> None:
        self._said = msgspec.json.encode(Published(os.getpid(), VERSION, socket)) + b"\n"
        self._write()

    def _write(self) -> None:
        try:
            os.pwrite(self._descriptor, self._said, 0)
            os.ftruncate(self._descriptor, len(self._said))
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
    with ExitStack() as undo:
        home = os.open(settings.home, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        undo.callback(os.close, home)
        descriptor = own_file(settings.lock, os.O_RDWR)
        undo.callback(os.close, descriptor)
        _take(settings.lock, descriptor)
        os.ftruncate(descriptor, 0)  # what a killed daemon said
        undo.pop_all()
    with closing(Lock(settings.lock, descriptor, home)) as lock:
        yield lock


def running(settings: Settings, *, named: bool = True) -> Published | None:
    """Return what the daemon of this home says of itself; None where none runs.

    Args:
        settings: say where its lock is.
        named: whether its pid is wanted. The kernel is asked for it, which takes 8 ms, and meanwhile nobody on the
            machine gets a lock.

    Raises:
        ConfigError: the lock's file cannot be opened.
    """
    with _opened(settings) as descriptor:
        if descriptor is None or _locks(settings.lock, descriptor, fcntl.LOCK_SH):
            return None
        return _published(descriptor, named=named)


def holder(settings: Settings) -> int:
    """Return the pid of the process that holds the lock, whatever the file says; 0 where the kernel does not tell.

    Raises:
        ConfigError: the lock's file cannot be opened.
    """
    with _opened(settings) as descriptor:
        return 0 if descriptor is None else _holder(descriptor, 0)


@contextmanager
def _opened(settings: Settings) -> Iterator[int | None]:
    try:
        descriptor = os.open(settings.lock, os.O_RDONLY | NO_LINK)
    except (FileNotFoundError, NotADirectoryError):
        yield None
        return
    except OSError as error:
        raise ConfigError(f"{settings.lock} cannot be opened: {error.strerror}.") from error
    try:
        yield descriptor
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
    found = _published(descriptor, named=True)
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


def is_at(path: Path, descriptor: int, *, through_links: bool = False) -> bool:
    """Say whether a name leads to the file that is open."""
    try:
        return os.path.samestat(os.stat(path, follow_symlinks=through_links), os.fstat(descriptor))
    except OSError:
        return False


def _published(descriptor: int, *, named: bool) -> Published:
    try:
        said = _decoder.decode(os.pread(descriptor, _LONGEST, 0))
    except (msgspec.DecodeError, UnicodeDecodeError):
        return Published()  # not yet, or no longer
    if named and said.pid and _holder(descriptor, said.pid) == said.pid:
        return said
    return msgspec.structs.replace(said, pid=0)


def _holder(descriptor: int, claimed: int) -> int:
    """Return who holds the file's lock exclusively, as proc_locks(5) says; 0 where it does not.

    The devices of some file systems, such as those of Btrfs, are others there than in stat(2). Then the file's number
    alone names nobody, but it confirms a pid that is `claimed`.
    """
    status = os.fstat(descriptor)
    device = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}"
    try:
        lines = _HELD.read_text().splitlines()
    except OSError:
        return 0
    for line in lines:
        match line.split():
            case [_, "FLOCK", _, "WRITE", pid, place, *_]:
                where, _, number = place.rpartition(":")
                if number == str(status.st_ino) and (where == device or pid == str(claimed)):
                    return int(pid)
    return 0
