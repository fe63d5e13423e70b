"""A call that its worker has rehearsed, and whose changes the worker holds until they are decided.

Rule: nothing has changed before `decide(commit=True)`. The worker serves nobody else meanwhile; the pool starts others
in its place. A proposal that is not decided is abandoned by ending the worker.
"""

from contextlib import suppress
from typing import Final

import outcome
import trio

from supervisor.errors import WorkerDied, WorkerError, WorkerUnavailable
from supervisor.pool.checkout import Checkout
from supervisor.pool.pending_answer import Originals
from supervisor.pool.worker_slot import WorkerSlot
from workers.changes.effects import Effects
from workers.wire import frames, messages

_KEPT: Final = (messages.Kept, messages.Failed)
_DECIDED: Final = (messages.Done, messages.Failed)
_FREED_AT_ONCE: Final = 2_000
"""Changes after whose commit a worker serves on: what more have replaced takes seconds to free on a busy disk."""

_GONE_S: Final = 10.0
"""Seconds that a worker which was killed may take to end: in the middle of a commit it may wait for a disk."""


class PendingProposal:
    """The answer of `Pool.propose` where a call would change something."""

    def __init__(
        self, checkout: Checkout, slot: WorkerSlot, number: int, effects: Effects, said: messages.Done | None
    ) -> None:
        assert slot.process is not None, "it has just answered"
        self.effects = effects
        self.said: Final = said
        """How its commit will be answered, but for what that remarks; None where its worker does not say."""
        self._checkout = checkout
        self._slot = slot
        self._process = slot.process
        self.number: Final = number
        """The call's, by which a commit is known that was killed."""
        self._decided = False

    @property
    def decide_timeout(self) -> float:
        """Seconds that a commit may take."""
        return self._checkout.spec.decide_timeout

    async def keep(
        self, each: int, total: int, take: Originals, *, caches: bool = False
    ) -> messages.Kept | messages.Failed:
        """Let the worker send what a commit would replace, or what it has in `caches`; see `wire.Keep`.

        An error that `take` raises is raised when the worker has sent everything, and it is asked for nothing more.

        Raises:
            WorkerUnavailable, WorkerDied: the worker has ended; nothing has changed.
        """
        failure: list[Exception] = []
        names = 0

        def taken(part: messages.Original | messages.Piece) -> None:
            nonlocal names
            names += isinstance(part, messages.Original)
            if not failure:
                try:
                    take(part)
                except Exception as error:  # noqa: BLE001 - whatever it is, it is raised below
                    failure.append(error)

        answer = await self._exchange(messages.Keep(self.number, each, total, caches), _KEPT, taken)
        if failure:
            raise failure[0]
        assert isinstance(answer, messages.Kept | messages.Failed)
        if isinstance(answer, messages.Kept) and names < max(answer.names, 0 if caches else len(self.effects.changes)):
            self.abandon()
            raise WorkerDied(f"said that it had sent what it would replace, and sent {names} names")
        return answer

    async def decide(self, *, commit: bool) -> messages.Done | messages.Failed:
        """Let the worker commit, or discard, and release it.

        When the caller is cancelled, a commit that has begun still has the spec's `commit_grace` to end well: then its
        outcome is returned, and the caller stays cancelled.

        Raises:
            WorkerUnavailable: the worker had ended before; nothing has changed.
            WorkerDied: it ended, or was ended, while it did so.
        """
        self._decided = True
        if not commit:
            answer = await self._exchange(messages.Decide(self.number, commit=False), _DECIDED)
        else:
            answer = await self._commit()
        assert isinstance(answer, messages.Done | messages.Failed)
        self._checkout.release(self._slot, answer, occupied=commit and len(self.effects.changes) > _FREED_AT_ONCE)
        return answer

    async def discard(self) -> str:
        """Let the worker forget what it rehearsed; return what that printed, JSON, "" where nothing is known of it."""
        with suppress(WorkerError):
            answer = await self.decide(commit=False)
            return answer.content if isinstance(answer, messages.Done) and answer.form == "json" else ""
        return ""

    async def _commit(self) -> messages.Answer:
        found: outcome.Outcome[messages.Answer] | None = None
        shielded = trio.CancelScope(shield=True)
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._hurry, shielded)
                with shielded:
                    found = await outcome.acapture(self._exchange, messages.Decide(self.number, commit=True), _DECIDED)
                nursery.cancel_scope.cancel()
        except (trio.Cancelled, BaseExceptionGroup):
            pass  # the caller stays cancelled, and learns what became of it first
        if found is None or (isinstance(found, outcome.Error) and isinstance(found.error, trio.Cancelled)):
            raise WorkerDied("was ended", "cancelled")
        return found.unwrap()

    async def _hurry(self, commit: trio.CancelScope) -> None:
        """Give a commit little more time once its caller is cancelled."""
        try:
            await trio.sleep_forever()
        finally:
            commit.deadline = trio.current_time() + self._checkout.spec.commit_grace

    async def is_gone(self) -> bool:
        """Wait a little, also when cancelled, until a worker that died can do nothing more; say whether that is so."""
        with trio.move_on_after(_GONE_S, shield=True):
            await self._process.gone.wait()
        return self._process.gone.is_set()

    def abandon(self) -> None:
        """End the worker, unless the proposal was decided."""
        if not self._decided:
            self._decided = True
            self._checkout.kill(self._slot, self._process)

    async def _exchange(
        self,
        message: messages.Keep | messages.Decide,
        expects: tuple[type[messages.Answer], ...],
        originals: Originals | None = None,
    ) -> messages.Answer:
        if self._slot.process is not self._process:
            raise WorkerUnavailable("the worker that held it has ended")
        checkout, slot = self._checkout, self._slot
        deadline = trio.current_time() + checkout.spec.decide_timeout
        checkout.busy.add(slot)
        checkout.sweeper.expect(deadline)
        try:
            return await slot.channel.exchange(
                frames.frame(message), message.id, deadline, expects, originals=originals
            )
        finally:
            checkout.busy.discard(slot)
