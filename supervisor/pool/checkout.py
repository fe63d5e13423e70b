"""Gives the workers of a pool to calls, and takes them back.

Rule: a worker serves one call at a time; a caller who cannot get one at once waits, first come first served, until
its deadline, or until the category has failed. A worker that holds a proposal which a person decides about is neither
free nor counted among those that run.
"""

import logging
from collections import deque
from collections.abc import Callable
from typing import Final

import msgspec
import outcome
import trio
from trio.lowlevel import Abort, RaiseCancelT, Task, current_task, reschedule, wait_task_rescheduled

from supervisor.errors import WorkerUnavailable
from supervisor.pool.deadline_sweeper import Sweeper
from supervisor.pool.memory_recycler import MemoryRecycler
from supervisor.pool.restart import CategoryFailure, Restarts
from supervisor.pool.spec import ChildSpec
from supervisor.pool.worker_process import WorkerProcess
from supervisor.pool.worker_slot import WorkerSlot, WorkerState
from workers.wire import messages

_log: Final = logging.getLogger("strongroom.pool")

Begin = Callable[[WorkerSlot, Task], bool]
"""Sends what a task that waits has for a worker, so that it has not to be woken for that; False where it must be."""


class _Waiter(msgspec.Struct, eq=False):
    """A call that wants a worker."""

    task: Task
    deadline: float
    begin: Begin | None
    slot: WorkerSlot | None = None


