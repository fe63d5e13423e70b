"""A turn under way in the daemon, for who waits for its end; and the wait of one that is suspended until a time."""

import trio

from supervisor.agent.conversation import Conversation
from supervisor.journal.facts import TurnEnded


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
