"""The settlement of a commit whose end nobody saw: a worker that restores takes it back, or finds it complete.

Rule: the journal, or the pack, says what was to be changed; nothing in the root does. Where no worker can say what
became of it, the outcome stays unknown.
"""

from collections.abc import Sequence
from typing import Final, Literal

import msgspec
import trio

from supervisor.display.escape import name
from supervisor.errors import WorkerDied, WorkerError
from supervisor.journal.facts import CallEnded, CallStarted
from supervisor.pool.pools import Pools
from supervisor.tools.catalog import unoffered
from supervisor.tools.outcomes import failed
from workers.changes.effects import Effects
from workers.wire import frames, messages

_TOOL: Final = "settle"
_PATIENCE_S: Final = 30.0
"""Seconds that it may take, also where the call was cancelled."""
_WORKERS: Final = 3
"""Workers that may end in it: what ended the commit's may end theirs. Each goes on where the last one stopped."""


class CommitFate(msgspec.Struct, frozen=True):
    """As `workers.restore.settlement.Settlement`."""

    fate: Literal["before", "after", "mixed"]
    others: tuple[str, ...] = ()


async def settle(pools: Pools, effects: Effects, pack: str) -> CommitFate | None:
    """Settle a commit; None where that cannot be done.

    Args:
        pools: the workers on its root.
        effects: that it was to have.
        pack: what was kept of it; empty if nothing was.
    """
    listed = effects.changes if not effects.left_out else ()
    for kept, changes in ((pack, ()), ("", listed)):
        if not (kept or changes):
            continue
        arguments = msgspec.json.encode({"pack": kept, "changes": changes})
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


def settled(call: CallStarted, unknown: CallEnded, found: CommitFate | None) -> CallEnded:
    """Return the end of a call whose commit was settled.

    Args:
        call: as it was started.
        unknown: its end, if that stays unknown.
        found: what became of it; None where nobody can say.
    """
    if found is None:
        return unknown
    if found.others or found.fate == "mixed":
        message = f"{unknown.content} What was done of it was taken back, but for: {_listed(found.others)}."
        return failed(call, "outcome_unknown", message)
    if found.fate == "before":
        return failed(call, "worker_crashed", "The commit was cut off, and taken back: nothing was changed.")
    said = "All its changes were made. What else it had to say was lost: its worker ended before it was told."
    return CallEnded(call.turn, call.call, call.tool, True, said)


def _listed(names: Sequence[str]) -> str:
    return "; ".join(map(name, names))


_decoder: Final = msgspec.json.Decoder(CommitFate)
