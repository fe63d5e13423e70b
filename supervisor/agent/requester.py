"""The requester: asks the model for the next reply of a conversation.

Rule: a request is made of the transcript alone, so that one which a crash cut off is made again as it was.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

import trio

from supervisor.agent.accepted_reply import accepted
from supervisor.agent.models.model import Model, ModelOptions, ModelRequest, Progress, Reply, Retrying
from supervisor.agent.shown_contents import filled
from supervisor.agent.transcript import Transcript
from supervisor.agent.turn import Event
from supervisor.journal.facts import ModelRetried
from supervisor.journal.journal_writer import JournalWriter
from supervisor.tools.router import Router


@dataclass(frozen=True)
class Requester:
    """Asks the model in one session."""

    session: str
    """Its id in the journal."""
    writer: JournalWriter
    """Where facts go before anything else."""
    transcript: Transcript
    """Of the session's facts so far."""
    show: Callable[[Event], None]
    """Is given what a reply brings as it comes in."""
    record: Callable[..., Awaitable[None]]
    """Makes facts durable, takes them into account and shows them."""
    options: Callable[[], ModelOptions] = ModelOptions
    """Gives what the next request asks for of its reply."""
    sees: Callable[[], frozenset[str]] = frozenset
    """Says which blocks the model is shown as they are: "image", "document"."""

    async def reply(self, model: Model, router: Router, system: str) -> Reply:
        """Return the model's next reply, as the transcript takes it.

        Raises:
            ModelError: there was none, after every sensible retry.
            JournalError: something could not be recorded.
        """

        def progress(event: Progress) -> None:
            if isinstance(event, Retrying):
                retried = ModelRetried(self.transcript.turn, event.attempt, event.kind, event.message, event.delay)
                self.writer.journal.append(self.session, retried)
            self.show(event)

        tools = await self._tool_definitions(router)
        history = self.transcript
        request = ModelRequest(
            system, tools, history.messages, history.step, options=self.options(), origins=history.origins
        )
        if self.transcript.with_contents:
            store = router.intake.store
            request = await trio.to_thread.run_sync(filled, request, self.transcript, store, self.sees())
        return accepted(await model.reply(request, progress), self.transcript.ids)

    async def _tool_definitions(self, router: Router) -> Sequence[dict[str, Any]]:
        """Return the tools for the next request, having told of those that are gone or back since the one before.

        They are the same as before unless something was told: a changed list costs the cache all that comes after it.
        """
        if self.transcript.messages[-1]["role"] == "user":  # else a reply goes on, and nothing may be said before it
            await self.record(*router.availability.announcements(self.transcript.turn, self.transcript.unavailable))
        return router.availability.definitions(self.transcript.unavailable)
