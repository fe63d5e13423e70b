"""The full screen: the sessions that are open here, one of them looked at, and what is above all of them.

Rule: a key is told to the question that waits before it does anything, with the moment at which it was read. What fails
ends the program with its reason, and the terminal is as it was.
"""

import asyncio
import signal
from collections.abc import Sequence
from typing import ClassVar, Final

from textual import events
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.content import Content
from textual.widgets import Input, Static, TextArea

from supervisor.acp import extensions
from supervisor.clients.console import clipboard
from supervisor.clients.console.attention import Attention
from supervisor.clients.console.daemon_link import Connecting
from supervisor.clients.console.markdown_display import RichMarkdown
from supervisor.clients.console.options import ConsoleOptions
from supervisor.clients.console.slash_commands import KEYS
from supervisor.clients.console.theme_command import chosen
from supervisor.clients.status import status_text
from supervisor.clients.tui.history_view import HistoryView
from supervisor.clients.tui.key_driver import KeyDriver
from supervisor.clients.tui.screen_themes import THEMES
from supervisor.clients.tui.search_line import SearchLine
from supervisor.clients.tui.session_view import SessionView
from supervisor.clients.tui.sessions_list import SessionsList
from supervisor.clients.tui.text_screen import TextScreen
from supervisor.clients.tui.view_screen import ViewedSession
from supervisor.config.settings import Settings
from supervisor.display.columns import cut, table
from supervisor.display.fragments import Fragments
from supervisor.errors import ConfigError, StrongroomError

_PERIOD: Final = 2.0
"""Seconds between two looks at the daemon's sessions, while they are listed."""
_STATUS_PERIOD: Final = 1.0
_FIRST: Final = ("Protections", "Workers")
_HEAD: Final = (
    "[@click=app.keys]F1 keys[/]  [@click=app.sessions]F2 sessions[/]  [@click=app.status]F3 status[/]  "
    "[@click=app.theme]F4 theme[/]  [@click=app.find]^F find[/]"
)
"""What can be clicked on at the top."""
_OWN_KEYS: Final = (
    ("F1", "these keys"),
    ("F2", "the sessions at the side: Enter looks at one, or opens it; Delete leaves it"),
    ("F3", "the status: protections, workers, sessions"),
    ("F4", "the next theme: dark, light, contrast"),
    ("F6", "send the keys to the history, and back"),
    ("Ctrl-F", "find in the history; Enter goes on, Escape ends"),
    ("PgUp, PgDn", "turn the page of what is asked about; else scroll the history"),
    ("in the history", "Up, Down go from block to block; Enter folds and unfolds; c copies"),
    ("the mouse", "scrolls, selects (Ctrl-C copies), and answers where it is clicked; a double click folds"),
    ("", ""),
)


