"""Blocks of the history: what an item, or an answer as it grows, looks like at a width, folded or not.

Rule: texts come from `styled_text` and the console's renderer of Markdown, and are safe for a terminal already. A block
is drawn when it is looked at; until then its height is a guess.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Final

from rich.ansi import AnsiDecoder
from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style

from supervisor.clients.console import styled_text
from supervisor.clients.console.markdown_stream import MarkdownRenderer, Stream
from supervisor.clients.console.shown import Document, Lines, Note, ShownCall, ShownPrompt, ShownThought
from supervisor.display.columns import off_frame
from supervisor.display.escape import visible
from supervisor.display.fragments import Fragments

_UNFOLDED: Final = 3
"""Rows of a block that is folded."""
_RENDERED: Final = 4000
"""Characters of an unfinished piece of Markdown above which it is shown as it is."""
_LONG: Final = 10_000
"""Characters of a text that begins folded, and of which no more is drawn then."""
_GUESSED: Final = 4
"""Rows that are guessed for what is mostly a line or two."""

Row = list[Segment]
"""One row of the screen."""


@lru_cache(maxsize=256)
def style_of(tone: str) -> Style:
    """Return the style of a tone (`supervisor.display.fragments`)."""
    return Style.parse(tone or "none")


def row_of(fragments: Fragments) -> Row:
    """Return a line as a row; tabs become blanks."""
    row: Row = []
    column = 0
    for tone, text in fragments:
        if "\t" in text:
            text = f"{' ' * column}{text}".expandtabs(8)[column:]  # noqa: PLW2901 - as it is shown
        column += cell_len(text)
        row += [Segment(text, style_of(tone))] if text else []
    return row


def within(row: Row, columns: int) -> Iterator[Row]:
    """Yield a row as rows of at most so many columns, as Textual counts them: it would cut what is wider."""
    if Segment.get_line_length(row) <= columns:
        yield row
        return
    piece: Row = []
    used = 0
    for segment in row:
        for char in segment.text:
            size = cell_len(char)
            if piece and used + size > columns:
                yield piece
                piece, used = [], 0
            piece.append(Segment(char, segment.style))
            used += size
    yield [*Segment.simplify(piece)]


def plain_row(row: Row) -> str:
    """Return a row without styles."""
    return "".join(segment.text for segment in row)


class HistoryBlock:
    """A piece of the history; `kind` tells whose it is: "prompt", "answer", "output" or "note"."""

    kind = "note"

    def __init__(self) -> None:
        self.folded = False
        self._drawn: tuple[int, bool] | None = None
        self._rows: list[Row] = []

    @property
    def text(self) -> str:
        """What is searched and copied."""
        raise NotImplementedError

    def rows(self, columns: int) -> list[Row]:
        """Return it as rows of at most so many columns."""
        if self._drawn != (columns, self.folded):
            rows = self._fold(self._render(columns))
            self._drawn, self._rows = (columns, self.folded), [each for row in rows for each in within(row, columns)]
        return self._rows

    def guess(self, columns: int) -> int:
        """Return about how many rows it has."""
        return sum(1 + len(line) // columns for line in self.text.split("\n"))

    def forget(self) -> None:
        """Let go of what was drawn."""
        self._drawn, self._rows = None, []

    def _render(self, columns: int) -> list[Row]:
        raise NotImplementedError

    def _fold(self, rows: list[Row]) -> list[Row]:
        left = len(rows) - _UNFOLDED
        if not self.folded or left < 2:  # noqa: PLR2004 - a line that says so would take the place of the one
            return rows
        more = f"{left} more lines" if len(self.text) <= _LONG else f"{len(self.text)} characters in all"
        return [*rows[:_UNFOLDED], row_of([("dim", f"  ... {more}; Enter unfolds")])]


class ItemBlock(HistoryBlock):
    """An item that is whole lines. Calls and thoughts begin folded."""

    def __init__(self, item: Lines, *, gap: bool = False) -> None:
        super().__init__()
        self.item = item
        self.kind = _KINDS.get(type(item), "note")
        self.folded = isinstance(item, ShownCall | ShownThought) or len(self.text) > _LONG
        self._gap = gap

    @property
    def text(self) -> str:
        match self.item:
            case ShownCall():
                return f"{self.item.title}\n{self.item.arguments}\n{self.item.output}"
            case ShownPrompt() | ShownThought() | Note() | Document():
                return self.item.text
            case _:
                return "\n".join(plain_row(row) for row in self._rows)

    def guess(self, columns: int) -> int:
        return self._gap + (_GUESSED if self.folded else super().guess(columns))

    def _render(self, columns: int) -> list[Row]:
        item = self.item
        if self.folded and isinstance(item, ShownPrompt | Document | Note) and len(item.text) > _LONG:
            item = ShownPrompt(item.text[:_LONG]) if isinstance(item, ShownPrompt) else Document(item.text[:_LONG])
        lines = styled_text.lines_of(item, columns, wrap=True, news=True)
        if isinstance(self.item, ShownCall | ShownThought) and not self.folded:
            whole = styled_text.full_document(self.item)
            lines = [*lines[:1], *([("", "  "), *line] for line in styled_text.lines_of(whole, columns - 2, wrap=True))]
        rows = [row_of(line) for line in lines]
        return [[], *rows] if self._gap else rows

    def _fold(self, rows: list[Row]) -> list[Row]:
        return rows if isinstance(self.item, ShownCall | ShownThought) else super()._fold(rows)


_KINDS: Final[dict[type, str]] = {ShownPrompt: "prompt", ShownCall: "output", ShownThought: "output"}


class AnswerBlock(HistoryBlock):
    """An answer in Markdown; what has come of it is drawn once, but for its unfinished end.

    Args:
        markdown: gives what renders it; may wait until that is imported.
    """

    kind = "answer"

    def __init__(self, markdown: Callable[[], MarkdownRenderer]) -> None:
        super().__init__()
        self._markdown = markdown
        self._parts: list[str] = []
        self._fresh: list[str] = []
        """What came since it was drawn last."""
        self._ended = False
        self._stream: Stream | None = None
        self._finished: list[Row] = []
        self._columns = 0
        """For which the finished rows are."""

    @property
    def text(self) -> str:
        return "".join(self._parts)

    def feed(self, piece: str) -> None:
        self._parts.append(piece)
        self._fresh.append(piece)
        self._drawn = None

    def end(self) -> None:
        """Take note that no more of it comes."""
        self._ended, self._drawn = True, None

    def forget(self) -> None:
        super().forget()
        self._stream, self._finished = None, []

    def _render(self, columns: int) -> list[Row]:
        stream = self._stream
        if stream is None or self._columns != columns:
            stream, self._finished, self._fresh = Stream(self._markdown()), [], [self.text]
            self._columns = columns
        stream.feed("".join(self._fresh))
        self._fresh = []
        if self._ended:
            rows = [*self._finished, *decoded(stream.end_answer(columns))]
            self._stream, self._finished = None, []
        else:
            self._stream = stream
            self._finished += decoded(stream.finished(columns))
            rows = [*self._finished, *self._unfinished(stream.tail, columns)]
        return [[], *rows]

    def _unfinished(self, tail: str, columns: int) -> Sequence[Row]:
        if not tail.strip():
            return []
        short = len(tail) <= _RENDERED
        return decoded(self._markdown().terminal_text(tail, columns) if short else visible(tail[-_RENDERED:]))


def decoded(text: str) -> list[Row]:
    """Return lines with the terminal's codes as rows."""
    decoder = AnsiDecoder()
    return [_decoded_line(decoder, line) for line in off_frame(text).split("\n")[: None if text[-1:] != "\n" else -1]]


def _decoded_line(decoder: AnsiDecoder, line: str) -> Row:
    text = decoder.decode_line(line)
    ends = sorted({0, len(text), *(at for span in text.spans for at in (span.start, span.end))})
    row: Row = []
    for begin, end in pairwise(ends):
        styles = [span.style for span in text.spans if span.start <= begin and span.end >= end]
        style = Style.combine((Style.null(), *(each for each in styles if isinstance(each, Style))))
        row.append(Segment(text.plain[begin:end], style))
    return row
