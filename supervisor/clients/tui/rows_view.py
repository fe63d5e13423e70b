"""Rows that are shown as they are given: effects of a call, live output, the status.

Rule: one widget, however many rows; each is drawn when it is looked at.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from textual.geometry import Offset, Size
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip

from supervisor.clients.tui.history_blocks import plain_row, row_of, within
from supervisor.display.fragments import Fragments

if TYPE_CHECKING:
    from rich.segment import Segment


class RowsView(ScrollView):
    """Lines in tones, broken where they are too long."""

    def __init__(self, *, id: str) -> None:  # noqa: A002 - as Textual calls it
        super().__init__(id=id)
        self._rows: list[list[Segment]] = []

    def put(self, lines: Sequence[Fragments], columns: int, *, at_end: bool = False) -> None:
        """Show other lines, from their beginning on, or their end."""
        self._rows = [row for line in lines for row in within(row_of(line), max(1, columns))]
        self.virtual_size = Size(columns, len(self._rows))
        self.scroll_to(y=self.max_scroll_y if at_end else 0, animate=False)
        self.refresh()

    def fit(self, lines: Sequence[Fragments], columns: int) -> None:
        """Show lines, as high as they are, and nothing where there are none."""
        self.display = bool(lines)
        if lines:
            self.put(lines, columns)
            self.styles.height = self.count

    @property
    def count(self) -> int:
        return len(self._rows)

    def render_line(self, y: int) -> Strip:
        row = round(self.scroll_y) + y
        width, base = self.size.width, self.rich_style
        segments = self._rows[row] if row < len(self._rows) else []
        strip = Strip(segments).extend_cell_length(width).apply_style(base)
        return strip.crop(0, width).apply_offsets(0, row)

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        start, end = selection.start or Offset(0, 0), selection.end or Offset(10**6, len(self._rows))
        lines = [plain_row(row).rstrip() for row in self._rows[start.y : end.y + 1]]
        if lines:
            lines[-1] = lines[-1][: end.x]
            lines[0] = lines[0][start.x :]
        return "\n".join(lines), "\n"
