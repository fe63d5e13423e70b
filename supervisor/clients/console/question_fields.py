"""Parts of a screen that questions use: its size, the line, and the texts that the person edits."""

from typing import NamedTuple, Protocol


class Line(Protocol):
    """The line of the person: where letters go that answer nothing."""

    @property
    def text(self) -> str:
        """What is typed; not empty either while it is searched for."""

    def insert_text(self, data: str) -> None:
        """Type a text into it."""


class Field(Protocol):
    """A text that the person edits, wherever it is shown."""

    @property
    def text(self) -> str:
        """The text as it stands there."""

    def put(self, text: str, at: int = 0) -> None:
        """Show another text, with the cursor before its character `at`."""

    def insert_text(self, data: str) -> None:
        """Type a text into it."""


class Fields(NamedTuple):
    """The box, the line for the reason of a no, and that for a rule that the person edits before it is made.

    The box can be edited where the queue says so (`editable`), which is told of each edit (`engage`).
    """

    box: Field
    reason: Field
    rule: Field


class ScreenSize(Protocol):
    """How large a screen is."""

    @property
    def columns(self) -> int:
        """Its columns."""

    @property
    def rows(self) -> int:
        """Its rows."""
