"""A list above the session, of which the person takes a row.

Rule: what is typed narrows it (`choice_list`); Enter takes a row, Escape none.
"""

from typing import Final

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input

from supervisor.clients.console.choice_list import ChoiceList
from supervisor.clients.tui.rows_view import RowsView

_ROWS: Final = 12


class _TypedWords(Input):
    """What narrows the list; keys that are about the list go on to it."""

    async def _on_key(self, event: events.Key) -> None:
        if event.key in ("up", "down", "tab", "enter", "escape"):
            event.prevent_default()


class PickScreen(ModalScreen[str | None]):
    """The list.

    Args:
        title: what it is of.
        choices: its rows.
    """

    def __init__(self, title: str, choices: ChoiceList) -> None:
        super().__init__()
        self._choices = choices
        self._narrowed = ""
        self._words = _TypedWords(compact=True, placeholder="type to narrow the list", id="words")
        self._rows = RowsView(id="choices")
        self._frame = Vertical(self._words, self._rows, id="pick")
        self._frame.border_title = Content(title)

    def compose(self) -> ComposeResult:
        yield self._frame

    def on_mount(self) -> None:
        self.set_focus(self._words)
        self.call_after_refresh(self._show)

    def on_resize(self) -> None:
        self.call_after_refresh(self._show)

    def _show(self) -> None:
        columns = self._frame.size.width - 2
        if columns > 0:
            self._rows.put(self._choices.lines(columns, min(_ROWS, max(3, self.size.height - 6))), columns)

    def on_input_changed(self, _event: Input.Changed) -> None:
        """Leave the rows that fit."""
        self._narrow()
        self._show()

    def _narrow(self) -> None:
        if self._words.value != self._narrowed:
            self._narrowed = self._words.value
            self._choices.narrow(self._narrowed)

    def on_key(self, event: events.Key) -> None:
        """Go to another row, or take one; what was typed just before counts."""
        self._narrow()
        if event.key in ("up", "down", "tab"):
            self._choices.move(-1 if event.key == "up" else 1)
            self._show()
        elif event.key == "enter":
            best = self._choices.best
            self.dismiss(best.value if best is not None else None)
        elif event.key == "escape":
            self.dismiss(None)
        else:
            return
        event.stop()
