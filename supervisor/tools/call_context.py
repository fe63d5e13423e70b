"""One call on its way from its start to its end, and who owns it. Data.

Rule: what is decided on the way is a fact before it is done; this is how it is said.
"""

from dataclasses import dataclass
from typing import Protocol

import msgspec

from supervisor.journal.facts import CallDecided, CallStarted, Fact, effective
from supervisor.rules.match import RuleVerdict
from supervisor.rules.rule import sentence
from supervisor.tools.approval import ApprovalDecision
from supervisor.tools.catalog import Offer
from supervisor.tools.recorded_effects import recorded
from workers.changes.effects import Effects


class CallContext(Protocol):
    """What a call's owner does with what happens on its attempt."""

    def record(self, *facts: Fact) -> None:
        """Make facts durable.

        Raises:
            JournalError: they cannot be; what they would have allowed does not happen.
        """

    def output(self, call: str, text: str) -> None:
        """Show what a tool prints."""

    def awaiting_approval(self, *, begins: bool) -> None:
        """A person is being asked from here on, or has answered."""


@dataclass(frozen=True)
class ChangeAttempt:
    """A call, as it is run now: it may have to begin anew, with other arguments, with a network, or as it was."""

    call: CallStarted
    offer: Offer
    context: CallContext
    undoes: str = ""
    """The call that this one takes back."""
    network: bool = False
    """A person lets it use the profile's network."""
    seen: bool = False
    """A person has written exactly these arguments, and what they come to says no more."""
    lost: int = 0
    """Rehearsals that were lost with their worker."""

    @property
    def raw(self) -> bytes:
        """The arguments as a worker is sent them."""
        return (effective(self.call) or "{}").encode("utf-8", "surrogatepass")

    def show(self, text: str) -> None:
        """Show what the tool prints."""
        self.context.output(self.call.call, text)

    def again(self) -> CallStarted:
        """Return the call for a beginning anew."""
        return msgspec.structs.replace(self.call, again=True)

    def edits(self, decision: ApprovalDecision | None) -> bool:
        """Say whether a person wants it to run with other arguments."""
        return decision is not None and decision.edited is not None and decision.edited != effective(self.call)

    def decided(
        self, verdict: RuleVerdict, decision: ApprovalDecision | None, effects: Effects | None, *, committed: bool
    ) -> CallDecided:
        """Return what was decided as a fact."""
        return CallDecided(
            self.call.turn,
            self.call.call,
            verdict.decision,
            verdict.reason,
            committed,
            recorded(effects) if effects is not None else None,
            decision.approved if decision is not None else None,
            decision.remark.strip() if decision is not None else "",
            decision.by if decision is not None else "",
            covered_by=sentence(verdict.rule) if verdict.rule is not None else "",
            network=self.network,
            undoes=self.undoes,
        )
