"""The person's turns in a session: send a line, and follow the turn to its end.

Rule: when a daemon ends in the middle of a turn, the next one resumes it. A line that the last daemon had not recorded
is sent again; a recorded one is not.
"""

import asyncio
from typing import Final

import msgspec

from supervisor.acp import extensions, schema
from supervisor.clients.connection import requests
from supervisor.clients.connection.link import Link, decoded
from supervisor.clients.console.session_link import SessionLink
from supervisor.errors import DaemonLost, DaemonRefused, StrongroomError

_TRIES: Final = 5
"""Daemons that may end under one turn before it is given up."""
_PAUSE: Final = 0.2
"""Seconds before the second try, twice as long before the next ..."""


class Turns:
    """The turns of one session."""

    def __init__(self, session: SessionLink) -> None:
        self.failed = False
        """Whether the last turn has failed."""
        self._session = session

    async def prompt(self, text: str) -> None:
        """Send the person's line, and follow the turn to its end."""
        text = text.encode("utf-8", "replace").decode()
        before = self._session.state.prompt_count
        self._session.screen.show(self._session.state.sent(text))
        self._session.screen.refresh()
        await self.follow(text, before)

    async def follow(self, text: str | None, before: int = 0) -> None:
        """Follow a turn to its end, over as many daemons as it takes.

        Args:
            text: what to send; None for a turn that runs or was interrupted.
            before: how many lines of the person's there were before this one.
        """
        self.failed = self._session.cancelling = False
        self._session.following = True
        try:
            result = await self._followed(text, before)
        except StrongroomError as error:
            self.failed = True
            self._session.show(self._session.state.finished(None))
            self._session.say(str(error), error=True)
        else:
            self._finish(result)
        finally:
            self._session.following = self._session.cancelling = False
            self._session.screen.withdraw_approval(None)
            self._session.screen.refresh()

    async def _followed(self, text: str | None, before: int) -> schema.PromptResult | None:
        number = 0
        while True:
            try:
                link = await self._session.link()
                if number and self._session.state.prompt_count > before:
                    text = None
                return await self._turn(link, text, before)
            except (DaemonLost, DaemonRefused) as error:
                why = _recoverable(error, number)
                number += 1
                if not why or number == _TRIES:
                    raise
                self._session.forget()
                self._session.say(why)
                await asyncio.sleep(_PAUSE * (2 ** (number - 1) - 1))

    async def _turn(self, link: Link, text: str | None, before: int) -> schema.PromptResult | None:
        if text is None:
            answer = link.submit(extensions.CONTINUE_METHOD, schema.SessionParams(session_id=self._session.session))
        else:
            if self._session.state.prompt_count == before:  # the last daemon ended before it had recorded the line
                self._session.state.sent(text)
            answer = link.submit("session/prompt", requests.prompt(self._session.session, text))
        if self._session.cancelling:  # what the person wanted of the last daemon
            link.cancel(self._session.session)
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
        self._session.show(self._session.state.finished(summary, result.usage if result else None))

    def cancel(self) -> None:
        """Cancel the turn that runs."""
        self._session.cancelling = True
        self._session.cancel()
        self._session.screen.refresh()


def _recoverable(error: DaemonLost | DaemonRefused, number: int) -> str:
    """Return what to say where another try, after so many, may do; "" where it will not."""
    match error:
        case DaemonLost() | DaemonRefused(kind="stopping"):
            return "the daemon ended; reconnecting ..."
        case DaemonRefused(kind="not_found") if number == 0:
            return "the session was closed; resuming it ..."
        case _:
            return ""
