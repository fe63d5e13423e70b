"""Errors that decline a call. What else is raised is a bug and ends the worker.

Rule: each carries a text that says what happened and what to do instead: of a `ToolError` for the model, of the others
for the person who is asked about the call.
"""

from workers.wire.messages import ErrorKind


class ToolError(Exception):
    """The tool declines. `kind` is one of the contract's words, `details` the offending values."""

    def __init__(self, kind: ErrorKind, message: str, **details: str | int) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.details = details


class RehearsalRefused(Exception):
    """The call cannot be rehearsed, and has changed nothing. Its text is one sentence for the person who is asked."""


class CannotRehearse(Exception):
    """There is no overlay of this root, or its changes cannot be determined. Its text is for people."""


class TooMuch(CannotRehearse):
    """There is more than can be shown, and so approved, or more than there is room for now."""
