"""The calls of an open turn that have no end yet, as the facts tell them. Pure.

Rule: what was decided about a call that is begun anew counts no longer as done: nothing of it was made. It is kept as
what may count again.

Facts ignored: BatchStarted, BudgetChanged, BudgetReserved, Compacted, ContentsRefused, FaultsAllowed, InstructionsRead,
ModeChanged, ModelRetried, ModelSwitched, OptionChosen, Replied, ReplyCut, Rewound, RuleRevoked, SessionChanged,
SessionDeleted, SessionOpened, ToolsChanged, TurnEnded, TurnQuestioned, TurnResumed, TurnStarted, TurnSuspended,
Unreadable.
"""

from supervisor.journal.facts import CallDecided, CallEnded, CallStarted
from supervisor.tools.outcomes import allowed, is_final


class OpenCalls:
    """Calls by id, until they have ended."""

    def __init__(self) -> None:
        self.started: dict[str, CallStarted] = {}
        self.decided: dict[str, CallDecided] = {}
        """What was decided last about their effects."""
        self.unmade: dict[str, CallDecided] = {}
        """What was decided of a commit that did not take place."""

    def apply(self, fact: CallStarted | CallDecided | CallEnded) -> tuple[CallStarted | None, CallDecided | None]:
        """Take one more fact into account; return how its call was started, and what was decided, until then."""
        call = fact.call
        started, decided = self.started.get(call), self.decided.get(call)
        match fact:
            case CallStarted():
                self.started[call] = fact
                if self.decided.pop(call, None) is not None and decided is not None and decided.committed:
                    self.unmade[call] = decided
            case CallDecided():
                self.decided[call] = fact
                if not fact.committed:
                    self.unmade.pop(call, None)
            case CallEnded():
                for calls in (self.started, self.decided, self.unmade):
                    calls.pop(call, None)
        return started, decided

    def clear(self) -> None:
        """Forget all: their turn has ended."""
        for calls in (self.started, self.decided, self.unmade):
            calls.clear()

    def is_undecided(self, call: str) -> bool:
        """Say whether a call was not started, or only rehearsed without an answer to what it would change."""
        started, decided = self.started.get(call), self.decided.get(call)
        if started is None:
            return True
        if not (started.rehearsed and allowed(started)):
            return False
        return decided is None or not (decided.committed or is_final(decided))
