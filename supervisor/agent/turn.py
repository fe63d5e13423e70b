"""A turn: its states and which may follow which, the events that clients are shown, and the context of its calls.

Rule: the table below is the whole truth; `Turn` refuses anything else, so a client may rely on it. An event is shown at
once and is gone, unless it is a fact, which is durable by then.

    Input -> Thinking -> ReviewAction <-> Executing -> Finalizing -> Done
                 |             |                         |   ^
                 |             +-> Finalizing            |   |  more tool calls:
                 +-> Done                                +---+  ReviewAction again

A turn that goes no further for now is Suspended; when it goes on, it begins with Input as one that is taken up again.
"""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from supervisor.agent.models.model import Progress
from supervisor.errors import StrongroomError
from supervisor.journal.facts import CallEnded, CallStarted, Fact, TurnSuspended
from supervisor.tools.outcome_bounds import RESULTS_AT_MOST, size_of, within
from supervisor.tools.partial_output import PartialOutput


class State(Enum):
    """Where a turn is. The value is what clients are shown."""

    INPUT = "Input"
    """The user's line is recorded."""
    THINKING = "Thinking"
    """The model has been asked."""
    REVIEW_ACTION = "ReviewAction"
    """The model wants tools; policy, or a person, decides about each call."""
    EXECUTING = "Executing"
    """What was allowed runs in the workers."""
    FINALIZING = "Finalizing"
    """The model reads the results."""
    SUSPENDED = "Suspended"
    """The turn goes no further for now, and nothing of it runs."""
    DONE = "Done"
    """The turn has its end: an answer, an error, or cancelled."""


FOLLOWS: Final = {
    State.INPUT: {State.THINKING, State.REVIEW_ACTION, State.FINALIZING, State.SUSPENDED, State.DONE},
    State.THINKING: {State.REVIEW_ACTION, State.FINALIZING, State.THINKING, State.SUSPENDED, State.DONE},
    State.REVIEW_ACTION: {State.EXECUTING, State.FINALIZING, State.SUSPENDED, State.DONE},
    State.EXECUTING: {State.REVIEW_ACTION, State.FINALIZING, State.SUSPENDED, State.DONE},
    State.FINALIZING: {State.REVIEW_ACTION, State.FINALIZING, State.SUSPENDED, State.DONE},
    State.SUSPENDED: {State.DONE},
    State.DONE: set[State](),
}
"""Thinking and Finalizing may follow themselves when the model pauses; Finalizing follows Thinking when the calls of a
reply that was cut are not made; ReviewAction follows Executing while a person decides about what a call would change. A
turn that is taken up again goes from Input to where it was: to ReviewAction if a person had not decided yet, to
Finalizing after its tools."""


class Turn:
    """The state of one turn; `results` are the bytes of its results so far."""

    def __init__(self, results: int = 0) -> None:
        self.state = State.INPUT
        self.results = results

    def enter(self, state: State) -> State:
        """Go to `state`.

        Raises:
            ValueError: the table does not allow it.
        """
        if state not in FOLLOWS[self.state]:
            raise ValueError(f"a turn cannot go from {self.state.value} to {state.value}")
        self.state = state
        return state


class SuspendedTurn(StrongroomError):
    """The turn goes no further for now, and stays open; `fact` says why."""

    def __init__(self, fact: TurnSuspended) -> None:
        super().__init__(fact.why)
        self.fact = fact


@dataclass(frozen=True)
class CallOutput:
    """A piece of what a running tool prints, for people to watch."""

    call: str
    text: str


Event = State | Progress | CallOutput | Fact
"""In the order in which they happen."""


@dataclass(frozen=True)
class TurnCallContext:
    """Records and shows what the calls of one turn do while they run."""

    record: Callable[..., Coroutine[Any, Any, None]]
    show: Callable[[Event], None]
    partial_output: PartialOutput
    turn: Turn

    def output(self, call: str, text: str) -> None:
        """Show what a call's tool prints, and keep it for the outcome of a call that is cut off."""
        self.partial_output.add(call, text)
        self.show(CallOutput(call, text))

    def bounded(self, call: CallStarted, ended: CallEnded) -> CallEnded:
        """Return a call's end with no more of its result than the turn has room for, and take that room."""
        kept = within(call, ended, RESULTS_AT_MOST - self.turn.results)
        self.turn.results += size_of(kept)
        return kept

    def awaiting_approval(self, *, begins: bool) -> None:
        """Show that a person is asked about a call on its way, or has answered."""
        self.show(self.turn.enter(State.REVIEW_ACTION if begins else State.EXECUTING))
