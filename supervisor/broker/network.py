"""The network of the broker: looks up a name, connects to an address.

Rule: a name is looked up exactly as it is: the dot at its end keeps the resolver's search list away, which would ask
for names that nobody allowed. It happens in a thread that can be abandoned; those that never come back are bounded in
number. A connection is TCP, to the one address that is given, and is compared with it before anybody gets it.
"""

import errno
import ipaddress
import os
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

import trio
from trio.lowlevel import wait_writable

THREADS: Final = 32
"""Threads that may look up names at once, abandoned ones included."""


HOSTS: Final = Path("/etc/hosts")


def look_up(host: str, port: int, hosts: Path = HOSTS) -> list[str]:
    """Return the addresses of a name, in the system's order; blocks.

    Raises:
        OSError: there is none, or it cannot be found out.
    """
    name = host if _is_in(hosts, host) else f"{host}."  # hosts(5) knows names without that dot
    found = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
    return list(dict.fromkeys(str(address[0]) for _, _, _, _, address in found))


class Resolver:
    """Looks names up in threads; one for all workers, because its bound is that of the process."""

    def __init__(self, look_up: Callable[[str, int], list[str]] = look_up, threads: int = THREADS) -> None:
        self._look_up = look_up
        self._limiter = trio.CapacityLimiter(threads)

    async def __call__(self, host: str, port: int) -> list[str]:
        """Return the addresses of a name; cancelling leaves the thread to itself.

        Raises:
            OSError: there is none, or it cannot be found out.
        """
        try:
            return await trio.to_thread.run_sync(
                self._look_up, host, port, abandon_on_cancel=True, limiter=self._limiter
            )
        except RuntimeError as error:  # Python's word for what pthread_create(3) refused
            raise OSError(errno.EAGAIN, f"no thread can be started for it ({error})") from error


async def connect(address: str, port: int) -> socket.socket:
    """Return a connection to exactly this address; it is the caller's to close, and blocks.

    Raises:
        OSError: it was refused, or is not what was asked for.
    """
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    connection = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_CLOEXEC, socket.IPPROTO_TCP)
    try:
        connection.setblocking(False)
        with suppress(BlockingIOError):
            connection.connect((address, port))
        await wait_writable(connection)
        verify(connection, address, port)
        connection.setblocking(True)
    except BaseException:
        connection.close()
        raise
    return connection


def _is_in(hosts: Path, host: str) -> bool:
    try:
        lines = hosts.read_text("utf-8", "replace").splitlines()
    except OSError:
        return False
    return any(host in line.partition("#")[0].lower().split()[1:] for line in lines)


def verify(connection: socket.socket, address: str, port: int) -> None:
    """Make sure that a connection was made, and leads to where it should.

    Raises:
        OSError: it does not.
    """
    if error := connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
        raise OSError(error, os.strerror(error))
    there, at = connection.getpeername()[:2]
    if ipaddress.ip_address(there) != ipaddress.ip_address(address) or at != port:
        raise OSError(errno.EADDRNOTAVAIL, f"the connection leads to {there} instead")
