"""Events of a turn that clients are shown, and the context that records and shows what a call does.

Rule: an event is shown at once and is gone, unless it is a fact, which is durable by then.
"""

from collections.abc import Callable
from dataclasses import dataclass

from supervisor.agent.models.model import Progress
from supervisor.agent.states import State, Turn
from supervisor.journal.facts import Fact
from supervisor.tools.partial_output import PartialOutput


@dataclass(frozen=True)
class CallOutput:
    """A piece of what a running tool prints, for people to watch."""

    call: str
    text: str


Event = State | Progress | CallOutput | Fact
"""In the order in which they happen."""


class TurnCallContext:
    """Records and shows what the calls of one turn do while they run."""

    def __init__(
        self, record: Callable[..., None], show: Callable[[Event], None], partial_output: PartialOutput, turn: Turn
    ) -> None:
        self.record = record
        self._show = show
        self._partial_output = partial_output
        self._turn = turn

    def output(self, call: str, text: str) -> None:
        """Show what a call's tool prints, and keep it for the outcome of a call that is cut off."""
        self._partial_output.add(call, text)
        self._show(CallOutput(call, text))

    def awaiting_approval(self, *, begins: bool) -> None:
        """Show that a person is asked about a call on its way, or has answered."""
        self._show(self._turn.enter(State.REVIEW_ACTION if begins else State.EXECUTING))
