"""Figures that a soak prints: percentiles, the slope of what should be flat, a table.

Rule: pure.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

_ENOUGH: Final = 8
"""Points below which a slope says nothing."""


class Row(NamedTuple):
    """One line of the table. `good` is None where nothing is demanded."""

    name: str
    value: str
    good: bool | None = None


def at(samples: Sequence[float], share: float) -> float | None:
    """Return the sample below which a share of them lies; None of none."""
    ordered = sorted(samples)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else None


def slope(points: Sequence[tuple[float, float]]) -> float | None:
    """Return the slope of the line that is nearest to the points by least squares; None of too few of them."""
    if len(points) < _ENOUGH:
        return None
    many = len(points)
    x, y = sum(each[0] for each in points) / many, sum(each[1] for each in points) / many
    spread = sum((each[0] - x) ** 2 for each in points)
    return sum((each[0] - x) * (each[1] - y) for each in points) / spread if spread else None


def table(rows: Sequence[Row]) -> list[str]:
    """Return the lines of a table."""
    name, value = max(len(row.name) for row in rows), max(len(row.value) for row in rows)
    words = {True: "  ok", False: "  NOT SO", None: ""}
    return [f"{row.name:<{name}}  {row.value:>{value}}{words[row.good]}".rstrip() for row in rows]
