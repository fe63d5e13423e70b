"""Spending of one session: a fold over its facts. Pure.

Rule: never too little. A request whose end was not recorded counts with all that was reserved for it, since its server
bills it; so does one whose server does not say what it took. What is given back was reserved among these facts: before
them, it was counted elsewhere.

Facts ignored: BatchStarted, CallDecided, CallStarted, ContentsRefused, FaultsAllowed, InstructionsRead, ModeChanged,
ModelRetried, ModelSwitched, OptionChosen, ReplyCut, Rewound, RuleRevoked, SessionChanged, SessionDeleted,
SessionOpened, ToolsChanged, TurnQuestioned, TurnResumed, Unreadable.
"""

from supervisor.agent.amount import NOTHING, Amount, used_by
from supervisor.config.config_keys import BudgetConfig
from supervisor.journal.facts import (
    BudgetChanged,
    BudgetReserved,
    CallEnded,
    Compacted,
    Fact,
    Replied,
    TurnEnded,
    TurnStarted,
    TurnSuspended,
)


class Spending:
    """What a session and its last turn have used, with what is reserved."""

    def __init__(self) -> None:
        self.turn = NOTHING
        self.session = NOTHING
        self.changed: dict[str, BudgetConfig] = {}
        """Budgets that a person has given in this session, by what they are of: "turn" or "session"."""
        self._reserved = NOTHING

    @property
    def reserved(self) -> Amount:
        """What is reserved for a request whose reply is not recorded."""
        return self._reserved

    def apply(self, fact: Fact) -> None:
        match fact:
            case TurnStarted():
                self.turn = self._reserved = NOTHING
                self.changed.pop("turn", None)
            case BudgetReserved(tokens=tokens, cost=cost) if tokens >= 0 or self._reserved != NOTHING:
                amount = Amount(tokens, cost)
                self._add(amount)
                self._reserved = amount if tokens > 0 else NOTHING
            case Replied() | Compacted():
                self._add(used_by(fact, self._reserved).minus(self._reserved))
                self._reserved = NOTHING
            case TurnEnded() | TurnSuspended():
                self._reserved = NOTHING  # what it was for has got lost: it counts in full
            case CallEnded(turn=turn, seconds=seconds) if turn:
                self._add(Amount(ms=round(seconds * 1000)))
            case BudgetChanged(of=of, tokens=tokens, cost=money, seconds=seconds):
                self.changed[of] = BudgetConfig(tokens, money, seconds)
            case _:
                return

    def _add(self, amount: Amount) -> None:
        self.turn, self.session = self.turn.plus(amount), self.session.plus(amount)
