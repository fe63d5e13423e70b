"""The resumption of a suspended turn: whether its time has come, and the wait until then.

Rule: nothing stands here but what the facts say; a wait that a crash cut off goes on until the same moment. A clock
that is put back makes no wait longer, and one that is put forward ends it: the server says how long it still is.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import trio

from supervisor.agent.transcript import Transcript
from supervisor.journal.facts import TurnSuspended

_LOOK_S: Final = 30.0
"""Seconds after which a wait looks at the clock again: a machine that sleeps stops trio's clock, and not the hour."""


def _uptime() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


@dataclass
class Resumption:
    """Says when the open turn of a conversation goes on."""

    transcript: Transcript
    """Of the session's facts so far."""
    fits: Callable[[int], bool]
    """Says whether the budgets hold a request with so many tokens of input."""
    clock: Callable[[], float] = time.time
    """Seconds since the epoch."""
    uptime: Callable[[], float] = _uptime
    """Seconds since the machine began, those too in which it slept."""
    _waited: TurnSuspended | None = None
    """What has been waited for as long as it said."""
    _changed: trio.Event = field(default_factory=trio.Event)

    @property
    def ends_by_itself(self) -> bool:
        """Whether the turn waits for a moment, which may have come."""
        return self.transcript.suspended is not None and self.transcript.suspended.until > 0

    def holds(self, by: str = "") -> bool:
        """Say whether the turn stays as it is, where `by` says that it goes on, or nobody does."""
        suspended = self.transcript.suspended
        if suspended is None or by or suspended is self._waited or 0 < suspended.until <= self.clock():
            return False
        return suspended.kind != "budget" or not self.fits(suspended.tokens)

    async def wait(self) -> None:
        """Wait until the turn goes on by itself, or `wake`."""
        self._changed = trio.Event()
        suspended = self.transcript.suspended
        until = 0.0 if suspended is None else suspended.until
        end = self.uptime() + until - self.clock()
        while (left := min(until - self.clock(), end - self.uptime())) > 0 and not self._changed.is_set():
            with trio.move_on_after(min(left, _LOOK_S)):
                await self._changed.wait()
        self._waited = suspended if left <= 0 else self._waited

    def wake(self) -> None:
        """Let whoever waits look whether the turn goes on."""
        self._changed.set()
