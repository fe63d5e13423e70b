"""The workers of one category on one root: lent out, taken back, replaced.

Rule: a call costs nothing but the exchange itself. A worker serves one call at a time; what a caller cannot get at
once it waits for, until its deadline. One more worker than needed is kept ready (the warm spare), so the call
after a crash does not wait for a start. A call that was in flight when its worker died by itself is made once more
if it has no effect; one that may have had an effect is reported, never repeated.
"""

import logging
import os
import statistics
from collections import deque
from typing import Final

import msgspec
import outcome
import trio
from trio.lowlevel import Abort, RaiseCancelT, Task, current_task, reschedule, wait_task_rescheduled

from supervisor.errors import WorkerDied, WorkerUnavailable
from supervisor.pool.channel import Originals
from supervisor.pool.held import Held, Output
from supervisor.pool.keeper import Keeper, Refusal, WorkerState
from supervisor.pool.orphans import Orphans
from supervisor.pool.process import WorkerProcess
from supervisor.pool.restart import Intensity, backoff
from supervisor.pool.spec import ChildSpec
from supervisor.pool.sweeper import Sweeper
from workers import wire

_log: Final = logging.getLogger("strongroom.pool")

_REMEMBERED: Final = 256
"""Calls whose times a pool remembers."""

_HELD_AT_MOST: Final = 32
"""Calls of a pool that may wait for a person at once: each keeps a worker, and what it would change."""

_CALLED: Final = (wire.Done, wire.Failed)
_PROPOSED: Final = (wire.Done, wire.Failed, wire.Proposed, wire.Unrehearsable)


class _Waiter:
    """A call that wants a worker."""

    __slots__ = ("deadline", "task")

    def __init__(self, task: Task, deadline: float) -> None:
        self.task = task
        self.deadline = deadline


