"""One session over the console's connection: its events, the person's turns, and the next daemon where one ends.

Rule: it runs in one event loop and shows everything through its screen. The session is loaded again from the next
daemon, only new items are shown, and a turn that was cut off is resumed. A line that the last daemon had not recorded
is sent again; a recorded one is not.
"""

import asyncio
import os
from concurrent.futures import Future
from typing import Any, Final, TypeVar

import msgspec

from supervisor.acp import extensions, schema
from supervisor.clients.connection import requests, root_files
from supervisor.clients.connection.attachments import blocks_of, named_in
from supervisor.clients.connection.link import Link, decoded
from supervisor.clients.connection.link_events import ConnectionLost, LinkEvent, PermissionPrompt, PromptWithdrawn
from supervisor.clients.connection.start import ConnectedDaemon
from supervisor.clients.console.daemon_link import Connecting, in_thread
from supervisor.clients.console.session_state import IDLE, SUSPENDED, SessionState
from supervisor.clients.console.shown import Item, Note, Screen
from supervisor.config.settings import Settings
from supervisor.errors import ConfigError, DaemonLost, DaemonRefused, StrongroomError

_T = TypeVar("_T")
_TRIES: Final = 5
"""Daemons that may end under one turn before it is given up."""
_PAUSE: Final = 0.2
"""Seconds before the second try, twice as long before the next ..."""


class SessionLink:
    """One console's session, and the connection it is heard over.

    Args:
        connecting: the first connection.
        screen: shows everything.
    """

    def __init__(self, settings: Settings, connecting: Connecting, screen: Screen) -> None:
        self.screen = screen
        self.state = SessionState()
        self.failed = False
        """Whether the last turn has failed, or goes no further."""
        self.cancelling = False
        """Whether the person has cancelled the turn that runs."""
        self.cwd = os.getcwd()
        self.settings = settings
        self._connecting: Connecting | None = connecting
        self._bound: Connecting | None = None
        """Whose events are heard; those of a closed connection are dropped."""
        self._connected: ConnectedDaemon | None = None
        self._following = False
        """Whether a turn is followed to its end."""
        self._loading: SessionState | None = None
        self.typed: Future[bytes] | None = None
        """The answer to a command that the person typed, while it runs."""
        self._attached: list[dict[str, Any]] = []
        self._files: list[dict[str, Any]] = []
        """What goes along with the line that was typed last, before and after it."""

    @property
    def session(self) -> str:
        """The session's id; "" before there is one."""
        return self.state.facts.session_id

    @property
    def is_connected(self) -> bool:
        """Whether there is a daemon to ask."""
        return self._connected is not None

    # --- what the daemon says -----------------------------------------------------------------------------------------

    def _hear(self, event: LinkEvent) -> None:
        match event:
            case schema.SessionUpdate():
                self._updated(event)
            case extensions.TurnState():
                self._entered(event)
            case PermissionPrompt():
                self.screen.request_approval(event)
            case PromptWithdrawn():
                self.screen.withdraw_approval(event.prompt)
            case ConnectionLost():
                self.forget()
        self.screen.refresh()

    def _updated(self, update: schema.SessionUpdate) -> None:
        if (fresh := self._loading_of(update.session_id)) is not None:
            fresh.take(update.update)
        elif update.session_id == self.session:
            self.show(self.state.take(update.update))

    def _entered(self, state: extensions.TurnState) -> None:
        if (fresh := self._loading_of(state.session_id)) is not None:
            fresh.entered(state)
        elif state.session_id == self.session:
            if state.retry:
                self.state.rewind_answer(self.screen.drop_unfinished())
            self.show(self.state.entered(state))
            if state.state in ("Done", SUSPENDED) and not (self._following or self.state.waits):  # somebody else's turn
                ok = state.state == "Done" and not self.cancelling
                self.cancelling = False
                suspended = self.state.suspended
                self.show(self.state.finished(None))
                self.state.suspended = suspended
                self.screen.turn_ended(ok=ok)

    def _loading_of(self, session: str) -> SessionState | None:
        """Return the session whose opening has not been answered, or not been noticed, yet, if this is heard of it."""
        expected = self._loading.facts.session_id if self._loading is not None else ""
        return self._loading if (session == expected if expected else session != self.session) else None

    def show(self, items: list[Item]) -> None:
        """Show what the view makes of something."""
        for item in items:
            self.screen.show(item)

    def say(self, text: str, *, error: bool = False) -> None:
        """Show a sentence."""
        self.screen.show(Note(text, "error" if error else "info"))

    # --- connection ---------------------------------------------------------------------------------------------------

    async def link(self) -> Link:
        """Return the connection, made anew if it was lost, with the session loaded.

        Raises:
            StrongroomError: the daemon cannot be reached or started.
        """
        if self._connected is None:
            for notice in (await self._connect()).notices:
                self.screen.show(Note(notice, "notice"))
            if self.session:
                await self._load_again()
        assert self._connected is not None
        return self._connected.link

    async def _connect(self) -> ConnectedDaemon:
        bound, self._connecting = self._connecting or Connecting(self.settings), None
        self._bound = bound
        connected = self._connected = await asyncio.wrap_future(bound.future)
        loop = asyncio.get_running_loop()

        def in_loop(event: LinkEvent) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(hear, event)

        def hear(event: LinkEvent) -> None:
            if self._bound is bound:
                self._hear(event)

        bound.bind(in_loop)
        return connected

    def _disconnect(self) -> ConnectedDaemon | None:
        connected, self._connected, self._bound = self._connected, None, None
        return connected

    def forget(self) -> None:
        """Take note that the connection is lost, or of no use any more."""
        if (connected := self._disconnect()) is not None:
            in_thread(connected.close)
        self._loading = None
        self.screen.withdraw_approval(None)

    def close(self) -> None:
        """Leave; what runs in the daemon goes on."""
        if (connected := self._disconnect()) is not None:
            connected.close()

    async def request(self, method: str, params: Any, result: type[_T]) -> _T:
        """Send a request and wait for its answer.

        Raises:
            StrongroomError: as `Link.request`.
        """
        link = await self.link()
        return decoded(await asyncio.wrap_future(link.submit(method, params)), result)

    # --- session ------------------------------------------------------------------------------------------------------

    async def _replayed(self, fresh: SessionState, cwd: str) -> schema.SessionResult:
        """Let the daemon tell a session's history to `fresh`."""
        link = await self.link() if self._connected is None else self._connected.link
        self._loading = fresh
        try:
            params = schema.ReopenParams(session_id=fresh.facts.session_id, cwd=cwd)
            answer = await asyncio.wrap_future(link.submit("session/load", params))
            result = decoded(answer, schema.SessionResult)
        finally:
            self._loading = None
        fresh.facts = requests.session_facts(result.meta, fresh.facts.session_id)
        return result

    async def _load_again(self) -> None:
        """Take up the session on another connection, and show what is new."""
        old = self.state
        old.rewind_answer(self.screen.drop_unfinished())
        fresh = SessionState(old.facts)
        result = await self._replayed(fresh, self.cwd)
        fresh.spent, fresh.commands = old.spent, old.commands
        if fresh.turn_state == IDLE:
            fresh.turn_state = old.turn_state
        fresh.chosen(result.config_options or [])
        self.state = fresh
        self.show(fresh.since(old))

    # --- turns --------------------------------------------------------------------------------------------------------

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