class Checkout:
    """The workers of one pool, as calls see them.

    Args:
        spec: the pool's.
        restarts: knows whether the category is FAILED.
        grow: is called when one more worker would be of use.
    """

    def __init__(self, spec: ChildSpec, restarts: Restarts, grow: Callable[[], None]) -> None:
        self.ready: list[WorkerSlot] = []
        """Those that a call can have, the next one last."""
        self.busy: set[WorkerSlot] = set()
        self.held: dict[WorkerSlot, int] = {}
        """Those that wait for a decision, each with the bytes of its proposal."""
        self.peak = 0
        """The most that were busy at once since this was last set."""
        self.recycled = 0
        """Workers that were replaced because they held too much memory, or had run out of something."""
        self.spec = spec
        self.sweeper = Sweeper(self._sweep)
        self._recycler = MemoryRecycler(spec.soft_memory_mb)
        self._restarts = restarts
        self._grow = grow
        self._waiting: deque[_Waiter] = deque()
        self._closed = False

    @property
    def failure(self) -> CategoryFailure | None:
        """Why no call can be made now; None where a worker is there for calls, or soon will be."""
        return None if self.ready or self.busy else self._restarts.failure

    @property
    def short(self) -> bool:
        """Whether a call waits that could run, if there were one worker more."""
        return bool(self._waiting) and len(self.busy) < self.spec.workers

    # --- as calls need it ----------------------------------------------------------------------------------------

    def acquire_nowait(self) -> WorkerSlot | None:
        """Return a worker that is BUSY from now on; None where the caller has to wait."""
        if not self.ready or len(self.busy) >= self.spec.workers:
            return None
        slot = self.ready.pop()
        slot.state = WorkerState.BUSY
        self.busy.add(slot)
        if len(self.busy) > self.peak:
            self.peak = len(self.busy)
        if not self.ready:
            self._grow()
        return slot

    async def acquire(self, deadline: float, begin: Begin | None = None) -> WorkerSlot:
        """Return a worker that is BUSY from now on, as soon as one is free; or once it has ended what `begin` began.

        Raises:
            WorkerUnavailable: none was until the deadline, or the category has failed.
        """
        if self._closed:
            raise WorkerUnavailable(f"The {self.spec.category} workers are shutting down.")
        if not self.busy and (failure := self.failure) is not None:
            raise WorkerUnavailable(self._outage_message(failure))
        waiter = _Waiter(current_task(), deadline, begin)
        self._waiting.append(waiter)
        self.sweeper.expect(deadline)
        if not self.ready:
            self._grow()

        def abort(_raise_cancel: RaiseCancelT) -> Abort:
            if waiter.slot is None:
                self._waiting.remove(waiter)
            else:
                self.busy.discard(waiter.slot)
                waiter.slot.channel.cancel()
            return Abort.SUCCEEDED

        await wait_task_rescheduled(abort)
        assert waiter.slot is not None
        return waiter.slot

    def release(self, slot: WorkerSlot, answer: messages.Answer | None = None, *, occupied: bool = False) -> None:
        """Let a worker serve the next call after its last `answer`; one that ran out of something is replaced.

        So is one that is `occupied` for long after its answer, where another can be started.
        """
        self.busy.discard(slot)
        self.held.pop(slot, None)
        if slot.state is not WorkerState.BUSY:
            return  # it died or retired meanwhile
        slot.state = WorkerState.READY
        slot.used = next(self.spec.cap.uses)
        if not self._closed:
            if isinstance(answer, messages.Failed) and answer.kind == "resource_limit":
                _log.info("worker %s[%d] ran out of something, and is replaced", self.spec.category, slot.number)
                self._replace(slot)
            elif occupied and self._restarts.failure is None:
                self._replace(slot)
            else:
                self.ready.append(slot)
                if self.spec.soft_memory_mb:
                    self._recycler.note_call(slot)
                    self._recycle(slot, trio.current_time())
        if self._waiting:
            self._serve_waiting()
        self.spec.cap.trim()

    def hold(self, slot: WorkerSlot, size: int) -> None:
        """Let a worker wait for a decision about a proposal of `size` bytes."""
        self.busy.discard(slot)
        self.held[slot] = size
        self._serve_waiting()
        if not self.ready:
            self._grow()

    def kill(self, slot: WorkerSlot, process: WorkerProcess) -> None:
        """End the process of a worker that holds a proposal; nothing where it has ended already."""
        if slot.process is process:
            self.held.pop(slot, None)
            process.abandon("cancelled")

    # --- as the worker set says --------------------------------------------------------------------------------------

    def add(self, slot: WorkerSlot) -> None:
        """Take a worker that is ready for its first call: the last to be acquired, so that it stays the warm spare."""
        slot.state = WorkerState.READY
        slot.used = next(self.spec.cap.uses)
        self.ready.insert(0, slot)
        self._serve_waiting()
        self.spec.cap.trim()

    def remove(self, slot: WorkerSlot) -> None:
        """Give no more calls to a worker whose process has ended."""
        self._recycler.forget(slot)
        self.busy.discard(slot)
        self.held.pop(slot, None)
        if slot in self.ready:
            self.ready.remove(slot)
        self._serve_waiting()

    def refuse_if_failed(self) -> None:
        """Answer everybody who waits, where the category has failed and no worker lives."""
        if (failure := self.failure) is not None:
            self._refuse_waiting(self._outage_message(failure))

    def close(self, because: str) -> None:
        """Give out no workers any more, and answer everybody who waits."""
        self._closed = True
        self.ready.clear()
        self._refuse_waiting(f"No {self.spec.category} worker: {because}.")

    def _serve_waiting(self) -> None:
        while self.ready and self._waiting and len(self.busy) < self.spec.workers:
            waiter = self._waiting.popleft()
            waiter.slot = slot = self.acquire_nowait()
            assert slot is not None
            if waiter.begin is None or not waiter.begin(slot, waiter.task):
                reschedule(waiter.task)

    def _refuse_waiting(self, why: str, until: float = float("inf")) -> None:
        """Answer everybody whose deadline is not after `until`."""
        for waiter in [each for each in self._waiting if each.deadline <= until]:
            self._waiting.remove(waiter)
            reschedule(waiter.task, outcome.Error(WorkerUnavailable(why)))

    def _outage_message(self, failure: CategoryFailure) -> str:
        described = failure.describe(trio.current_time())
        return f"The {self.spec.category} workers are out of order: {described}. `strongroom doctor` tells more."

    def _recycle(self, slot: WorkerSlot, now: float) -> None:
        """Replace a worker that holds too much memory, once another one is ready; see when to look at it again."""
        if self._recycler.is_over_limit(slot, now):
            none_comes = self.spec.cap.reached or not self.spec.cap.spares
            if len(self.ready) > 1 or (none_comes and self._restarts.failure is None):
                self._replace(slot)
                return
            self._recycler.note_call(slot)  # it cannot be spared now
            self._grow()
        self.sweeper.expect(self._recycler.due(slot))

    def _replace(self, slot: WorkerSlot) -> None:
        self.recycled += 1
        slot.retire()
        self._grow()

    def _sweep(self, now: float) -> float:
        """End calls and answer waiters whose deadline is over; return the earliest deadline that is left."""
        for slot in tuple(self.busy):
            if slot.process is not None and slot.process.channel.deadline <= now:
                slot.process.abandon("timeout")
        late = f"No {self.spec.category} worker: all were busy or starting until the call's deadline."
        self._refuse_waiting(late, now)
        for slot in tuple(self.ready):
            self._recycle(slot, now)
        left = [slot.process.channel.deadline for slot in self.busy if slot.process is not None]
        left += [waiter.deadline for waiter in self._waiting]
        left += [self._recycler.due(slot) for slot in self.ready]
        return min((each for each in left if each > now), default=float("inf"))
