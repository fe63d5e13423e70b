"""The record of one tool call, as a report shows it. Data.

Rule: only what the journal says; `supervisor.reports.why` collects and formats it. Fields are
only ever added.
"""

import msgspec

from supervisor.acp.extensions import ChangedName
from supervisor.journal.facts import Flow, Source


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """What was decided about what a call would do, once that was known. What bears a fact's name is the fact's."""

    at: str = ""
    decision: str
    """The policy's: "allow", "ask" or "deny"."""
    reason: str
    committed: bool
    """It changed the root from here on."""
    covered_by: str = ""
    """The rule that decided, as a sentence."""
    approved: bool | None = None
    decided_by: str = ""
    remark: str = ""
    edited: str | None = None
    """The arguments that the person asked for instead."""
    scope: str = "once"
    """For how long the person's yes holds."""
    made: str = ""
    """The rule that the person made with it, as a sentence."""
    changes: str = ""
    """How much would change, counted; empty where it was not rehearsed."""
    names: tuple[str, ...] = ()
    """The first of it."""
    differences: tuple[ChangedName, ...] = ()
    """Of the texts among it, as far as the journal has them."""
    refused: tuple[str, ...] = ()
    """What it tried besides, and was refused."""
    traffic: str = ""
    """What it has sent where, and what came back."""
    unrehearsed: str = ""
    """Why it was not rehearsed."""
    network: bool = False
    unconfined: bool = False
    not_kept: int = 0
    """Files whose old content was not kept."""
    cannot_undo: str = ""
    """Why it cannot be undone, or not all of it."""


class Why(msgspec.Struct, frozen=True):
    """What is known of one tool call. Times are UTC, and empty for what did not happen."""

    call: str
    session: str
    profile: str = ""
    model: str = ""
    root: str = ""
    turn: int = 0
    cache: str = ""
    """What of the request that led to it came from the provider's cache, and why the rest did not."""
    line: str = ""
    """What the person had asked in that turn; empty for a call without a model."""
    typed_by: str = ""
    """The client whose person typed it; empty where nobody did."""
    asked: str = ""
    """When the model's reply that asks for it was recorded."""
    tool: str = ""
    after: tuple[Source, ...] = ()
    """Of what the model had been shown before, but for what the person typed; the latest first, not all of it."""
    arguments: str = ""
    """As they were asked for, JSON."""
    effect: bool | None = None
    """Whether it may change anything; None for a call that was never judged, as below."""
    decision: str = ""
    """The policy's: "allow", "ask" or "deny"."""
    reason: str = ""
    approved: bool | None = None
    """What the person said, where one was asked."""
    decided_by: str = ""
    flow: Flow | None = None
    """What its address says to its site, where that is counted."""
    edited: str | None = None
    """The arguments as the person changed them."""
    remark: str = ""
    started: str = ""
    """When it was judged, and answered where a person was asked: then it ran, if it was allowed."""
    judged: tuple[Judged, ...] = ()
    """What was decided about each rehearsal, in order; the last one counts."""
    undo: str = ""
    """Why it cannot be undone, or how; empty for what changes nothing."""
    undone_by: str = ""
    """The call that took it back."""
    undoes: str = ""
    """The call that it took back."""
    ended: str = ""
    outcome: str = ""
    """"ok", or the kind of its error; empty while it has none."""
    seconds: float = 0.0
    changed: tuple[int, ...] = ()
    """Rows of the journal about it that are not what was written."""
    unreadable: tuple[int, ...] = ()
    """Rows of its session that cannot be read, some of which may have been about it."""
    content: str = ""
    """The first lines of its result, or the error's message."""
    suspended: str = ""
    """Why its turn goes no further; empty where it does, or has ended."""
