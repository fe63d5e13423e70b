"""Finds workers that hold too much memory between two calls.

Rule: a worker is looked at after a call, or a moment later, and never more often than that: one look costs half of what
a call does. To hold much is no failure. The checkout decides whether it can spare the worker.
"""

import logging
from typing import Final

from supervisor.pool.worker_slot import WorkerSlot
from supervisor.pool.worker_usage import private_bytes

_log: Final = logging.getLogger("strongroom.pool")

_PAUSE: Final = 0.25
"""Seconds between two looks at the same worker."""
_MEGABYTE: Final = 2**20


class MemoryRecycler:
    """The memory of one pool's workers.

    Args:
        soft_memory_mb: one may hold so much between two calls.
    """

    def __init__(self, soft_memory_mb: int) -> None:
        self._limit: Final = soft_memory_mb * _MEGABYTE
        self._looked: dict[WorkerSlot, float] = {}
        self._changed: set[WorkerSlot] = set()

    def note_call(self, slot: WorkerSlot) -> None:
        """Remember that a worker has done a call since it was looked at."""
        self._changed.add(slot)

    def due(self, slot: WorkerSlot) -> float:
        """Return when a worker may be looked at; infinite where nothing has happened since it was."""
        return self._looked.get(slot, 0.0) + _PAUSE if slot in self._changed else float("inf")

    def is_over_limit(self, slot: WorkerSlot, now: float) -> bool:
        """Say whether a worker that waits for a call holds too much; look only where it is time to."""
        if slot.process is None or self.due(slot) > now:
            return False
        self._changed.discard(slot)
        self._looked[slot] = now
        found = private_bytes(slot.process.pid)
        if found > self._limit:
            name = f"{slot.spec.category}[{slot.number}]"
            _log.info("worker %s holds %d MB, over its soft limit", name, found // _MEGABYTE)
        return found > self._limit

    def forget(self, slot: WorkerSlot) -> None:
        """Drop what is known of a worker that has ended."""
        self._changed.discard(slot)
        self._looked.pop(slot, None)
