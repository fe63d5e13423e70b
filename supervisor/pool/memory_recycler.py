"""Workers that hold too much memory between two calls, or have run out of something: found, to be replaced in peace.

Rule: a worker is looked at after a call, or a moment later, and never more often than that: one look costs half of what
a call does. It is a sign of wear and no failure. The pool decides whether it can spare the worker.
"""

import logging
from typing import TYPE_CHECKING, Final

from supervisor.pool.worker_usage import held
from workers.wire import messages

if TYPE_CHECKING:
    from supervisor.pool.worker_slot import WorkerSlot

_log: Final = logging.getLogger("strongroom.pool")

_PAUSE: Final = 0.25
"""Seconds between two looks at the same worker."""
_MEGABYTE: Final = 2**20


def spent(keeper: "WorkerSlot", answer: messages.Answer) -> bool:
    """Say whether a worker's answer is that it ran out of something: it may lack what it could not have then."""
    if not isinstance(answer, messages.Failed) or answer.kind != "resource_limit":
        return False
    _log.info("worker %s[%d] ran out of something, and is replaced", keeper.spec.category, keeper.number)
    return True


class MemoryRecycler:
    """Of the workers of one pool.

    Args:
        soft_memory_mb: What one may hold between two calls; 0 is any amount.
    """

    def __init__(self, soft_memory_mb: int) -> None:
        self._most: Final = soft_memory_mb * _MEGABYTE
        self._looked: dict[WorkerSlot, float] = {}
        self._unseen: set[WorkerSlot] = set()

    def after_call(self, keeper: "WorkerSlot", now: float) -> float:
        """Note that a worker has done a call; return when to look at it: now, later, or (infinite) not at all."""
        if not self._most:
            return float("inf")
        self._unseen.add(keeper)
        return max(now, self.due(keeper))

    def due(self, keeper: "WorkerSlot") -> float:
        """Return when a worker may be looked at; infinite where nothing has happened since it was."""
        return self._looked.get(keeper, 0.0) + _PAUSE if keeper in self._unseen else float("inf")

    def worn(self, keeper: "WorkerSlot", now: float) -> bool:
        """Say whether a worker that waits for a call holds too much; look only where it is time to."""
        if keeper.process is None or self.due(keeper) > now:
            return False
        self._unseen.discard(keeper)
        self._looked[keeper] = now
        found = held(keeper.process.pid)
        if found > self._most:
            name = f"{keeper.spec.category}[{keeper.number}]"
            _log.info("worker %s holds %d MB, over its soft limit", name, found // _MEGABYTE)
        return found > self._most

    def keep(self, keeper: "WorkerSlot") -> None:
        """Look at a worker that is too worn once more, since it could not be spared now."""
        self._unseen.add(keeper)

    def forget(self, keeper: "WorkerSlot") -> None:
        """Drop what is known of a worker that has ended."""
        self._unseen.discard(keeper)
        self._looked.pop(keeper, None)
