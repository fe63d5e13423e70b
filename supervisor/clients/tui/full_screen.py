"""The full screen: the keys of all sessions that are open here, and what is above them.

Rule: a key is told to the question that waits before it does anything, with the moment at which it was read.
"""

import asyncio
import signal
from collections.abc import Sequence
from typing import ClassVar, Final

from textual import events
from textual.binding import Binding, BindingType
from textual.widgets import Input, TextArea

from supervisor.acp import extensions
from supervisor.clients.console.daemon_link import Connecting
from supervisor.clients.console.options import ConsoleOptions
from supervisor.clients.console.slash_commands import KEYS
from supervisor.clients.console.theme_command import chosen
from supervisor.clients.status import status_text
from supervisor.clients.tui.history_view import HistoryView
from supervisor.clients.tui.screen_themes import THEMES
from supervisor.clients.tui.search_line import SearchLine
from supervisor.clients.tui.sessions_app import SessionsApp
from supervisor.clients.tui.text_screen import TextScreen
from supervisor.config.settings import Settings
from supervisor.display.columns import table
from supervisor.display.fragments import Fragments
from supervisor.errors import ConfigError, StrongroomError

_STATUS_PERIOD: Final = 1.0
_FIRST: Final = ("Protections", "Workers")
_OWN_KEYS: Final = (
    ("F1", "these keys"),
    ("F2", "the sessions at the side: Enter looks at one, or opens it; Delete leaves it"),
    ("F3", "the status: protections, workers, sessions"),
    ("F4", "the next theme: dark, light, high-contrast"),
    ("F6", "send the keys to the history, and back"),
    ("Ctrl-F", "find in the history; Enter goes on, Escape ends"),
    ("PgUp, PgDn", "turn the page of what is asked about; else scroll the history"),
    ("in the history", "Up, Down go from block to block; Enter folds and unfolds; c copies"),
    ("the mouse", "scrolls, selects (Ctrl-C copies), and answers where it is clicked; a double click folds"),
    ("", ""),
)


class FullScreen(SessionsApp, inherit_bindings=False):
    """The program, with its keys."""

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
        self._view.actions.focus(has=False)

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
        names = list(THEMES)
        self._use(names[(names.index(self.theme) + 1) % len(names)])

    def action_history(self) -> None:
        """Send the keys to the history, or back."""
        history = self._view.history
        self.screen.set_focus(self._view.keyboard if history.has_focus else history)

    def on_history_view_copied(self, event: HistoryView.Copied) -> None:
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
        self._search.display = True
        self.screen.set_focus(self._search)

    def on_search_line_sought(self, event: SearchLine.Sought) -> None:
        history = self._view.history
        found = history.search(event.text, after=history.current if event.step else None, back=event.step < 0)
        self._search.set_class(bool(event.text) and not found, "-invalid")

    def on_search_line_ended(self) -> None:
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
