"""Items that the console shows: the session's state makes them, a screen shows them.

Rule: texts are as they came; whoever puts them on a terminal makes them safe (`supervisor.display.escape`).
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

from supervisor.acp import extensions

Tone = Literal["info", "notice", "error"]


@dataclass
class ShownPrompt:
    """A line of the person's. `echo` is False where the screen shows it already."""

    text: str
    id: str = ""
    echo: bool = True


@dataclass
class ShownAnswer:
    """An answer as it grows; an entry of the conversation, and never shown as a whole while it streams."""

    id: str
    text: str = ""


@dataclass(frozen=True)
class Said:
    """The next piece of the answer that is being shown."""

    text: str


@dataclass(frozen=True)
class AnswerEnds:
    """No more of this answer comes."""


@dataclass
class ShownCall:
    """A tool call. `number` counts from 1 within the session; `seconds` is how long it took."""

    id: str
    number: int
    title: str
    tool: str = ""
    arguments: str = ""
    edited: str | None = None
    command: bool = False
    """Whether it runs a program, whose output is then of interest by itself."""
    status: str = "pending"
    kind: str = ""
    """The error's, where it failed."""
    note: str = ""
    reason: str = ""
    seconds: float = 0.0
    output: str = ""
    outcome: str = ""
    """What it has changed, and how to take that back."""
    ended: bool = field(default=False)


@dataclass(frozen=True)
class ShownEnd:
    """A call has ended."""

    call: ShownCall


@dataclass(frozen=True)
class ShownProposal:
    """What a person should see before they decide about a call; at most `rows` lines of it, 0 for all."""

    request: extensions.ApprovalRequest
    printed: str = ""
    """What the rehearsed command has printed."""
    rows: int = 0
    more: str = "Ctrl-O shows"
    """How the person gets to see the rest."""


@dataclass(frozen=True)
class Note:
    """A sentence of the console's own."""

    text: str
    tone: Tone = "info"


@dataclass(frozen=True)
class Document:
    """A text that was asked for, such as the help; shown as it is."""

    text: str


Entry = ShownPrompt | ShownAnswer | ShownCall | Note
"""An entry of a conversation."""

Item = ShownPrompt | Said | AnswerEnds | ShownEnd | ShownProposal | Note | Document
"""An item that a screen can show."""


def entry_keys(entries: Iterable[Entry]) -> list[tuple[Any, ...]]:
    """Return what tells an entry from others, in a history that was heard live and in the same one loaded."""
    keys: list[tuple[Any, ...]] = []
    turn = answers = 0
    for entry in entries:
        match entry:
            case ShownPrompt():
                turn, answers = turn + 1, 0
                keys.append(("asked", turn))
            case ShownAnswer():
                answers += 1
                keys.append(("answer", turn, answers))
            case ShownCall():
                keys.append(("call", entry.id))
            case Note():
                keys.append(("note", turn, entry.text))
    return keys