class FullScreen(App[int], inherit_bindings=False):
    """The program.

    Args:
        settings: of this home.
        options: say which session is opened first.
        connecting: its connection.
        theme: the name of a theme.
    """

    CSS_PATH = "full_screen.tcss"
    ENABLE_COMMAND_PALETTE = False
    AUTO_FOCUS = None
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+c", "interrupt", priority=True),
        Binding("ctrl+o", "expand", priority=True),
        Binding("shift+tab", "mode", priority=True),
        Binding("ctrl+z", "suspend_process", priority=True),
        Binding("pageup", "page(False)", priority=True),
        Binding("pagedown", "page(True)", priority=True),
        Binding("f1", "keys", priority=True),
        Binding("f2", "sessions", priority=True),
        Binding("f3", "status", priority=True),
        Binding("f4", "theme", priority=True),
        Binding("f6", "history", priority=True),
        Binding("ctrl+f", "find", priority=True),
        Binding("escape", "return"),
    ]

    def __init__(self, settings: Settings, options: ConsoleOptions, connecting: Connecting, theme: str) -> None:
        super().__init__(driver_class=KeyDriver)
        self.failure: BaseException | None = None
        """What went wrong, so that there was nothing but to end."""
        self.attention = Attention(self._write, settings.variable("TERM"), wanted=options.colour)
        self._settings = settings
        self._options = options
        self._markdown = RichMarkdown(colour=options.colour)
        for row in THEMES.values():
            self.register_theme(row.theme)
        self._use(theme)
        self._views: list[SessionView] = []
        self._view = self._opened(options, connecting)
        self._list, self._search = SessionsList(), SearchLine()
        self._where = Static(id="where", markup=False)

    def take_theme(self, name: str) -> None:
        """Use another theme.

        Raises:
            ConfigError: it is one for the console alone.
        """
        if name not in THEMES:
            raise ConfigError(f"The full screen has the themes {', '.join(THEMES)} alone.")
        self._use(name)

    def copy(self, text: str) -> str:
        """Put a text into the clipboard; return why that may not take it.

        Raises:
            ConfigError: there is none, or it takes not so much.
        """
        self._write(clipboard.sequence(text, self._settings.variable("TERM")))
        return clipboard.doubt(self._settings.environment)

    def _use(self, theme: str) -> None:
        self.theme = theme
        self.ansi_theme_dark = self.ansi_theme_light = THEMES[theme].colours

    def _write(self, text: str) -> None:
        """Write to the terminal what does not move the cursor."""
        if self._driver is not None:
            self._driver.write(text)

    def compose(self) -> ComposeResult:
        """Yield what stands beside each other."""
        yield Horizontal(self._where, Static(_HEAD, id="keys"), id="head")
        yield Horizontal(self._list, self._view, id="body")
        yield self._search

    def on_mount(self) -> None:
        """Look after the sessions."""
        self.set_interval(_PERIOD, self._list_sessions)

    def _handle_exception(self, error: Exception) -> None:
        """End with what went wrong; Textual would print all that there was in memory."""
        self.failure = self.failure or error
        self.exit(1)

    # --- sessions -------------------------------------------------------------------------------------------------

    @property
    def view(self) -> SessionView:
        """The session that is looked at."""
        return self._view

    def _opened(self, options: ConsoleOptions, connecting: Connecting) -> SessionView:
        view = SessionView(self._settings, options, connecting, lambda: self._markdown, self)
        self._views.append(view)
        return view

    async def look_at(self, session: str) -> None:
        """Look at a session, which is opened if it is not; "" is a new one, as this one."""
        found = next((view for view in self._views if session and view.controller.session == session), None)
        if found is None:
            options = self._options.of_session(session)
            found = self._opened(options, Connecting(self._settings))
            await self.query_one("#body").mount(found)
        self._show(found)

    def _show(self, view: SessionView) -> None:
        self._view = view
        for each in self._views:
            each.display = each is view
        view.appeared()
        self._back_to_line()
        self._say_where()

    def left(self, view: ViewedSession) -> None:
        """Leave a session; the last one, or one that the person is in by its own keys, ends the program."""
        failure = view.actions.failure
        if failure is None or len(self._views) == 1:
            self.failure = self.failure or failure
            self.exit(0)
        else:
            self._close(next(each for each in self._views if each is view))
            self.notify(
                str(failure) if isinstance(failure, StrongroomError) else repr(failure), severity="error", markup=False
            )

    def _close(self, view: SessionView) -> None:
        self._views.remove(view)
        view.remove()
        if view is self._view:
            self._show(self._views[-1])

    async def _list_sessions(self) -> None:
        if self._list.display:
            controller = self._view.controller
            try:
                status = await controller.request(extensions.STATUS_METHOD, {}, extensions.Status)
                known = await controller.sessions(pages=1)
            except StrongroomError:
                return
            here = {view.controller.session: view.title for view in self._views if view.controller.session}
            self._list.fill(controller.session, here, status.sessions, known)

    async def on_sessions_list_picked(self, event: SessionsList.Picked) -> None:
        """Look at what was chosen."""
        await self.look_at(event.session)

    async def on_sessions_list_departed(self, event: SessionsList.Departed) -> None:
        """Leave a session that is open here, or the list."""
        view = next((each for each in self._views if each.controller.session == event.session), None)
        if not event.session:
            self._list.display = False
            self._back_to_line()
        elif view is not None and len(self._views) > 1:
            self._close(view)
            await self._list_sessions()

    def is_looked_at(self, view: ViewedSession) -> bool:
        """Return whether a session is the one that is looked at."""
        return view is self._view and len(self.screen_stack) == 1

    def _say_where(self) -> None:
        facts = self._view.controller.state.facts
        self._where.update(Content(f"{facts.profile} on {cut(facts.root, 60)}" if facts.root else "Strongroom"))

    def changed(self, view: ViewedSession) -> None:
        """Take note that a session has changed."""
        if view is self._view:
            self._say_where()

    # --- keys -----------------------------------------------------------------------------------------------------

    async def on_event(self, event: events.Event) -> None:
        """Tell the question that waits of each key, before it does anything."""
        if isinstance(event, events.Key | events.Paste) and not event.is_forwarded:
            self._view.approvals.pressed(event.time)
        await super().on_event(event)

    def on_app_focus(self) -> None:
        """Take note that the window has the focus."""
        self._view.actions.focus(has=True)

    def on_app_blur(self) -> None:
        """Take note that it has not."""
        self._view.actions.focus(has=False)

    def _back_to_line(self) -> None:
        self.screen.set_focus(self._view.keyboard)

    def action_return(self) -> None:
        """Send the keys where they go by what is asked."""
        self._back_to_line()

    def action_interrupt(self) -> None:
        """Copy what is selected; else clear, cancel, or leave."""
        focused = self.screen.focused
        edited = focused.selected_text if isinstance(focused, TextArea | Input) else ""
        if selected := self.screen.get_selected_text() or edited:
            self._copy(selected)
            self.screen.clear_selection()
        else:
            self._view.actions.interrupt()
            self._view.draw()

    def _copy(self, text: str) -> None:
        """Copy, and say so; what reads the clipboard within Textual has it too."""
        try:
            doubt = self.copy(text)
        except ConfigError as error:
            self.notify(str(error), severity="warning", markup=False)
        else:
            self._clipboard = text
            self.notify(f"Copied{f'; {doubt}' if doubt else ''}.", timeout=2, markup=False)

    def action_answer(self, key: str) -> None:
        """Press a key of a question with the mouse."""
        self._view.answer(key)

    def action_expand(self) -> None:
        """Show all of what is asked about, or was done last."""
        self._view.unfold()

    def action_mode(self) -> None:
        """Ask about other changes than now."""
        self._view.actions.next_mode()

    def action_page(self, forward: bool) -> None:
        """Turn the page of what is asked about, or scroll the history, or the text above it."""
        if isinstance(self.screen, TextScreen):
            self.screen.page(forward=forward)
        elif not self._view.turn_page(forward=forward):
            history = self._view.history
            (history.scroll_page_down if forward else history.scroll_page_up)(animate=False)

    def action_theme(self) -> None:
        """Use the next theme."""
        names = list(THEMES)
        self._use(names[(names.index(self.theme) + 1) % len(names)])

    def action_history(self) -> None:
        """Send the keys to the history, or back."""
        history = self._view.history
        self.screen.set_focus(self._view.keyboard if history.has_focus else history)

    def on_history_view_copied(self, event: HistoryView.Copied) -> None:
        """Put a text into the clipboard."""
        self._copy(event.text)

    # --- beside, and above ----------------------------------------------------------------------------------------

    async def action_sessions(self) -> None:
        """List the sessions at the side, or no more."""
        self._list.display = not self._list.display
        if self._list.display:
            self.screen.set_focus(self._list)
            await self._list_sessions()
        else:
            self._back_to_line()

    def action_find(self) -> None:
        """Search the history."""
        self._search.display = True
        self.screen.set_focus(self._search)

    def on_search_line_sought(self, event: SearchLine.Sought) -> None:
        """Go to what is searched for."""
        history = self._view.history
        found = history.search(event.text, after=history.current if event.step else None, back=event.step < 0)
        self._search.set_class(bool(event.text) and not found, "-invalid")

    def on_search_line_ended(self) -> None:
        """Search no more."""
        self._search.display = False
        self._view.history.search("")
        self._back_to_line()

    def action_status(self) -> None:
        """Show the protections, the workers and the sessions."""

        async def text(columns: int) -> Sequence[Fragments]:
            try:
                status = await self._view.controller.request(extensions.STATUS_METHOD, {}, extensions.Status)
            except StrongroomError as error:
                return [[("red", str(error))]]
            parts = sorted(status_text(status, columns).split("\n\n"), key=_place_of)
            lines = "\n\n".join(parts).split("\n")
            return [[("bold" if line[:1].isalpha() else "", line)] for line in lines]

        self._above(TextScreen("status", text, _STATUS_PERIOD))

    def action_keys(self) -> None:
        """Show the keys."""

        async def text(columns: int) -> Sequence[Fragments]:
            return [[("", line)] for line in table((*_OWN_KEYS, *KEYS), columns).split("\n")]

        self._above(TextScreen("keys", text))

    def _above(self, screen: TextScreen) -> None:
        if isinstance(self.screen, TextScreen):
            self.screen.dismiss()
        else:
            self.push_screen(screen, lambda _: self._view.appeared())


def _place_of(part: str) -> int:
    """Return where a part of the status stands: what people look at this screen for comes first."""
    return next((at for at, name in enumerate(_FIRST) if part.startswith(name)), len(_FIRST))


def run_full_screen(settings: Settings, options: ConsoleOptions, connecting: Connecting, theme: str | None) -> int:
    """Run until the person leaves; return the exit code.

    Raises:
        StrongroomError: the session cannot be opened.
    """
    kept = chosen(settings)[0].name
    app = FullScreen(settings, options, connecting, theme or (kept if kept in THEMES else "dark"))

    async def run() -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, app.exit)
        try:
            await app.run_async()
        finally:
            app.attention.end()

    asyncio.run(run())
    if app.failure is not None:
        raise app.failure
    return app.return_code or 0
