"""Calls on the workers of one category on one root.

Rule: a call costs nothing but the exchange itself. One more worker than needed is kept ready (the warm spare), so
the call after a crash does not wait for a start. A call that was in flight when its worker died by itself is made once
more if it has no effect; one that may have had an effect is reported, never repeated.

    Pool -> Checkout    which worker is free, who has which, who waits for one
         -> WorkerSet   how many there are, when they start and stop -> WorkerSlot -> WorkerProcess
"""

import os
from collections import deque
from typing import Final

import msgspec
import trio

from supervisor.errors import WorkerDied, WorkerUnavailable
from supervisor.pool.open_root import identity
from supervisor.pool.pending_answer import Output
from supervisor.pool.pending_proposal import PendingProposal
from supervisor.pool.spec import ChildSpec
from supervisor.pool.worker_set import WorkerSet
from workers.changes.effects import UPLOAD
from workers.wire import frames, messages

_REMEMBERED: Final = 256
"""Calls whose times a pool remembers."""

_QUICK_S: Final = 0.0005
"""Seconds that the last call took at most, where the next one's answer is looked for at once."""

_LOOKS: Final = 16
"""Calls in a row that may be answered so, before other tasks get their turn in any case."""

_HELD_AT_MOST: Final = 32
"""Proposals of a pool that may wait for a person at once: each keeps a worker, and what it would change."""

_HELD_BYTES: Final = 4 * 2**30
"""Bytes that those may hold together, in memory; one alone may hold what its own limits let it."""

_CALLED: Final = (messages.Done, messages.Failed)
_ENDED: Final = (*_CALLED, messages.Unrehearsable)
_PROPOSED: Final = (messages.Done, messages.Failed, messages.Proposed, messages.Unrehearsable)


