"""The table of a turn's states is the whole truth."""

import itertools
from typing import Final

import pytest

from supervisor.agent.turn import FOLLOWS, State, Turn
from tests.each_row import each_row

WAYS: Final = [
    ["Input", "Thinking", "Done"],
    ["Input", "Done"],
    ["Input", "Thinking", "Thinking", "Done"],
    ["Input", "Thinking", "ReviewAction", "Executing", "Finalizing", "Done"],
    ["Input", "Thinking", "ReviewAction", "Finalizing", "Finalizing", "ReviewAction", "Executing", "Done"],
    ["Input", "Finalizing", "ReviewAction", "Done"],
]

PAIRS: Final = list(itertools.product(State, State))


@each_row("way", WAYS, ids=["-".join(way) for way in WAYS])
def test_a_turn_may_go_this_way(way: list[str]) -> None:
    turn = Turn()
    assert [turn.state.value, *(turn.enter(State(name)).value for name in way[1:])] == way


@each_row(("first", "then"), PAIRS, ids=[f"{a.value}-{b.value}" for a, b in PAIRS])
def test_a_turn_goes_where_the_table_lets_it_and_nowhere_else(first: State, then: State) -> None:
    turn = Turn()
    turn.state = first
    if then in FOLLOWS[first]:
        assert turn.enter(then) is then
        return
    with pytest.raises(ValueError, match=f"cannot go from {first.value} to {then.value}"):
        turn.enter(then)
    assert turn.state is first


def test_every_state_but_the_last_leads_to_the_end() -> None:
    assert {state for state in State if State.DONE not in FOLLOWS[state]} == {State.DONE}
