"""Deadlines of the calls of one pool. What happens to a call that is overdue stands in `Checkout._sweep`."""

from collections.abc import Callable

import trio


class Sweeper:
    """One clock for all deadlines of a pool: sleeps until the earliest.

    Setting a deadline costs a comparison. A cancel scope for each call would cost 8 to 10 us of a 60 us round trip;
    here one scope's deadline is the earliest of all, or earlier, and whoever owns the deadlines looks when it fires.

    Args:
        sweep: is given the time (trio's clock, seconds), deals with what is overdue, and returns the earliest deadline
            that is left, infinite when there is none.
    """

    def __init__(self, sweep: Callable[[float], float]) -> None:
        self._sweep = sweep
        self._scope = trio.CancelScope()
        self._due = float("inf")

    def expect(self, deadline: float) -> None:
        """Wake up at `deadline` at the latest."""
        if deadline < self._due:
            self._due = self._scope.deadline = deadline

    async def run(self) -> None:
        """Sweep whenever a deadline has passed, until cancelled."""
        while True:
            with self._scope:
                await trio.sleep_forever()
            self._due = float("inf")
            self._scope = trio.CancelScope(deadline=self._sweep(trio.current_time()))
            self._due = self._scope.deadline
