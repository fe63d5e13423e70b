"""The rows of a history on the screen: which of thousands of blocks are drawn, and where they stand.

Rule: only blocks that are looked at are drawn, and only some of them are kept drawn; the heights of the others are
guessed. What the person looks at stays where it is when something above it turns out to be higher; who looks at the end
sees what comes. Many changes in a moment are one drawing.
"""

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, Final

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.geometry import Offset, Size
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip

from supervisor.clients.console.markdown_stream import MarkdownRenderer
from supervisor.clients.console.shown import AnswerEnds, Document, Item, Said, ShownPrompt, ShownProposal
from supervisor.clients.tui.history_blocks import AnswerBlock, HistoryBlock, ItemBlock, plain_row
from supervisor.clients.tui.row_index import RowIndex

if TYPE_CHECKING:
    from textual.timer import Timer

_PAUSE: Final = 1 / 30
"""Seconds between two drawings of what comes in."""
_SHARE: Final = 5
"""One part of so many of the time, at most, goes into such drawings: long answers are drawn less often."""
_KEPT: Final = 300
"""Blocks that are kept drawn."""
_COPIED: Final = 20_000
"""Rows that a selection may have."""
_APART: Final = (ShownPrompt, Document)
"""Items with a blank line before them."""


class HistoryRows(ScrollView):
    """The rows of one session's history.

    Args:
        markdown: gives what renders answers; may wait until it is imported.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {"history--prompt", "history--output", "history--current", "history--found"}

    def __init__(self, markdown: Callable[[], MarkdownRenderer]) -> None:
        super().__init__()
        self._markdown = markdown
        self._blocks: list[HistoryBlock] = []
        self._index = RowIndex()
        self._drawn: OrderedDict[int, None] = OrderedDict()
        self._answer: AnswerBlock | None = None
        self._follows = True
        """Whether the end is looked at."""
        self._anchor = (0, 0)
        """The block at the top, and which row of it, where it is not."""
        self._columns = 0
        self._settling = False
        self._timer: Timer | None = None
        self._pause = _PAUSE
        self.current = -1
        """The block that keys are about; -1 for none."""
        self.sought = ""
        """What is searched for, in small letters."""

    # --- what is shown --------------------------------------------------------------------------------------------

    def add(self, item: Item) -> None:
        match item:
            case Said():
                if self._answer is None:
                    self._answer = AnswerBlock(self._markdown)
                    self._append(self._answer)
                self._answer.feed(item.text)
            case AnswerEnds():
                if self._answer is not None:
                    self._answer.end()
                self._answer = None
            case ShownProposal():  # it stands beside the question, and the call tells of it when it is done
                return
            case _:
                before = self._blocks[-1].kind if self._blocks else "prompt"
                gap = bool(self._blocks) and (isinstance(item, _APART) or before in ("answer", "prompt"))
                self._append(ItemBlock(item, gap=gap))
        self._changed()

    def drop_unfinished(self) -> None:
        """Forget what there is of the answer that comes in."""
        if self._answer is not None and self._blocks[-1] is self._answer:
            self._blocks.pop()
            self._index.pop()
        self._answer = None
        self._changed()

    def empty(self) -> None:
        self._blocks, self._index, self._answer, self.current = [], RowIndex(), None, -1
        self._drawn.clear()
        self._follows, self._anchor = True, (0, 0)
        self._changed()

    def _append(self, block: HistoryBlock) -> None:
        self._blocks.append(block)
        self._index.append(block.guess(max(1, self._columns)))

    def _changed(self) -> None:
        """Draw soon."""
        if self._timer is None and self.is_attached:
            self._timer = self.set_timer(self._pause, self._draw_soon)

    def _draw_soon(self) -> None:
        begun = time.monotonic()
        self._timer = None
        self._settle()
        self._pause = max(_PAUSE, (time.monotonic() - begun) * _SHARE)

    # --- where everything is --------------------------------------------------------------------------------------

    def _settle(self) -> None:
        """Draw the blocks that are looked at, and stay with them."""
        if not self._blocks or not self.size.height:
            self.virtual_size = Size(self.size.width, 0)
            self.refresh()
            return
        columns = self._content_columns
        if columns != self._columns:
            self._columns = columns
            self._drawn.clear()
            for at, each in enumerate(self._blocks):
                self._index.resize(at, each.guess(columns))
        rows = self.size.height
        block, offset = self._anchor if not self._follows else (len(self._blocks) - 1, 0)
        if self._follows:
            seen = self._measure(block)
            while seen < rows and block:
                block -= 1
                seen += self._measure(block)
        else:
            seen = self._measure(block) - offset
            while seen < rows and block + 1 < len(self._blocks):
                block += 1
                seen += self._measure(block)
        self._settling = True
        try:
            self.virtual_size = Size(self.size.width, self._index.total)
            top = self.max_scroll_y if self._follows else min(self._top(), self.max_scroll_y)
            self.set_reactive(ScrollView.scroll_target_y, top)
            self.scroll_y = top
        finally:
            self._settling = False
        self.refresh()

    @property
    def _content_columns(self) -> int:
        """Columns of a row: always so many as there are beside a scrollbar."""
        return max(1, self.container_size.width - self.styles.scrollbar_size_vertical)

    def _top(self) -> int:
        block, offset = self._anchor
        return self._index.start(block) + offset

    def _measure(self, block: int) -> int:
        """Draw a block; return how many rows it has."""
        height = len(self._blocks[block].rows(self._columns))
        self._index.resize(block, height)
        self._drawn[block] = None
        self._drawn.move_to_end(block)
        while len(self._drawn) > _KEPT:
            oldest, _ = self._drawn.popitem(last=False)
            self._blocks[oldest].forget()
        return height

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Take note of where the person looks, and draw what is there."""
        if not self._settling and self._blocks and self._columns:
            self._follows = round(new_value) >= self.max_scroll_y
            block, offset = self._index.at(round(new_value))
            left = self._index.height(block) - offset
            self._anchor = (block, max(0, self._measure(block) - left))
            self._settle()  # which may scroll further, and tells the scrollbar so before this does
        super().watch_scroll_y(old_value, self.scroll_y)

    def _on_resize(self, _event: events.Resize) -> None:
        self._settle()

    # --- drawing --------------------------------------------------------------------------------------------------

    def render_line(self, y: int) -> Strip:
        base, width = self.rich_style, self.size.width
        row = round(self.scroll_y) + y
        if not self._blocks or not self._columns or row >= self._index.total:
            return Strip.blank(width, base)
        block, offset = self._index.at(row)
        rows = self._blocks[block].rows(self._columns)
        segments = rows[offset] if offset < len(rows) else []
        style = base + self._style_of(block)
        strip = Strip(self._marked(segments, row)).extend_cell_length(width).apply_style(style)
        return strip.crop(0, width).apply_offsets(0, row)

    def _style_of(self, block: int) -> Style:
        if block == self.current and self.has_focus:
            return self.get_component_rich_style("history--current")
        kind = self._blocks[block].kind
        return self.get_component_rich_style(f"history--{kind}") if kind in ("prompt", "output") else Style.null()

    def _marked(self, segments: list[Segment], row: int) -> list[Segment]:
        """Return a row with what was found, or selected, in it."""
        spans = self._found_in(plain_row(segments)) if self.sought else []
        selection = self.text_selection
        if selection is not None and (span := selection.get_span(row)) is not None:
            begin, end = span
            style = self.screen.get_component_rich_style("screen--selection")
            spans.append((begin, end if end >= 0 else sum(len(each.text) for each in segments), style))
        for begin, end, style in spans:
            segments = list(_restyled(segments, begin, end, style))
        return segments

    def _found_in(self, text: str) -> list[tuple[int, int, Style]]:
        style = self.get_component_rich_style("history--found")
        found, low = [], text.lower()
        at = low.find(self.sought)
        while at >= 0:
            found.append((at, at + len(self.sought), style))
            at = low.find(self.sought, at + len(self.sought))
        return found

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        if not self._blocks:
            return None
        start = selection.start or Offset(0, 0)
        end = selection.end or Offset(10**6, self._index.total)
        lines = []
        for row in range(max(0, start.y), min(end.y + 1, self._index.total, start.y + _COPIED)):
            block, offset = self._index.at(row)
            rows = self._blocks[block].rows(self._columns)
            lines.append(plain_row(rows[offset]).rstrip() if offset < len(rows) else "")
        if lines and end.y < self._index.total:
            lines[-1] = lines[-1][: end.x]
        if lines:
            lines[0] = lines[0][start.x :]
        return "\n".join(lines), "\n"

    def selection_updated(self, _selection: Selection | None) -> None:
        """Draw what is selected."""
        self.refresh()


def _restyled(segments: list[Segment], begin: int, end: int, style: Style) -> list[Segment]:
    """Return a row of which some characters have another style."""
    found: list[Segment] = []
    at = 0
    for segment in segments:
        text, size = segment.text, len(segment.text)
        first, last = max(0, begin - at), min(size, end - at)
        if first >= last:
            found.append(segment)
        else:
            own = segment.style or Style.null()
            pieces = ((text[:first], own), (text[first:last], own + style), (text[last:], own))
            found += [Segment(piece, look) for piece, look in pieces if piece]
        at += size
    return found