class Pool:
    """The calls of one child spec. Run its `workers`, and close them.

    Args:
        spec: what to start.
        root_fd: as for `WorkerSet`.
    """

    def __init__(self, spec: ChildSpec, root_fd: int) -> None:
        self.spec = spec
        self.workers = WorkerSet(spec, root_fd)
        self.checkout = self.workers.checkout
        self.calls = 0
        self._took: deque[float] = deque(maxlen=_REMEMBERED)
        self._last_took = 0.0
        self._looks = 0
        self._opened_by_workers = identity(spec.stands_on) if spec.stands_on else None

    def __repr__(self) -> str:
        return f"<Pool {self.spec.category} {len(self.checkout.ready)} ready, {len(self.checkout.busy)} busy>"

    @property
    def outdated(self) -> bool:
        """Whether what its workers stand on is another directory by now; not while one of them has something to do."""
        if not self.spec.stands_on or self.checkout.busy or self.checkout.held:
            return False
        return identity(self.spec.stands_on) not in (None, self._opened_by_workers)

    async def call(
        self,
        tool: str,
        args: bytes,
        *,
        effect: bool,
        timeout: float | None = None,
        output: Output | None = None,
        network: bool = False,
        unlisted: bool = False,
    ) -> messages.Done | messages.Failed:
        """Run one tool on some worker; one that has an effect changes the root at once, without a rehearsal.

        `timeout` (seconds, default the spec's) counts from now. Cancelling kills the worker that runs it.

        Raises:
            FrameTooLarge: the arguments do not fit a frame.
            WorkerUnavailable: no worker could be had; nothing ran.
            WorkerDied: the worker ended in mid-call; with an effect, its outcome is unknown.
        """
        call = messages.Call(
            _new_id(), tool, args, call_s=timeout or 0.0, without_rehearsal=effect, network=network, unlisted=unlisted
        )
        answer = await self._run(call, timeout, output, _CALLED, retries=0 if effect else 1)
        assert isinstance(answer, _CALLED)
        return answer

    async def propose(
        self,
        tool: str,
        args: bytes,
        *,
        timeout: float | None = None,
        output: Output | None = None,
        network: bool = False,
        upload: int = UPLOAD,
        places: tuple[str, ...] = (),
        unlisted: bool = False,
    ) -> messages.Done | messages.Failed | messages.Unrehearsable | PendingProposal:
        """Rehearse a tool that has an effect; its worker holds what it would change, and nothing has changed.

        Raises:
            As `call`; a worker that died has changed nothing.
        """
        held = self.checkout.held
        if len(held) >= _HELD_AT_MOST:
            raise WorkerUnavailable(f"{_HELD_AT_MOST} calls wait for a person's decision already.")
        call = messages.Call(
            *(_new_id(), tool, args),
            call_s=timeout or 0.0,
            network=network,
            upload=upload,
            places=places,
            unlisted=unlisted,
        )
        answer = await self._run(call, timeout, output, _PROPOSED, retries=0)
        if isinstance(answer, PendingProposal) and len(held) > 1 and sum(held.values()) > _HELD_BYTES:
            await answer.decide(commit=False)
            message = (
                f"Its changes ({answer.effects.size} bytes) are too large while other changes wait for a decision. "
                "Nothing was changed. Try again when those are decided, or change less at once."
            )
            return messages.Failed(0, "resource_limit", message)
        return answer

    async def _run(
        self,
        call: messages.Call,
        timeout: float | None,
        output: Output | None,
        expects: tuple[type[messages.Answer], ...],
        retries: int,
    ) -> messages.Done | messages.Failed | messages.Unrehearsable | PendingProposal:
        """Run a call, under an id of its own, on some worker; again on another one that died by itself."""
        began = trio.current_time()
        deadline = began + (timeout or self.spec.call_timeout)
        checkout = self.checkout
        call = self._with_fault(call)
        if self._looks >= _LOOKS:
            self._looks = 0
            await trio.lowlevel.checkpoint()
        while True:
            await trio.lowlevel.checkpoint_if_cancelled()  # an answer that is there at once passes no other
            slot = checkout.acquire_nowait()
            if slot is None:
                slot = await checkout.acquire(deadline)
                call = msgspec.structs.replace(call, queued_s=trio.current_time() - began)
            try:
                frame = frames.frame(call)
            except frames.FrameTooLarge:
                checkout.release(slot)
                raise
            checkout.sweeper.expect(deadline)
            look = retries > 0 and len(checkout.busy) == 1 and self._last_took < _QUICK_S
            self._looks += look
            try:
                answer = await slot.channel.exchange(frame, call.id, deadline, output, expects, look=look)
            except WorkerUnavailable:
                call = msgspec.structs.replace(call, id=_new_id())  # it has seen nothing of the call
                continue
            except WorkerDied as death:
                if death.ordered or retries == 0:
                    raise
                retries -= 1
                call = self._with_fault(msgspec.structs.replace(call, id=_new_id()))
                continue
            finally:
                checkout.busy.discard(slot)
            self.calls += 1
            self._last_took = trio.current_time() - began
            self._took.append(self._last_took)
            self.workers.restarts.in_a_row = 0
            if isinstance(answer, messages.Proposed):
                checkout.hold(slot, answer.effects.size)
                return PendingProposal(checkout, slot, call.id, answer.effects)
            checkout.release(slot, answer)
            assert isinstance(answer, _ENDED)
            return answer

    def _with_fault(self, call: messages.Call) -> messages.Call:
        """Return a call with the fault that the plan has for it, where there is a plan."""
        if self.spec.faults is None:
            return call
        return msgspec.structs.replace(call, fault=self.spec.faults.fault_of_call(self.spec.category, call.tool))

    def median(self) -> float | None:
        """Return the median time of the last calls, waits for a worker included, in seconds; None before the first."""
        return sorted(self._took)[len(self._took) // 2] if self._took else None

    async def ready(self) -> None:
        """Return when a worker is ready, or runs a call.

        Raises:
            WorkerUnavailable: none can be started.
        """
        checkout = self.checkout
        if not (checkout.ready or checkout.busy or checkout.held):
            checkout.release(await checkout.acquire(trio.current_time() + self.spec.call_timeout))

    async def probe(self) -> messages.Probed:
        """Let one worker try every door from inside; for `doctor`.

        Raises:
            WorkerError: as for `call`.
        """
        deadline = trio.current_time() + self.spec.call_timeout
        slot = self.checkout.acquire_nowait() or await self.checkout.acquire(deadline)
        self.checkout.sweeper.expect(deadline)
        try:
            answer = await slot.channel.exchange(
                frames.frame(messages.Probe()), None, deadline, None, (messages.Probed,)
            )
        finally:
            self.checkout.busy.discard(slot)
        self.checkout.release(slot, answer)
        assert isinstance(answer, messages.Probed)
        return answer


def _new_id() -> int:
    """Return an id that nobody can guess."""
    return int.from_bytes(os.urandom(7), "big")
