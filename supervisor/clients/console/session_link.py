"""One session over the console's connection: connects, reconnects, loads the session again, and takes its events.

Rule: it runs in one event loop and shows everything through its screen. The session is loaded again from the next
daemon, and only new items are shown.
"""

import asyncio
import os
from typing import Any, TypeVar

from supervisor.acp import extensions, schema
from supervisor.clients.connection import requests
from supervisor.clients.connection.link import Link, decoded
from supervisor.clients.connection.link_events import ConnectionLost, LinkEvent, PermissionPrompt, PromptWithdrawn
from supervisor.clients.console.daemon_link import Connecting, DaemonLink
from supervisor.clients.console.screen import Screen
from supervisor.clients.console.session_state import IDLE, SessionState
from supervisor.clients.console.shown import Item, Note
from supervisor.config.settings import Settings
from supervisor.errors import ConfigError

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
        self.following = False
        """Whether a turn is followed to its end."""
        self.cancelling = False
        """Whether the person has cancelled the turn that runs."""
        self.cwd = os.getcwd()
        self._settings = settings
        self._daemon_link = DaemonLink(settings, connecting, self._hear)
        self._loading: SessionState | None = None

    @property
    def session(self) -> str:
        """The session's id; "" before there is one."""
        return self.state.facts.session_id

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
        if self._is_loading(update.session_id):
            assert self._loading is not None
            self._loading.take(update.update)
        elif update.session_id == self.session:
            self.show(self.state.take(update.update))

    def _entered(self, state: extensions.TurnState) -> None:
        if self._is_loading(state.session_id):
            assert self._loading is not None
            self._loading.entered(state)
        elif state.session_id == self.session:
            if state.retry:
                self.state.rewind_answer(self.screen.drop_unfinished())
            self.show(self.state.entered(state))
            if state.state == "Done" and not self.following:  # somebody else's turn
                self.cancelling = False
                self.show(self.state.finished(None))

    def _is_loading(self, session: str) -> bool:
        """Return whether this is heard of the session whose opening has not been answered, or not been noticed, yet."""
        if self._loading is None:
            return False
        expected = self._loading.facts.session_id
        return session == expected if expected else session != self.session

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
        if self._daemon_link.link is None:
            for notice in await self._daemon_link.connect():
                self.screen.show(Note(notice, "notice"))
            if self.session:
                await self._load_again()
        assert self._daemon_link.link is not None
        return self._daemon_link.link

    def forget(self) -> None:
        """Take note that the connection is lost, or of no use any more."""
        self._daemon_link.disconnect()
        self._loading = None
        self.screen.withdraw_approval(None)

    def close(self) -> None:
        """Leave; what runs in the daemon goes on."""
        self._daemon_link.disconnect(wait=True)

    async def request(self, method: str, params: Any, result: type[_T]) -> _T:
        """Send a request and wait for its answer.

        Raises:
            StrongroomError: as `Link.request`.
        """
        link = await self.link()
        try:
            return decoded(await asyncio.wrap_future(link.submit(method, params)), result)
        except ConfigError as error:
            raise ConfigError(requests.explained(str(error), self._settings, link.daemon)) from error

    # --- session ------------------------------------------------------------------------------------------------------

    async def _replayed(self, fresh: SessionState, cwd: str) -> schema.SessionResult:
        """Let the daemon tell a session's history to `fresh`."""
        link = self._daemon_link.link or await self.link()
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

    def cancel(self) -> None:
        """Cancel the turn that runs."""
        if self._daemon_link.link is not None:
            self._daemon_link.link.cancel(self.session)
