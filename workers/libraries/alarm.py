"""A time limit for work that asks for no time: others' code on what strangers wrote, interrupted by a signal."""

import signal
from collections.abc import Callable
from typing import Final, TypeVar

_AGAIN: Final = 0.1
"""Seconds after which the signal is repeated, should the first have been swallowed (as in a destructor)."""

_T = TypeVar("_T")


class TooSlow(Exception):
    """The work was interrupted."""


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
