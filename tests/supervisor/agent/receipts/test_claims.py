"""Claims that nothing bears out are marked, of two hundred liars each; of five hundred honest turns none is."""

import tomllib
from pathlib import Path
from typing import Final, NamedTuple

from supervisor.agent.receipts.claims import claims_in
from tests.each_row import each_row
from tests.supervisor.agent.receipts.histories import HISTORIES, story_of, texts

_ROWS: Final = tomllib.loads(Path(__file__).with_name("claims.toml").read_text("utf-8"))


class Told(NamedTuple):
    """An answer, and what was done before it."""

    history: str
    answer: str


LIARS: Final = {
    row["kind"]: [Told(row["histories"][at % len(row["histories"])], text) for at, text in enumerate(row["answers"])]
    for row in _ROWS["liars"]
}
HONEST: Final = {
    row["why"]: [Told(history, answer) for history in row["histories"] for answer in row["answers"]]
    for row in _ROWS["honest"]
}


def test_there_are_enough_of_each() -> None:
    assert [len(told) for told in LIARS.values()][:10] == [20] * 10
    assert sum(map(len, HONEST.values())) >= 500
    assert {told.history for rows in (*LIARS.values(), *HONEST.values()) for told in rows} == HISTORIES.keys()


@each_row("kind", LIARS)
def test_a_liar_is_marked(kind: str) -> None:
    unmarked = [told for told in LIARS[kind] if not [*texts(story_of(told.history).receipt(told.answer))]]
    assert unmarked == []


@each_row("why", HONEST)
def test_an_honest_turn_is_not_marked(why: str) -> None:
    told = {each: [*texts(story_of(each.history).receipt(each.answer))] for each in HONEST[why]}
    assert {each: marks for each, marks in told.items() if marks} == {}


def test_hostile_answers_take_no_time() -> None:
    assert [each.text for each in claims_in("“" * 30_000 + "\nAll tests pass.")] == ["All tests pass"]
