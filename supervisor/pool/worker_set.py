"""The workers of one pool: as many as are needed and one more, started, replaced, retired, stopped.

Rule: one_for_one: a worker's end concerns its own keeper alone, until there were too many within the period; then the
category is FAILED, and nothing is started until its pause is over. While a worker is about to start, or may not yet,
no other is added. Once the crew closes nothing is started at all.
"""

import logging
import random
from collections.abc import Callable
from typing import Final

import trio

from supervisor.errors import WorkerDied
from supervisor.pool.checkout import Checkout
from supervisor.pool.orphans import Orphans
from supervisor.pool.restart import Restarts
from supervisor.pool.spec import ChildSpec
from supervisor.pool.worker_slot import ConfinementRefusal, WorkerSlot, WorkerState

_log: Final = logging.getLogger("strongroom.pool")

_ON_THEIR_WAY: Final = frozenset({WorkerState.STARTING, WorkerState.BACKOFF})

_REAPED: Final = 1.0
"""Seconds that the kernel has to end what got SIGKILL; what is stuck in it is left behind."""


class WorkerSet:
    """Keeps the workers of one child spec.

    Args:
        spec: what to start.
        root_fd: as for `Pool`.
        orphans: as for `Pool`.
        chance: as for `Pool`.
    """

    def __init__(
        self, spec: ChildSpec, root_fd: int, orphans: Orphans | None = None, chance: Callable[[], float] = random.random
    ) -> None:
        self.spec = spec
        self.root_fd = root_fd
        self.orphans = orphans
        self.keepers: list[WorkerSlot] = []
        self.restarts = Restarts(spec.restart, chance)
        self.lending = Checkout(spec, self.restarts, self.grow)
        self.refused = ""
        """Why the last worker that ended would not serve, if that is how it ended."""
        self.closing = False
        self._started = 0
        self._nursery: trio.Nursery | None = None
        self._ended = trio.Event()

    async def run(self, task_status: trio.TaskStatus[None]) -> None:
        """Own the workers until cancelled or closed; then none is left."""
        if self.closing:
            task_status.started()
            return
        try:
            async with trio.open_nursery() as nursery:
                self._nursery = nursery
                nursery.start_soon(self.lending.sweeper.run)
                nursery.start_soon(self._retire_idle)
                self.grow()
                task_status.started()
        finally:
            self.closing = True
            self.lending.close("the pool has closed")
            self._ended.set()

    async def close(self) -> None:
        """Stop the workers in reverse order of their start, as OTP does, with one `stop_timeout` for all of them.

        Each is told by the end of its input, once the one before has left, or has had its share of the time. Those that
        are still there when the time is over get SIGTERM, and SIGKILL after `terminate_timeout`.
        """
        self.closing = True
        self.lending.close("the pool is closing")
        if self._nursery is None:
            return
        with trio.CancelScope(shield=True):
            patience = trio.current_time() + self.spec.stop_timeout
            with trio.move_on_at(patience + self.spec.terminate_timeout + _REAPED):
                leaving = tuple(reversed(self.keepers))
                for keeper in leaving:
                    keeper.retire(patience)
                    with trio.move_on_after(self.spec.stop_timeout / len(leaving)):
                        await keeper.stopped.wait()
                for keeper in leaving:
                    await keeper.stopped.wait()
            self._nursery.cancel_scope.cancel()
            await self._ended.wait()

    def grow(self) -> None:
        """Start one more keeper when the spare is missing and none is on its way."""
        leaving = sum(keeper.state is WorkerState.STOPPED for keeper in self.keepers)
        if len(self.keepers) - len(self.lending.held) - leaving > self.spec.workers:
            return  # first, because every call that waits comes by here
        if self._nursery is None or self.closing or self.restarts.failure is not None:
            return
        if any(keeper.state in _ON_THEIR_WAY for keeper in self.keepers):
            return
        keeper = WorkerSlot(self, self.spec, self._started)
        self._started += 1
        self.keepers.append(keeper)
        self._nursery.start_soon(keeper.run)

    # --- as the keepers report ------------------------------------------------------------------------------------

    def offer(self, keeper: WorkerSlot) -> None:
        """Take a worker that is ready for its first call."""
        if self.closing or keeper.state is not WorkerState.STARTING:
            return  # it was told to leave meanwhile
        self.restarts.failure = None
        self.lending.offer(keeper)
        if len(self.keepers) == 1:
            self.grow()  # the first one's spare

    def withdraw(self, keeper: WorkerSlot) -> None:
        """Let nobody have a worker whose process has ended."""
        if keeper.state is not WorkerState.STOPPED:
            keeper.state = WorkerState.BACKOFF
        self.lending.withdraw(keeper)

    async def lost(self, keeper: WorkerSlot, death: WorkerDied | ConfinementRefusal | OSError) -> None:
        """Return when the keeper may start its next process, or when it may not at all."""
        self.refused = str(death) if isinstance(death, ConfinementRefusal) else ""
        deliberate = isinstance(death, WorkerDied) and death.ordered in ("timeout", "cancelled")
        log = _log.info if deliberate else _log.warning
        log("worker %s[%d] %s", self.spec.category, keeper.number, death)
        if self.closing:
            return
        start = self._next_start(death, deliberate=deliberate, now=trio.current_time())
        while (now := trio.current_time()) < start:
            if self.restarts.failed(now):
                self._fail()
            await trio.sleep_until(start)
            if (failure := self.restarts.failure) is not None:
                start = max(start, failure.until)

    def _next_start(self, death: WorkerDied | ConfinementRefusal | OSError, *, deliberate: bool, now: float) -> float:
        if isinstance(death, ConfinementRefusal):
            return self.restarts.refused(now, str(death))
        return self.restarts.ended(now) if deliberate else self.restarts.died(now, str(death))

    def _fail(self) -> None:
        for keeper in self.keepers:
            if keeper.state is WorkerState.BACKOFF:
                keeper.state = WorkerState.FAILED
        self.lending.refuse_where_failed()

    def left(self, keeper: WorkerSlot) -> None:
        """Forget a keeper that has ended."""
        self.withdraw(keeper)
        self.keepers.remove(keeper)

    async def _retire_idle(self) -> None:
        lending = self.lending
        while True:
            lending.peak = len(lending.busy)
            await trio.sleep(self.spec.idle_timeout)
            surplus = len(lending.ready) + len(lending.busy) - (max(1, lending.peak) + 1)
            for keeper in tuple(lending.ready)[: max(0, surplus)]:
                lending.ready.remove(keeper)
                keeper.retire()
