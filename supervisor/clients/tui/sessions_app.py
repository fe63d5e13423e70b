"""The sessions that are open on the full screen, one of them looked at, and what is around it.

Rule: what fails ends the program with its reason. A session that is left goes on; the last one ends the program.
"""

from typing import Final

from textual.app import App, ComposeResult
from textual.containers import Horizontal
from textual.content import Content
from textual.widgets import Static

from supervisor.acp import extensions
from supervisor.clients.console import clipboard
from supervisor.clients.console.attention import Attention
from supervisor.clients.console.daemon_link import Connecting
from supervisor.clients.console.markdown_display import RichMarkdown
from supervisor.clients.console.options import ConsoleOptions
from supervisor.clients.tui.key_driver import KeyDriver
from supervisor.clients.tui.screen_themes import THEMES
from supervisor.clients.tui.search_line import SearchLine
from supervisor.clients.tui.session_view import SessionView
from supervisor.clients.tui.sessions_list import SessionsList
from supervisor.clients.tui.view_screen import ViewedSession
from supervisor.config.settings import Settings
from supervisor.display.columns import cut
from supervisor.errors import ConfigError, StrongroomError

_PERIOD: Final = 2.0
"""Seconds between two looks at the daemon's sessions, while they are listed."""
_HEAD: Final = (
    "[@click=app.keys]F1 keys[/]  [@click=app.sessions]F2 sessions[/]  [@click=app.status]F3 status[/]  "
    "[@click=app.theme]F4 theme[/]  [@click=app.find]^F find[/]"
)
"""What can be clicked on at the top."""


class SessionsApp(App[int], inherit_bindings=False):
    """A program of sessions, without its keys.

    Args:
        settings: of this home.
        options: say which session is opened first.
        connecting: its connection.
        theme: the name of a theme.
    """

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

    def _back_to_line(self) -> None:
        self.screen.set_focus(self._view.keyboard)

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
        await self.look_at(event.session)

    async def on_sessions_list_departed(self, event: SessionsList.Departed) -> None:
        view = next((each for each in self._views if each.controller.session == event.session), None)
        if not event.session:
            self._list.display = False
            self._back_to_line()
        elif view is not None and len(self._views) > 1:
            self._close(view)
            await self._list_sessions()

    def is_looked_at(self, view: ViewedSession) -> bool:
        return view is self._view and len(self.screen_stack) == 1

    def _say_where(self) -> None:
        facts = self._view.controller.state.facts
        self._where.update(Content(f"{facts.profile} on {cut(facts.root, 60)}" if facts.root else "Strongroom"))

    def changed(self, view: ViewedSession) -> None:
        if view is self._view:
            self._say_where()
