"""A screen of text above the session: the status, or the keys.

Rule: it shows and scrolls, and does nothing else; any of its closing keys leads back.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.screen import ModalScreen

from supervisor.clients.tui.rows_view import RowsView
from supervisor.display.fragments import Fragments


class ScrolledRows(RowsView, can_focus=True):
    """Rows that keys can scroll."""


class TextScreen(ModalScreen[None]):
    """A text that is asked for again and again.

    Args:
        title: what it is.
        text: gives its lines for a number of columns.
        period: seconds between two looks; 0 for one.
    """

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,f1,f3", "close"), Binding("ctrl+c", "close")]

    def __init__(self, title: str, text: Callable[[int], Awaitable[Sequence[Fragments]]], period: float = 0.0) -> None:
        super().__init__()
        self._text = text
        self._period = period
        self._rows = ScrolledRows(id="text")
        self._rows.border_title = Content(title)
        self._rows.border_subtitle = Content("Esc closes")

    def compose(self) -> ComposeResult:
        yield self._rows

    async def on_mount(self) -> None:
        """Show it, and go on looking."""
        self.set_focus(self._rows)
        if self._period:
            self.set_interval(self._period, self._look)
        self.call_after_refresh(self._look)

    async def on_resize(self) -> None:
        """Break its lines anew."""
        self.call_after_refresh(self._look)

    async def _look(self) -> None:
        columns = self._rows.size.width - 1
        if columns > 0:
            at = self._rows.scroll_y
            self._rows.put(await self._text(columns), columns)
            self._rows.scroll_to(y=at, animate=False)

    def page(self, *, forward: bool) -> None:
        (self._rows.scroll_page_down if forward else self._rows.scroll_page_up)(animate=False)

    def action_close(self) -> None:
        """Go back."""
        self.dismiss()
