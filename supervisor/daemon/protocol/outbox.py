"""The lines that wait to be sent to one client, in order.

Rule: nobody waits for a client but a long replay, which waits for room. A client that lets the outbox overflow is told
why in a last line; what it has not read by then is thrown away.
"""

from collections import deque
from typing import Final

import trio

LIMIT: Final = 32 * 2**20
"""Bytes that may wait for a client. Above the largest message: a review of the largest arguments, told twice."""
_ROOMY: Final = 2**20
"""Bytes below which a long replay goes on."""
_CHUNK: Final = 2**16
_TOGETHER: Final = 64
"""Small lines that are sent in one go."""


class Outbox:
    """The queue of lines to one client."""

    def __init__(self) -> None:
        self._lines: deque[bytes] = deque()
        self._size = 0
        self._ending = False
        self._news = trio.Event()
        self._room = trio.Event()

    @property
    def ending(self) -> bool:
        """Whether no more lines are taken."""
        return self._ending

    def put(self, line: bytes) -> bool:
        """Queue a line; say whether it still fits. After the end, lines are thrown away."""
        if not self._ending:
            self._lines.append(line)
            self._size += len(line)
            self._news.set()
        return self._size <= LIMIT

    def end(self, last: bytes | None = None) -> None:
        """Take no more lines; with a last one, throw away all that still wait before it."""
        if self._ending:
            return
        if last is not None:
            self._lines.clear()
            self._lines.append(last)
        self._ending = True
        self._news.set()
        self._room.set()

    async def wait_until_read(self) -> None:
        """Wait until most has been read, or the end has come."""
        while self._size > _ROOMY and not self._ending:
            if self._room.is_set():
                self._room = trio.Event()
            await self._room.wait()

    async def send_to(self, stream: trio.SocketStream) -> None:
        """Send everything until the end has been sent.

        Raises:
            trio.BrokenResourceError, trio.ClosedResourceError: the client has left.
        """
        while self._lines or not self._ending:
            if not self._lines:
                self._news = trio.Event()
                await self._news.wait()
                continue
            batch = self._lines.popleft()
            if len(batch) < _CHUNK:
                batch += b"".join(self._lines.popleft() for _ in range(min(len(self._lines), _TOGETHER)))
            await stream.send_all(batch)
            self._size -= len(batch)
            if self._size <= _ROOMY:
                self._room.set()
