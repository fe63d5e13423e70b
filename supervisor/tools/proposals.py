"""The rule that a person is offered, who does not want to be asked about the same again.

Rule: pure. It covers what is asked about, and as little more as can be said in a few patterns: exactly the programs,
the places of the changes, deletions apart, a number, and an end. It never covers the root as a whole, and there is none
where no rule may decide.
"""

import datetime as dt
from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

from supervisor.patterns import LIMIT, literal
from supervisor.rules import Rule
from supervisor.tools.effects import count, essential, tried_network
from workers.effects import Effects

_PATTERNS: Final = 8
"""As many as a person can read."""
_DEPTH: Final = 12
"""Names in a pattern at most, where there are many paths."""
_ANY: Final = LIMIT
"""Names that no path has."""
_LEAST: Final = 10
"""Files that a rule allows at least."""
_FEBRUARY_29: Final = (2, 29)


def proposal(programs: Sequence[str] | None, effects: Effects, today: dt.date) -> Rule | None:
    """Return the rule that would have covered these effects; None where no rule may, or none can be said shortly.

    Args:
        programs: those of the command; None where they are not known.
        effects: what it would change.
        today: a year from then the rule expires.
    """
    if not programs or effects.left_out or not effects.changes or any(each.protected for each in effects.changes):
        return None
    changes = essential(effects)
    writes = _patterns([each.path for each in changes if each.change.what != "deleted"])
    deletes = _patterns([each.path for each in changes if each.change.what in {"deleted", "replaced"}])
    if writes is None or deletes is None:
        return None
    return Rule(
        "allow",
        tuple(dict.fromkeys(programs)),
        writes,
        deletes,
        _round(count(effects)),
        tried_network(effects),
        until=_in_a_year(today),
    )


class _Place(NamedTuple):
    """A path by its names, or all beneath it."""

    names: tuple[str, ...]
    beneath: bool

    def pattern(self) -> str:
        return literal("/".join(self.names)) + ("/**" if self.beneath else "")


def _patterns(paths: Sequence[str]) -> tuple[str, ...] | None:
    """Return patterns for these paths, a few; None where there is no way but to name the root.

    A path that is alone in its directory stands for itself, several in one for all beneath it. As long as these
    are too many, those that have a directory in common become all beneath it, the deepest ones first.
    """
    depth = _DEPTH if len(paths) > _PATTERNS else _ANY
    places = {_place(path, depth) for path in paths}
    siblings = Counter(place.names[:-1] for place in places if not place.beneath)
    together = {names for names, number in siblings.items() if names and number > 1}
    places = {_Place(place.names[:-1], True) if place.names[:-1] in together else place for place in places}
    while len(places) > _PATTERNS and depth:
        places = _joined(places, depth)
        depth -= 1
    places = _outermost(places)
    patterns = tuple(sorted(place.pattern() for place in places if place.names))
    usable = len(places) <= _PATTERNS and len(patterns) == len(places) and all(len(each) <= LIMIT for each in patterns)
    return patterns if usable else None


def _place(path: str, depth: int) -> _Place:
    """Return a path of at most `depth` names; where it has more, or a pattern cannot say it, where it lies."""
    names = path.split("/", depth)[:depth]
    beneath = len(names) == depth and path.count("/") >= depth
    for at, name in enumerate(names):
        if not name.isascii() and any("\ud800" <= char <= "\udfff" for char in name):
            return _Place(tuple(names[:at]), True)
    return _Place(tuple(names), beneath)


def _joined(places: set[_Place], depth: int) -> set[_Place]:
    """Return the places, of which those that have their first `depth` names in common are one."""
    common = Counter(place.names[:depth] for place in places if len(place.names) >= depth)
    return {_Place(place.names[:depth], True) if common[place.names[:depth]] > 1 else place for place in places}


def _outermost(places: set[_Place]) -> set[_Place]:
    """Return the places that are not beneath another."""
    trees = {place.names for place in places if place.beneath}
    return {
        place
        for place in places
        if not any(place.names[:length] in trees for length in range(1, len(place.names) + (not place.beneath)))
    }


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
