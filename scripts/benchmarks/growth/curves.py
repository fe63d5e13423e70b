"""Curves: one cost measured at several sizes, whether it stays flat, and a drawing of it.

Rule: every value of a curve is per unit of work (a turn, a fact, a file, a megabyte), so that a flat line means that
the program does no more than the work. Where the work itself must cost more as it grows, a limit is measured at each
size, and the smallest size's value is scaled by it before the two are compared.
"""

import math
from collections.abc import Mapping, Sequence
from html import escape
from itertools import groupby
from types import MappingProxyType
from typing import Final, NamedTuple

from scripts.benchmarks.figures import Figure, Goal, Unit, figure

FLAT: Final = 1.25
"""Times that the largest size may cost per unit of work what the smallest does."""

_NO_GOALS: Final[Mapping[int, Goal]] = MappingProxyType({})
_WIDTH, _HEIGHT = 420, 200
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 16, 40, 36


class Point(NamedTuple):
    """What one unit of work costs at one size; `limit` is what it costs there at least, where that grows too."""

    size: int
    value: float
    n: int
    limit: float | None = None


def curve(
    benchmark: str, what: str, of: str, unit: Unit, points: Sequence[Point], goals: Mapping[int, Goal] = _NO_GOALS
) -> list[Figure]:
    """Return a figure for each size, in order; the last has the goal of a flat curve, sizes before it may have others.

    Args:
        benchmark: its heading.
        what: is measured: "a turn", "verify, a fact".
        of: what the sizes count: "turns".
        unit: of the values.
        points: by size, the smallest first.
    """
    first, found = points[0], []
    for each in points:
        # the cost of the smallest size, scaled by what must grow, is what the ratio is to
        scale = each.limit / first.limit if each.limit and first.limit else 1.0
        found.append(
            figure(
                benchmark,
                f"{what}, {each.size:,} {of}",
                each.value,
                unit,
                each.n,
                limit=first.value * scale,
                goal=Goal(FLAT, of="ratio") if each is points[-1] else goals.get(each.size),
            )
        )
    return found


def drawing(figures: Sequence[Figure]) -> str:
    """Return an SVG with one small chart a curve, readable on light and dark ground."""
    charts = []
    for key, group in groupby(figures, lambda each: (each.benchmark, each.name.rpartition(", ")[0])):
        rows = list(group)
        if all(_size(each) for each in rows) and len(rows) > 1:
            charts.append(_chart(f"{key[0]}: {key[1]}", rows))
    columns = 3
    lines = -(-len(charts) // columns)
    placed = "\n".join(
        f'<g transform="translate({number % columns * _WIDTH},{number // columns * _HEIGHT})">{chart}</g>'
        for number, chart in enumerate(charts)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{columns * _WIDTH}" height="{lines * _HEIGHT}" '
        'font-family="sans-serif" font-size="11" fill="#808080" stroke="none">\n'
        f"{placed}\n</svg>\n"
    )


def _size(each: Figure) -> int:
    """Return the size that a curve's figure is for; 0 for another figure."""
    digits = each.name.rpartition(", ")[2].partition(" ")[0].replace(",", "")
    return int(digits) if digits.isdigit() else 0


def _chart(title: str, rows: Sequence[Figure]) -> str:
    sizes = [math.log10(_size(each)) for each in rows]
    most = max(each.value for each in rows) * 1.15 or 1.0
    span = sizes[-1] - sizes[0] or 1.0

    def place(size: float, value: float) -> tuple[float, float]:
        across = _LEFT + (size - sizes[0]) / span * (_WIDTH - _LEFT - _RIGHT - 40)
        return across, _HEIGHT - _BOTTOM - value / most * (_HEIGHT - _TOP - _BOTTOM)

    spots = [place(size, each.value) for size, each in zip(sizes, rows, strict=True)]
    path = " ".join(f"{across:.1f},{up:.1f}" for across, up in spots)
    floor = _HEIGHT - _BOTTOM
    parts = [
        f'<text x="8" y="20" font-weight="bold">{escape(title)} ({rows[0].unit})</text>',
        f'<line x1="{_LEFT}" y1="{floor}" x2="{_WIDTH - _RIGHT}" y2="{floor}" stroke="#808080"/>',
        f'<polyline points="{path}" fill="none" stroke="#2f7fd0" stroke-width="2"/>',
    ]
    for (across, up), each in zip(spots, rows, strict=True):
        parts += [
            f'<circle cx="{across:.1f}" cy="{up:.1f}" r="3" fill="#2f7fd0"/>',
            f'<text x="{across:.1f}" y="{up - 8:.1f}" text-anchor="middle">{each.value:.3g}</text>',
            f'<text x="{across:.1f}" y="{floor + 16}" text-anchor="middle">{_size(each):,}</text>',
        ]
    return "".join(parts)
