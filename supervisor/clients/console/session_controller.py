"""Controls one session: connects to the daemon, reconnects, opens the session, and takes its events.

Rule: it runs in one event loop and shows everything through its screen; it knows neither keys nor terminals. The
session is loaded again from the next daemon, and only new items are shown; `turns` sends the person's lines.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

from supervisor.acp import extensions, schema
from supervisor.clients.connection import requests
from supervisor.clients.connection.link import Link, decoded
from supervisor.clients.connection.link_events import ConnectionLost, LinkEvent, PermissionPrompt, PromptWithdrawn
from supervisor.clients.console.daemon_link import Connecting, DaemonLink
from supervisor.clients.console.options import ConsoleOptions
from supervisor.clients.console.screen import Screen
from supervisor.clients.console.session_state import IDLE, SessionState
from supervisor.clients.console.shown import Item, Note
from supervisor.clients.console.turns import Turns
from supervisor.config.settings import Settings
from supervisor.errors import ConfigError, DaemonRefused, StrongroomError

_T = TypeVar("_T")
_PAGES: Final = 20
"""Pages of a listing that are looked through for a session."""


class SessionController:
    """One console's connection and session.

    Args:
        connecting: the first connection.
        screen: shows everything.
    """

    def __init__(self, settings: Settings, options: ConsoleOptions, connecting: Connecting, screen: Screen) -> None:
        self.options = options
        self.screen = screen
        self.state = SessionState()
        self.turns = Turns(self)
        self.known_sessions: list[schema.SessionInfo] = []
        """As of the last listing."""
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
            if state.state == "Done" and not self.turns.following:  # somebody else's turn
                self.turns.cancelling = False
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

    # --- sessions -----------------------------------------------------------------------------------------------------

    async def open(self) -> None:
        """Open the session that the options want.

        Raises:
            StrongroomError: there is none, or it cannot be opened.
        """
        await self.link()
        session = self.options.session
        if self.options.continue_:
            names = self.options.names
            found = [info for info in await self.sessions(self.cwd, pages=1) if requests.is_named(info, names)]
            said = [info for info in found if info.title] or found  # rather one in which something was said
            session = said[0].session_id if said else None
            if session is None:
                self.say("There is no session of this directory yet; this is a new one.")
        if session is not None:
            await self.load(session)
        else:
            await self.new()

    async def instead(self, work: Callable[[], Awaitable[None]]) -> None:
        """Leave the session for another, which `work` opens, on another connection: that leaves nothing behind.

        Raises:
            StrongroomError: as `work`; the session is taken up again when it is needed.
        """
        old = self.state
        self.forget()
        self.state = SessionState()
        try:
            await work()
        except StrongroomError:
            self.forget()
            self.state = old
            raise

    async def new(self, *, clear: bool = False) -> None:
        """Begin a new session, with the options that the console was started with; `clear` the screen before."""
        options = self.options
        wanted = extensions.SessionOptions(
            profile=options.profile, model=options.model, root=options.root, **options.names._asdict(), origin="console"
        )
        params = schema.NewSessionParams(cwd=self.cwd, meta={extensions.OPTIONS: wanted})
        await self.link()
        fresh = self._loading = SessionState()
        try:
            result = await self.request("session/new", params, schema.NewSessionResult)
        finally:
            self._loading = None
        fresh.facts = requests.session_facts(result.meta, result.session_id)
        self.state = fresh
        if clear:
            self.screen.clear()
        self._opened(result.config_options)

    async def load(self, session: str, *, clear: bool = False) -> None:
        """Load another session, show its history, and follow the turn that runs in it, if any.

        With `clear` the screen is cleared before.

        Raises:
            StrongroomError: there is none of that id, or it cannot be opened.
        """
        info = await self._found(session)
        fresh = SessionState(
            extensions.SessionFacts(session_id=info.session_id, profile="", model="", root="", tools=())
        )
        result = await self._replayed(fresh, info.cwd)
        self.state = fresh
        if clear:
            self.screen.clear()
        self._opened(result.config_options)
        self.show(fresh.since(SessionState()))
        await self.turns.follow(None)

    def _opened(self, options: list[schema.ConfigOption] | None) -> None:
        self.state.chosen(options or [])
        facts = self.state.facts
        self.say(f"{facts.profile} on {facts.root}, {facts.model}")
        daemon = self._daemon_link.link.daemon if self._daemon_link.link is not None else None
        for notice in facts.notices:
            self.screen.show(Note(requests.explained(notice, self._settings, daemon), "notice"))
        self.screen.refresh()

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

    async def sessions(self, cwd: str | None = None, pages: int = 2) -> list[schema.SessionInfo]:
        """Return sessions, newest first; at most so many pages of them."""
        found: list[schema.SessionInfo] = []
        cursor: str | None = None
        for _ in range(pages):
            params = schema.ListParams(cwd=cwd, cursor=cursor)
            result = await self.request("session/list", params, schema.ListResult)
            found += result.sessions
            cursor = result.next_cursor
            if cursor is None:
                break
        self.known_sessions = found
        return found

    async def _found(self, wanted: str) -> schema.SessionInfo:
        """Return the session whose id is, or ends in, `wanted`."""
        found = [info for info in await self.sessions(pages=_PAGES) if info.session_id.endswith(wanted)]
        exact = [info for info in found if info.session_id == wanted] or found
        if len(exact) > 1:
            raise DaemonRefused(f"{len(exact)} sessions end in {wanted!r}; give more of the id.", "not_found")
        return exact[0] if exact else schema.SessionInfo(session_id=wanted, cwd=self.cwd)

    def cancel(self) -> None:
        """Cancel the turn that runs."""
        if self._daemon_link.link is not None:
            self._daemon_link.link.cancel(self.session)

    # --- options ------------------------------------------------------------------------------------------------------

    async def choose(self, option: str, value: str) -> None:
        """Set an option of the session.

        Raises:
            StrongroomError: it has no such value, or a turn runs.
        """
        params = schema.SetOptionParams(session_id=self.session, config_id=option, value=value)
        result = await self.request("session/set_config_option", params, schema.OptionsResult)
        take_up = schema.ReopenParams(session_id=self.session, cwd=self.cwd)
        now = await self.request("session/resume", take_up, schema.SessionResult)
        self.state.facts = requests.session_facts(now.meta, self.session)
        self.state.chosen(result.config_options)
        self.screen.refresh()
