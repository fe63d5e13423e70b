"""The cap on the workers of all pools together: bounds those that have nothing to do.

Rule: a call has its worker in any case. Where it needs one more and the cap is reached, the idle worker that was used
longest ago is retired for it, whosever pool it is in; where all are busy, hold a proposal, or are about to start, the
call's worker is one over the cap, and leaves, or another idle one does, once it has nothing to do. No spare is started
beyond the cap.
"""

from itertools import count
from typing import Protocol


class Retirable(Protocol):
    """The part of a slot that the cap knows."""

    used: int
    """When its worker was last released, in the cap's counting."""

    @property
    def idle(self) -> bool:
        """Whether nothing is lost, and no call refused, where its worker is retired now."""

    def retire(self) -> None:
        """Let the worker end by itself; calls `WorkerCap.leave`."""


class WorkerCap:
    """Counts the slots of all pools that share it.

    Args:
        most: workers that are kept; none are ended for it by default.
        spares: whether there are any.
    """

    def __init__(self, most: float = float("inf"), *, spares: bool = True) -> None:
        self.most = most
        self.spares = spares
        self.uses = count(1)
        """Numbers the releases of workers, in their order."""
        self._slots: set[Retirable] = set()

    @property
    def reached(self) -> bool:
        """Whether one more would be one too many."""
        return len(self._slots) >= self.most

    def enter(self, slot: Retirable) -> None:
        """Count a slot that is about to be filled."""
        self._slots.add(slot)

    def leave(self, slot: Retirable) -> None:
        """Forget a slot whose worker has been told to leave, or has ended."""
        self._slots.discard(slot)

    def trim(self, room: int = 0) -> None:
        """Retire the idle workers that were used longest ago, until there is room for so many more, or none is idle."""
        while len(self._slots) + room > self.most:
            slot = min((each for each in self._slots if each.idle), key=lambda each: each.used, default=None)
            if slot is None:
                return
            slot.retire()
