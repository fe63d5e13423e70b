"""What a person is asked about a call, and what they answer. Data.

Rule: only a clear yes is a yes. What is asked says everything that the answer will allow.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal

from supervisor.journal.facts import CallStarted, Scope
from supervisor.rules.rule import Rule
from workers.changes.effects import Effects

Stage = Literal["call", "effects", "direct", "network"]
"""What is asked about: the call as a text, before anything is done; the effects of its rehearsal; a call that cannot be
rehearsed, and would change the root at once; a call that tried the network, and may be rehearsed again with the one
that its profile names."""


@dataclass(frozen=True)
class ApprovalQuestion:
    """One question."""

    call: CallStarted
    """`facts.effective` says what runs."""
    stage: Stage
    reason: str
    effects: Effects | None = None
    """With the stage "effects": exactly these are committed after a yes."""
    rule: Rule | None = None
    """What a yes for longer than once would allow; None where there is no such yes."""
    escalation: bool = False
    """Whether the person may let this one command run unconfined."""


@dataclass(frozen=True)
class ApprovalDecision:
    """A person's answer."""

    approved: bool
    edited: str | None = None
    """The arguments as the person changed them, raw JSON; with `approved` they are judged, and rehearsed, anew."""
    remark: str = ""
    """Why, in the person's words, for the model."""
    by: str = ""
    """Who decided, for example "console"."""
    scope: Scope = "once"
    """For how long; more than once counts only where a rule was offered."""
    unconfined: bool = False
    """The person lets this one command run outside of the sandbox; counts only where that was offered."""


Approve = Callable[[ApprovalQuestion], Awaitable[ApprovalDecision]]
"""Asks a person."""
