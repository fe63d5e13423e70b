"""What a failure comes to where there is a list of models: which rest, and what is left where none replies."""

from typing import Final

import pytest

from supervisor.agent.fallbacks import Failure, Fallbacks, ModelChoice, least_bad
from supervisor.agent.models.immediate import ImmediateModel
from supervisor.agent.models.model import Model, Reply
from supervisor.agent.transcript import Transcript
from supervisor.agent.turn import SuspendedTurn
from supervisor.config.config_keys import WaitingConfig
from supervisor.errors import ConfigError, ModelError
from supervisor.journal.facts import Fact, ModelSwitched, Replied, SessionChanged, TurnEnded, TurnStarted, TurnSuspended
from tests.each_row import each_row
from workers.wire.messages import Context

NOW: Final = 1000.0


def _answer(*_: object) -> Reply:
    return Reply.at_once("yes", [], {}, "")


OWN: Final = ImmediateModel("own", _answer)
OTHER: Final = ImmediateModel("other", _answer)
DOWN: Final = ModelError("overloaded", "busy")


def limited(until: float, since: float = NOW) -> SuspendedTurn:
    return SuspendedTurn(TurnSuspended(1, "limit", "slow down", until, since=since))


def choice(*facts: Fact, opens: tuple[Model, ...] = (OTHER,)) -> ModelChoice:
    """Return the choice of a session with these facts, and a patience of 30 seconds."""

    def opened(name: str) -> Model:
        found = next((each for each in opens if each.name == name), None)
        if found is None:
            raise ConfigError(f"No model {name!r}.")
        return found

    async def record(*_: Fact) -> None:
        return

    fallbacks = Fallbacks(("own", "other"), opened, WaitingConfig(patience_s=30.0), lambda: NOW)
    return ModelChoice(fallbacks, Transcript([TurnStarted(1, "go"), *facts]), record)


RESTS: Final[dict[str, tuple[Failure, Model, float | None]]] = {
    "down": (DOWN, OWN, NOW + 60),
    "no credit": (ModelError("permission", "no credit"), OWN, NOW + 60),
    "a wrong key": (ModelError("authentication", "no"), OWN, None),
    "a wrong key of another": (ModelError("authentication", "no"), OTHER, NOW + 60),
    "a short wait": (limited(NOW + 30), OWN, None),
    "a long one": (limited(NOW + 31), OWN, NOW + 31),
    "short waits that add up": (limited(NOW + 10, NOW - 21), OWN, NOW + 10),
    "a wait beyond the longest": (limited(0.0), OWN, NOW + 60),
    "a budget": (SuspendedTurn(TurnSuspended(1, "budget", "spent")), OWN, None),
}


@each_row(("failure", "model", "until"), RESTS.values(), ids=RESTS)
def test_another_model_may_do_and_this_one_rests(failure: Failure, model: Model, until: float | None) -> None:
    tried = choice()
    assert tried.rests(model, failure, OWN) is (until is not None)
    assert tried.fallbacks.resting.get(model.name) == until


LEFT: Final[dict[str, tuple[list[Failure], int]]] = {
    "its failure": ([DOWN], 0),
    "a wait before a failure": ([DOWN, limited(NOW + 9)], 1),
    "the shorter wait": ([limited(NOW + 9), limited(NOW + 5)], 1),
    "a wait before one for a person's word": ([limited(0.0), limited(NOW + 9)], 1),
}


@pytest.mark.parametrize(("failures", "left"), LEFT.values(), ids=LEFT)
def test_where_no_model_replies_the_turn_comes_to(failures: list[Failure], left: int) -> None:
    assert least_bad({str(number): each for number, each in enumerate(failures)}) is failures[left]


def test_where_none_may_be_waited_for_each_failure_is_told() -> None:
    left = least_bad({"own": DOWN, "other": ModelError("invalid_request", "no")})
    assert isinstance(left, ModelError)
    assert (left.kind, str(left)) == ("overloaded", "busy no")


def test_what_another_model_has_counted_is_no_measure_for_the_own() -> None:
    told = Replied(1, 0, [{"type": "text", "text": "yes"}], "end_turn", {"input_tokens": 900, "output_tokens": 9})
    back: list[Fact] = [TurnEnded(1, "ok", "yes"), TurnStarted(2, "more")]
    for facts, measured in (([told, *back], True), ([SWITCHED, told], True), ([SWITCHED, told, *back], False)):
        assert (choice(*facts).transcript.measured is not None) is measured


def test_what_was_counted_stays_a_measure_where_the_same_model_is_chosen_again() -> None:
    told = Replied(1, 0, [{"type": "text", "text": "yes"}], "end_turn", {"input_tokens": 900, "output_tokens": 9})
    own, other = (SessionChanged("p", name, Context("/"), ()) for name in ("own", "other"))
    rows: list[tuple[list[Fact], bool]]
    rows = [([own, told, own], True), ([own, told, other], False), ([own, SWITCHED, told, own], False)]
    for facts, measured in rows:
        assert (choice(*facts).transcript.measured is not None) is measured


SWITCHED: Final = ModelSwitched(1, "own", "other", "busy", True, "someone")


@pytest.mark.parametrize(
    ("facts", "opens", "asked"),
    [
        ([SWITCHED], (OTHER,), OTHER),
        ([SWITCHED], (), OWN),
        ([SWITCHED, TurnSuspended(1, "limit", "slow down")], (OTHER,), OWN),
        ([SWITCHED, ModelSwitched(1, "other", "own", "gone")], (OTHER,), OWN),
    ],
    ids=["until its end", "unless it is gone", "or until it is suspended", "or it is down too"],
)
async def test_a_switched_turn_asks_the_other(facts: list[Fact], opens: tuple[Model, ...], asked: Model) -> None:
    assert await choice(*facts, opens=opens).model(OWN) is asked
