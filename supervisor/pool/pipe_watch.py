"""Reads from all workers of one pool, in one task.

Rule: whatever has come from any worker is read in one turn of the event loop, for one wake-up and one registration that
stays; a task that waited for each worker's pipe, and told it anew for each answer, took a third of a call's time. It
also hears workers that nobody has asked anything.
"""

import select
from collections.abc import Callable
from typing import Final

import trio
from trio.lowlevel import wait_readable

_ROUNDS: Final = 4
"""In one turn: a worker that has its next call may have answered it before the others are read."""


class PipeWatch:
    """Calls whoever a descriptor belongs to while there is something to read from it."""

    def __init__(self) -> None:
        self._epoll: select.epoll | None = None
        self._opened = trio.Event()
        self._readers: dict[int, Callable[[], bool]] = {}

    def add(self, descriptor: int, read: Callable[[], bool]) -> None:
        """Have `read` called whenever there is something, or the end, to read; it raises nothing.

        It returns whether it has left much: then other tasks have their turn first.

        Raises:
            OSError: this process is out of descriptors, or the kernel of memory.
        """
        if self._epoll is None:
            self._epoll = select.epoll()
            self._opened.set()
        self._epoll.register(descriptor, select.EPOLLIN)
        self._readers[descriptor] = read

    def remove(self, descriptor: int) -> None:
        """Watch a descriptor no longer; before it is closed. Nothing happens where it is not watched."""
        if self._readers.pop(descriptor, None) is not None and self._epoll is not None:
            self._epoll.unregister(descriptor)

    async def run(self) -> None:
        """Read until cancelled."""
        await self._opened.wait()
        assert self._epoll is not None
        while True:
            await wait_readable(self._epoll.fileno())
            for _ in range(_ROUNDS):
                if not (events := self._epoll.poll(0)):
                    break
                flooded = False
                for descriptor, _events in events:
                    if (read := self._readers.get(descriptor)) is not None:  # else one before it has ended it
                        flooded |= read()
                if flooded:
                    break

    def close(self) -> None:
        """Let go of everything; nothing may wait any more."""
        self._readers.clear()
        if self._epoll is not None:
            self._epoll.close()
