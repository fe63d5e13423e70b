"""The history on the screen, for keys and the mouse: from block to block, folded, copied, searched."""

from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message

from supervisor.clients.tui.history_blocks import plain_row
from supervisor.clients.tui.history_rows import HistoryRows


class HistoryView(HistoryRows, can_focus=True):
    """The history of one session."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "step(-1)", "the block before"),
        Binding("down,j", "step(1)", "the next block"),
        Binding("enter,space", "fold", "fold, unfold"),
        Binding("c,y", "copy", "copy the block"),
        Binding("home,g", "first", "the beginning"),
        Binding("end,G", "last", "the end"),
        Binding("pageup", "page_up"),
        Binding("pagedown", "page_down"),
    ]

    class Copied(Message):
        """A text that the person wants in the clipboard."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    # --- blocks ---------------------------------------------------------------------------------------------------

    def action_step(self, by: int) -> None:
        if self._blocks:
            seen = self.current if self.current >= 0 else len(self._blocks) - (by > 0)
            self.go_to(max(0, min(len(self._blocks) - 1, seen + by)))

    def action_first(self) -> None:
        """Look at the beginning."""
        self._follows, self._anchor = False, (0, 0)
        self._settle()

    def _look_at(self, row: int) -> None:
        """Let a row be the first that is looked at."""
        self._follows, self._anchor = False, self._index.at(row)
        self._settle()

    def action_last(self) -> None:
        """Look at the end, and what comes."""
        self._follows = True
        self._settle()

    def go_to(self, block: int) -> None:
        """Let keys be about a block, and show it."""
        self.current = block
        self._settle()
        height = self._measure(block)
        start, rows = self._index.start(block), self.size.height
        top = round(self.scroll_y)
        if start < top or height >= rows:
            self._look_at(start)
        elif start + height > top + rows:
            self._look_at(start + height - rows)
        self.refresh()

    def action_fold(self) -> None:
        """Fold or unfold the block that keys are about; by default the last one that can be."""
        if not 0 <= self.current < len(self._blocks):
            return
        block = self._blocks[self.current]
        block.folded = not block.folded
        if self._follows and self.current != len(self._blocks) - 1:
            self._follows, self._anchor = False, self._index.at(round(self.scroll_y))
        self._measure(self.current)
        self._settle()

    def unfold_newest(self) -> None:
        """Unfold what was called or thought last, or fold it again, and show it."""
        blocks = (at for at in reversed(range(len(self._blocks))) if self._blocks[at].kind == "output")
        if (newest := next(blocks, None)) is not None:
            self.current = newest
            self.action_fold()
            self.go_to(newest)

    def action_copy(self) -> None:
        if 0 <= self.current < len(self._blocks):
            self.post_message(self.Copied(self._blocks[self.current].text))

    def on_click(self, event: events.Click) -> None:
        """Go to the block under the pointer; a second click folds it, or unfolds it."""
        if not self._blocks:
            return
        block, _ = self._index.at(round(self.scroll_y) + event.y)
        self.current = block
        if event.chain == 2:  # noqa: PLR2004 - a double click
            self.action_fold()
        self.refresh()

    # --- search ---------------------------------------------------------------------------------------------------

    def search(self, text: str, *, after: int | None = None, back: bool = False) -> bool:
        """Go to a block that holds a text, the last one before the end by default; say whether there is one.

        Args:
            text: what is searched for, in large or small letters.
            after: the block that was found last.
            back: towards the beginning.
        """
        self.sought = text.lower()
        count = len(self._blocks)
        order = range(count) if after is None else range(after + 1, after + 1 + count)
        numbers = [number % count for number in order] if count else []
        if after is None or back:
            numbers = [*reversed(numbers[:-1] if after is not None else numbers)]
        for number in numbers if self.sought else ():
            if self.sought in self._blocks[number].text.lower():
                self._show_found(number)
                return True
        self.refresh()
        return False

    def _show_found(self, number: int) -> None:
        """Go to a block, and within it to the row where the text stands; unfold it where it does not show it."""
        self._settle()
        block = self._blocks[number]
        if block.folded and not any(self.sought in plain_row(row).lower() for row in block.rows(self._columns)):
            block.folded = False
        self._measure(number)
        self.current = number
        rows = block.rows(self._columns)
        at = next((at for at, row in enumerate(rows) if self.sought in plain_row(row).lower()), 0)
        self._look_at(self._index.start(number) + at - self.size.height // 2)
