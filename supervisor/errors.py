"""Every exception of the supervisor, one tree.

Rule: a class for each decision that a caller can take, fields rather than text alone, and a message that a
person can act on. A tool that fails is no exception: it is an outcome (`supervisor.tools.router`).
"""

from typing import Final, Literal

ModelErrorKind = Literal[
    "authentication",
    "permission",
    "invalid_request",
    "not_found",
    "request_too_large",
    "rate_limited",
    "overloaded",
    "timeout",
    "connection",
    "stream_truncated",
    "bad_response",
    "refusal",
    "context_full",
    "too_many_steps",
    "invalid_answer",
    "api_error",
]
"""Every way a turn can fail on the model's side."""


def reason(error: Exception) -> str:
    """Return what the system, or else its own text, says of an error, without a full stop."""
    return str(getattr(error, "strerror", None) or error).rstrip(".")


class StrongroomError(Exception):
    """The root of the tree. Its text is one or two sentences for a person, `kind` a word for programs."""

    kind: str = "unavailable"


class ConfigError(StrongroomError):
    """The configuration, an option or the environment is wrong; nothing was started (exit 2)."""

    kind = "config"


class OutputError(StrongroomError):
    """Results cannot be written where they were asked for; what is recorded can be written later."""


class JournalError(StrongroomError):
    """The journal cannot be read or written; nothing may run that cannot be recorded."""

    kind: Literal["journal_corrupt", "journal_io"]

    def __init__(self, kind: Literal["journal_corrupt", "journal_io"], message: str) -> None:
        super().__init__(message)
        self.kind = kind


class KeptError(StrongroomError):
    """Content cannot be kept, or is not there any more; `kind` is the call's.

    A call that would replace it must not be committed, and no fact may name it.
    """

    kind: Literal["disk_full", "too_large", "conflict", "internal"]

    def __init__(self, kind: Literal["disk_full", "too_large", "conflict", "internal"], message: str) -> None:
        super().__init__(message)
        self.kind = kind


class ModelError(StrongroomError):
    """The model did not give a reply, after every retry that made sense. Ends the turn."""

    kind: ModelErrorKind

    def __init__(
        self, kind: ModelErrorKind, message: str, *, billed: bool = True, retry_after: float | None = None
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.retry_after = retry_after
        """Seconds that the server asks to wait for; None where it says nothing."""
        self.billed = billed
        """Whether the server may bill what it did."""


OUT_OF_MEMORY: Final = "out of memory"
"""Stands in the reason of a death by the kernel's hand, where the worker's cgroup had used up its memory."""


class WorkerError(StrongroomError):
    """A call did not get its own answer from a worker."""


class WorkerDied(WorkerError):
    """The worker ended in mid-call. `reason` is for people; `ordered` says when we ended it ourselves.

    Not raised for a worker that dies idle: the pool replaces that one without a word.
    """

    def __init__(self, reason: str, ordered: Literal["timeout", "cancelled", "resource_limit", ""] = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.ordered = ordered


class WorkerUnavailable(WorkerError):
    """No worker of the category is available now; the call was never sent."""


class DaemonRefused(StrongroomError):
    """The daemon answered a request with an error that is none of the others. `kind` says which.

    `turn` is how the turn ended that was asked for, as JSON; None where none began.
    """

    def __init__(self, message: str, kind: str, turn: object = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.turn = turn


class DaemonLost(StrongroomError):
    """The connection to the daemon has ended; what was asked may go on there, and `--continue` shows it."""

    kind = "daemon_lost"


class DaemonRuns(StrongroomError):
    """Another daemon has this home, or this socket. `pid` is 0 and `socket` empty where nobody has said them yet."""

    def __init__(self, pid: int, socket: str) -> None:
        if socket:
            who, end = (f" (pid {pid})", f", or end it first: kill {pid}") if pid else ("", "")
            message = f"A daemon already runs{who} at {socket}. Use that one{end}."
        else:
            message = "A daemon already runs; it is just starting or ending. Try again in a moment."
        super().__init__(message)
        self.pid = pid
        self.socket = socket
