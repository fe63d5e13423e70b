"""The right to open a session: one task of this process has it at a time, and one process.

Rule: another process is kept out by a lease, which the kernel ends with the process; a session that could not be opened
is given back at once.
"""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Final

import trio

from supervisor.acp import jsonrpc
from supervisor.daemon.protocol.connection import RequestError
from supervisor.session.leases import Leases

_LEASE_PATIENCE: Final = 2.0
_STEP: Final = 0.02


class OpeningRight:
    """The sessions that are being opened, and those that this process has.

    Args:
        leases: keeps other processes out.
        is_open: says whether a session is open here.
    """

    def __init__(self, leases: Leases, is_open: Callable[[str], bool]) -> None:
        self._leases = leases
        self._is_open = is_open
        self._locks: dict[str, trio.Lock] = {}

    @asynccontextmanager
    async def alone(self, session_id: str) -> AsyncIterator[None]:
        """Let nobody else open or delete a session meanwhile."""
        lock = self._locks.setdefault(session_id, trio.Lock())
        try:
            async with lock:
                yield
        finally:
            if not lock.statistics().tasks_waiting and not lock.locked():
                self._locks.pop(session_id, None)

    async def lease(self, session_id: str, patience: float = _LEASE_PATIENCE) -> None:
        """Make the session this process's own; wait so many seconds for another one that leaves it.

        Raises:
            RequestError: another process has it.
        """
        deadline = trio.current_time() + patience
        while not self._leases.acquire(session_id):  # whoever had it may be on its way out
            if trio.current_time() > deadline:
                why = f"The session {session_id} is open in another process: a batch, or another daemon of this home."
                raise RequestError(jsonrpc.INVALID_REQUEST, why, "busy")
            await trio.sleep(_STEP)

    @asynccontextmanager
    async def leased(self, session_id: str, patience: float = _LEASE_PATIENCE) -> AsyncIterator[None]:
        """Do so meanwhile; raises likewise."""
        await self.lease(session_id, patience)
        try:
            yield
        finally:
            self.release(session_id)

    @contextmanager
    def released_unless_open(self, session_id: str) -> Iterator[None]:
        """Give a session back to other processes where it could not be opened."""
        try:
            yield
        except BaseException:
            if not self._is_open(session_id):
                self.release(session_id)
            raise

    def release(self, session_id: str) -> None:
        """Give a session back to other processes."""
        self._leases.release(session_id)
