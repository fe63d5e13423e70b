"""One attempt to run a call that may change something: what is known and decided of it so far, and the fact of that.

Rule: what is decided is a fact before it is done. The journal keeps enough of the effects to say later what was decided
about; all of them stand in the undo pack. What is left out is counted, and the digest stays that of all.
"""

from collections import Counter
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Final

import msgspec

from supervisor.journal.facts import CallDecided, CallStarted, effective
from supervisor.rules.match import RuleVerdict
from supervisor.rules.rule import Rule, sentence
from supervisor.tools.approval import ApprovalDecision
from supervisor.tools.call_context import CallContext
from supervisor.tools.catalog import Offer
from workers.changes.effects import Change, Effects, What

CHANGES: Final = 200
"""Changes that the journal keeps."""

DIFFS: Final = 2**16
"""Characters of diffs that it keeps, in all."""

_LEFT_OUT: Final = "not recorded"
_UNDECIDED: Final = RuleVerdict("ask", "", None)


class Next(Enum):
    """The state that a change goes to once it is decided about."""

    COMMIT = auto()
    DENY = auto()
    EDITED = auto()
    WITH_NETWORK = auto()
    UNCONFINED = auto()


@dataclass
class ChangeAttempt:
    """A call as it is run now. It is tried again with other arguments, with a network, or as it was."""

    call: CallStarted
    offer: Offer
    context: CallContext
    undoes: str = ""
    """The call that this one takes back."""
    network: bool = False
    """A person lets it use the profile's network."""
    written_by_person: bool = False
    """A person has written exactly these arguments, and what they come to says no more."""
    lost: int = 0
    """Rehearsals that were lost with their worker."""
    waited_s: float = 0.0
    """Seconds that people have taken for their answers."""
    effects: Effects | None = None
    """What its rehearsal would change; None before it, and where there is none."""
    verdict: RuleVerdict = _UNDECIDED
    approval: ApprovalDecision | None = None
    """The person's answer, if one was asked."""
    rule: Rule | None = None
    """What a yes for longer than once allows, where that was offered."""

    def show(self, text: str) -> None:
        """Show what the tool prints."""
        self.context.output(self.call.call, text)

    def again(self, *, lost: bool = False, network: bool = False) -> "ChangeAttempt":
        """Return the next attempt: after a lost rehearsal, or with the network."""
        return ChangeAttempt(
            msgspec.structs.replace(self.call, again=True),
            self.offer,
            self.context,
            self.undoes,
            self.network or network,
            self.written_by_person,
            self.lost + lost,
            self.waited_s,
        )

    def record(self, *, committed: bool, **more: Any) -> None:
        """Make durable what was decided; `more` are other fields of `CallDecided`.

        Raises:
            JournalError: it cannot be, and so must not be done.
        """
        approval, rule = self.approval, self.verdict.rule
        decided = CallDecided(
            self.call.turn,
            self.call.call,
            self.verdict.decision,
            self.verdict.reason,
            committed,
            recorded_effects(self.effects) if self.effects is not None else None,
            approval.approved if approval is not None else None,
            approval.remark if approval is not None else "",
            approval.by if approval is not None else "",
            covered_by=sentence(rule) if rule is not None else "",
            network=self.network,
            undoes=self.undoes,
        )
        self.context.record(msgspec.structs.replace(decided, **more))


def raw_arguments(call: CallStarted) -> bytes:
    """Return a call's arguments as a worker is sent them."""
    return (effective(call) or "{}").encode("utf-8", "surrogatepass")


def recorded_effects(effects: Effects) -> Effects:
    """Return effects cut to what the journal keeps of them; protected paths come before others."""
    if len(effects.changes) <= CHANGES and sum(len(each.diff) for each in effects.changes) <= DIFFS:
        return effects
    by_weight = sorted(effects.changes, key=lambda each: not each.protected)
    left_out: Counter[What] = Counter(effects.left_out)
    left_out.update(each.what for each in by_weight[CHANGES:])
    remaining = DIFFS
    changes: list[Change] = []
    for each in sorted(by_weight[:CHANGES], key=lambda each: each.path):
        remaining -= len(each.diff)
        fits = remaining >= 0 or not each.diff
        changes.append(each if fits else msgspec.structs.replace(each, diff="", diff_left_out=_LEFT_OUT))
    return msgspec.structs.replace(effects, changes=tuple(changes), left_out=dict(left_out))
