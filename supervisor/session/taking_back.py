"""Calls that take back what other calls have changed: an undo of one, and a rewinding to the end of a turn. Pure.

Rule: each is a call of its own, decided by whoever asks for it. That a rewinding begins is recorded with its call, so
that talk and files go back together, or not at all.
"""

from collections.abc import Sequence

import msgspec

from supervisor.journal.facts import CallStarted, Rewound
from supervisor.undo.rewind_plan import RewindPlan
from supervisor.undo.undo_plan import REWIND, TOOL, UndoStep


class TakingBack(msgspec.Struct, frozen=True):
    """What is to be called."""

    tool: str
    arguments: str
    """JSON."""
    reason: str
    undoes: tuple[str, ...]
    rewound: Rewound | None = None
    """What is recorded with it, but for its call."""

    def facts(self, call: str, by: str) -> tuple[CallStarted, Sequence[Rewound]]:
        """Return the call's beginning, and what is recorded before it."""
        started = CallStarted(
            0, call, self.tool, self.arguments, True, "allow", self.reason, decided_by=by, rehearsed=True
        )
        return started, () if self.rewound is None else (msgspec.structs.replace(self.rewound, call=call, by=by),)


def undoing(step: UndoStep, *, force: bool) -> TakingBack:
    """Return the call that takes back another; with `force`, also where something has changed since."""
    arguments = msgspec.json.encode({"pack": step.pack, "force": force}).decode()
    return TakingBack(TOOL, arguments, f"a person takes back {step.call}", (step.call,))


def rewinding(plan: RewindPlan) -> TakingBack:
    """Return the call that takes back all that a plan says."""
    reason = f"a person goes back to the end of turn {plan.turn}"
    return TakingBack(REWIND, arguments_of(plan), reason, plan.undoes, Rewound(plan.turn))


def arguments_of(plan: RewindPlan, *, look: bool = False) -> str:
    """Return the arguments of the tool, JSON; with `look`, it only tells what it would do."""
    return msgspec.json.encode({"packs": plan.packs, **({"look": True} if look else {})}).decode()
