"""Texts about an undo: why it is refused, what it did, and what it left.

Rule: a refusal names the first paths that it is about, and what to do instead.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from workers.errors import ToolError
from workers.restore.restore_plan import RestorePlan
from workers.tree.root import shown
from workers.treediff.comparison import Difference
from workers.treediff.snapshot import spoken

_NAMED: Final = 10
"""Paths that a message names."""

_FORCE: Final = "Use --force to take it back all the same."


def judge(plan: RestorePlan, *, force: bool) -> None:
    """Raise what speaks against a plan.

    Raises:
        ToolError: `conflict`, or `too_large` where something was not kept.
    """
    if plan.blocked:
        told = _told(f'"{named(path)}" is a {kind} now' for path, kind in plan.blocked.items())
        raise ToolError("conflict", f"Directories are needed where something else is: {told}. Move it away.")
    if plan.changed and not force:
        told = _told(f'"{named(path)}": {why}' for path, why in plan.changed.items())
        message = f"It has changed since: {told}. {_FORCE}"
        raise ToolError("conflict", message, path=named(next(iter(plan.changed))))
    if plan.lost and not force:
        told = _told(f'"{named(path)}" ({size} bytes)' for path, size in plan.lost.items())
        message = (
            f"The old content was too large to keep, or could not be read: {told}. Use --force to restore the rest."
        )
        raise ToolError("too_large", message, path=named(next(iter(plan.lost))))


def remarks(plan: RestorePlan) -> Iterator[str]:
    """Say what is not restored."""
    stays = [path for path, step in plan.steps.items() if step.does == "stay"]
    for paths, why in (
        (stays, "Left standing, because others have put something there"),
        (list(plan.lost), "Left as it is, because the old content was not kept"),
        (plan.dead, "Not restored, because a socket or a device cannot be made again"),
    ):
        if paths:
            yield f"{why}: {_told(named(path) for path in paths)}."


def sentence(differences: Iterable[Difference]) -> str:
    """Say how much is restored and removed."""
    restored: Counter[bool] = Counter()
    removed: Counter[bool] = Counter()
    for _path, before, after, _inner in differences:
        seen = before if after is None else after
        counter = removed if after is None else restored
        counter[seen is not None and seen.state.kind == "dir"] += 1
    parts = [f"{word} {_counted(each)}" for word, each in (("restored", restored), ("removed", removed)) if each]
    return f"{', '.join(parts).capitalize()}."


def named(path: str) -> str:
    """Return a path as a message names it."""
    return shown(spoken(path)[0])


def _counted(counter: Counter[bool]) -> str:
    words = {False: ("file", "files"), True: ("directory", "directories")}
    return " and ".join(f"{count} {words[kind][count != 1]}" for kind, count in sorted(counter.items()))


def _told(items: Iterable[str]) -> str:
    each = list(items)
    more = f"; and {len(each) - _NAMED} more" if len(each) > _NAMED else ""
    return "; ".join(each[:_NAMED]) + more
