"""The workers of one category on one root, as what calls are made of.

Rule: a call costs nothing but the exchange itself. One more worker than needed is kept ready (the warm spare), so
the call after a crash does not wait for a start. A call that was in flight when its worker died by itself is made once
more if it has no effect; one that may have had an effect is reported, never repeated.

    Pool -> Lending   which worker is free, who waits for one
         -> Crew      how many there are, when they start and stop -> Keeper -> WorkerProcess
"""

import os
import random
import statistics
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

import msgspec
import trio

from supervisor.errors import WorkerDied, WorkerUnavailable
from supervisor.pool.channel import Originals
from supervisor.pool.memory_recycler import spent
from supervisor.pool.open_root import identity
from supervisor.pool.orphans import Orphans
from supervisor.pool.pending_proposal import Output, PendingProposal
from supervisor.pool.restart import CategoryFailure
from supervisor.pool.spec import ChildSpec
from supervisor.pool.worker_process import WorkerProcess
from supervisor.pool.worker_set import WorkerSet
from supervisor.pool.worker_slot import WorkerSlot
from workers.wire import frames, messages

_REMEMBERED: Final = 256
"""Calls whose times a pool remembers."""

_HELD_AT_MOST: Final = 32
"""Calls of a pool that may wait for a person at once: each keeps a worker, and what it would change."""

_HELD_BYTES: Final = 4 * 2**30
"""Bytes that those may hold together, in memory; one alone may hold what its own limits let it."""

_CALLED: Final = (messages.Done, messages.Failed)
_PROPOSED: Final = (messages.Done, messages.Failed, messages.Proposed, messages.Unrehearsable)


