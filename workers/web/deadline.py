"""One time limit for all of a fetch, and one for work that asks for no time.

Rule: whoever waits asks `left` first, which never says 0. Work of others' code that cannot be asked, such as
the parsing of a hostile page, is interrupted by a signal.
"""

import signal
import time
from collections.abc import Callable
from typing import Final, TypeVar

from workers.errors import ToolError

_AGAIN: Final = 0.1
"""Seconds after which the signal is repeated, should the first have been swallowed (as in a destructor)."""

_T = TypeVar("_T")


class TooSlow(Exception):
    """The work was interrupted."""


class Deadline:
    """A point in time, `seconds` from now."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._at = time.monotonic() + seconds

    def left(self) -> float:
        """Return how many seconds are left.

        Raises:
            ToolError: `timeout`, none.
        """
        left = self._at - time.monotonic()
        if left <= 0:
            raise ToolError(
                "timeout",
                f"The page did not arrive within {self._seconds:.3g} s. Try again later, or fetch another page.",
                seconds=round(self._seconds),
            )
        return left


def within(seconds: float, work: Callable[[], _T]) -> _T:
    """Do `work` in this, the only thread, for at most about so long.

    Raises:
        TooSlow: it was not done.
    """

    def ring(_number: int, _frame: object) -> None:
        raise TooSlow

    before = signal.signal(signal.SIGALRM, ring)
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds, _AGAIN)
        try:
            return work()
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)  # once more: it may have rung again just before it was told to stop
        signal.signal(signal.SIGALRM, before)
