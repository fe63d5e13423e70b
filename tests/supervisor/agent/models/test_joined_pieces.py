"""Pieces that came together are shown together, in their order, and before anything else happens."""

from contextlib import suppress

from supervisor.agent.models.joined_pieces import JoinedPieces
from supervisor.agent.models.model import Progress, Retrying, TextDelta, ThoughtDelta

AGAIN = Retrying(1, "overloaded", "later", 0.0)


def test_pieces_of_one_read_are_one_and_of_two_are_two() -> None:
    shown: list[Progress] = []
    pieces = JoinedPieces(shown.append)
    for read in (["a", "b"], [], ["c"]):
        with pieces:
            for text in read:
                pieces.add(TextDelta(text))
    assert shown == [TextDelta("ab"), TextDelta("c")]


def test_what_is_of_another_kind_stands_between() -> None:
    shown: list[Progress] = []
    with JoinedPieces(shown.append) as pieces:
        for each in (ThoughtDelta("a"), ThoughtDelta("b"), TextDelta("c"), AGAIN, TextDelta("d"), TextDelta("e")):
            pieces.add(each)
    assert shown == [ThoughtDelta("ab"), TextDelta("c"), AGAIN, TextDelta("de")]


def test_what_came_before_an_error_is_shown() -> None:
    shown: list[Progress] = []
    with suppress(ValueError), JoinedPieces(shown.append) as pieces:
        pieces.add(TextDelta("a"))
        raise ValueError
    assert shown == [TextDelta("a")]
