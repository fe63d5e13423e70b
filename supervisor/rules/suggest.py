"""The rule that a person is offered, who does not want to be asked about the same again.

Rule: pure. It covers what is asked about, and as little more as can be said in a few patterns: exactly the programs,
the places of the changes, deletions apart, a number, and an end. It never covers the root as a whole, and there is none
where no rule may decide. All else waits while it is made: the number of changes is bounded, and each costs little.
"""

import datetime as dt
import heapq
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from supervisor.rules.patterns import LIMIT, literal
from supervisor.rules.rule import Rule
from supervisor.rules.touched import count_changed, essential_changes, tried_network
from workers.changes.effects import Effects

MOST: Final = 5000
"""Changes of which a person can still say that they want them always; a few hundredths of a second."""
_PATTERNS: Final = 8
"""As many as a person can read."""
_DEPTH: Final = 12
"""Names in a pattern at most, where there are many paths."""
_ANY: Final = LIMIT
"""Names that no path has."""
_LEAST: Final = 10
"""Files that a rule allows at least."""
_FEBRUARY_29: Final = (2, 29)
_NO_TEXT: Final = re.compile("[\ud800-\udfff]")
"""Bytes that are not UTF-8, which no pattern can say."""


def suggested_rule(programs: Sequence[str] | None, effects: Effects, today: dt.date) -> Rule | None:
    """Return the rule that would have covered these effects; None where no rule may, or none can be said shortly.

    Args:
        programs: those of the command; None where they are not known.
        effects: what it would change.
        today: a year from then the rule expires.
    """
    if not programs or effects.left_out or not 0 < len(effects.changes) <= MOST:
        return None
    if any(each.protected for each in effects.changes):
        return None
    changes = essential_changes(effects)
    writes = _patterns([each.path for each in changes if each.change.what != "deleted"])
    deletes = _patterns([each.path for each in changes if each.change.what in {"deleted", "replaced"}])
    if writes is None or deletes is None:
        return None
    return Rule(
        "allow",
        tuple(dict.fromkeys(programs)),
        writes,
        deletes,
        _round(count_changed(effects)),
        tried_network(effects),
        until=_in_a_year(today),
    )


class _CoveredPath(NamedTuple):
    """A path by its names, or all beneath it."""

    names: tuple[str, ...]
    beneath: bool

    def pattern(self) -> str:
        return literal("/".join(self.names)) + ("/**" if self.beneath else "")


def _patterns(paths: Sequence[str]) -> tuple[str, ...] | None:
    """Return patterns for these paths, a few; None where there is no way but to name the root.

    A path that is alone in its directory stands for itself, several in one for all beneath it. Where these are too
    many, those that have a directory in common become all beneath it, the deepest ones first.
    """
    places = {_place(path, _DEPTH if len(paths) > _PATTERNS else _ANY) for path in paths}
    siblings = Counter(place.names[:-1] for place in places if not place.beneath)
    together = {names for names, number in siblings.items() if names and number > 1}
    places = {_CoveredPath(place.names[:-1], True) if place.names[:-1] in together else place for place in places}
    few = _outermost(_joined(places) if len(places) > _PATTERNS else list(places))
    patterns = tuple(sorted(place.pattern() for place in few if place.names))
    usable = len(few) <= _PATTERNS and len(patterns) == len(few) and all(len(each) <= LIMIT for each in patterns)
    return patterns if usable else None


def _place(path: str, depth: int) -> _CoveredPath:
    """Return a path of at most `depth` names; where it has more, or a pattern cannot say it, where it lies."""
    names = path.split("/", depth)[:depth]
    beneath = len(names) == depth and path.count("/") >= depth
    if _NO_TEXT.search(path):
        for at, name in enumerate(names):
            if _NO_TEXT.search(name):
                return _CoveredPath(tuple(names[:at]), True)
    return _CoveredPath(tuple(names), beneath)


def _joined(places: Iterable[_CoveredPath]) -> list[_CoveredPath]:
    """Return what these places, which are too many, become: those that have the most names in common are one.

    In their order, neighbours have the most in common. So what is cut where neighbours have the least becomes a few
    groups, and each group is all beneath what it has in common: nothing where all begin with other names.
    """
    ordered = sorted(places)
    common = [_in_common(one.names, next_one.names) for one, next_one in pairwise(ordered)]
    depth = heapq.nsmallest(_PATTERNS, common)[-1]
    joined = [ordered[0]]
    for place, number in zip(ordered[1:], common, strict=True):
        if number >= depth:
            joined[-1] = _CoveredPath(joined[-1].names[:number], True)
        else:
            joined.append(place)
    return joined


def _in_common(one: tuple[str, ...], other: tuple[str, ...]) -> int:
    """Return how many names these begin with that are the same."""
    for at, (name, its) in enumerate(zip(one, other, strict=False)):
        if name != its:
            return at
    return min(len(one), len(other))


def _outermost(places: Sequence[_CoveredPath]) -> list[_CoveredPath]:
    """Return the places, a few, that are not beneath another."""
    trees = [place for place in places if place.beneath and place.names]
    return [
        place
        for place in places
        if not any(place.names[: len(tree.names)] == tree.names and place != tree for tree in trees)
    ]


def _round(number: int) -> int:
    """Return the first round number that is not below this one: 10, 20, 50, 100 and so on."""
    power = 1
    while True:
        for digit in (1, 2, 5):
            if digit * power >= max(number, _LEAST):
                return digit * power
        power *= 10


def _in_a_year(today: dt.date) -> dt.date:
    day = 28 if (today.month, today.day) == _FEBRUARY_29 else today.day
    return today.replace(year=today.year + 1, day=day)
