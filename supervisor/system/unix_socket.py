"""Unix sockets at names of any length, and the process at the other end of one.

Rule: nothing here waits but `connect`, and nothing here imports trio: the clients use it too. A name longer than the
107 bytes of sun_path (unix(7)) is reached through a descriptor of its directory in /proc/self/fd.
"""

import errno
import os
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple, Protocol

SUN_PATH: Final = 107
"""Bytes of a socket's name, without the zero byte at its end."""

_UCRED: Final = struct.Struct("iII")


class Peer(NamedTuple):
    """The process at the other end, as it was when it connected or began to listen. pid 0: of another namespace."""

    pid: int
    uid: int
    gid: int


class _Socket(Protocol):
    """The common part of a socket of the standard library and one of trio."""

    def getsockopt(self, level: int, optname: int, buflen: int, /) -> bytes: ...


@contextmanager
def address(path: str) -> Iterator[str]:
    """Yield a name for the socket at `path` that bind(2) and connect(2) take while the block lasts.

    Raises:
        OSError: the directory of a long path cannot be opened, or the name alone is too long (ENAMETOOLONG).
    """
    if len(os.fsencode(path)) <= SUN_PATH:
        yield path
        return
    folder, name = os.path.split(path)
    descriptor = os.open(folder or ".", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        short = f"/proc/self/fd/{descriptor}/{name}"
        if len(os.fsencode(short)) > SUN_PATH:
            raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG), path)
        yield short
    finally:
        os.close(descriptor)


def connect(path: str, *, wait: bool = True) -> socket.socket:
    """Return a blocking stream socket connected to the one that listens at `path`; the caller closes it.

    Args:
        path: Of any length.
        wait: Whether to wait for a place in the listener's queue, which an overwhelmed one may not have.

    Raises:
        BlockingIOError: the queue is full, and `wait` is False.
        OSError: nobody listens (ECONNREFUSED), or the path leads to no socket that we may use.
    """
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.setblocking(wait)
        with address(path) as name:
            connection.connect(name)
        connection.setblocking(True)
    except BaseException:
        connection.close()
        raise
    return connection


def peer(connection: _Socket) -> Peer:
    """Return who is at the other end of a connected Unix socket: SO_PEERCRED, unix(7)."""
    return Peer(*_UCRED.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size)))
