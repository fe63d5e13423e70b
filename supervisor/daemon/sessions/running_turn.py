"""A turn under way in the daemon, for who waits for its end; and the wait of one that is suspended until a time."""

import logging
from typing import Final

import trio

from supervisor.agent.conversation import Conversation
from supervisor.agent.turn import SuspendedTurn
from supervisor.errors import StrongroomError
from supervisor.journal.facts import TurnEnded

_log: Final = logging.getLogger("strongroom.daemon")


class RunningTurn:
    """A turn under way; `end` or `failure` is set when `done` is."""

    def __init__(self, conversation: Conversation) -> None:
        self.scope = trio.CancelScope()
        self.done = trio.Event()
        self.end: TurnEnded | None = None
        self.failure: Exception | None = None
        self.waits = False
        """It is suspended, and goes on by itself."""
        self._conversation = conversation
        self._by = ""
        """Who said that it goes on."""

    def fail(self, error: Exception, session: str) -> None:
        """Take what the turn was ended by, and log it, with the session's id, unless it is suspended."""
        match error:
            case SuspendedTurn():
                self.failure = error
            case StrongroomError():
                _log.error("a turn failed: %s", error, extra={"session": session})
                self.failure = error
            case _:
                _log.error("internal error outside of a turn", extra={"session": session}, exc_info=error)
                self.failure = StrongroomError("An internal error; the daemon's log has the details.")

    async def wait(self) -> TurnEnded:
        """Return how it ended. Cancelling leaves it running.

        Raises:
            SuspendedTurn: it goes no further without a person's word.
            StrongroomError: it could not be recorded, or the daemon stops.
        """
        await self.done.wait()
        if self.failure is not None:
            raise self.failure
        assert self.end is not None
        return self.end

    def wake(self, by: str = "") -> None:
        """Let a turn that waits look whether it goes on, or go on at the word of `by`."""
        self._by = by
        self._conversation.resumption.wake()

    async def until_it_goes_on(self) -> str:
        """Wait until the suspended turn goes on; return at whose word, "" where by itself."""
        self.waits, self._by = True, ""
        try:
            await self._conversation.resumption.wait()
        except trio.Cancelled:
            self._conversation.close_if_cancelled()
            raise
        finally:
            self.waits = False
        return self._by
