"""Finished text for the terminal's own scrollback, with no escape sequences but ours.

Rule: what was taken (`take`) is printed and never touched again. An answer's blocks go in when they are finished; its
last block can be looked at (`tail`) until then.
"""

from collections.abc import Callable
from typing import Final

from supervisor.clients.console import styled_text
from supervisor.clients.console.links import Links, with_link
from supervisor.clients.console.markdown_stream import MarkdownRenderer, Stream
from supervisor.clients.console.shown import AnswerEnds, Document, Item, Said, ShownCall, ShownPrompt, ShownProposal
from supervisor.display.columns import off_frame
from supervisor.display.escape import visible
from supervisor.display.fragments import styled
from supervisor.display.themes import DARK

_APART: Final = (ShownPrompt, Document, ShownProposal)
"""Items with blank lines around them."""
_RENDERED: Final = 4000
"""Characters of an unfinished block above which it is shown as it is."""
_PROMPT: Final = 20
"""Rows of a line of yours that are shown."""
_CLEAR: Final = "\x1b[2J\x1b[H"


class Scrollback:
    """Collects what is to be printed.

    Args:
        markdown: gives what renders answers; may wait until it is imported.
        width: gives the terminal's columns.
        colour: whether there are any.
        links: makes links, where the terminal takes them.
    """

    def __init__(
        self,
        markdown: Callable[[], MarkdownRenderer],
        width: Callable[[], int],
        *,
        colour: bool,
        links: Links | None = None,
    ) -> None:
        self._markdown = markdown
        self._width = width
        self._colour = colour
        self._links = links
        self.theme = DARK
        """In which everything is shown from now on, but for answers."""
        self._stream: Stream | None = None
        self._pending: list[str] = []
        self._printed = ""
        """The kind of what was printed last."""
        self._tail = ("", "")
        self._proposed: set[str] = set()
        """The calls of which proposals were shown."""

    def show(self, item: Item) -> None:
        match item:
            case Said():
                self._stream = self._stream or Stream(self._markdown())
                self._stream.feed(item.text)
                if self._links is not None:
                    self._links.hear(item.text)
            case AnswerEnds():
                stream, self._stream = self._stream, None
                if self._links is not None:
                    self._links.hear("")
                self._answer(stream.end_answer(self._width() - 1) if stream is not None else "")
                if self._links is not None:
                    self._links.forget()
            case _:
                lines = styled_text.lines_of(item, self._width(), wrap=True, news=self._is_news(item))
                if isinstance(item, ShownPrompt) and (left := len(lines) - _PROMPT) > 1:
                    lines[_PROMPT:] = [[("dim", f"  ... {left} more lines, sent as well")]]
                kind = type(item).__name__ if isinstance(item, _APART) else "line"
                targets = self._links.targets(item) if self._links is not None else {}
                texts = [(line, styled(line, colour=self._colour, theme=self.theme)) for line in lines]
                self._print(kind, "".join(f"{with_link(line, text, targets)}\n" for line, text in texts))

    def _is_news(self, item: Item) -> bool:
        """Say whether the differences of a call were no part of what was shown before it was decided."""
        if isinstance(item, ShownProposal):
            self._proposed.add(item.call)
        elif isinstance(item, ShownCall) and item.id in self._proposed:
            self._proposed.remove(item.id)
            return False
        return True

    def advance(self) -> None:
        """Let the blocks go that are finished by now."""
        if self._stream is not None:
            self._answer(self._stream.finished(self._width() - 1))

    def _answer(self, rendered: str) -> None:
        """Put a part of the answer in."""
        whole = off_frame(rendered)
        self._print("answer", self._links.of_answer(whole) if self._links is not None else whole)

    def _print(self, kind: str, lines: str) -> None:
        """Put lines in, a blank line between things of different kinds."""
        if lines:
            gap = self._printed and (kind != self._printed or kind in {each.__name__ for each in _APART})
            self._pending.append(f"\n{lines}" if gap and not lines.startswith("\n") else lines)
            self._printed = kind

    def take(self) -> str:
        """Return what is to be printed now."""
        out, self._pending = "".join(self._pending), []
        return out

    def drop_unfinished(self) -> int:
        """Forget what of the answer has not been printed; return how many characters have."""
        return self._stream.drop_unfinished() if self._stream is not None else 0

    def clear(self) -> None:
        self._pending.append(_CLEAR)
        self._printed = ""

    def tail(self, rows: int) -> str:
        """Return the unfinished part of the answer, rendered, its last `rows`; "" where there is none."""
        tail = self._stream.tail if self._stream is not None else ""
        if not tail.strip():
            return ""
        if self._tail[0] != tail:
            short = len(tail) <= _RENDERED
            columns = self._width() - 1
            rendered = self._markdown().terminal_text(tail, columns) if short else visible(tail[-_RENDERED:])
            self._tail = (tail, off_frame(rendered))
        return "\n".join(self._tail[1].split("\n")[-rows:])
