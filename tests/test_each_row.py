"""Rows in one test fail by name, each of them, and hide nothing."""

import inspect
from collections.abc import Callable

import pytest

from tests.each_row import each_row


def odd(value: int, tried: list[int]) -> None:
    tried.append(value)
    if value == 4:
        with pytest.raises(ValueError):  # noqa: PT011 - there is none
            pass
    assert value % 2


def test_all_rows_are_tried_and_those_that_fail_are_named() -> None:
    tried: list[int] = []
    with pytest.raises(BaseExceptionGroup, match="odd fails in some of 5 rows") as failed:
        each_row("value", range(1, 6))(odd)(tried=tried)
    assert tried == [1, 2, 3, 4, 5]
    assert [each.__notes__ for each in failed.value.exceptions] == [["in the row 2"], ["in the row 4"]]


def test_where_all_rows_hold_nothing_is_said() -> None:
    each_row("value", (1, 3))(odd)(tried=[])


def nothing(value: int, more: str) -> None:
    """Take two values."""


def skipping(value: int) -> None:
    if value > 1:
        pytest.skip("not here")


def test_a_test_is_skipped_where_all_its_rows_are() -> None:
    each_row("value", (1, 2))(skipping)()
    with pytest.raises(pytest.skip.Exception):
        each_row("value", (2, 3))(skipping)()


NAMED = {
    "values": (None, "in the row 2, 'a'"),
    "ids": (["one"], "in the row one"),
    "what makes ids": (ascii, "in the row 2, 'a'"),
}


@pytest.mark.parametrize(("ids", "told"), NAMED.values(), ids=NAMED)
def test_a_row_is_called_as_by_pytest(ids: list[str] | Callable[[object], str] | None, told: str) -> None:
    def fails(value: int, more: str) -> None:
        assert not more

    with pytest.raises(BaseExceptionGroup) as failed:
        each_row("value, more", [(2, "a")], ids)(fails)()
    assert failed.value.exceptions[0].__notes__ == [told]


@pytest.mark.parametrize(("rows", "ids"), [([(1,)], None), ([(1, "a")], ["one", "two"])], ids=["values", "ids"])
def test_a_row_of_another_length_fails(rows: list[tuple[object, ...]], ids: list[str] | None) -> None:
    with pytest.raises((BaseExceptionGroup, ValueError)):
        each_row("value, more", rows, ids)(nothing)()


def test_only_fixtures_are_asked_of_pytest() -> None:
    assert list(inspect.signature(each_row("value", ())(odd)).parameters) == ["tried"]


@each_row("first", "ab")
@each_row(("second", "third"), [(1, 2), (3, 4)])
def test_tables_multiply(first: str, second: int, third: int, request: pytest.FixtureRequest) -> None:
    assert (first in "ab", third - second) == (True, 1)
    seen = request.session.stash.setdefault(SEEN, [])
    seen.append((first, second))
    assert first + str(second) != "b3" or seen == [("a", 1), ("a", 3), ("b", 1), ("b", 3)]


SEEN = pytest.StashKey[list[tuple[str, int]]]()
