"""A call that its worker has rehearsed, and holds until it is decided.

Rule: nothing has changed before `decide(commit=True)`. The worker serves nobody else meanwhile; the pool starts others
in its place. Whatever is not decided is given up by ending the worker.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import outcome
import trio

from supervisor.errors import WorkerDied, WorkerUnavailable
from supervisor.pool.channel import Originals
from workers.changes.effects import Effects
from workers.wire import frames, messages

if TYPE_CHECKING:
    from supervisor.pool.pool import Pool
    from supervisor.pool.worker_process import WorkerProcess
    from supervisor.pool.worker_slot import WorkerSlot

_KEPT: Final = (messages.Kept, messages.Failed)
_DECIDED: Final = (messages.Done, messages.Failed)


class PendingProposal:
    """What `Pool.propose` returns where a call would change something."""

    def __init__(self, pool: "Pool", keeper: "WorkerSlot", number: int, effects: Effects) -> None:
        assert keeper.process is not None, "it has just answered"
        self.effects = effects
        self._pool = pool
        self._keeper = keeper
        self._process: WorkerProcess = keeper.process
        self._number = number
        self._decided = False

    @property
    def decide_timeout(self) -> float:
        """Seconds that a commit may take."""
        return self._pool.spec.decide_timeout

    async def keep(self, each: int, total: int, take: Originals) -> messages.Kept | messages.Failed:
        """Let the worker send what a commit would replace; see `wire.Keep`.

        An error that `take` raises is raised when the worker has sent everything, and it is asked for nothing more.

        Raises:
            WorkerUnavailable, WorkerDied: the worker has ended; nothing has changed.
        """
        failure: list[Exception] = []

        def taken(part: messages.Original | messages.Piece) -> None:
            if not failure:
                try:
                    take(part)
                except Exception as error:  # noqa: BLE001 - whatever it is, it is raised below
                    failure.append(error)

        answer = await self._exchange(messages.Keep(self._number, each, total), _KEPT, taken)
        if failure:
            raise failure[0]
        assert isinstance(answer, messages.Kept | messages.Failed)
        return answer

    async def decide(self, *, commit: bool) -> messages.Done | messages.Failed:
        """Let the worker commit, or discard, and take it back.

        When the caller is cancelled, a commit that has begun still has the spec's `commit_grace` to end well: then its
        outcome is returned, and the caller stays cancelled.

        Raises:
            WorkerUnavailable: the worker had ended before; nothing has changed.
            WorkerDied: it ended, or was ended, while it did so.
        """
        self._decided = True
        if not commit:
            answer = await self._exchange(messages.Decide(self._number, commit=False), _DECIDED)
        else:
            answer = await self._commit()
        assert isinstance(answer, messages.Done | messages.Failed)
        self._pool.take_back(self._keeper, answer)
        return answer

    async def _commit(self) -> messages.Answer:
        found: outcome.Outcome[messages.Answer] | None = None
        shielded = trio.CancelScope(shield=True)
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._hurry, shielded)
                with shielded:
                    found = await outcome.acapture(self._exchange, messages.Decide(self._number, commit=True), _DECIDED)
                nursery.cancel_scope.cancel()
        except (trio.Cancelled, BaseExceptionGroup):
            pass  # the caller stays cancelled, and learns what became of it first
        if found is None or (isinstance(found, outcome.Error) and isinstance(found.error, trio.Cancelled)):
            raise WorkerDied("was ended while it committed", "cancelled")
        return found.unwrap()

    async def _hurry(self, commit: trio.CancelScope) -> None:
        """Give a commit little more time once its caller is cancelled."""
        try:
            await trio.sleep_forever()
        finally:
            commit.deadline = trio.current_time() + self._pool.spec.commit_grace

    def give_up(self) -> None:
        """End the worker, unless it was decided."""
        if not self._decided:
            self._decided = True
            self._pool.give_up(self._keeper, self._process)

    async def _exchange(
        self, message: messages.Keep | messages.Decide, expects: tuple[type, ...], originals: Originals | None = None
    ) -> messages.Answer:
        if self._keeper.process is not self._process:
            raise WorkerUnavailable("the worker that held it has ended")
        deadline = trio.current_time() + self.decide_timeout
        return await self._pool.ask_holder(
            self._keeper, frames.frame(message), self._number, deadline, expects, originals
        )


Output = Callable[[str], None]
"""Is given what a tool prints while it runs."""
