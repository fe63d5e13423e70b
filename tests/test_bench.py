"""The benchmark's comparison of two commits: what is named slower, and what is noise."""

from xml.etree import ElementTree as ET

import pytest

from scripts.benchmarks.comparison import compare, comparison_table
from scripts.benchmarks.figures import Figure, Unit
from scripts.benchmarks.growth.curves import Point, curve, drawing


def rounds(unit: Unit, before: list[float], after: list[float]) -> list[tuple[list[Figure], list[Figure]]]:
    return [
        ([Figure("call", "strongroom", was, unit, 1)], [Figure("call", "strongroom", now, unit, 1)])
        for was, now in zip(before, after, strict=True)
    ]


@pytest.mark.parametrize(
    ("unit", "before", "after", "verdict"),
    [
        pytest.param("ms", [10, 11, 10], [12, 12, 13], "slower", id="more time"),
        pytest.param("ms", [12, 12, 13], [10, 11, 10], "faster", id="less time"),
        pytest.param("ms", [10, 13, 10], [12, 12, 13], "", id="the rounds overlap"),
        pytest.param("ms", [100, 100, 101], [107, 107, 107], "", id="seven percent"),
        pytest.param("calls/s", [20, 21, 20], [15, 15, 15], "slower", id="fewer a second"),
        pytest.param("calls/s", [15, 15, 15], [20, 21, 20], "faster", id="more a second"),
    ],
)
def test_a_figure_is_named_where_it_moved_by_more_than_noise(
    unit: Unit, before: list[float], after: list[float], verdict: str
) -> None:
    (compared,) = compare(rounds(unit, before, after))
    assert compared.verdict == verdict


def test_figures_of_one_side_alone_are_left_out() -> None:
    assert compare([([Figure("call", "old", 1, "ms", 1)], [Figure("call", "new", 1, "ms", 1)])]) == []


def test_what_got_slower_ends_the_table() -> None:
    lines = list(comparison_table(compare(rounds("ms", [10, 10], [15, 15])), "0123456789abcdef"))
    assert lines[-2:] == ["1 of 1 figures are more than 8% slower:", "  1.50 times: call: strongroom"]


def test_a_curve_is_drawn_with_each_of_its_sizes() -> None:
    points = [Point(10, 1.0, 3), Point(1_000, 1.1, 3), Point(10_000, 2.0, 3)]
    rows = curve("journal", "verify & more", "facts", "ms", points)
    texts = {each.text for each in ET.fromstring(drawing(rows)).iter("{http://www.w3.org/2000/svg}text")}
    assert {"journal: verify & more (ms)", "10", "1,000", "10,000", "1.1"} <= texts


def test_a_curve_is_flat_where_the_largest_size_costs_no_more_than_its_limit_grows() -> None:
    rising = [Point(10, 1.0, 3), Point(1_000, 4.0, 3)]
    in_proportion = [Point(10, 1.0, 3, limit=1.0), Point(1_000, 4.0, 3, limit=4.0)]
    assert [curve("a", "b", "c", "ms", points)[-1].reached for points in (rising, in_proportion)] == [False, True]
