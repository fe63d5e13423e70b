"""Uploads of the commands of one session: what they have said to the hosts of their profile. A fold over facts.

Rule: a run with a network has sent what its proxy has counted; where nobody has counted, it has sent all that it might.
One that was cut lets the next one send more, if the person says yes to that.

Facts ignored: BatchStarted, BudgetChanged, BudgetReserved, CallStarted, Compacted, ContentsRefused, FaultsAllowed,
InstructionsRead, ModeChanged, ModelRetried, ModelSwitched, OptionChosen, Replied, ReplyCut, Rewound, RuleRevoked,
SessionChanged, SessionDeleted, SessionOpened, ToolsChanged, TurnEnded, TurnQuestioned, TurnResumed, TurnStarted,
TurnSuspended, Unreadable.
"""

from collections.abc import Sequence
from typing import Final

from supervisor.display.proposed_effects import size, traffic
from supervisor.journal.facts import CallDecided, CallEnded, Fact
from workers.changes.effects import UPLOAD, Traffic

UPLOADED: Final = "uploaded"
"""The detail of an outcome that says how many bytes a command had sent when it was ended."""
_GROWTH: Final = 64
_LIMIT: Final = 2**40


class Uploads:
    """What was sent and received, in all, and how much the next command may send."""

    def __init__(self) -> None:
        self.up = 0
        self.commands = 0
        self.limit = UPLOAD
        """Bytes that the next command may send."""
        self._places: dict[str, tuple[int, int]] = {}
        self._running: dict[str, int] = {}

    def apply(self, fact: Fact) -> None:
        match fact:
            case CallDecided(effects=effects) if effects is not None and effects.traffic:
                self._running.pop(fact.call, None)
                self._take(effects.traffic)
            case CallDecided(network=True, committed=False) if _begins(fact):
                self._settle(fact.call)
                self._running[fact.call] = self.limit
            case CallEnded() if fact.ok:
                self._running.pop(fact.call, None)
            case CallEnded():
                self._settle(fact.call, fact.details.get(UPLOADED))
            case _:
                return

    def told(self) -> str:
        """Return how much was sent, as a clause; "" where nothing was."""
        if not self.up:
            return ""
        places = traffic([Traffic(place, up, down) for place, (up, down) in self._places.items()])
        noun = "command" if self.commands == 1 else "commands"
        named = f" ({places})" if places else ""
        return f"{size(self.up)} have been sent by {self.commands} {noun} of this session{named}"

    def _take(self, told: Sequence[Traffic]) -> None:
        self.commands += 1
        for each in told:
            up, down = self._places.get(each.place, (0, 0))
            self._places[each.place] = up + each.up, down + each.down
            self.up += each.up
        if any(each.cut for each in told):
            self.limit = min(self.limit * _GROWTH, _LIMIT)

    def _settle(self, call: str, counted: object = None) -> None:
        """Count a run of which no effects are told."""
        might = self._running.pop(call, None)
        if might is not None:
            self.up += counted if isinstance(counted, int) else might
            self.commands += 1


def _begins(fact: CallDecided) -> bool:
    """Say whether a run with a network begins: by a person's yes, or before an install by a rule."""
    return fact.edited is None and (fact.approved is True or (fact.effects is None and fact.decision == "allow"))
