"""One session over the console's connection: its events, and the next daemon where one ends.

Rule: it runs in one event loop and shows everything through its screen. The session is loaded again from the next
daemon, and only new items are shown.
"""

import asyncio
import os
from concurrent.futures import Future
from contextvars import copy_context
from typing import Any, TypeVar

from supervisor.acp import extensions, schema
from supervisor.clients.connection import requests
from supervisor.clients.connection.link import Link, decoded
from supervisor.clients.connection.link_events import ConnectionLost, LinkEvent, PermissionPrompt, PromptWithdrawn
from supervisor.clients.connection.start import ConnectedDaemon
from supervisor.clients.console.daemon_link import Connecting, in_thread
from supervisor.clients.console.session_state import IDLE, SUSPENDED, SessionState
from supervisor.clients.console.shown import Item, Note, Screen
from supervisor.config.settings import Settings

_T = TypeVar("_T")


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
        context = copy_context()  # the screen's: the thread that hears it has none

        def in_loop(event: LinkEvent) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(hear, event, context=context)

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
