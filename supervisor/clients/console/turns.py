"""The person's turns in a session: send a line, and follow the turn to its end.

Rule: when a daemon ends in the middle of a turn, the next one resumes it. A line that the last daemon had not recorded
is sent again; a recorded one is not.
"""

import asyncio
from typing import TYPE_CHECKING, Final

import msgspec

from supervisor.acp import extensions, schema
from supervisor.clients.connection import requests
from supervisor.clients.connection.link import Link, decoded
from supervisor.errors import DaemonLost, DaemonRefused, StrongroomError

if TYPE_CHECKING:
    from supervisor.clients.console.session_controller import SessionController

_TRIES: Final = 5
"""Daemons that may end under one turn before it is given up."""
_PAUSE: Final = 0.2
"""Seconds before the second try, twice as long before the next ..."""


class Turns:
    """The turns of one controller's session."""

    def __init__(self, controller: "SessionController") -> None:
        self.failed = False
        """Whether the last turn has failed."""
        self.cancelling = False
        self.following = False
        self._controller = controller

    async def prompt(self, text: str) -> None:
        """Send the person's line, and follow the turn to its end."""
        text = text.encode("utf-8", "replace").decode()
        before = self._controller.state.prompt_count
        self._controller.screen.show(self._controller.state.sent(text))
        self._controller.screen.refresh()
        await self.follow(text, before)

    async def follow(self, text: str | None, before: int = 0) -> None:
        """Follow a turn to its end, over as many daemons as it takes.

        Args:
            text: what to send; None for a turn that runs or was interrupted.
            before: how many lines of the person's there were before this one.
        """
        self.failed = self.cancelling = False
        self.following = True
        try:
            result = await self._followed(text, before)
        except StrongroomError as error:
            self.failed = True
            self._controller.show(self._controller.state.finished(None))
            self._controller.say(str(error), error=True)
        else:
            self._finish(result)
        finally:
            self.following = self.cancelling = False
            self._controller.screen.withdraw_approval(None)
            self._controller.screen.refresh()

    async def _followed(self, text: str | None, before: int) -> schema.PromptResult | None:
        number = 0
        while True:
            try:
                link = await self._controller.link()
                if number and self._controller.state.prompt_count > before:
                    text = None
                return await self._turn(link, text, before)
            except (DaemonLost, DaemonRefused) as error:
                why = _recoverable(error, number)
                number += 1
                if not why or number == _TRIES:
                    raise
                self._controller.forget()
                self._controller.say(why)
                await asyncio.sleep(_PAUSE * (2 ** (number - 1) - 1))

    async def _turn(self, link: Link, text: str | None, before: int) -> schema.PromptResult | None:
        if text is None:
            answer = link.submit(extensions.CONTINUE_METHOD, schema.SessionParams(session_id=self._controller.session))
        else:
            if self._controller.state.prompt_count == before:  # the last daemon ended before it had recorded the line
                self._controller.state.sent(text)
            answer = link.submit("session/prompt", requests.prompt(self._controller.session, text))
        if self.cancelling:  # what the person wanted of the last daemon
            link.cancel(self._controller.session)
        result = await asyncio.wrap_future(answer)
        return None if result == b"null" else decoded(result, schema.PromptResult)

    def _finish(self, result: schema.PromptResult | None) -> None:
        summary = None
        if result is not None:
            try:
                summary = msgspec.convert((result.meta or {})[extensions.TURN], extensions.TurnSummary)
            except (KeyError, msgspec.ValidationError):
                cancelled = result.stop_reason == "cancelled"
                summary = extensions.TurnSummary(turn=0, status="cancelled" if cancelled else "ok", answer="")
        self.failed = summary is not None and summary.status == "error"
        self._controller.show(self._controller.state.finished(summary, result.usage if result else None))

    def cancel(self) -> None:
        """Cancel the turn that runs."""
        self.cancelling = True
        self._controller.cancel()
        self._controller.screen.refresh()


def _recoverable(error: DaemonLost | DaemonRefused, number: int) -> str:
    """Return what to say where another try, after so many, may do; "" where it will not."""
    match error:
        case DaemonLost() | DaemonRefused(kind="stopping"):
            return "the daemon ended; reconnecting ..."
        case DaemonRefused(kind="not_found") if number == 0:
            return "the session was closed; resuming it ..."
        case _:
            return ""
