"""Calls on the workers of one category on one root.

Rule: a call costs nothing but the exchange itself. One more worker than needed is kept ready (the warm spare), so
the call after a crash does not wait for a start. A call that was in flight when its worker died by itself is made once
more if it has no effect; one that may have had an effect is reported, never repeated.

    Pool -> Checkout    which worker is free, who has which, who waits for one
         -> WorkerSet   how many there are, when they start and stop -> WorkerSlot -> WorkerProcess
"""

from typing import Final

import msgspec
import trio

from supervisor.errors import WorkerDied, WorkerUnavailable
from supervisor.pool.call_attempt import CallAttempt, CallTimes, random_ids
from supervisor.pool.open_root import identity
from supervisor.pool.pending_answer import Output, PendingAnswer
from supervisor.pool.pending_proposal import PendingProposal
from supervisor.pool.spec import ChildSpec
from supervisor.pool.worker_set import WorkerSet
from workers.changes.effects import UPLOAD
from workers.wire import frames, messages

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
        self.times = CallTimes()
        self.turns = trio.CapacityLimiter(spec.workers)
        """For calls whose time begins only when a worker is there for them: each takes one before it is made."""
        self._ids = random_ids()
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
        content: bytes = b"",
    ) -> messages.Done | messages.Failed:
        """Run one tool on some worker; one that has an effect changes the root at once, without a rehearsal.

        `timeout` (seconds, default the spec's) counts from now. Cancelling kills the worker that runs it.

        Raises:
            FrameTooLarge: the arguments do not fit a frame.
            WorkerUnavailable: no worker could be had; nothing ran.
            WorkerDied: the worker ended in mid-call; with an effect, its outcome is unknown.
        """
        call = messages.Call(
            next(self._ids),
            tool,
            args,
            call_s=timeout or 0.0,
            without_rehearsal=effect,
            network=network,
            unlisted=unlisted,
            content=content,
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
            *(next(self._ids), tool, args),
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
        began = self.times.clock()
        deadline = began + (timeout or self.spec.call_timeout)
        checkout = self.checkout
        if self.spec.faults is not None:
            call = self._with_fault(call)
        while True:
            if checkout.ready:
                await self.times.pause()  # an answer that is there at once passes no other checkpoint
            attempt = CallAttempt(checkout, self.times, call, began, PendingAnswer(call.id, deadline, output, expects))
            slot = checkout.acquire_nowait() or await checkout.acquire(deadline, attempt.begin)
            try:
                answer = await attempt.answer(slot, look=retries > 0)
            except WorkerUnavailable:
                call = msgspec.structs.replace(call, id=next(self._ids))  # it has seen nothing of the call
                continue
            except WorkerDied as death:
                if death.ordered or retries == 0:
                    raise
                retries -= 1
                call = self._with_fault(msgspec.structs.replace(call, id=next(self._ids)))
                continue
            finally:
                attempt.free()
            self.workers.restarts.in_a_row = 0
            if attempt.proposal is not None:
                return attempt.proposal
            assert isinstance(answer, _ENDED)
            return answer

    def _with_fault(self, call: messages.Call) -> messages.Call:
        """Return a call with the fault that the plan has for it, where there is a plan."""
        if self.spec.faults is None:
            return call
        return msgspec.structs.replace(call, fault=self.spec.faults.fault_of_call(self.spec.category, call.tool))

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
            answer = await slot.channel.exchange(frames.frame(messages.Probe()), None, deadline, (messages.Probed,))
        finally:
            self.checkout.busy.discard(slot)
        self.checkout.release(slot, answer)
        assert isinstance(answer, messages.Probed)
        return answer
