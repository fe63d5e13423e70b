"""Names that a rewinding leaves as others have made them.

Rule: what others have changed stays, with the directories that it needs, and so does what could only come back where
theirs is now. Each is named with its reason.
"""

from typing import Final

from workers.changes.effects import Effects
from workers.restore.restore_plan import RestorePlan, above_of, named
from workers.tool import Result

_DOES: Final = ("restore", "copy")
"""What changes a name."""
_LISTED: Final = 1000
"""Names that are told of what would be changed, and of what would be left."""


def leave_changed(plan: RestorePlan) -> dict[str, str]:
    """Let a plan leave what others have changed; return why, by path."""
    left = {**plan.changed, **dict.fromkeys(plan.unlisted, "its access list names others")}
    for path, step in plan.steps.items():
        if step.does in _DOES and any(_is_shut(plan, above) for above in above_of(path)):
            left.setdefault(path, "its directory is another by now")
        if step.does in _DOES and path in left:
            step.does = "leave"
    for path, step in plan.steps.items():
        if (step.entry.before is not None) if step.does in _DOES else step.now is not None:
            outer = [plan.steps[above] for above in above_of(path) if _goes(plan, above)]
            if any(each.now is not None and each.now.state.kind != "dir" for each in outer):
                step.does, left[path] = "leave", "others had put it into a directory that goes"
                continue
            for each in outer:
                each.does = "stay"
    return left


def _goes(plan: RestorePlan, above: str) -> bool:
    """Say whether a directory is to be none."""
    step = plan.steps.get(above)
    if step is None or step.does not in _DOES:
        return False
    return step.entry.before is None or step.entry.before.kind != "dir"


def _is_shut(plan: RestorePlan, above: str) -> bool:
    """Say whether a directory is none now, and will not be one again."""
    step = plan.steps.get(above)
    if step is None:
        return above in plan.blocked
    return step.does == "leave" and (step.now is None or step.now.state.kind != "dir")


def looked(effects: Effects | None, plan: RestorePlan, left: dict[str, str]) -> Result:
    """Return what would be changed and what would be left, name by name."""
    changes = effects.changes if effects is not None else ()
    lost = dict.fromkeys((*plan.lost, *plan.dead), "its old content was not kept, or cannot be made again")
    return {
        "changes": [[each.path, each.what] for each in changes[:_LISTED]],
        "total": sum(effects.totals.values()) if effects is not None else 0,
        "left": [[named(path), why] for path, why in [*(left | lost).items()][:_LISTED]],
        "left_total": len(left | lost),
    }
