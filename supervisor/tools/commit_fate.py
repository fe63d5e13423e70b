"""The fate of a commit whose end nobody saw: a worker that restores takes it back, or finds it complete.

Rule: the worker compares the root with what was to be changed, which the journal and the pack say, and so what is said
here is what is there. Where none can compare it the outcome is unknown; where somebody else has changed so much of it
since that neither is so, each name is told.
"""

from collections.abc import Iterable
from typing import Final, Literal

import msgspec
import trio

from supervisor.display.escape import name
from supervisor.errors import WorkerDied, WorkerError
from supervisor.journal.facts import CallEnded, CallStarted
from supervisor.pool.pools import Pools
from supervisor.tools.catalog import unoffered
from supervisor.tools.outcomes import failed, with_notes
from workers.changes.effects import Effects
from workers.wire import frames, messages

_TOOL: Final = "settle"
_PATIENCE_S: Final = 120.0
"""Seconds that it may take, also where the call was cancelled."""
_WORKERS: Final = 3
"""Workers that may end in it: what ended the commit's may end theirs. Each goes on where the last one stopped."""
_CHANGES: Final = 200
"""Changes that are sent; the pack has them all."""


class CommitFate(msgspec.Struct, frozen=True):
    """As `workers.restore.settlement.Settlement`."""

    fate: Literal["before", "after", "mixed"]
    others: tuple[str, ...] = ()
    made: tuple[str, ...] = ()
    undone: tuple[str, ...] = ()

    @property
    def is_undone(self) -> bool:
        """Whether everything is as if it had never begun."""
        return self.fate == "before" and not self.others


async def settle(pools: Pools, number: int, effects: Effects, pack: str) -> CommitFate | None:
    """Settle a commit; None where that cannot be done.

    Args:
        pools: the workers on its root.
        number: of the call; 0 where the journal does not have it.
        effects: that it was to have.
        pack: what was kept of it; empty if nothing was.
    """
    if effects.left_out and not (number or pack):
        return None  # of a part of the names nobody knows but by the number that the rest is like it
    changes = [msgspec.structs.replace(each, diff="") for each in effects.changes[:_CHANGES]]
    for kept in dict.fromkeys((pack, "")):  # a pack may be gone
        if not (kept or changes):
            continue
        arguments = msgspec.json.encode({"number": number, "pack": kept, "changes": changes})
        with trio.move_on_after(_PATIENCE_S) as scope:
            scope.shield = True
            try:
                answer = await _answer(pools, arguments)
            except (WorkerError, frames.FrameTooLarge):
                return None
            if isinstance(answer, messages.Done):
                return _decoder.decode(answer.content)
    return None


async def _answer(pools: Pools, arguments: bytes) -> messages.Answer:
    """Return what a worker says of a commit; another one is asked where it ends itself.

    Raises:
        WorkerError: none can say.
    """
    offer, left = unoffered(_TOOL), _WORKERS
    while True:
        left -= 1
        try:
            return await pools.pool(offer.category).call(offer.name, arguments, effect=True)
        except WorkerDied:
            if not left:
                raise


def settled(
    call: CallStarted, why: str, unknown: CallEnded, found: CommitFate | None, said: CallEnded | None = None
) -> CallEnded:
    """Return the end of a call whose commit was settled.

    Args:
        call: as it was started.
        why: what cut it off, a sentence.
        unknown: its end, if that stays unknown.
        found: what became of it; None where nobody can say.
        said: its end if all of it is made; None where that is not known.
    """
    if found is None:
        return unknown
    since = f" Somebody else has changed since: {_names(found.others)}." if found.others else ""
    if found.fate == "mixed":
        told = (
            (found.made, "as it was to be"),
            (found.undone, "as before"),
            (found.others, "neither, for somebody else changed it"),
        )
        words = "; ".join(f"{_names(names)}: {what}" for names, what in told if names)
        return failed(call, "outcome_unknown", f"{why} What could be taken back was. Now is {words}.")
    if found.fate == "before":
        undone = "Nothing was changed: what it was to change is as before."
        return failed(call, "worker_crashed", f"{why} {undone}{since} Do it again.")
    made = f"{why} All its changes were made.{since}"
    if said is None:
        return CallEnded(call.turn, call.call, call.tool, True, f"{made} What else it had to say is lost.")
    return with_notes(said, made)


def _names(names: Iterable[str]) -> str:
    return ", ".join(map(name, names))


_decoder: Final = msgspec.json.Decoder(CommitFate)
