"""Drives one session: opens it, sends what the person says, follows the turn, and finds the daemon again.

Rule: runs in one event loop and shows everything through its screen; it knows neither keys nor terminals. A daemon that
ends in the middle of a turn is a matter of a moment: the next one is found or started, the session is loaded, and only
what is new is shown.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

import msgspec

from supervisor.acp import ours, schema
from supervisor.clients.console.items import Item, Note
from supervisor.clients.console.options import ConsoleOptions
from supervisor.clients.console.screen import Screen
from supervisor.clients.console.view import IDLE, View
from supervisor.clients.console.wire import Connecting, Wire
from supervisor.clients.link import Link, decoded
from supervisor.config import Settings
from supervisor.errors import DaemonLost, DaemonRefused, StrongroomError

_T = TypeVar("_T")
_TRIES: Final = 5
"""Daemons that may end under one turn before it is given up."""
_PAUSE: Final = 0.2
"""Seconds before the second try, twice as long before the next ..."""
_PAGES: Final = 20
"""Pages of a listing that are looked through for a session."""


class Driver:
    """One console's connection and session.

    Args:
        connecting: the first connection.
        screen: shows everything.
    """

    def __init__(self, settings: Settings, options: ConsoleOptions, connecting: Connecting, screen: Screen) -> None:
        self.options = options
        self.screen = screen
        self.view = View()
        self.failed = False
        """Whether the last turn did not end well."""
        self.cancelling = False
        self.known_sessions: list[schema.SessionInfo] = []
        """As of the last listing."""
        self.cwd = os.getcwd()
        self._wire = Wire(settings, connecting, self._hear)
        self._loading: View | None = None
        self._following = False

    @property
    def session(self) -> str:
        """The session's id; "" before there is one."""
        return self.view.facts.session_id

    # --- what the daemon says -----------------------------------------------------------------------------------------

    def _hear(self, kind: str, value: Any) -> None:
        match kind:
            case "updated":
                self._updated(value)
            case "entered":
                self._entered(value)
            case "asked":
                self.screen.ask(value)
            case "withdrawn":
                self.screen.withdraw(value)
            case "lost":
                self._forget()
        self.screen.changed()

    def _updated(self, update: schema.SessionUpdate) -> None:
        if self._is_loading(update.session_id):
            assert self._loading is not None
            self._loading.take(update.update)
        elif update.session_id == self.session:
            self._show(self.view.take(update.update))

    def _entered(self, state: ours.TurnState) -> None:
        if self._is_loading(state.session_id):
            assert self._loading is not None
            self._loading.entered(state)
        elif state.session_id == self.session:
            if state.retry:
                self.view.hold(self.screen.hold())
            self._show(self.view.entered(state))
            if state.state == "Done" and not self._following:  # somebody else's turn
                self._show(self.view.finished(None))

    def _is_loading(self, session: str) -> bool:
        """Return whether this is heard of the session whose opening has not been answered, or not been noticed, yet."""
        if self._loading is None:
            return False
        expected = self._loading.facts.session_id
        return session == expected if expected else session != self.session

    def _show(self, items: list[Item]) -> None:
        for item in items:
            self.screen.show(item)

    def say(self, text: str, *, error: bool = False) -> None:
        """Show a sentence."""
        self.screen.show(Note(text, "error" if error else "info"))

    # --- connection ---------------------------------------------------------------------------------------------------

    async def link(self) -> Link:
        """Return the connection, made anew if it was lost, with the session loaded.

        Raises:
            StrongroomError: the daemon cannot be had.
        """
        if self._wire.link is None:
            for notice in await self._wire.connect():
                self.screen.show(Note(notice, "notice"))
            if self.session:
                await self._load_again()
        assert self._wire.link is not None
        return self._wire.link

    def _forget(self) -> None:
        """Take note that the connection is lost, or of no use any more."""
        self._wire.give_up()
        self._loading = None
        self.screen.withdraw(None)

    def close(self) -> None:
        """Leave; what runs in the daemon goes on."""
        self._wire.close()

    async def request(self, method: str, params: Any, result: type[_T]) -> _T:
        """Send a request and wait for its answer.

        Raises:
            StrongroomError: as `Link.request`.
        """
        link = await self.link()
        return decoded(await asyncio.wrap_future(link.submit(method, params)), result)

    # --- sessions -----------------------------------------------------------------------------------------------------

    async def open(self) -> None:
        """Open the session that the options want.

        Raises:
            StrongroomError: there is none, or it cannot be opened.
        """
        await self.link()
        session = self.options.session
        if self.options.continue_:
            found = await self.sessions(self.cwd, pages=1)
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
        old = self.view
        self._forget()
        self.view = View()
        try:
            await work()
        except StrongroomError:
            self._forget()
            self.view = old
            raise

    async def new(self, *, clear: bool = False) -> None:
        """Begin a new session, with the options that the console was started with; `clear` the screen before."""
        wanted = ours.SessionOptions(
            profile=self.options.profile, model=self.options.model, root=self.options.root, origin="console"
        )
        params = schema.NewSessionParams(cwd=self.cwd, meta={ours.OPTIONS: wanted})
        await self.link()
        fresh = self._loading = View()
        try:
            result = await self.request("session/new", params, schema.NewSessionResult)
        finally:
            self._loading = None
        fresh.facts = facts_of(result.meta, result.session_id)
        self.view = fresh
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
        fresh = View(ours.SessionFacts(session_id=info.session_id, profile="", model="", root="", tools=()))
        result = await self._replayed(fresh, info.cwd)
        self.view = fresh
        if clear:
            self.screen.clear()
        self._opened(result.config_options)
        self._show(fresh.since(View()))
        await self.follow(None)

    def _opened(self, options: list[schema.ConfigOption] | None) -> None:
        self.view.chosen(options or [])
        facts = self.view.facts
        self.say(f"{facts.profile} on {facts.root}, {facts.model}")
        for notice in self.view.facts.notices:
            self.screen.show(Note(notice, "notice"))
        self.screen.changed()

    async def _replayed(self, fresh: View, cwd: str) -> schema.SessionResult:
        """Let the daemon tell a session's history to `fresh`."""
        link = self._wire.link or await self.link()
        self._loading = fresh
        try:
            params = schema.TakeUpParams(session_id=fresh.facts.session_id, cwd=cwd)
            answer = await asyncio.wrap_future(link.submit("session/load", params))
            result = decoded(answer, schema.SessionResult)
        finally:
            self._loading = None
        fresh.facts = facts_of(result.meta, fresh.facts.session_id)
        return result

    async def _load_again(self) -> None:
        """Take up the session on another connection, and show what is new."""
        old = self.view
        old.hold(self.screen.hold())
        fresh = View(old.facts)
        result = await self._replayed(fresh, self.cwd)
        fresh.spent, fresh.commands = old.spent, old.commands
        if fresh.state == IDLE:
            fresh.state = old.state
        fresh.chosen(result.config_options or [])
        self.view = fresh
        self._show(fresh.since(old))

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

    # --- turns --------------------------------------------------------------------------------------------------------

    async def prompt(self, text: str) -> None:
        """Send the person's line, and follow the turn to its end."""
        text = text.encode("utf-8", "replace").decode()
        before = self.view.asked
        self.screen.show(self.view.sent(text))
        self.screen.changed()
        await self.follow(text, before)

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
            self._show(self.view.finished(None))
            self.say(str(error), error=True)
        else:
            self._finish(result)
        finally:
            self._following = self.cancelling = False
            self.screen.withdraw(None)
            self.screen.changed()

    async def _followed(self, text: str | None, before: int) -> schema.PromptResult | None:
        number = 0
        while True:
            try:
                link = await self.link()
                if number and self.view.asked > before:
                    text = None
                return await self._turn(link, text, before)
            except (DaemonLost, DaemonRefused) as error:
                why = _recoverable(error, number)
                number += 1
                if not why or number == _TRIES:
                    raise
                self._forget()
                self.say(why)
                await asyncio.sleep(_PAUSE * (2 ** (number - 1) - 1))

    async def _turn(self, link: Link, text: str | None, before: int) -> schema.PromptResult | None:
        if text is None:
            answer = link.submit(ours.CONTINUE_METHOD, schema.SessionParams(session_id=self.session))
        else:
            if self.view.asked == before:  # the last daemon ended before it had recorded the line
                self.view.sent(text)
            params = schema.PromptParams(session_id=self.session, prompt=[{"type": "text", "text": text}])
            answer = link.submit("session/prompt", params)
        if self.cancelling:  # what the person wanted of the last daemon
            link.cancel(self.session)
        result = await asyncio.wrap_future(answer)
        return None if result == b"null" else decoded(result, schema.PromptResult)

    def _finish(self, result: schema.PromptResult | None) -> None:
        summary = None
        if result is not None:
            try:
                summary = msgspec.convert((result.meta or {})[ours.TURN], ours.TurnSummary)
            except (KeyError, msgspec.ValidationError):
                cancelled = result.stop_reason == "cancelled"
                summary = ours.TurnSummary(turn=0, status="cancelled" if cancelled else "ok", answer="")
        self.failed = summary is not None and summary.status == "error"
        self._show(self.view.finished(summary, result.usage if result else None))

    def cancel(self) -> None:
        """Cancel the turn that runs."""
        self.cancelling = True
        if self._wire.link is not None:
            self._wire.link.cancel(self.session)
        self.screen.changed()

    # --- options ------------------------------------------------------------------------------------------------------

    async def choose(self, option: str, value: str) -> None:
        """Set an option of the session.

        Raises:
            StrongroomError: it has no such value, or a turn runs.
        """
        params = schema.SetOptionParams(session_id=self.session, config_id=option, value=value)
        result = await self.request("session/set_config_option", params, schema.OptionsResult)
        take_up = schema.TakeUpParams(session_id=self.session, cwd=self.cwd)
        now = await self.request("session/resume", take_up, schema.SessionResult)
        self.view.facts = facts_of(now.meta, self.session)
        self.view.chosen(result.config_options)
        self.screen.changed()


def _recoverable(error: DaemonLost | DaemonRefused, number: int) -> str:
    """Return what to say where another try, after so many, may do; "" where it will not."""
    match error:
        case DaemonLost() | DaemonRefused(kind="stopping"):
            return "the daemon ended; reconnecting ..."
        case DaemonRefused(kind="not_found") if number == 0:
            return "the session was closed; taking it up again ..."
        case _:
            return ""


def facts_of(meta: dict[str, Any] | None, session: str) -> ours.SessionFacts:
    """Return what a result says about its session.

    Raises:
        DaemonRefused: nothing that can be read.
    """
    try:
        return msgspec.convert((meta or {})[ours.OPTIONS], ours.SessionFacts)
    except (KeyError, msgspec.ValidationError) as error:
        raise DaemonRefused(f"The daemon does not say what the session {session} is.", "bad_answer") from error
