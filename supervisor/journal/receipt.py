"""The receipt of a turn as its end carries it: what the journal knows of what the turn did. Data.

Rule: fields are only ever added, with a default, as those of facts; programs read them under these names.
"""

from typing import Literal

import msgspec

from workers.changes.effects import What

CheckKind = Literal["tests", "build", "lint", "types", "own"]
"""What a known program checks; `own`: what the person's own check does."""

CheckResult = Literal["passed", "failed", "empty", "unknown"]
"""`empty`: it ended well, and has run no test; `unknown`: the journal cannot say."""


class _ReceiptRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    pass


class CommandRun(_ReceiptRecord, frozen=True):
    """A command that ran; `exit_code` is that of the whole line, None where it was cut off."""

    call: str
    command: str
    exit_code: int | None = None
    checks: bool = False
    """Whether a check ran in it."""


class CheckRun(_ReceiptRecord, frozen=True):
    """A check that ran, known by the program that was started and never by what that printed."""

    call: str
    runner: str
    kind: CheckKind
    result: CheckResult
    why: str = ""
    """Of a result that is not known: why, a clause."""
    where: str = ""
    """The directory that it ran in, relative to the root; empty for that itself."""
    only: str = ""
    """What it was narrowed to, as it was written; empty where it ran all there is."""
    passed: int | None = None
    failed: int | None = None
    """Of tests, as the runner counts them."""
    changed_since: bool = False
    """Whether something was changed after it."""


class ChangedFile(_ReceiptRecord, frozen=True):
    """A file that is another at the turn's end than at its beginning."""

    path: str
    what: What


class Unproven(_ReceiptRecord, frozen=True):
    """A sentence of the answer that claims what the journal does not bear out, and why it does not."""

    claim: str
    why: str


class Receipt(_ReceiptRecord, frozen=True):
    """What one turn did. A turn that did nothing, and claims nothing, has none."""

    commands: tuple[CommandRun, ...] = ()
    """The last of them."""
    commands_left_out: int = 0
    checks: tuple[CheckRun, ...] = ()
    """The last of each runner and directory."""
    changed: tuple[ChangedFile, ...] = ()
    changed_left_out: int = 0
    """Files that changed besides, and are not listed."""
    unseen: int = 0
    """Calls that may have changed something that nobody has seen: outside of the sandbox, or cut off."""
    changed_since_check: bool | None = None
    """Whether anything changed after the last check that passed; None where none has."""
    unproven: tuple[Unproven, ...] = ()
