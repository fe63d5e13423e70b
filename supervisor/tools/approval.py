"""Approval: the question about a call, the person's answer, and the one place that asks them.

Rule: only a clear yes is a yes, and nobody there is no yes. The question says everything that the answer will allow,
and what was not offered is not in the answer. Whether a person is asked at all is decided in `call_policy`
and `execution`.
"""

import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from enum import Enum, auto
from itertools import islice
from typing import Final, Literal

from supervisor.display.escape import one_line
from supervisor.journal.facts import CallStarted, Scope, effective
from supervisor.rules.rule import Rule
from supervisor.tools.call_context import CallContext
from supervisor.tools.call_policy import COMMANDS
from workers.changes.effects import Effects
from workers.tree.obeyed_names import obeyed

Stage = Literal["call", "effects", "direct", "network", "turn", "switch", "narrow", "refused"]
"""What a person is asked about: the call as a text, before anything is done; the effects of its rehearsal; a call that
cannot be rehearsed, and would change the root at once; a call that tried the network, and may be rehearsed again with
the one that its profile names; whether a turn goes on of which they have rejected so much; whether another
model is asked; whether the root's own file, which narrows, is left out; a command that was refused
something, and may be run on the real system: any answer but that leaves it as it is."""


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
    cannot_undo: str = ""
    """Why a commit of the effects could not be undone, or not all of it: a clause; the reason says it, too."""


class Next(Enum):
    """The state that a change goes to once it is decided about."""

    COMMIT = auto()
    DENY = auto()
    EDITED = auto()
    WITH_NETWORK = auto()
    UNCONFINED = auto()


@dataclass(frozen=True)
class ApprovalDecision:
    """A person's answer."""

    approved: bool
    edited: str | None = None
    """The arguments as the person changed them, raw JSON; with `approved`, judged and rehearsed like new ones."""
    remark: str = ""
    """Why, in the person's words, for the model."""
    by: str = ""
    """Who decided, for example "console"."""
    scope: Scope = "once"
    """For how long; more than once counts only where a rule was offered."""
    rule: Rule | None = None
    """What the person made of the rule that was offered; None where they took it as it was."""
    unconfined: bool = False
    """The person lets this one command run outside of the sandbox; counts only where that was offered."""
    unanswered: bool = False
    """Nobody of those who were asked has answered, or will: it is no yes, and no person's no."""


def go_on_id(turn: int) -> str:
    """Return the id under which clients are asked whether a turn goes on."""
    return f"turn-{turn}-go-on"


def switch_id(turn: int) -> str:
    """Return the id under which clients are asked whether another model is asked."""
    return f"turn-{turn}-switch"


_LOOKED_AT: Final = 2000
_NAMED: Final = 5
_WIDTH: Final = 60
"""Names of a root that are looked at for a question, those that are told, and characters of one."""

Approve = Callable[[ApprovalQuestion], Awaitable[ApprovalDecision]]
"""Asks a person."""


class Approvals:
    """Asks about the calls of one session.

    Args:
        approve: asks a person; None where nobody is there, and then what would be asked is denied.
        escalation: whether a person may let one command run unconfined.
        root: the directory that it would run in.
        plans: says whether nothing may change now.
    """

    def __init__(
        self, approve: Approve | None, *, escalation: bool, root: str, plans: Callable[[], bool] = lambda: False
    ) -> None:
        self.attended = approve is not None
        """Whether somebody is there to be asked."""
        self._approve = approve
        self._escalation = escalation
        self._root = root
        self._plans = plans

    def escalates(self, call: CallStarted) -> bool:
        """Say whether a person may let a call run on the real system."""
        return self._escalation and call.tool in COMMANDS and not self._plans()

    async def ask_to_go_on(self, turn: int, rejected: int) -> ApprovalDecision | None:
        """Ask whether a turn goes on of which the person has rejected so many calls; None where nobody is there."""
        reason = f"you have rejected {rejected} calls of this turn"
        return await self.request(
            CallStarted(turn, go_on_id(turn), "go_on", "{}", False, "ask", reason), "turn", reason
        )

    async def request(
        self,
        call: CallStarted,
        stage: Stage,
        reason: str,
        effects: Effects | None = None,
        rule: Rule | None = None,
        context: CallContext | None = None,
        cannot_undo: str = "",
    ) -> ApprovalDecision | None:
        """Ask the person about a call; None where nobody is there. `context` is told while the call waits for them."""
        if self._approve is None:
            return None
        escalation = stage != "network" and self.escalates(call)
        if escalation and (exposed := _exposed(self._root)):
            reason = f"{reason} (outside of the sandbox it could also write {exposed}, which other programs obey)"
        if context is not None:
            context.awaiting_approval(begins=True)
        answer = await self._approve(ApprovalQuestion(call, stage, reason, effects, rule, escalation, cannot_undo))
        if context is not None:
            context.awaiting_approval(begins=False)
        edited = answer.edited if answer.approved and answer.edited != effective(call) else None
        return replace(
            answer,
            edited=edited,
            remark=answer.remark.strip(),
            scope=answer.scope if rule is not None else "once",
            rule=answer.rule if rule is not None else None,
            unconfined=answer.approved and answer.unconfined and escalation and edited is None,
        )


def _exposed(root: str) -> str:
    """Return names directly in a root that other programs obey at once; empty where there are none."""
    try:
        with os.scandir(root) as entries:
            names = [entry.name for entry in islice(entries, _LOOKED_AT)]
    except OSError:
        return ""
    found = sorted(name for name in names if (row := obeyed(name)) is not None and row.level == "refused")
    return ", ".join([one_line(name, _WIDTH) for name in found[:_NAMED]] + ["and more"] * (len(found) > _NAMED))
