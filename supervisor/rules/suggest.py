"""Suggests the rule that a person may make while they approve a command, so as not to be asked about the same again.

Rule: pure. It covers what is asked about and little more: exactly the programs, up to 8 exact paths or else the
directories that they share, deletions apart, a number, and an end. It never covers protected paths or the whole root.
"""

import datetime as dt
import re
from collections.abc import Sequence
from os.path import commonpath
from typing import Final

from supervisor.rules.judge_effects import count_changed, essential_changes, tried_network
from supervisor.rules.rule import LIMIT, Rule, literal
from workers.changes.effects import Effects

MOST: Final = 5000
"""Changes of which a person can still say that they want them always."""
_PATTERNS: Final = 8
"""As many as a person can read."""
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


def _patterns(paths: Sequence[str]) -> tuple[str, ...] | None:
    """Return a few patterns for these paths; None where there is no way but to name the root, or many.

    Few paths stand for themselves. Of many, those with the same first name become all beneath what they share.
    """
    groups: dict[str, list[str]] = {}
    for path in paths:
        groups.setdefault(path if len(paths) <= _PATTERNS else path.partition("/")[0], []).append(path)
    patterns = tuple(sorted({_pattern(group) for group in groups.values()})) if len(groups) <= _PATTERNS else ("",)
    return patterns if all(0 < len(each) <= LIMIT for each in patterns) else None


def _pattern(paths: Sequence[str]) -> str:
    """Return the pattern for one path, or for all beneath the directory that several share; "" for the root."""
    shared = commonpath((min(paths), max(paths)))
    if any(not f"{path}/".startswith(f"{shared}/") for path in paths):
        shared = shared.rpartition("/")[0]
    if no_text := _NO_TEXT.search(shared):
        shared = shared[: no_text.start()].rpartition("/")[0]
    if not shared:
        return ""
    if len(paths) == 1 and shared == paths[0]:
        return literal(shared)
    return f"{literal(shared)}{'/' if shared in paths else '/**'}"


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
