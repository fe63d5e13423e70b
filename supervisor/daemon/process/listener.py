"""The socket that clients find the daemon at.

Rule: it appears at its name whole, with mode 0600 and listening, or not at all; and nothing is removed but a socket
that nobody listens at. So it is bound to another name in the directory, and that one is moved over the final name.
Whoever makes or removes a socket holds a lock on the directory meanwhile, so two daemons cannot displace each other.
A socket whose name was removed cannot get it back: whoever finds that makes a new one.
"""

import errno
import fcntl
import os
import socket
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from supervisor.errors import ConfigError, DaemonRuns
from supervisor.system import unix_socket
from supervisor.system.own_files import own_directory

_BACKLOG: Final = 4096
"""Connections that wait to be accepted; the kernel allows no more than /proc/sys/net/core/somaxconn."""
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
        try:
            return os.path.samestat(os.lstat(self.path), os.fstat(self.file))
        except OSError:
            return False


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
