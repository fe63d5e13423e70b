"""Tasks that close or delete sessions; once started, each runs to its end.

Rule: such a task belongs to the registry, not to the client that asked for it. A second request for the same waits for
the first, and everybody who waits is told how it went.
"""

import logging
from collections.abc import Awaitable, Callable
from typing import Final

import trio

from supervisor.errors import StrongroomError

_log: Final = logging.getLogger("strongroom.daemon")


class _ClosingTask:
    """A task under way; `failure` says how it went when `done` is set."""

    def __init__(self) -> None:
        self.done = trio.Event()
        self.failure: Exception | None = StrongroomError("The daemon stops before the session was ended.")


class ClosingTasks:
    """The tasks under way.

    Args:
        nursery: runs them; outlives every client.
    """

    def __init__(self, nursery: trio.Nursery) -> None:
        self._nursery = nursery
        self._running: dict[tuple[str, str], _ClosingTask] = {}

    def __bool__(self) -> bool:
        return bool(self._running)

    async def run(self, what: str, session: str, end: Callable[[], Awaitable[None]]) -> None:
        """Do `end`, unless the same is being done to the session already; wait for it.

        Cancelling the caller leaves it running.

        Raises:
            Exception: what it failed with; the log has it as well.
        """
        closing = self._running.get((what, session))
        if closing is None:
            closing = self._running[what, session] = _ClosingTask()
            self._nursery.start_soon(self._run, what, session, end, closing)
        await closing.done.wait()
        if closing.failure is not None:
            raise closing.failure

    async def done(self) -> None:
        """Return when those that are under way now have ended."""
        for closing in tuple(self._running.values()):
            await closing.done.wait()

    async def _run(self, what: str, session: str, end: Callable[[], Awaitable[None]], closing: _ClosingTask) -> None:
        try:
            await end()
            closing.failure = None
        except StrongroomError as error:
            _log.error("could not %s a session: %s", what, error, extra={"session": session})
            closing.failure = error
        except Exception as error:  # noqa: BLE001 - the session boundary: a bug costs this end, not the daemon
            _log.exception("internal error: could not %s a session", what, extra={"session": session})
            closing.failure = error
        finally:
            del self._running[what, session]
            closing.done.set()
