"""What the journal keeps of a call's effects. Pure.

Rule: enough to say later what was decided about; the whole stands in what was kept for undo. What is left out is
counted, and the digest stays that of all of it.
"""

from collections import Counter
from typing import Final

import msgspec

from workers.changes.effects import Change, Effects, What

CHANGES: Final = 200
"""Changes that are kept."""

DIFFS: Final = 2**16
"""Characters of diffs that are kept, in all."""

_LEFT_OUT: Final = "not recorded"


def recorded(effects: Effects) -> Effects:
    """Return effects cut to what the journal keeps of them; protected paths come before others."""
    if len(effects.changes) <= CHANGES and sum(len(each.diff) for each in effects.changes) <= DIFFS:
        return effects
    by_weight = sorted(effects.changes, key=lambda each: not each.protected)
    kept = sorted(by_weight[:CHANGES], key=lambda each: each.path)
    left_out: Counter[What] = Counter(effects.left_out)
    left_out.update(each.what for each in by_weight[CHANGES:])
    room = DIFFS
    changes: list[Change] = []
    for each in kept:
        room -= len(each.diff)
        fits = room >= 0 or not each.diff
        changes.append(each if fits else msgspec.structs.replace(each, diff="", diff_left_out=_LEFT_OUT))
    return msgspec.structs.replace(effects, changes=tuple(changes), left_out=dict(left_out))