class Pool:
    """Workers for one child spec.

    Args:
        spec: what to start.
        root_fd: an O_PATH descriptor of the root; stays the caller's, who closes it after `run` has returned.
        orphans: kills what dead workers left behind; None in a process that has children of its own.
    """

    def __init__(self, spec: ChildSpec, root_fd: int, orphans: Orphans | None = None) -> None:
        self.spec = spec
        self.root_fd = root_fd
        self.orphans = orphans
        self.keepers: list[Keeper] = []
        self.calls = 0
        self._took: deque[float] = deque(maxlen=_REMEMBERED)
        self.failed_because = ""
        self.refused = ""
        """Why the last worker that ended would not serve, if that is how it ended."""
        self._ready: list[Keeper] = []
        self._busy: set[Keeper] = set()
        self._held: set[Keeper] = set()
        self._waiting: deque[_Waiter] = deque()
        self._started = 0
        self._peak = 0
        self._failures = 0
        self._failed_until = 0.0
        self._intensity = Intensity(spec.restart)
        self._sweeper = Sweeper(self._sweep)
        self._nursery: trio.Nursery | None = None
        self._closing = False
        self._ended = trio.Event()

    def __repr__(self) -> str:
        return f"<Pool {self.spec.category} {len(self._ready)} ready, {len(self._busy)} busy>"

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Own the workers until cancelled or closed; then none is left."""
        if self._closing:
            task_status.started()
            return
        try:
            async with trio.open_nursery() as nursery:
                self._nursery = nursery
                nursery.start_soon(self._sweeper.run)
                nursery.start_soon(self._retire_idle)
                self._grow()
                task_status.started()
        finally:
            self._closing = True
            self._refuse_waiting("the pool has closed")
            self._ended.set()

    async def close(self) -> None:
        """Stop the workers in reverse order of their start, within the spec's `stop_timeout`, then kill."""
        self._closing = True
        self._ready.clear()
        self._refuse_waiting("the pool is closing")
        if self._nursery is None:
            return
        with trio.CancelScope(shield=True):
            with trio.move_on_after(self.spec.stop_timeout):
                for keeper in tuple(reversed(self.keepers)):
                    keeper.retire()
                    await keeper.stopped.wait()
            self._nursery.cancel_scope.cancel()
            await self._ended.wait()

    # --- calls -----------------------------------------------------------------------------------------------

    async def call(
        self,
        tool: str,
        args: bytes,
        *,
        effect: bool,
        timeout: float | None = None,
        output: Output | None = None,
        direct: bool = False,
        network: bool = False,
    ) -> wire.Done | wire.Failed:
        """Run one tool on some worker. `timeout` (seconds, default the spec's) counts from now.

        What it proposes is committed at once; with `direct` it need not propose. Cancelling kills the worker that runs
        it.

        Raises:
            wire.FrameTooLarge: the arguments do not fit a frame.
            WorkerUnavailable: no worker could be had; nothing ran.
            WorkerDied: the worker ended in mid-call; with an effect, its outcome is unknown.
        """
        expects = _PROPOSED if effect and not direct else _CALLED
        call = wire.Call(0, tool, args, direct=direct, network=network)
        answer = await self._run(call, timeout, output, expects, 0 if effect else 1)
        if isinstance(answer, Held):
            return await answer.decide(commit=True)
        if isinstance(answer, wire.Unrehearsable):
            return wire.Failed(0, "permission_denied", answer.why)
        return answer

    async def propose(
        self,
        tool: str,
        args: bytes,
        *,
        timeout: float | None = None,
        output: Output | None = None,
        network: bool = False,
    ) -> wire.Done | wire.Failed | wire.Unrehearsable | Held:
        """Rehearse a tool that has an effect; what it would change is held by its worker, and nothing has changed.

        Raises:
            As `call`; a worker that died has changed nothing.
        """
        if len(self._held) >= _HELD_AT_MOST:
            raise WorkerUnavailable(f"{_HELD_AT_MOST} calls wait for a person's decision already.")
        return await self._run(wire.Call(0, tool, args, network=network), timeout, output, _PROPOSED, 0)

    async def _run(
        self,
        call: wire.Call,
        timeout: float | None,
        output: Output | None,
        expects: tuple[type, ...],
        retries: int,
    ) -> wire.Done | wire.Failed | wire.Unrehearsable | Held:
        """Run a call, under an id of its own, on some worker; again on another one that died by itself."""
        began = trio.current_time()
        deadline = began + (self.spec.call_timeout if timeout is None else timeout)
        while True:
            number = int.from_bytes(os.urandom(7), "big")
            call = msgspec.structs.replace(call, id=number)
            message = wire.frame(call)
            keeper = self._lend()
            if keeper is None:
                keeper = await self._wait(deadline)
                message = _late(call, message, trio.current_time() - began)
            try:
                answer = await self._exchange(keeper, message, number, deadline, output, expects)
            except WorkerUnavailable:
                continue  # it has seen nothing of the call
            except WorkerDied as death:
                if death.ordered or retries == 0:
                    raise
                retries -= 1
                continue
            self.calls += 1
            self._took.append(trio.current_time() - began)
            self._failures = 0
            if isinstance(answer, wire.Proposed):
                return Held(self, keeper, number, answer.effects)
            assert isinstance(answer, wire.Done | wire.Failed | wire.Unrehearsable)
            return answer

    def median(self) -> float | None:
        """Return the median time of the last calls, waits for a worker included, in seconds; None before the first."""
        return statistics.median(self._took) if self._took else None

    async def ready(self) -> None:
        """Return when a worker is ready, or runs a call.

        Raises:
            WorkerUnavailable: none can be had.
        """
        if not (self._ready or self._busy or self._held):
            self.take_back(await self._wait(trio.current_time() + self.spec.call_timeout))

    async def probe(self) -> wire.Probed:
        """Let one worker try every door from inside; for `doctor`.

        Raises:
            WorkerError: as for `call`.
        """
        deadline = trio.current_time() + self.spec.call_timeout
        keeper = self._lend() or await self._wait(deadline)
        answer = await self._exchange(keeper, wire.frame(wire.Probe()), None, deadline, None, (wire.Probed,))
        assert isinstance(answer, wire.Probed)
        return answer

    async def _exchange(
        self,
        keeper: Keeper,
        message: bytes,
        number: int | None,
        deadline: float,
        output: Output | None,
        expects: tuple[type, ...],
    ) -> wire.Answer:
        if keeper.process is None:  # it died between being lent and this
            self._busy.discard(keeper)
            raise WorkerUnavailable("the worker has ended")
        self._sweeper.expect(deadline)
        try:
            answer = await keeper.process.channel.exchange(message, number, deadline, output, expects)
        except BaseException:
            self._busy.discard(keeper)
            raise
        if isinstance(answer, wire.Proposed):
            self._hold(keeper)
        else:
            self.take_back(keeper)
        return answer

    # --- calls that are held; see `Held` ------------------------------------------------------------------------

    def _hold(self, keeper: Keeper) -> None:
        """Let a worker wait for a decision; it does not count among those that run."""
        self._busy.discard(keeper)
        self._held.add(keeper)
        self._serve_waiting()
        if not self._ready:
            self._grow()

    async def ask_holder(
        self,
        keeper: Keeper,
        message: bytes,
        number: int,
        deadline: float,
        expects: tuple[type, ...],
        originals: Originals | None,
    ) -> wire.Answer:
        """Send a frame to a worker that holds a call, and wait for its answer.

        Raises:
            WorkerUnavailable, WorkerDied: as `Channel.exchange`.
        """
        assert keeper.process is not None, "its holder has looked"
        self._busy.add(keeper)
        self._sweeper.expect(deadline)
        try:
            return await keeper.process.channel.exchange(message, number, deadline, None, expects, originals)
        finally:
            self._busy.discard(keeper)

    def give_up(self, keeper: Keeper, process: WorkerProcess) -> None:
        """End the process of a worker that holds a call which is not decided."""
        self._held.discard(keeper)
        if keeper.process is process:
            process.give_up("cancelled")

    def _lend(self) -> Keeper | None:
        if not self._ready or len(self._busy) >= self.spec.workers:
            return None
        keeper = self._ready.pop()
        keeper.state = WorkerState.BUSY
        self._busy.add(keeper)
        if len(self._busy) > self._peak:
            self._peak = len(self._busy)
        if not self._ready:
            self._grow()
        return keeper

    def take_back(self, keeper: Keeper) -> None:
        """Let a worker that has done its call serve the next one."""
        self._busy.discard(keeper)
        self._held.discard(keeper)
        if keeper.state is not WorkerState.BUSY:
            return  # it died or retired meanwhile
        keeper.state = WorkerState.READY
        if not self._closing:
            self._ready.append(keeper)
        if self._waiting:
            self._serve_waiting()

    def _serve_waiting(self) -> None:
        while self._waiting and (keeper := self._lend()) is not None:
            reschedule(self._waiting.popleft().task, outcome.Value(keeper))

    async def _wait(self, deadline: float) -> Keeper:
        if self._closing:
            raise WorkerUnavailable(f"The {self.spec.category} workers are shutting down.")
        if self.failed_because and not self._busy and not self._ready:
            raise self._unavailable()
        waiter = _Waiter(current_task(), deadline)
        self._waiting.append(waiter)
        self._sweeper.expect(deadline)
        self._grow()

        def abort(_raise_cancel: RaiseCancelT) -> Abort:
            self._waiting.remove(waiter)
            return Abort.SUCCEEDED

        keeper: Keeper = await wait_task_rescheduled(abort)
        return keeper

    def _refuse_waiting(self, because: str) -> None:
        while self._waiting:
            self._refuse(self._waiting.popleft(), because)

    def _refuse(self, waiter: _Waiter, because: str) -> None:
        error = WorkerUnavailable(f"No {self.spec.category} worker: {because}.")
        reschedule(waiter.task, outcome.Error(error))

    def _unavailable(self) -> WorkerUnavailable:
        seconds = max(0.0, self._failed_until - trio.current_time())
        return WorkerUnavailable(
            f"The {self.spec.category} workers are out of order: {self.failed_because}. "
            f"They are tried again in {seconds:.0f} s; `strongroom doctor` tells more."
        )

    # --- workers, as their keepers report ----------------------------------------------------------------------

    def offer(self, keeper: Keeper) -> None:
        """Take a worker that is ready for its first call."""
        if self._closing or keeper.state is not WorkerState.STARTING:
            return  # it was told to leave meanwhile
        keeper.state = WorkerState.READY
        self.failed_because = ""
        self._ready.insert(0, keeper)  # a fresh worker is the last to be lent: it stays warm as the spare
        self._serve_waiting()
        if len(self.keepers) == 1:
            self._grow()  # the first one's spare

    def withdraw(self, keeper: Keeper) -> None:
        """Stop lending a worker whose process has ended."""
        self._busy.discard(keeper)
        self._held.discard(keeper)
        if keeper in self._ready:
            self._ready.remove(keeper)
        if keeper.state is not WorkerState.STOPPED:
            keeper.state = WorkerState.BACKOFF
        self._serve_waiting()

    async def lost(self, keeper: Keeper, death: WorkerDied | Refusal | OSError) -> None:
        """Return when the keeper may start its next process."""
        restart = self.spec.restart
        self.refused = str(death) if isinstance(death, Refusal) else ""
        deliberate = isinstance(death, WorkerDied) and death.ordered in ("timeout", "cancelled")
        log = _log.info if deliberate else _log.warning
        log("worker %s[%d] %s", self.spec.category, keeper.number, death)
        if not deliberate:
            self._failures += 1
        if isinstance(death, Refusal) or not (deliberate or self._intensity.allows(trio.current_time())):
            keeper.state = WorkerState.FAILED
            self._fail(f"{death}" if isinstance(death, Refusal) else f"died too often, the last one {death}")
            await trio.sleep(restart.pause)
            self._intensity.forget()
            self._failures = 0
        else:
            await trio.sleep(backoff(max(1, self._failures), restart))

    def left(self, keeper: Keeper) -> None:
        """Forget a keeper that has ended."""
        self.withdraw(keeper)
        self.keepers.remove(keeper)

    def _fail(self, because: str) -> None:
        self.failed_because = because
        self._failed_until = trio.current_time() + self.spec.restart.pause
        if not self._busy and not self._ready:
            self._refuse_waiting(because)

    def _grow(self) -> None:
        """Start one more keeper when the spare is missing and none is on its way."""
        if len(self.keepers) - len(self._held) > self.spec.workers:
            return  # first, because every call that waits comes by here
        on_its_way = any(keeper.state is WorkerState.STARTING for keeper in self.keepers)
        if self._nursery is None or self._closing or self.failed_because or on_its_way:
            return
        keeper = Keeper(self, self.spec, self._started)
        self._started += 1
        self.keepers.append(keeper)
        self._nursery.start_soon(keeper.run)

    # --- clocks -----------------------------------------------------------------------------------------------

    def _sweep(self, now: float) -> float:
        for keeper in tuple(self._busy):
            if keeper.process is not None and keeper.process.channel.deadline <= now:
                keeper.process.give_up("timeout")
        for waiter in [each for each in self._waiting if each.deadline <= now]:
            self._waiting.remove(waiter)
            self._refuse(waiter, "all were busy or starting until the call's deadline")
        left = [keeper.process.channel.deadline for keeper in self._busy if keeper.process is not None]
        left += [waiter.deadline for waiter in self._waiting]
        return min((each for each in left if each > now), default=float("inf"))

    async def _retire_idle(self) -> None:
        while True:
            self._peak = len(self._busy)
            await trio.sleep(self.spec.idle_timeout)
            surplus = len(self._ready) + len(self._busy) - (max(1, self._peak) + 1)
            for keeper in tuple(self._ready)[: max(0, surplus)]:
                self._ready.remove(keeper)
                keeper.retire()


def _late(call: wire.Call, frame: bytes, seconds: float) -> bytes:
    """Return the frame of a call that has waited, with how long; `frame` as it is where that would not fit into it."""
    try:
        return wire.frame(msgspec.structs.replace(call, late_s=seconds))
    except wire.FrameTooLarge:
        return frame
