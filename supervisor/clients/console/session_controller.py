"""Controls one session: opens it, leaves it for another, and sets its options.

Rule: it shows everything through its screen; it knows neither keys nor terminals.
"""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final, get_args

import msgspec

from supervisor.acp import extensions, schema
from supervisor.clients.connection import requests
from supervisor.clients.connection.requests import LISTED_PAGES
from supervisor.clients.console.choice_list import Choice
from supervisor.clients.console.daemon_link import Connecting, in_thread
from supervisor.clients.console.options import ConsoleOptions
from supervisor.clients.console.session_state import IDLE, SessionState
from supervisor.clients.console.session_turns import SessionTurns
from supervisor.clients.console.shown import Note, Screen
from supervisor.config.config_keys import VAULT
from supervisor.config.repositories import NO_NAMES, Names
from supervisor.config.settings import Settings
from supervisor.config.source_tree import CODE, is_unknown
from supervisor.errors import StrongroomError
from supervisor.version import VERSION

_ASKED: Final = "what is this directory"
_PROFILES: Final = (
    Choice(VAULT, VAULT, "notes: read and write them; no shell"),
    Choice(CODE, CODE, "source code: commands in a sandbox, and you see what they change"),
    Choice("operator", "operator", "a system: you see each command before it runs"),
)


class SessionController(SessionTurns):
    """One console's session, and the choice of it; `options` are those that the console was started with."""

    def __init__(self, settings: Settings, options: ConsoleOptions, connecting: Connecting, screen: Screen) -> None:
        super().__init__(settings, connecting, screen)
        self.options = options
        self.known_sessions: list[schema.SessionInfo] = []
        """As of the last listing."""
        self._left = False
        """Whether a turn runs, or waits, in the session that was just left."""

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
            session = requests.newest(await self.sessions(self.cwd, pages=1), names)
            if session is None:
                self.say("There is no session of this directory yet; this is a new one.")
        if session is not None:
            await self.load(session, chosen=self.options)
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
        self._left = old.turn_state not in (IDLE, "Done")
        try:
            await work()
        except StrongroomError:
            self.forget()
            self.state, self._left = old, False
            raise

    async def new(self) -> None:
        """Begin a new session, with the options that the console was started with."""
        await self._begin(await self._placed(self.options), clear=False)

    async def _placed(self, chosen: ConsoleOptions) -> ConsoleOptions:
        """Return options with the profile that the person takes, where nothing tells what this directory is for.

        They are asked once: later sessions of a directory are opened as the newest one was.
        """
        if chosen.profile or chosen.root or chosen.names.given or not self.screen.picks:
            return chosen
        looked = in_thread(partial(is_unknown, self.settings, self.cwd))
        if not await asyncio.wrap_future(looked):
            return chosen
        earlier = await self.sessions(self.cwd, pages=1)
        profile = requests.newest_profile(earlier) or await self.screen.pick(_ASKED, _PROFILES, VAULT)
        return msgspec.structs.replace(chosen, profile=profile) if profile else chosen

    async def clear(self) -> None:
        """Begin a new session on an empty screen, with the profile, the model, the root and the mode of this one.

        Raises:
            StrongroomError: it cannot be opened; this one goes on.
        """
        await self.instead(partial(self._begin, like(self.state.facts, self.options), clear=True))

    async def _begin(self, chosen: ConsoleOptions, *, clear: bool) -> None:
        wanted = requests.chosen_options(chosen, origin="console")
        params = schema.NewSessionParams(cwd=self.cwd, meta={extensions.OPTIONS: wanted})
        await self.link()
        fresh = self._loading = SessionState()
        try:
            result = await self.request("session/new", params, schema.NewSessionResult)
        finally:
            self._loading = None
        fresh.facts = requests.session_facts(result.meta, result.session_id)
        self._opened(fresh, result.config_options, clear=clear)

    async def load(self, session: str, *, clear: bool = False, chosen: ConsoleOptions | None = None) -> None:
        """Load another session, show its history, and follow the turn that runs in it, if any.

        With `clear` the screen is cleared before; it is changed to what is `chosen` before anything goes on.

        Raises:
            StrongroomError: there is none of that id, or it cannot be opened, or not be changed so.
        """
        info = await self._found(session)
        fresh = SessionState(
            extensions.SessionFacts(session_id=info.session_id, profile="", model="", root="", tools=())
        )
        result = await self._replayed(fresh, info.cwd)
        changes = requests.changes(chosen, fresh.facts) if chosen is not None else []
        self._opened(fresh, result.config_options, clear=clear)
        self.show(fresh.since(SessionState()))
        for option, value in changes:
            await self.choose(option, value)
            self.say(f"The {option} is {value} now.")
        await self.follow(None)

    def _opened(self, fresh: SessionState, options: list[schema.Option] | None, *, clear: bool) -> None:
        self.state = fresh
        if clear:
            self.screen.clear()
        self.state.chosen(options or [])
        facts = self.state.facts
        self.say(f"Strongroom {VERSION}: {facts.profile} on {facts.root}, {facts.model}, mode {facts.mode}")
        if self._left:
            self.say("The turn of the session before goes on in the daemon; /resume comes back to it.")
        self._left = False
        for notice in facts.notices:
            self.screen.show(Note(notice, "notice"))
        self.screen.refresh()

    async def sessions(self, cwd: str | None = None, *, pages: int) -> list[schema.SessionInfo]:
        """Return sessions, newest first; at most so many pages of them."""
        self.known_sessions = await requests.listed_sessions(self.request, cwd, pages)
        return self.known_sessions

    async def _found(self, wanted: str) -> schema.SessionInfo:
        """Return the session whose id is, or ends in, `wanted`."""
        found = requests.ending_in(wanted, await self.sessions(pages=LISTED_PAGES))
        return found or schema.SessionInfo(session_id=wanted, cwd=self.cwd)

    # --- options ------------------------------------------------------------------------------------------------------

    async def switch_mode(self) -> None:
        """Choose the mode after the present one, also while a turn runs."""
        option = self.state.option("mode")
        modes = [each.value for each in option.options] if option is not None else []
        mode = modes[(modes.index(self.state.facts.mode) + 1) % len(modes)] if modes else ""
        try:
            params = schema.SetModeParams(session_id=self.session, mode_id=mode)
            await self.request("session/set_mode", params, schema.Object)
        except StrongroomError as error:
            self.say(str(error), error=True)

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


def like(facts: extensions.SessionFacts, options: ConsoleOptions) -> ConsoleOptions:
    """Return the options of a session that is as another one; before there is one, as the console was started.

    What has a repository is asked for by its names, in the directory of repositories that was named, if any.
    """
    if not facts.session_id:
        return options
    mode = next((mode for mode in get_args(extensions.ModeName) if mode == facts.mode), None)
    names = Names(*(facts.context.get(name, "") for name in Names._fields)) if "group" in facts.context else NO_NAMES
    root = options.root if names.given else facts.root
    return msgspec.structs.replace(options, profile=facts.profile, model=facts.model, root=root, names=names, mode=mode)
