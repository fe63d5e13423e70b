"""Why a rehearsal cannot be had.

Rule: each says in one sentence what is in the way; whoever called then asks about the command as plain text, or
refuses.
"""


class CannotRehearse(Exception):
    """There is no overlay of this root, or it cannot be told what happened on it. `reason` is for people."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class TooMuch(CannotRehearse):
    """The command changed more than can be told, and so more than can be approved."""
