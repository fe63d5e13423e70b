"""Effects of a call as the journal keeps them. Pure.

Rule: they are enough to say later what was decided about; all of them stand in the undo pack. What is left out is
counted, and the digest stays that of all.
"""

from collections import Counter
from typing import Final, Literal, get_args

import msgspec

from supervisor.display.package_folders import folder_of
from supervisor.rules.install_effects import names_packages
from supervisor.rules.judge_effects import Verdict, count_changed
from workers.changes.diff import Diff, shortened
from workers.changes.effects import Change, Effects, What

CHANGES: Final = 200
"""Changes that the journal keeps."""

DIFFS: Final = 2**16
"""Characters of diffs that it keeps, in all."""

_LEFT_OUT: Final = "not recorded"

Judgement = Literal["allow", "ask", "deny", "unknown"]
JUDGED: Final[tuple[Judgement, ...]] = get_args(Judgement)


def recorded_effects(effects: Effects) -> Effects:
    """Return effects cut to what the journal keeps of them.

    What other programs obey comes before others, and lock files and manifests; after these, what lies in packages.
    """
    if len(effects.changes) <= CHANGES and sum(len(each.diff) for each in effects.changes) <= DIFFS:
        return effects
    by_weight = sorted(effects.changes, key=_rank)
    left_out: Counter[What] = Counter(effects.left_out)
    left_out.update(each.what for each in by_weight[CHANGES:])
    remaining = DIFFS
    changes: list[Change] = []
    for each in sorted(by_weight[:CHANGES], key=lambda each: each.path):
        changes.append(each if len(each.diff) <= remaining else _with_less(each, remaining))
        remaining -= len(changes[-1].diff)
    return msgspec.structs.replace(effects, changes=tuple(changes), left_out=dict(left_out))


def _with_less(change: Change, room: int) -> Change:
    """Return a change with so much of its difference as there is room for, cut between lines."""
    kept = shortened(Diff(change.diff, 0), room)
    words = f"{kept.left_out} more line{'s' * (kept.left_out > 1)} not recorded" if kept.text else _LEFT_OUT
    said = "; ".join(filter(None, (change.diff_left_out, words)))
    return msgspec.structs.replace(change, diff=kept.text, diff_left_out=said)


def _rank(change: Change) -> tuple[bool, ...]:
    within = bool(folder_of(change.path))
    return within, not names_packages(change.path), within or not change.protected, not change.level


def of_recorded(verdict: Verdict, effects: Effects | None) -> tuple[Judgement, str]:
    """Return what a verdict comes to, and why: to allow a part of the effects is not to allow them all."""
    if verdict.decision == "allow" and effects is not None and effects.left_out:
        known = f"{len(effects.changes)} of {count_changed(effects)} changes are recorded"
        return "unknown", f"{known}; for those, {verdict.reason}"
    return verdict.decision, verdict.reason
