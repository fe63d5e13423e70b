"""The workers of one pool: as many as are needed and one more, started, replaced, retired, stopped.

Rule: one_for_one: a worker's end concerns its own slot alone, until there were too many within the period; then the
category is FAILED, and nothing is started until its pause is over. While a worker is about to start, or may not yet,
no other is added; a spare is started a moment after it is missed, so that it takes no processor from the call for which
it is. Once the set closes nothing is started at all.
"""

import logging
import random
from typing import Final

import trio

from supervisor.errors import WorkerDied
from supervisor.pool.checkout import Checkout
from supervisor.pool.pipe_watch import PipeWatch
from supervisor.pool.restart import Restarts
from supervisor.pool.spec import ChildSpec
from supervisor.pool.worker_slot import ConfinementRefusal, WorkerSlot, WorkerState

_log: Final = logging.getLogger("strongroom.pool")

_NOT_YET_READY: Final = frozenset({WorkerState.STARTING, WorkerState.BACKOFF})

_SPARE_AFTER: Final = 0.005
"""Seconds for the call that has taken the last worker: most have their answer by then."""

_REAPED: Final = 1.0
"""Seconds that the kernel has to end what got SIGKILL; what is stuck in it is left behind."""


class WorkerSet:
    """Keeps the workers of one child spec.

    Args:
        spec: what to start.
        root_fd: an O_PATH descriptor of the root; stays the caller's, who closes it after `run` has returned.
    """

    def __init__(self, spec: ChildSpec, root_fd: int) -> None:
        self.spec = spec
        self.slots: list[WorkerSlot] = []
        """One for each worker, in the order of their start."""
        self.restarts = Restarts(spec.restart, random.random)
        self.checkout = Checkout(spec, self.restarts, self.grow)
        self.refusal = ""
        """Why the last worker that ended would not serve, if that is how it ended."""
        self.closing = False
        self.watch = PipeWatch()
        self._leaving: set[WorkerSlot] = set()
        """Those that have been told to leave, and have not ended."""
        self._root_fd = root_fd
        self._started = 0
        self._nursery: trio.Nursery | None = None
        self._spare_due = False
        self._ended = trio.Event()

    @property
    def failed_because(self) -> str:
        """Why the category is FAILED; workers that live on may still serve. "" where it is not."""
        return self.restarts.failure.because if self.restarts.failure is not None else ""

    @property
    def view(self) -> str:
        """What commands of these workers see besides the root: "machine", "private", "copies"; "" where none runs."""
        held = {feature for slot in self.slots for feature in slot.enforced}
        views = {"private_root:machine": "machine", "private_root": "private", "copy": "copies"}
        return next((view for feature, view in views.items() if feature in held), "")

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Own the workers until cancelled or closed; then none is left."""
        if self.closing:
            task_status.started()
            return
        try:
            async with trio.open_nursery() as nursery:
                self._nursery = nursery
                nursery.start_soon(self.watch.run)
                nursery.start_soon(self.checkout.sweeper.run)
                nursery.start_soon(self._retire_idle)
                self.grow()
                task_status.started()
        finally:
            self.closing = True
            self.checkout.close("the pool has closed")
            self.watch.close()
            self._ended.set()

    async def close(self) -> None:
        """Stop the workers in reverse order of their start, as OTP does, with one `stop_timeout` for all of them.

        Each is told by the end of its input, once the one before has left, or has had its share of the time. Those that
        are still there when the time is over get SIGTERM, and SIGKILL after `terminate_timeout`.
        """
        self.closing = True
        self.checkout.close("the pool is closing")
        if self._nursery is None:
            return
        with trio.CancelScope(shield=True):
            patience = trio.current_time() + self.spec.stop_timeout
            with trio.move_on_at(patience + self.spec.terminate_timeout + _REAPED):
                leaving = tuple(reversed(self.slots))
                for slot in leaving:
                    slot.retire(patience)
                    with trio.move_on_after(self.spec.stop_timeout / len(leaving)):
                        await slot.stopped.wait()
                for slot in leaving:
                    await slot.stopped.wait()
            self._nursery.cancel_scope.cancel()
            await self._ended.wait()

    def grow(self) -> None:
        """Start one more worker when the spare is missing and none is on its way: soon, where no call waits for it.

        Where the cap is reached, only one that a call waits for is started, and an idle one elsewhere retired for it.
        """
        if not self._lacks_one or self._nursery is None:
            return
        if self.checkout.short or not self.slots:
            self._start(self._nursery)
        elif not self._spare_due:
            self._spare_due = True
            self._nursery.start_soon(self._start_spare, self._nursery)

    @property
    def _lacks_one(self) -> bool:
        if len(self.slots) - len(self.checkout.held) - len(self._leaving) > self.spec.workers:
            return False  # first, because every call that waits comes by here
        if self.closing or self.restarts.failure is not None:
            return False
        return not any(slot.state in _NOT_YET_READY for slot in self.slots)

    async def _start_spare(self, nursery: trio.Nursery) -> None:
        await trio.sleep(_SPARE_AFTER)
        self._spare_due = False
        if self._lacks_one:
            self._start(nursery)

    def _start(self, nursery: trio.Nursery) -> None:
        if self.checkout.short:
            self.spec.cap.trim(room=1)
        elif self.spec.cap.reached or (len(self.slots) > len(self._leaving) and not self.spec.cap.spares):
            return
        slot = WorkerSlot(self, self.spec, self._started, self._root_fd)
        self._started += 1
        self.slots.append(slot)
        nursery.start_soon(slot.run)

    # --- as the slots report ------------------------------------------------------------------------------------

    def worker_started(self, slot: WorkerSlot) -> None:
        """Take a worker that is ready for its first call."""
        if self.closing or slot.state is not WorkerState.STARTING:
            return  # it was told to leave meanwhile
        self.restarts.failure = None
        self.checkout.add(slot)
        if len(self.slots) == 1:
            self.grow()  # the first one's spare

    def worker_retired(self, slot: WorkerSlot) -> None:
        """Give no more calls to a worker that has been told to leave."""
        self._leaving.add(slot)
        if slot in self.checkout.ready:
            self.checkout.ready.remove(slot)

    def worker_ended(self, slot: WorkerSlot) -> None:
        """Give no more calls to a worker whose process has ended."""
        if slot.state is not WorkerState.STOPPED:
            slot.state = WorkerState.BACKOFF
        self.checkout.remove(slot)

    async def wait_to_restart(self, slot: WorkerSlot, death: WorkerDied | ConfinementRefusal | OSError) -> None:
        """Return when the slot may start its next process, or when it may not at all."""
        self.refusal = str(death) if isinstance(death, ConfinementRefusal) else ""
        deliberate = isinstance(death, WorkerDied) and death.ordered in ("timeout", "cancelled")
        log = _log.info if deliberate else _log.warning
        log("worker %s[%d] %s", self.spec.category, slot.number, death)
        if self.closing:
            return
        start = self._next_start(death, deliberate=deliberate, now=trio.current_time())
        while (now := trio.current_time()) < start:
            if self.restarts.failed(now):
                self._mark_failed()
            await trio.sleep_until(start)
            if (failure := self.restarts.failure) is not None:
                start = max(start, failure.until)

    def _next_start(self, death: WorkerDied | ConfinementRefusal | OSError, *, deliberate: bool, now: float) -> float:
        if isinstance(death, ConfinementRefusal):
            return self.restarts.refused(now, str(death))
        return self.restarts.ended(now) if deliberate else self.restarts.died(now, str(death))

    def _mark_failed(self) -> None:
        for slot in self.slots:
            if slot.state is WorkerState.BACKOFF:
                slot.state = WorkerState.FAILED
        self.checkout.refuse_if_failed()

    def slot_ended(self, slot: WorkerSlot) -> None:
        """Forget a slot whose task is over."""
        self.worker_ended(slot)
        self.slots.remove(slot)
        self._leaving.discard(slot)

    async def _retire_idle(self) -> None:
        checkout = self.checkout
        while True:
            checkout.peak = len(checkout.busy)
            await trio.sleep(self.spec.idle_timeout)
            surplus = len(checkout.ready) + len(checkout.busy) - (max(1, checkout.peak) + 1)
            for slot in tuple(checkout.ready)[: max(0, surplus)]:
                slot.retire()
