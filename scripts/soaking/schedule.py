"""Times at which a soak kills the daemon and hurts workers, drawn from the seed and a number alone.

Rule: pure. The n-th kill and the n-th wound have a stream of chance each, so neither what happens nor how fast, nor
what is looked at meanwhile, changes what any of them is. They are bound to calls that are begun, so that a life of the
daemon ends at the same call wherever the machine gets there in time; where it does not, a second that was drawn counts.
"""

import math
import signal
from typing import Final, NamedTuple

from scripts.soaking.chance import chance_of

_KILLS: Final = (5.0, 11.0)
"""Seconds between the latest moments of two kills, at least and at most."""
_KILL_CALLS: Final = (10, 200)
"""Calls that a life of the storm begins before it is killed, at least and at most."""
_WOUNDS: Final = (1.0, 4.0)
"""Seconds from one wound to the latest moment of the next, at least and at most."""
_WOUND_CALLS: Final = (5, 150)
"""Calls that are begun between two wounds, at least and at most."""
_SIGNALS: Final = (signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV, signal.SIGSTOP)


class Kill(NamedTuple):
    """One kill of the daemon."""

    call: int
    """When its life begins its call of this number,"""
    latest: float
    """or at this second of the soak, whichever is first."""


class Wound(NamedTuple):
    """One signal to a worker."""

    call: int
    """When so many calls were begun after the wound before,"""
    latest: float
    """or so many seconds after it, whichever is first."""
    signal: signal.Signals
    share: float
    """Which worker: the one at this share of those that live then, in order."""


def kills(seed: int, begin: float, end: float) -> list[Kill]:
    """Return all kills of a storm between two seconds of the soak."""
    found: list[Kill] = []
    latest = begin
    while True:
        chance = chance_of(seed, "kill", len(found) + 1)
        latest += chance.uniform(*_KILLS)
        if latest >= end:
            return found
        found.append(Kill(chance.randint(*_KILL_CALLS), latest))


def wound(seed: int, number: int) -> Wound:
    """Return the wound of that number."""
    chance = chance_of(seed, "wound", number)
    call, latest = chance.randint(*_WOUND_CALLS), chance.uniform(*_WOUNDS)
    return Wound(call, latest, chance.choice(_SIGNALS), chance.random())


class Schedule:
    """What comes next. Seconds are counted from the beginning of the soak, and so are calls that were begun.

    Args:
        seed: the soak's.
        begin, end: of the storm.
    """

    def __init__(self, seed: int, begin: float, end: float) -> None:
        self._seed = seed
        self._kills = kills(seed, begin, end)
        self.killed_at: list[str] = []
        """The call, or the second, of each kill so far, as it was drawn."""
        self._life = 0
        """Calls that had been begun when the daemon's life began."""
        self._wounds = 0
        self._wounded: tuple[float, int] | None = None
        """When the last wound was; None where nothing is to be hurt yet."""

    @property
    def stormy(self) -> bool:
        """Whether a kill is still to come."""
        return bool(self._kills)

    @property
    def until(self) -> float:
        """How many calls will have been begun when something is due."""
        if self._wounded is None:
            return math.inf
        next_wound = self._wounded[1] + wound(self._seed, self._wounds + 1).call
        return min(next_wound, self._life + self._kills[0].call) if self._kills else next_wound

    def begin(self, now: float, calls: int) -> None:
        """Note that a life has begun in which workers fail."""
        self._life = calls
        self._wounded = self._wounded or (now, calls)

    def kill(self, now: float, calls: int) -> Kill | None:
        """Return the kill that is due, and go on to the next one."""
        if not self._kills:
            return None
        in_time = calls >= self._life + self._kills[0].call
        if not in_time and now < self._kills[0].latest:
            return None
        due = self._kills.pop(0)
        self.killed_at.append(f"call {due.call} of its life" if in_time else f"second {due.latest:.1f}")
        return due

    def wound(self, now: float, calls: int) -> Wound | None:
        """Return the wound that is due, and go on to the next one."""
        if self._wounded is None:
            return None
        due = wound(self._seed, self._wounds + 1)
        if now < self._wounded[0] + due.latest and calls < self._wounded[1] + due.call:
            return None
        self._wounds += 1
        self._wounded = (now, calls)
        return due
