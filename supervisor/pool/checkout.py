"""Which worker of a pool is free, who has which, and who waits for one.

Rule: a worker serves one call at a time; what a caller cannot get at once it waits for, first come first served, until
its deadline, or until no worker can be had. A worker that holds a call which a person decides about is neither free
nor counted among those that run.
"""

from collections import deque
from collections.abc import Callable

import outcome
import trio
from trio.lowlevel import Abort, RaiseCancelT, Task, current_task, reschedule, wait_task_rescheduled

from supervisor.errors import WorkerUnavailable
from supervisor.pool.memory_recycler import MemoryRecycler
from supervisor.pool.restart import CategoryFailure, Restarts
from supervisor.pool.spec import ChildSpec
from supervisor.pool.sweeper import Sweeper
from supervisor.pool.worker_process import WorkerProcess
from supervisor.pool.worker_slot import WorkerSlot, WorkerState


class _Waiter:
    """A call that wants a worker."""

    __slots__ = ("deadline", "task")

    def __init__(self, task: Task, deadline: float) -> None:
        self.task = task
        self.deadline = deadline


class Checkout:
    """The workers of one pool, as calls see them.

    Args:
        spec: the pool's.
        restarts: knows whether the category is FAILED.
        grow: is called when one more worker would be of use.
    """

    def __init__(self, spec: ChildSpec, restarts: Restarts, grow: Callable[[], None]) -> None:
        self.ready: list[WorkerSlot] = []
        """Those that can be lent, the next one last."""
        self.busy: set[WorkerSlot] = set()
        self.held: dict[WorkerSlot, int] = {}
        """Those that wait for a decision, each with the bytes of what it would change."""
        self.peak = 0
        """The most that were busy at once since this was last set."""
        self.recycled = 0
        """Workers that left because they held too much memory, or had run out of something."""
        self.wear = MemoryRecycler(spec.soft_memory_mb)
        self.sweeper = Sweeper(self._sweep)
        self._spec = spec
        self._restarts = restarts
        self._grow = grow
        self._waiting: deque[_Waiter] = deque()
        self._closed = False

    @property
    def failure(self) -> CategoryFailure | None:
        """Why no call can be made now; None where a worker is there for calls, or soon will be."""
        return None if self.ready or self.busy else self._restarts.failure

    def lend(self) -> WorkerSlot | None:
        """Return a worker that is BUSY from now on; None where the caller has to wait."""
        if not self.ready or len(self.busy) >= self._spec.workers:
            return None
        keeper = self.ready.pop()
        keeper.state = WorkerState.BUSY
        self.busy.add(keeper)
        if len(self.busy) > self.peak:
            self.peak = len(self.busy)
        if not self.ready:
            self._grow()
        return keeper

    async def wait(self, deadline: float) -> WorkerSlot:
        """Return a worker that is BUSY from now on, as soon as one is free.

        Raises:
            WorkerUnavailable: none was until the deadline, or none can be had.
        """
        if self._closed:
            raise WorkerUnavailable(f"The {self._spec.category} workers are shutting down.")
        if (failure := self.failure) is not None:
            raise unavailable(self._spec.category, failure)
        waiter = _Waiter(current_task(), deadline)
        self._waiting.append(waiter)
        self.sweeper.expect(deadline)
        self._grow()

        def abort(_raise_cancel: RaiseCancelT) -> Abort:
            self._waiting.remove(waiter)
            return Abort.SUCCEEDED

        keeper: WorkerSlot = await wait_task_rescheduled(abort)
        return keeper

    def take_back(self, keeper: WorkerSlot, *, spent: bool = False) -> None:
        """Let a worker that has done its call serve the next one; one that is `spent` leaves in peace instead."""
        self.busy.discard(keeper)
        self.held.pop(keeper, None)
        if keeper.state is not WorkerState.BUSY:
            return  # it died or retired meanwhile
        keeper.state = WorkerState.READY
        if spent and not self._closed:
            self._replace(keeper)
        elif not self._closed:
            self.ready.append(keeper)
            now = trio.current_time()
            if (due := self.wear.after_call(keeper, now)) <= now:
                self._recycle(keeper, now)
            else:
                self.sweeper.expect(due)
        if self._waiting:
            self._serve_waiting()

    def offer(self, keeper: WorkerSlot) -> None:
        """Take a worker that is ready for its first call: the last to be lent, so that it stays warm as the spare."""
        keeper.state = WorkerState.READY
        self.ready.insert(0, keeper)
        self._serve_waiting()

    def withdraw(self, keeper: WorkerSlot) -> None:
        """Stop lending a worker whose process has ended."""
        self.wear.forget(keeper)
        self.busy.discard(keeper)
        self.held.pop(keeper, None)
        if keeper in self.ready:
            self.ready.remove(keeper)
        self._serve_waiting()

    def hold(self, keeper: WorkerSlot, size: int) -> None:
        """Let a worker wait for a decision about changes of `size` bytes."""
        self.busy.discard(keeper)
        self.held[keeper] = size
        self._serve_waiting()
        if not self.ready:
            self._grow()

    def give_up(self, keeper: WorkerSlot, process: WorkerProcess) -> None:
        """End the process of a worker that holds a call which is not decided; nothing where it has ended already."""
        if keeper.process is process:
            self.held.pop(keeper, None)
            process.give_up("cancelled")

    def refuse_where_failed(self) -> None:
        """Answer everybody who waits, where no worker can be had."""
        if (failure := self.failure) is not None:
            while self._waiting:
                error = unavailable(self._spec.category, failure)
                reschedule(self._waiting.popleft().task, outcome.Error(error))

    def close(self, because: str) -> None:
        """Lend nothing any more, and answer everybody who waits."""
        self._closed = True
        self.ready.clear()
        while self._waiting:
            self._refuse(self._waiting.popleft(), because)

    def _serve_waiting(self) -> None:
        while self._waiting and (keeper := self.lend()) is not None:
            reschedule(self._waiting.popleft().task, outcome.Value(keeper))

    def _refuse(self, waiter: _Waiter, because: str) -> None:
        error = WorkerUnavailable(f"No {self._spec.category} worker: {because}.")
        reschedule(waiter.task, outcome.Error(error))

    def _recycle(self, keeper: WorkerSlot, now: float) -> None:
        """Let a worker that holds too much memory leave in peace; another one has to be ready."""
        if not self.wear.worn(keeper, now):
            return
        if len(self.ready) == 1:
            self.wear.keep(keeper)
            self.sweeper.expect(self.wear.due(keeper))
            self._grow()
        else:
            self.ready.remove(keeper)
            self._replace(keeper)

    def _replace(self, keeper: WorkerSlot) -> None:
        self.recycled += 1
        keeper.retire()
        self._grow()

    def _sweep(self, now: float) -> float:
        for keeper in tuple(self.busy):
            if keeper.process is not None and keeper.process.channel.deadline <= now:
                keeper.process.give_up("timeout")
        for waiter in [each for each in self._waiting if each.deadline <= now]:
            self._waiting.remove(waiter)
            self._refuse(waiter, "all were busy or starting until the call's deadline")
        left = [keeper.process.channel.deadline for keeper in self.busy if keeper.process is not None]
        left += [waiter.deadline for waiter in self._waiting]
        for keeper in tuple(self.ready):
            self._recycle(keeper, now)
        left += [self.wear.due(keeper) for keeper in self.ready]
        return min((each for each in left if each > now), default=float("inf"))


def unavailable(category: str, failure: CategoryFailure) -> WorkerUnavailable:
    """Return what a caller is told while a category is FAILED."""
    told = failure.told(trio.current_time())
    return WorkerUnavailable(f"The {category} workers are out of order: {told}. `strongroom doctor` tells more.")
