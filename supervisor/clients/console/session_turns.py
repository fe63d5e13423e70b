"""The person's turns in a session, over as many daemons as they take.

Rule: a turn that was cut off is resumed. A line that the last daemon had not recorded is sent again; a recorded one is
not.
"""

import asyncio
from typing import Any, Final

import msgspec

from supervisor.acp import extensions, schema
from supervisor.clients.connection import requests, root_files
from supervisor.clients.connection.attachments import blocks_of, named_in
from supervisor.clients.connection.link import Link, decoded
from supervisor.clients.console.daemon_link import Connecting
from supervisor.clients.console.session_link import SessionLink
from supervisor.clients.console.shown import Screen
from supervisor.config.settings import Settings
from supervisor.errors import DaemonLost, DaemonRefused, StrongroomError

_TRIES: Final = 5
"""Daemons that may end under one turn before it is given up."""
_PAUSE: Final = 0.2
"""Seconds before the second try, twice as long before the next ..."""


class SessionTurns(SessionLink):
    """One console's session, and the turns that it begins there."""

    def __init__(self, settings: Settings, connecting: Connecting, screen: Screen) -> None:
        super().__init__(settings, connecting, screen)
        self._attached: list[dict[str, Any]] = []
        self._files: list[dict[str, Any]] = []
        """What goes along with the line that was typed last, before and after it."""

    async def prompt(self, text: str) -> None:
        """Send the person's line, and follow the turn to its end."""
        text = text.encode("utf-8", "replace").decode()
        try:
            self._attached, self._files = await self._named(text)
        except StrongroomError as error:
            self.failed = True
            self.say(str(error), error=True)
            self.screen.turn_ended(ok=False)
            return
        before = self.state.prompt_count
        self.screen.show(self.state.sent(text))
        self.screen.refresh()
        await self.follow(text, before)

    async def _named(self, text: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """Return what goes along with a line, before it and after it, and say so.

        Raises:
            StrongroomError: it cannot.
        """
        named = await asyncio.to_thread(named_in, text)
        attached = await asyncio.to_thread(blocks_of, named)
        words = root_files.paths_in(text, self.state.facts.root, named)
        if not any(words):
            return attached, []
        params = extensions.AttachParams(self.session, tuple(path for paths in words for path in paths))
        result = await self.request(extensions.ATTACH_METHOD, params, extensions.AttachResult)
        files = root_files.meant(words, result.files)
        for line in root_files.told(files):
            self.say(line)
        return attached, [root_files.block_of(file) for file in files if not file.problem]

    async def follow(self, text: str | None, before: int = 0) -> None:
        """Follow a turn to its end, over as many daemons as it takes.

        Args:
            text: what to send; None for a turn that runs or was interrupted.
            before: how many lines of the person's there were before this one.
        """
        self.failed = self.cancelling = False
        self._following = True
        try:
            result = await self._followed(text, before)
        except StrongroomError as error:
            self.failed = True
            self.show(self.state.finished(None))
            self.say(str(error), error=True)
            self.screen.turn_ended(ok=False)
        else:
            self._finish(result)
        finally:
            self._following = self.cancelling = False
            self.screen.withdraw_approval(None)
            self.screen.refresh()

    async def _followed(self, text: str | None, before: int) -> schema.PromptResult | None:
        number = 0
        while True:
            try:
                link = await self.link()
                if number and self.state.prompt_count > before:
                    text = None
                return await self._turn(link, text, before)
            except (DaemonLost, DaemonRefused) as error:
                why = _recoverable(error, number)
                number += 1
                if not why or number == _TRIES:
                    raise
                self.forget()
                self.say(why)
                await asyncio.sleep(_PAUSE * (2 ** (number - 1) - 1))

    async def _turn(self, link: Link, text: str | None, before: int) -> schema.PromptResult | None:
        if text is None:
            answer = link.submit(extensions.CONTINUE_METHOD, schema.SessionParams(session_id=self.session))
        else:
            if self.state.prompt_count == before:  # the last daemon ended before it had recorded the line
                self.state.sent(text)
            prompt = requests.prompt(self.session, text, attached=self._attached, files=self._files)
            answer = link.submit("session/prompt", prompt)
        if self.cancelling:  # what the person wanted of the last daemon
            link.cancel(self.session)
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
        self.failed = summary is not None and summary.status in ("error", "suspended")
        self.show(self.state.finished(summary, result.usage if result else None))
        self.screen.turn_ended(ok=summary is None or summary.status == "ok")

    async def prompt_meanwhile(self, text: str) -> None:
        """Send a command of the daemon's beside the turn that is followed; what it says comes as updates.

        Raises:
            StrongroomError: as `Link.request`.
        """
        link = await self.link()
        link.submit("session/prompt", requests.prompt(self.session, text))

    def cancel(self) -> None:
        """Cancel the turn that runs, or waits, or the command that the person typed."""
        self.cancelling = True
        if self._connected is not None and self.typed is not None:
            self._connected.link.abandon(self.typed)
        elif self._connected is not None:
            self._connected.link.cancel(self.session)
        self.screen.refresh()


def _recoverable(error: DaemonLost | DaemonRefused, number: int) -> str:
    """Return what to say where another try, after so many, may do; "" where it will not."""
    match error:
        case DaemonLost() | DaemonRefused(kind="stopping"):
            return "the daemon ended; reconnecting ..."
        case DaemonRefused(kind="not_found") if number == 0:
            return "the session was closed; resuming it ..."
        case _:
            return ""
