"""Figures of a benchmark: their goals, and the table of them.

Rule: a figure is a median unless its name says otherwise, `n` says of how many, and a ratio compares two figures
of one run whose measurements took turns. Figures from different runs or machines say nothing about each other.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

import msgspec

Unit = Literal["us", "ms", "MiB", "kB", "calls/s", "items/s", ""]


class Goal(msgspec.Struct, frozen=True):
    """What is wanted: of the figure itself, or of its ratio to the limit."""

    limit: float
    of: Literal["value", "ratio"] = "value"
    at_least: bool = False

    def holds(self, value: float, ratio: float | None) -> bool:
        """Say whether the goal is reached."""
        judged = value if self.of == "value" else ratio
        return judged is not None and (judged >= self.limit if self.at_least else judged <= self.limit)

    def __str__(self) -> str:
        sign = ">=" if self.at_least else "<="
        return f"{'x ' if self.of == 'ratio' else ''}{sign} {self.limit:g}"


class Figure(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line of the table."""

    benchmark: str
    name: str
    value: float
    unit: Unit
    n: int
    ratio: float | None = None
    """How many times the limit's figure this is."""
    goal: Goal | None = None
    reached: bool | None = None


def figure(
    benchmark: str, name: str, value: float, unit: Unit, n: int, *, limit: float | None = None, goal: Goal | None = None
) -> Figure:
    """Make a figure; `limit` is what its ratio is to."""
    ratio = value / limit if limit else None
    return Figure(benchmark, name, value, unit, n, ratio, goal, goal.holds(value, ratio) if goal else None)


def at(samples: Sequence[float], share: float) -> float:
    """Return the sample below which `share` of them lie: 0.5 is the median."""
    ordered = sorted(samples)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def table(figures: Iterable[Figure]) -> Iterator[str]:
    """Yield the lines of the table."""
    yield f"{'':54} {'':>9} {'':7} {'ratio':>6} {'goal':>10} {'':4} {'n':>6}"
    heading = ""
    for each in figures:
        if each.benchmark != heading:
            heading = each.benchmark
            yield heading
        value = f"{each.value:9.0f}" if abs(each.value) >= 1000 else f"{each.value:9.3g}"
        ratio = "" if each.ratio is None else f"{each.ratio:.2f}"
        verdict = {None: "", True: "ok", False: "over"}[each.reached]
        yield f"  {each.name:52} {value} {each.unit:7} {ratio:>6} {each.goal or ''!s:>10} {verdict:4} {each.n:6}"
