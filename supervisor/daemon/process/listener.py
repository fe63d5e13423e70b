"""The socket that clients find the daemon at.

Rule: it appears at its name whole, with mode 0600 and listening, or not at all; and nothing is removed but a socket
that nobody listens at. So it is bound to another name in the directory, and that one is moved over the final name.
Whoever makes or removes a socket holds a lock on the directory meanwhile, so two daemons cannot displace each other.
A socket whose name was removed cannot get it back: whoever finds that makes a new one. Whoever takes away that or the
entry in the lock's file keeps clients out for seconds only. What has taken the socket's place is left there, and a home
that is not ours any more gets no socket.
"""

import errno
import fcntl
import logging
import os
import socket
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import trio

from supervisor.daemon.process.lock import Lock, is_at
from supervisor.errors import ConfigError, DaemonRuns, StrongroomError
from supervisor.system import unix_socket
from supervisor.system.safe_files import own_directory

_log: Final = logging.getLogger("strongroom.daemon")

_BACKLOG: Final = 4096
"""Connections that wait to be accepted; the kernel allows no more than /proc/sys/net/core/somaxconn."""
_EVERY: Final = 5.0
"""Seconds after which it is looked again whether clients can find it; well below what they wait."""
_ADVICE: Final = "Choose a socket in a directory of your own with --socket."


@dataclass(frozen=True)
class Listening:
    """A socket that listens at its name, or did."""

    path: Path
    socket: socket.socket
    """Does not block. Its own idea of its name is the one that it was bound to (getsockname(2)), not `path`."""
    file: int
    """A descriptor of the socket's file."""

    def is_named(self) -> bool:
        """Say whether the name still leads here: nobody has removed it, or put something else in its place."""
        return is_at(self.path, self.file)


@contextmanager
def listening(path: Path) -> Iterator[Listening]:
    """Listen at `path`, as long as the block lasts. The name is removed at its end, if it is still ours.

    Raises:
        DaemonRuns: somebody listens there.
        ConfigError: the directory is not for us alone, something that is no socket is in the way, or the
            socket cannot be made. Nothing was removed.
    """
    path = path.absolute()
    if own_directory(path.parent, _ADVICE) & 0o077:
        raise ConfigError(f"{path.parent} is open to others: chmod 700 {path.parent}, or choose another with --socket.")
    with ExitStack() as stack:
        server = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK))
        try:
            folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            stack.callback(os.close, folder)
            with _locked(folder):
                ours = _appear(server, path, folder)
            stack.callback(os.close, ours)
        except OSError as error:
            raise ConfigError(f"The socket {path} cannot be made: {error.strerror or error}.") from error
        try:
            yield Listening(path, server, ours)
        finally:
            with suppress(OSError), _locked(folder):
                found = os.stat(path.name, dir_fd=folder, follow_symlinks=False)
                if os.path.samestat(found, os.fstat(ours)):
                    os.unlink(path.name, dir_fd=folder)


@contextmanager
def _locked(folder: int) -> Iterator[None]:
    fcntl.flock(folder, fcntl.LOCK_EX)
    try:
        yield
    finally:
        fcntl.flock(folder, fcntl.LOCK_UN)


def _appear(server: socket.socket, path: Path, folder: int) -> int:
    """Make the socket listen at its final name; return a descriptor of its file: no other gets that one's number."""
    _clear_of_others(path, folder)
    draft = path.with_name(f".{path.name}.new")
    _clear_of_others(draft, folder)
    with suppress(FileNotFoundError):
        os.unlink(draft.name, dir_fd=folder)  # of a daemon that was killed just here
    with unix_socket.address(str(draft)) as name:
        server.bind(name)
    try:
        os.chmod(draft.name, 0o600, dir_fd=folder)  # before it listens: until then nobody can connect
        server.listen(_BACKLOG)
        os.rename(draft.name, path.name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        os.unlink(draft.name, dir_fd=folder)
        raise
    return os.open(path.name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)


def _clear_of_others(path: Path, folder: int) -> None:
    """Make sure that at `path` is nothing, or a socket that nobody listens at."""
    try:
        mode = os.stat(path.name, dir_fd=folder, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        what = "a symbolic link" if stat.S_ISLNK(mode) else "no socket"
        raise ConfigError(f"{path} is {what}. Move it away, or choose another name with --socket.")
    try:
        with unix_socket.connect(str(path), wait=False) as found:
            pid = unix_socket.peer(found).pid
    except BlockingIOError:
        pid = 0  # somebody listens, but too many knock
    except OSError as error:
        if error.errno in (errno.ECONNREFUSED, errno.ENOENT):
            return
        raise
    raise DaemonRuns(pid, str(path))


# --- its name, guarded ------------------------------------------------------------------------------------------------


async def until_unnamed(place: Listening, lock: Lock) -> None:
    """Return when the socket's name leads here no more; until then, keep the lock's file saying who we are."""
    said = ""
    while place.is_named():
        said = _renew(lock, said)
        await trio.sleep(_EVERY)
    _log.warning("somebody has removed or replaced the socket %s, where clients find this daemon", place.path)


async def listening_again(stack: ExitStack, path: Path, lock: Lock) -> Listening:
    """Listen at `path` again, as soon as nothing is in the way and the home is still ours; the stack ends it."""
    said = ""
    while True:
        try:
            if lock.is_named():
                place = stack.enter_context(listening(path))
                _log.info("listening at %s again", path)
                return place
            why = f"{lock.path} is gone, or another's: the home was moved or removed."
        except StrongroomError as error:
            why = str(error)
        if why != said:
            _log.error("no client can find this daemon: %s", why)
        said = why
        await trio.sleep(_EVERY)


def _renew(lock: Lock, said: str) -> str:
    """Put the lock's file right; return what is in the way, and log it unless it was `said` before."""
    try:
        if lock.reclaim():
            _log.warning("somebody has removed or replaced %s; there is one again, and it is held", lock.path)
        elif lock.renew():
            _log.warning("somebody has changed %s; it says again where this daemon listens", lock.path)
    except (StrongroomError, OSError) as error:
        why = f"{lock.path} was changed or taken away, and cannot be put right: {error}"
        if why != said:
            _log.warning("%s", why)
        return why
    return ""
