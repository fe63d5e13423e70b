"""The dialog of one worker and the broker: each request gets exactly one answer, in order.

Rule: nothing here believes the worker. A worker that asks without end, or without reading the answers, gets no more.
What belonged to a call is never handed out after its end: the worker may have another one by then.
"""

import fcntl
import logging
import socket
import struct
import termios
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from trio.lowlevel import wait_readable, wait_writable

from workers.wire import frames, messages

CONNECTIONS: Final = 16
"""Requests that one call may make, redirects and all."""

COMMAND_CONNECTIONS: Final = 512
"""The same of a command with the network of its profile: package managers fetch hundreds of files."""

PATIENCE: Final = 4
"""Times as many requests in one call, or between two, after which the worker is answered no more."""

UNREAD: Final = 8
"""Answers, each perhaps with a connection, that may lie where the worker has not read them."""

_INT: Final = struct.Struct("i")

_log: Final = logging.getLogger("strongroom.broker")


class ConnectionRefusal(Exception):
    """There is no connection. The kind and the text are for the worker, the model and the log."""

    def __init__(self, kind: messages.ErrorKind, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class Dialog:
    """One worker's socket, and the call that it runs.

    Args:
        worker: our end (SOCK_SEQPACKET); stays the caller's.
        running: the id of the call that the worker runs, 0 while it runs none.
        connections: that one call may make.
    """

    def __init__(self, worker: socket.socket, running: Callable[[], int], connections: int = CONNECTIONS) -> None:
        worker.setblocking(False)
        self._worker = worker
        self._running = running
        self._connections = connections
        self._call = 0
        self._requests = 0
        self._answered = 0

    async def next_request(self) -> bytes | None:
        """Return the next request, None when there will be no more. One above the limit is cut, and then invalid."""
        request = await self._datagram()
        if not request:
            return None
        if self._running() != self._call:
            self._call, self._requests = self._running(), 0
        self._requests += 1
        if self._requests > PATIENCE * self._connections:
            _log.warning("a worker is answered no more: it asked more than %d times in one call", self._requests - 1)
            return None
        self._answered = self._answered + 1 if self._unread() else 0
        if self._answered > UNREAD:
            _log.warning("a worker is answered no more: it asks without reading the answers")
            return None
        return request

    def check_call(self) -> None:
        """Make sure that the last request may have a connection now.

        Raises:
            ConnectionRefusal: it may not.
        """
        if not self._call:
            raise ConnectionRefusal("fetch_failed", "There are connections only while a call runs.")
        if self._requests > self._connections:
            raise ConnectionRefusal(
                "fetch_failed", f"A call may make {self._connections} connections, and this one has made them."
            )
        if self._running() != self._call:
            raise ConnectionRefusal("cancelled", "The call for which this connection was wanted has ended.")

    async def wait_for_interruption(self) -> None:
        """Return when the worker says something more, or has gone."""
        await wait_readable(self._worker)

    async def send_answer(self, answer: messages.Brokered, connection: socket.socket | None = None) -> None:
        """Send an answer, and a connection with it, which stays the caller's to close here."""
        descriptors = [] if connection is None else [connection.fileno()]
        message = frames.datagram(answer)
        while True:
            try:
                socket.send_fds(self._worker, [message], descriptors)
            except BlockingIOError:
                await wait_writable(self._worker)
            except OSError as error:
                _log.debug("a worker did not get its answer: %s", error)
                return
            else:
                return

    def close(self) -> None:
        with suppress(OSError):
            self._worker.shutdown(socket.SHUT_RDWR)

    async def _datagram(self) -> bytes:
        """Return the next datagram, empty at the end. Descriptors that came with it are dropped by the kernel."""
        while True:
            await wait_readable(self._worker)
            try:
                return self._worker.recv(messages.BROKER_LIMIT)
            except BlockingIOError:
                continue
            except OSError:  # it has gone with an answer unread
                return b""

    def _unread(self) -> bool:
        """Say whether an answer still lies where the worker has not read it (SIOCOUTQ, unix(7))."""
        return bool(_INT.unpack(fcntl.ioctl(self._worker, termios.TIOCOUTQ, bytes(_INT.size)))[0])
