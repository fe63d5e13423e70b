"""The promise of an undo: what of a call's changes could not be brought back, known before they are made.

Rule: pure; one function decides, from the effects and from what a pack has room for. What it says is asked about,
recorded with the decision, and told wherever undo is spoken of. It walks as the worker that keeps the old content does
(`UpperLayer.originals`, `FileProposal.originals`), and where something is not known, it is taken for the worse. What is
new loses nothing.
"""

from collections.abc import Container, Iterator
from typing import Final, NamedTuple

from supervisor.display.proposed_effects import size
from supervisor.rules.change_kinds import exact_path
from supervisor.rules.rule import quoted_path
from workers.changes.effects import Effects, NodeState, is_folded
from workers.wire import messages

OFF: Final = "nothing is kept, because total_mb is 0 in [undo]"

_TOLD: Final = 5
"""Losses that are named."""
_NAMED_LISTS: Final = 36
"""Bytes of an access list that names nobody, at most; four entries of acl(5)."""
_LIST: Final = "system.posix_acl_"


class PackBudget(NamedTuple):
    """Bytes of old content that a pack may have, of one file and of all together."""

    each: int
    total: int


class Loss(NamedTuple):
    """One name that an undo could not make what it was. `path` is shown escaped by whoever shows it."""

    path: str
    why: str


def losses(effects: Effects, budget: PackBudget) -> Iterator[Loss]:
    """Yield what an undo could not bring back; a path of "" stands for changes that are not listed."""
    left = budget.total
    for change in effects.changes:
        before = change.before
        if before is None:
            continue
        why = ", ".join(change.loses)
        if before.kind == "file":
            fits = before.size <= min(budget.each, left)
            left -= before.size if fits else 0
            if not (fits and before.digest) and not _stays(before, change.after):
                why = _content_lost(before, budget, fits)
        elif before.kind in {"socket", "device"}:
            why = f"a {before.kind} cannot be made again"
        if why or any(_names_others(name, value) for name, value in before.attributes.items()):
            yield Loss(exact_path(change), why or "its access list names others")
    told = is_folded(effects) and not any(each.unread or each.old_largest > budget.each for each in effects.folded)
    fits = told and sum(each.old_size for each in effects.folded) <= left
    if any(what != "added" for what in effects.left_out) and not fits:
        yield Loss("", "what is not listed may be too large to keep")


def promise(effects: Effects, budget: PackBudget | None, refusal: str = "") -> str:
    """Return why a call cannot be undone, or not all of it, as a clause; empty where an undo can be had.

    Args:
        effects: of its rehearsal.
        budget: None where nothing is kept.
        refusal: why no undo can be made here, whatever is kept; empty where one can.
    """
    if budget is None or refusal:
        return f"it cannot be undone: {refusal or OFF}" if replaces(effects) else ""
    found = list(losses(effects, budget))
    if not found:
        return ""
    told = [f"{quoted_path(path)} ({why})" if path else why for path, why in found[:_TOLD]]
    more = [f"{len(found) - _TOLD} more"] if len(found) > _TOLD else []
    whole = len(found) == len(effects.changes) and not effects.left_out
    return f"{'it' if whole else 'part of it'} cannot be undone: {', '.join([*told, *more])}"


def replaces(effects: Effects) -> bool:
    """Say whether anything that was there would be another, or gone."""
    return any(what != "added" for what in effects.totals)


def breaks_promise(part: messages.Original, lost: Container[str]) -> bool:
    """Say whether what a worker keeps lacks a content that was not told to be lost."""
    path = part.raw_path.decode("utf-8", "surrogateescape") if part.raw_path else part.path
    missing = part.before is not None and part.before.kind == "file" and not part.kept
    return missing and not _stays(part.before, part.after) and path not in lost and "" not in lost


def _stays(before: NodeState | None, after: NodeState | None) -> bool:
    """Say whether the content is there also afterwards, and known to be the same."""
    return before is not None and after is not None and bool(before.digest) and before.digest == after.digest


def _content_lost(before: NodeState, budget: PackBudget, fits: bool) -> str:
    if fits:
        return "its old content cannot be read"
    alone = before.size > min(budget)
    return f"its old content, {size(before.size)}, is too large to keep{'' if alone else ' with the rest'}"


def _names_others(attribute: str, value: bytes) -> bool:
    """Say whether it is an access list for others by name: what restores it knows no user but its own.

    A long value stands as its digest, which is longer, too.
    """
    return attribute.startswith(_LIST) and len(value) > _NAMED_LISTS
