"""The person's line, and those that wait for the end of what runs. Pure.

Rule: waiting lines are sent as they were typed, one after the other. They go back to the person where a turn fails or
is cancelled, and so does, after its turn, a line that was set aside for a question.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from supervisor.clients.console.folded_pastes import FoldedPastes


class WaitingLine(NamedTuple):
    """A line that waits; one that was set `aside` for a question is not sent, but the person's again."""

    text: str
    aside: bool


class LineField(Protocol):
    """Where the line is typed; `text` has a word in place of each long paste."""

    @property
    def text(self) -> str:
        """What is typed."""

    def put(self, text: str) -> None:
        """Show another text, with the cursor at its end."""

    def reset(self) -> None:
        """Begin another line."""

    def insert_text(self, data: str) -> None:
        """Type a text."""

    def remember(self) -> None:
        """Keep what is typed, to be found again."""


class WaitingLines:
    """The line, and those that wait.

    Args:
        field: where it is typed.
    """

    def __init__(self, field: LineField) -> None:
        self._field = field
        self._pastes = FoldedPastes()
        self.ahead: list[WaitingLine] = []
        """The lines that wait, in the order in which they were typed."""

    @property
    def text(self) -> str:
        """What is typed, with a word in place of each long paste."""
        return self._field.text

    def taken(self) -> str:
        """Return what is typed, with all that was pasted, and begin a line."""
        self.unfold()
        line = self.text
        if line.strip():
            self._field.remember()
        self._field.reset()
        return line

    def clear(self) -> None:
        """Begin another line, without what is typed."""
        self._field.reset()

    def paste(self, text: str) -> None:
        self._field.insert_text(self._pastes.folded(text.replace("\r\n", "\n").replace("\r", "\n")))

    def unfold(self) -> None:
        whole = self._pastes.unfolded(self.text)
        if whole != self.text:
            self._field.put(whole)

    def paste_before(self, before: str) -> int:
        """Return how many characters the word of a paste has with which a text ends; 0 where it ends with none."""
        return self._pastes.length_before(before)

    def wait(self, *, aside: bool = False) -> None:
        """Let what is typed wait."""
        line = self.text
        if not aside:
            self.taken()
        if line.strip():
            self.ahead.append(WaitingLine(line, aside))
        self._field.reset()

    def next(self) -> str:
        """Return the first line that is to be sent; "" where there is none. Those set aside are the person's again."""
        waiting = [line for line in self.ahead if not line.aside]
        self._hand_back([line for line in self.ahead if line.aside])
        first, self.ahead = waiting[:1], waiting[1:]
        return self._pastes.unfolded(first[0].text) if first else ""

    def reclaim(self) -> None:
        """Put the last line that waits before what is typed."""
        *rest, last = self.ahead
        self._hand_back([last])
        self.ahead = rest

    def hand_back(self) -> None:
        """Put all lines that wait before what is typed."""
        self._hand_back(self.ahead)
        self.ahead = []

    def _hand_back(self, lines: Sequence[WaitingLine]) -> None:
        if lines:
            text = "\n".join([*(line.text for line in lines), *([self.text] if self.text else [])])
            self._field.put(text)
