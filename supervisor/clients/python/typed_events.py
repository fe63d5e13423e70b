"""Events of a turn as programs read them, and the questions that they answer. Shapes only.

Rule: texts are as they came; whoever puts them on a terminal makes them safe. What nobody can change is frozen.
"""

import os
from collections.abc import Awaitable, Callable
from typing import Any, Literal

import msgspec

from supervisor.acp.extensions import ApprovalRequest, ChangedName, CompactionDone, Scope, Stage
from supervisor.acp.schema import PlanEntry, TokenUsage
from supervisor.errors import StrongroomError
from supervisor.journal.receipt import Receipt

PathText = str | os.PathLike[str]


class AnswerPart(msgspec.Struct, frozen=True):
    """A piece of the answer. Pieces of one message belong together; a model that is asked again begins another one."""

    text: str
    message: str = ""


class ThoughtPart(msgspec.Struct, frozen=True):
    """A piece of what the model thinks."""

    text: str
    message: str = ""


class NoticeGiven(msgspec.Struct, frozen=True):
    """A sentence of Strongroom's own, such as that the model is asked again."""

    text: str
    tone: Literal["notice", "error"] = "notice"


class ToolStarted(msgspec.Struct, frozen=True):
    """A tool call, when it is first heard of. `arguments` are decoded, or the text that is no JSON."""

    call: str
    tool: str
    title: str
    arguments: Any = None


class ToolEnded(msgspec.Struct, frozen=True):
    """A tool call that has ended."""

    call: str
    tool: str
    title: str
    arguments: Any = None
    """As it ran: a person may have changed them."""
    ok: bool = True
    output: str = ""
    """Its result as text; why there is none, where it failed."""
    kind: str = ""
    """The error's, where it failed: "denied", "path_escape", ..."""
    changed: str = ""
    """What it has changed, in words."""
    differences: tuple[ChangedName, ...] = ()
    """Of the texts that it has changed."""
    seconds: float = 0.0


class PlanChanged(msgspec.Struct, frozen=True):
    """The model's plan, whole; it replaces the plan before."""

    steps: tuple[PlanEntry, ...]


class ConversationCompacted(msgspec.Struct, frozen=True):
    """The older part of the conversation is kept in short from here on; `text` tells of it."""

    text: str
    done: CompactionDone


class Approval(msgspec.Struct, frozen=True):
    """An answer to a question.

    No program can let a command run outside of the sandbox; that takes a person at the console.
    """

    allowed: bool
    edited: dict[str, Any] | None = None
    """The arguments, where they shall be others."""
    scope: Scope = "once"
    """For how long a yes holds; more than once only where `Question.covers` says what that allows."""
    remark: str = ""
    """With a no: why; the model is told."""


class Question(msgspec.Struct, frozen=True):
    """A call, or the turn itself, that is asked about; as an event, with the answer that was given."""

    session: str
    call: str
    request: ApprovalRequest
    answer: Approval | None = None
    """None before there is one."""

    @property
    def tool(self) -> str:
        """The tool's name."""
        return self.request.tool

    @property
    def arguments(self) -> Any:
        """What it would run with."""
        return decoded_arguments(self.request.arguments)

    @property
    def reason(self) -> str:
        """Why it is asked about."""
        return self.request.reason

    @property
    def stage(self) -> Stage:
        """What is asked: whether it may run ("call"), whether its effects are applied ("effects"), ..."""
        return self.request.stage

    @property
    def covers(self) -> str:
        """What a yes for longer than once would allow; "" where there is no such yes."""
        return self.request.covers

    @property
    def changes(self) -> tuple[ChangedName, ...]:
        """What would change, where the call was rehearsed."""
        return tuple(self.request.effects.changes) if self.request.effects is not None else ()

    @property
    def text(self) -> str:
        """What a person should read before they decide."""
        from supervisor.display import changes

        return "\n".join(line for _tone, line in changes.explained(self.request))


ApprovalCallback = Callable[[Question], bool | Approval | Awaitable[bool | Approval]]
"""Decides. Only True, and an `Approval` that says so, are a yes."""


class TurnResult(msgspec.Struct, frozen=True):
    """How a turn ended, or that it is suspended; always the last event."""

    status: Literal["ok", "error", "cancelled", "suspended"]
    answer: str = ""
    data: Any = None
    """The answer decoded, where it was asked for by a schema."""
    kind: str = ""
    """Why it is not "ok", for programs."""
    message: str = ""
    """The same for people."""
    note: str = ""
    receipt: Receipt | None = None
    """What the turn did, and what its answer claims without that; None where there is nothing to say."""
    steps: int = 0
    denied: tuple[str, ...] = ()
    """Titles of the calls that were denied."""
    usage: TokenUsage | None = None
    """Tokens; None where the model counts none."""
    cost: float | None = None
    """Money that the turn took; None where prices are not known."""
    currency: str = ""


TurnEvent = (
    AnswerPart
    | ThoughtPart
    | NoticeGiven
    | ToolStarted
    | ToolEnded
    | PlanChanged
    | ConversationCompacted
    | Question
    | TurnResult
)


class TurnFailed(StrongroomError):
    """A turn did not end well; `kind` is its result's, or its status."""

    def __init__(self, result: TurnResult) -> None:
        super().__init__(result.message or f"The turn is {result.status}.")
        self.kind = result.kind or result.status
        self.result = result


class ToolFailed(StrongroomError):
    """A tool did not do what it was asked."""

    def __init__(self, kind: str, message: str, details: dict[str, Any]) -> None:
        super().__init__(message)
        self.kind = kind
        self.details = details


def decoded_arguments(text: str) -> Any:
    """Return arguments as the JSON that they are, else as the text that they are."""
    try:
        return msgspec.json.decode(text or "{}")
    except (msgspec.DecodeError, RecursionError):
        return text
