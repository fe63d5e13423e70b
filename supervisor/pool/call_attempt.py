"""One attempt at one call: a worker is free, or has become so, is told, and serves others once its answer is there.

Rule: a call that waits is sent by whoever frees a worker for it, before anybody is woken; its own task does what cannot
be done at once. So a worker that has answered has its next call without a turn of the event loop in between.
"""

import os
import struct
from collections import deque
from collections.abc import Awaitable, Iterator
from typing import Final

import msgspec
import trio
from trio.lowlevel import Task

from supervisor.errors import WorkerUnavailable
from supervisor.pool.channel import Channel
from supervisor.pool.checkout import Checkout
from supervisor.pool.pending_answer import PendingAnswer
from supervisor.pool.pending_proposal import PendingProposal
from supervisor.pool.worker_slot import WorkerSlot
from workers.wire import frames, messages

_REMEMBERED: Final = 256
"""Calls whose times a pool remembers."""
_QUICK_S: Final = 0.0005
"""Seconds that the last call took at most, where the next one's answer is looked for at once."""
_LOOKS: Final = 16
"""Calls in a row that may be answered so, before other tasks get their turn in any case."""
_ID: Final = struct.Struct(">Q")
_IDS_AT_ONCE: Final = 128


class CallTimes:
    """How long the calls of one pool take, waits for a worker included."""

    def __init__(self) -> None:
        self.clock = trio.lowlevel.current_clock().current_time
        """Tells trio's time, two frames closer."""
        self.calls = 0
        self._last = 0.0
        self._all: deque[float] = deque(maxlen=_REMEMBERED)
        self._looks = 0

    def note(self, began: float) -> None:
        """Take note that a call which began then has been answered."""
        self.calls += 1
        self._last = self.clock() - began
        self._all.append(self._last)

    def median(self) -> float | None:
        """Return the median of the last calls' times in seconds; None before the first."""
        return sorted(self._all)[len(self._all) // 2] if self._all else None

    def look(self) -> bool:
        """Say whether the next call's answer is to be looked for at once, and count it."""
        quick = self._last < _QUICK_S
        self._looks += quick
        return quick

    async def pause(self) -> None:
        """Let other tasks have their turn after so many looks; in any case where the caller is cancelled."""
        if self._looks >= _LOOKS:
            self._looks = 0
            await trio.lowlevel.checkpoint()
        await trio.lowlevel.checkpoint_if_cancelled()


class CallAttempt(msgspec.Struct, eq=False):
    """One attempt at a call: sent to a worker, which serves others as soon as its answer is there."""

    checkout: Checkout
    times: CallTimes
    call: messages.Call
    began: float
    """When the call did, maybe with an earlier attempt (trio's clock)."""
    pending: PendingAnswer
    slot: WorkerSlot | None = None
    channel: Channel | None = None
    """On which it was sent while its task waited."""
    proposal: PendingProposal | None = None
    """What the worker holds, where its answer is a proposal."""

    def begin(self, slot: WorkerSlot, task: Task) -> bool:
        """Send the call to a worker that has become free, for the task that waits; False where it must do so itself."""
        self.call = msgspec.structs.replace(self.call, queued_s=self.times.clock() - self.began)
        try:
            channel = slot.channel
            if not channel.begin(self.pending, frames.frame(self.call), task):
                return False
        except (frames.FrameTooLarge, WorkerUnavailable):
            return False
        self.slot, self.channel, self.pending.answered = slot, channel, self._release
        return True

    def answer(self, slot: WorkerSlot, *, look: bool) -> Awaitable[messages.Answer]:
        """Return what waits for the answer, of a call that is sent now where it has not been; raises as `Channel.ask`.

        `look` as there; `free` must follow.
        """
        if self.channel is not None:
            return self.channel.ending(self.pending)
        try:
            frame = frames.frame(self.call)
        except frames.FrameTooLarge:
            self.checkout.release(slot)
            raise
        self.slot, self.pending.answered = slot, self._release
        self.checkout.sweeper.expect(self.pending.deadline)
        look = look and len(self.checkout.busy) == 1 and self.times.look()
        return slot.channel.ask(self.pending, frame, look=look)

    def free(self) -> None:
        """Give the worker up that no answer has come from, or none that was read while it lived."""
        if self.pending.answered is None or self.slot is None:
            return
        if isinstance(self.pending.answer, messages.Answer):
            self._release()
        else:
            self.checkout.busy.discard(self.slot)

    def _release(self) -> None:
        """Let the worker serve the next call, or hold what it proposes, now that its answer has been read."""
        checkout, slot, answer = self.checkout, self.slot, self.pending.answer
        assert slot is not None
        self.pending.answered = None
        self.times.note(self.began)
        if isinstance(answer, messages.Proposed):
            checkout.hold(slot, answer.effects.size)
            self.proposal = PendingProposal(checkout, slot, self.call.id, answer.effects, answer.said)
        else:
            assert not isinstance(answer, Exception)
            checkout.release(slot, answer)


def random_ids() -> Iterator[int]:
    """Yield ids that nobody can guess; the kernel is asked for many at once."""
    while True:
        for (number,) in _ID.iter_unpack(os.urandom(_ID.size * _IDS_AT_ONCE)):
            yield number >> 8
