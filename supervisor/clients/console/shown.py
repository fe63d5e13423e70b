"""Items that the console shows, and what shows them: the terminal, or plain lines.

Rule: texts are as they came; whoever puts them on a terminal makes them safe (`supervisor.display.escape`).
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol

import msgspec

from supervisor.acp.extensions import ChangedName
from supervisor.clients.connection.link_events import PermissionPrompt
from supervisor.clients.console.choice_list import Choice
from supervisor.display.fragments import Fragments
from supervisor.display.themes import ToneTable

Tone = Literal["info", "notice", "error"]


class ShownPrompt(msgspec.Struct):
    """A line of the person's."""

    text: str
    id: str = ""


class ShownAnswer(msgspec.Struct):
    """An answer as it grows; an entry of the conversation, and never shown as a whole while it streams."""

    id: str
    text: str = ""


class Said(msgspec.Struct, frozen=True):
    """The next piece of the answer that is being shown."""

    text: str


class AnswerEnds(msgspec.Struct, frozen=True):
    """No more of this answer comes."""


class ShownThought(msgspec.Struct):
    """What the model has thought, shown when it goes on to something else."""

    id: str
    text: str = ""


class ShownCall(msgspec.Struct):
    """A tool call, shown when it has ended. `number` counts from 1 within the session; `seconds`: how long it took."""

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
    differences: list[ChangedName] = msgspec.field(default_factory=list)
    """Of the texts that it has changed."""
    ended: bool = False


class ShownProposal(msgspec.Struct, frozen=True):
    """A page of what a person should see before they decide: lines in tones, with their frame."""

    lines: tuple[Fragments, ...]
    call: str = ""
    """The id of the call that is proposed."""


class Note(msgspec.Struct, frozen=True):
    """A sentence of the console's own."""

    text: str
    tone: Tone = "info"


class Document(msgspec.Struct, frozen=True):
    """A text that was asked for, such as the help; shown as it is, and below it differences, all of them."""

    text: str
    differences: Sequence[ChangedName] = ()


Entry = ShownPrompt | ShownAnswer | ShownThought | ShownCall | Note
"""An entry of a conversation."""

Lines = ShownPrompt | ShownThought | ShownCall | ShownProposal | Note | Document
"""An item that is shown as whole lines."""

Item = Said | AnswerEnds | Lines
"""An item that a screen can show."""


class Screen(Protocol):
    """Shows everything."""

    def show(self, item: Item) -> None:
        """Show something, below everything shown before."""

    def refresh(self) -> None:
        """Note that the controller's view has changed."""

    def request_approval(self, question: PermissionPrompt) -> None:
        """Let the person decide, after the questions that wait."""

    def withdraw_approval(self, question: PermissionPrompt | None) -> None:
        """Forget a question; None: all of them."""

    def turn_ended(self, *, ok: bool) -> None:
        """Note that a turn goes no further; `ok`: it was not cancelled, suspended, or an error."""

    def drop_unfinished(self) -> int:
        """Forget what of the answer is not on the screen for good; return how many characters are."""

    def clear(self) -> None:
        """Begin on an empty screen."""

    def width(self) -> int:
        """Return the columns there are."""

    def copy(self, text: str) -> str:
        """Put a text into the terminal's clipboard; return why that may not take it, a clause.

        Raises:
            ConfigError: there is none, or it takes not so much.
        """

    async def open_file(self, path: Path) -> None:
        """Let the person edit a file.

        Raises:
            ConfigError: they cannot here.
        """

    @property
    def theme_name(self) -> str:
        """The theme in which everything is shown; "" where there are no colours."""

    def take_theme(self, theme: ToneTable) -> None:
        """Show everything in a theme from now on.

        Raises:
            ConfigError: there are no colours here.
        """

    @property
    def picks(self) -> bool:
        """Whether a person can take something from a list here."""

    async def pick(self, title: str, choices: Sequence[Choice], current: str) -> str | None:
        """Return the value that the person takes from a list; None where they take none."""


def entry_keys(entries: Iterable[Entry]) -> list[tuple[Any, ...]]:
    """Return what tells an entry from others, in a history that was heard live and in the same one loaded."""
    keys: list[tuple[Any, ...]] = []
    turn = answers = thoughts = 0
    for entry in entries:
        match entry:
            case ShownPrompt():
                turn, answers, thoughts = turn + 1, 0, 0
                keys.append(("asked", turn))
            case ShownAnswer():
                answers += 1
                keys.append(("answer", turn, answers))
            case ShownThought():
                thoughts += 1
                keys.append(("thought", turn, thoughts))
            case ShownCall():
                keys.append(("call", entry.id))
            case Note():
                keys.append(("note", turn, entry.text))
    return keys
