"""The full screen: the sessions that are open here, one of them looked at, and what is above all of them.

Rule: a key is told to the question that waits before it does anything, with the moment at which it was read. What fails
ends the program with its reason, and the terminal is as it was.
"""

import asyncio
import signal
from typing import ClassVar

from textual import events
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal

from supervisor.clients.console.attention import Attention
from supervisor.clients.console.daemon_link import Connecting
from supervisor.clients.console.markdown_display import RichMarkdown
from supervisor.clients.console.options import ConsoleOptions
from supervisor.clients.tui.history_view import HistoryView
from supervisor.clients.tui.key_driver import KeyDriver
from supervisor.clients.tui.session_view import SessionView
from supervisor.clients.tui.themes import THEMES
from supervisor.config.settings import Settings


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
        Binding("f4", "theme", priority=True),
        Binding("f6", "history", priority=True),
    ]

    def __init__(self, settings: Settings, options: ConsoleOptions, connecting: Connecting, theme: str) -> None:
        super().__init__(driver_class=KeyDriver)
        self._settings = settings
        self.failure: BaseException | None = None
        """What went wrong, so that there was nothing but to end."""
        markdown = RichMarkdown(colour=options.colour)
        self._markdown = lambda: markdown
        self._attention = Attention(self._write, settings.variable("TERM"), wanted=options.colour)
        for row in THEMES.values():
            self.register_theme(row.theme)
        self._use(theme)
        self._view = SessionView(settings, options, connecting, self._markdown, self._attention, self._left)

    def _use(self, theme: str) -> None:
        self.theme = theme
        self.ansi_theme_dark = self.ansi_theme_light = THEMES[theme].colours

    def _write(self, text: str) -> None:
        """Write to the terminal what does not move the cursor."""
        if self._driver is not None:
            self._driver.write(text)

    def compose(self) -> ComposeResult:
        """Yield what stands beside each other."""
        yield Horizontal(self._view, id="body")

    @property
    def view(self) -> SessionView:
        """The session that is looked at."""
        return self._view

    def _left(self, view: SessionView) -> None:
        self.failure = self.failure or view.actions.failure
        self.exit(0)

    def _handle_exception(self, error: Exception) -> None:
        """End with what went wrong; Textual would print all that there was in memory."""
        self.failure = self.failure or error
        self.exit(1)

    # --- keys -----------------------------------------------------------------------------------------------------

    async def on_event(self, event: events.Event) -> None:
        """Tell the question that waits of each key, before it does anything."""
        if isinstance(event, events.Key | events.Paste) and not event.is_forwarded:
            self.view.approvals.pressed(event.time)
        await super().on_event(event)

    def on_app_focus(self) -> None:
        """Take note that the window has the focus."""
        self.view.actions.focus(has=True)

    def on_app_blur(self) -> None:
        """Take note that it has not."""
        self.view.actions.focus(has=False)

    def action_interrupt(self) -> None:
        """Copy what is selected; else clear, cancel, or leave."""
        if selected := self.screen.get_selected_text():
            self.copy_to_clipboard(selected)
            self.screen.clear_selection()
        else:
            self.view.actions.interrupt()
            self.view.draw()

    def action_expand(self) -> None:
        """Show all of what is asked about, or was done last."""
        self.view.unfold()

    def action_mode(self) -> None:
        """Ask about other changes than now."""
        self.view.actions.next_mode()

    def action_page(self, forward: bool) -> None:
        """Turn the page of what is asked about, or scroll the history."""
        if not self.view.turn_page(forward=forward):
            scroll = self.view.history.scroll_page_down if forward else self.view.history.scroll_page_up
            scroll(animate=False)

    def action_theme(self) -> None:
        """Use the next theme."""
        names = list(THEMES)
        self._use(names[(names.index(self.theme) + 1) % len(names)])

    def action_history(self) -> None:
        """Send the keys to the history, or back."""
        history = self.view.history
        self.screen.set_focus(self.view.keyboard if history.has_focus else history)

    def on_history_view_copied(self, event: HistoryView.Copied) -> None:
        """Put a text into the clipboard."""
        self.copy_to_clipboard(event.text)
        self.notify("Copied.", timeout=2)


def run_full_screen(settings: Settings, options: ConsoleOptions, connecting: Connecting, theme: str) -> int:
    """Run until the person leaves; return the exit code.

    Raises:
        StrongroomError: the session cannot be opened.
    """
    app = FullScreen(settings, options, connecting, theme)

    async def run() -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, app.exit)
        await app.run_async()

    asyncio.run(run())
    if app.failure is not None:
        raise app.failure
    return app.return_code or 0