class Pool:
    """Workers for one child spec.

    Args:
        spec: what to start.
        root_fd: an O_PATH descriptor of the root; stays the caller's, who closes it after `run` has returned.
        orphans: kills what dead workers left behind; None in a process that has children of its own.
        chance: a number in [0, 1) to spread restarts with.
    """

    def __init__(
        self, spec: ChildSpec, root_fd: int, orphans: Orphans | None = None, chance: Callable[[], float] = random.random
    ) -> None:
        self.spec = spec
        self.root_fd = root_fd
        self.crew = WorkerSet(spec, root_fd, orphans, chance)
        self.lending = self.crew.lending
        self.calls = 0
        self._took: deque[float] = deque(maxlen=_REMEMBERED)
        self._stands_on = identity(spec.stands_on) if spec.stands_on else None

    def __repr__(self) -> str:
        return f"<Pool {self.spec.category} {len(self.lending.ready)} ready, {len(self.lending.busy)} busy>"

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Own the workers until cancelled or closed; then none is left."""
        await self.crew.run(task_status)

    async def close(self) -> None:
        """Stop the workers: see `WorkerSet.close`."""
        await self.crew.close()

    @property
    def keepers(self) -> Sequence[WorkerSlot]:
        """One for each worker, in the order of their start."""
        return self.crew.keepers

    @property
    def recycled(self) -> int:
        """How many workers were replaced in peace: they held too much memory, or had run out of something."""
        return self.lending.recycled

    @property
    def failed_because(self) -> str:
        """Why the category is FAILED; workers that live on may still serve. "" where it is not."""
        failure = self.crew.restarts.failure
        return failure.because if failure is not None else ""

    @property
    def out_of_order(self) -> CategoryFailure | None:
        """Why no call can be made now, and when workers are tried again; None where calls can be made, or soon."""
        return self.lending.failure

    @property
    def refused(self) -> str:
        """Why the last worker that ended would not serve, if that is how it ended."""
        return self.crew.refused

    @property
    def outdated(self) -> bool:
        """Whether what its workers stand on is another directory by now; not while one of them has something to do."""
        if not self.spec.stands_on or self.lending.busy or self.lending.held:
            return False
        return identity(self.spec.stands_on) not in (None, self._stands_on)

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
    ) -> messages.Done | messages.Failed:
        """Run one tool on some worker. `timeout` (seconds, default the spec's) counts from now.

        What it proposes is committed at once; with `direct` it need not propose. Cancelling kills the worker that runs
        it.

        Raises:
            FrameTooLarge: the arguments do not fit a frame.
            WorkerUnavailable: no worker could be had; nothing ran.
            WorkerDied: the worker ended in mid-call; with an effect, its outcome is unknown.
        """
        expects = _PROPOSED if effect and not direct else _CALLED
        call = messages.Call(0, tool, args, direct=direct, network=network)
        answer = await self._run(call, timeout, output, expects, 0 if effect else 1)
        if isinstance(answer, PendingProposal):
            return await answer.decide(commit=True)
        if isinstance(answer, messages.Unrehearsable):
            return messages.Failed(0, "permission_denied", answer.why)
        return answer

    async def propose(
        self,
        tool: str,
        args: bytes,
        *,
        timeout: float | None = None,
        output: Output | None = None,
        network: bool = False,
    ) -> messages.Done | messages.Failed | messages.Unrehearsable | PendingProposal:
        """Rehearse a tool that has an effect; what it would change is held by its worker, and nothing has changed.

        Raises:
            As `call`; a worker that died has changed nothing.
        """
        if len(self.lending.held) >= _HELD_AT_MOST:
            raise WorkerUnavailable(f"{_HELD_AT_MOST} calls wait for a person's decision already.")
        answer = await self._run(messages.Call(0, tool, args, network=network), timeout, output, _PROPOSED, 0)
        held = self.lending.held.values()
        if not isinstance(answer, PendingProposal) or len(held) == 1 or sum(held) <= _HELD_BYTES:
            return answer
        await answer.decide(commit=False)
        message = (
            f"What it would change ({answer.effects.size} bytes) is too much beside what waits for a person already. "
            "Nothing was changed. Try again when that is decided, or change less at once."
        )
        return messages.Failed(0, "resource_limit", message)

    async def _run(
        self, call: messages.Call, timeout: float | None, output: Output | None, expects: tuple[type, ...], retries: int
    ) -> messages.Done | messages.Failed | messages.Unrehearsable | PendingProposal:
        """Run a call, under an id of its own, on some worker; again on another one that died by itself."""
        began = trio.current_time()
        deadline = began + (self.spec.call_timeout if timeout is None else timeout)
        call = self._with_fault(call)
        while True:
            number = int.from_bytes(os.urandom(7), "big")
            call = msgspec.structs.replace(call, id=number)
            message = frames.frame(call)
            keeper = self.lending.lend()
            if keeper is None:
                keeper = await self.lending.wait(deadline)
                message = _late(call, message, trio.current_time() - began)
            try:
                answer = await self._exchange(keeper, message, number, deadline, output, expects)
            except WorkerUnavailable:
                continue  # it has seen nothing of the call
            except WorkerDied as death:
                if death.ordered or retries == 0:
                    raise
                retries -= 1
                call = self._with_fault(call)
                continue
            self.calls += 1
            self._took.append(trio.current_time() - began)
            self.crew.restarts.in_a_row = 0
            if isinstance(answer, messages.Proposed):
                return PendingProposal(self, keeper, number, answer.effects)
            assert isinstance(answer, messages.Done | messages.Failed | messages.Unrehearsable)
            return answer

    def _with_fault(self, call: messages.Call) -> messages.Call:
        """Return a call with the fault that the plan has for it, where there is a plan."""
        if self.spec.faults is None:
            return call
        return msgspec.structs.replace(call, fault=self.spec.faults.of_call(self.spec.category, call.tool))

    def median(self) -> float | None:
        """Return the median time of the last calls, waits for a worker included, in seconds; None before the first."""
        return statistics.median(self._took) if self._took else None

    async def ready(self) -> None:
        """Return when a worker is ready, or runs a call.

        Raises:
            WorkerUnavailable: none can be had.
        """
        if not (self.lending.ready or self.lending.busy or self.lending.held):
            self.lending.take_back(await self.lending.wait(trio.current_time() + self.spec.call_timeout))

    async def probe(self) -> messages.Probed:
        """Let one worker try every door from inside; for `doctor`.

        Raises:
            WorkerError: as for `call`.
        """
        deadline = trio.current_time() + self.spec.call_timeout
        keeper = self.lending.lend() or await self.lending.wait(deadline)
        answer = await self._exchange(keeper, frames.frame(messages.Probe()), None, deadline, None, (messages.Probed,))
        assert isinstance(answer, messages.Probed)
        return answer

    async def _exchange(
        self,
        keeper: WorkerSlot,
        message: bytes,
        number: int | None,
        deadline: float,
        output: Output | None,
        expects: tuple[type, ...],
    ) -> messages.Answer:
        if keeper.process is None:  # it died between being lent and this
            self.lending.busy.discard(keeper)
            raise WorkerUnavailable("the worker has ended")
        self.lending.sweeper.expect(deadline)
        try:
            answer = await keeper.process.channel.exchange(message, number, deadline, output, expects)
        except BaseException:
            self.lending.busy.discard(keeper)
            raise
        if isinstance(answer, messages.Proposed):
            self.lending.hold(keeper, answer.effects.size)
        else:
            self.take_back(keeper, answer)
        return answer

    # --- calls that are held; see `PendingProposal` -------------------------------------------------------------

    def take_back(self, keeper: WorkerSlot, answer: messages.Answer) -> None:
        """Take a worker's last answer to a call; one that ran out of something may lack it, and is replaced."""
        self.lending.take_back(keeper, spent=spent(keeper, answer))

    def give_up(self, keeper: WorkerSlot, process: WorkerProcess) -> None:
        """End the process of a worker that holds a call which is not decided."""
        self.lending.give_up(keeper, process)

    async def ask_holder(
        self,
        keeper: WorkerSlot,
        message: bytes,
        number: int,
        deadline: float,
        expects: tuple[type, ...],
        originals: Originals | None,
    ) -> messages.Answer:
        """Send a frame to a worker that holds a call, and wait for its answer.

        Raises:
            As `Channel.exchange`.
        """
        assert keeper.process is not None, "its holder has looked"
        self.lending.busy.add(keeper)
        self.lending.sweeper.expect(deadline)
        try:
            return await keeper.process.channel.exchange(message, number, deadline, None, expects, originals)
        finally:
            self.lending.busy.discard(keeper)


def _late(call: messages.Call, frame: bytes, seconds: float) -> bytes:
    """Return the frame of a call that has waited, with how long; `frame` as it is where that would not fit."""
    try:
        return frames.frame(msgspec.structs.replace(call, late_s=seconds))
    except frames.FrameTooLarge:
        return frame
