"""Decides when a worker is started again, and when its category has failed. Pure: time and chance are arguments.

Rule: the algorithm is OTP's `supervisor:add_restart/3` (a list of times, drop those from before the period, compare
the length; a death exactly one period ago still counts) plus an exponential backoff, which OTP leaves to the child.
Where an OTP supervisor would end and let its own restart it, a category is FAILED for a pause, and then begins anew.
What becomes of the call that a worker had when it died is decided in `Pool._run`.
"""

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from supervisor.pool.spec import Restart


class CategoryFailure(NamedTuple):
    """The reason why no worker of a category is started now, and when (seconds) they are tried again."""

    because: str
    until: float

    def describe(self, now: float) -> str:
        """Return both as half a sentence."""
        seconds = self.until - now
        when = f"tried again in {seconds:.0f} s" if seconds > 0 else "being tried again just now"
        return f"{self.because}; they are {when}"


class Intensity:
    """The deaths of one category within the last period."""

    def __init__(self, policy: Restart) -> None:
        self._policy = policy
        self._times: deque[float] = deque()

    def allows(self, now: float) -> bool:
        """Note a death at `now` (seconds); say whether it is still within the intensity."""
        self._times.append(now)
        while now - self._times[0] > self._policy.period:
            self._times.popleft()
        return len(self._times) <= self._policy.intensity

    def forget(self) -> None:
        """Begin anew, as after the pause of a category that had FAILED."""
        self._times.clear()


class Restarts:
    """Says when the next worker of a category may be started; times are seconds of one clock.

    Args:
        policy: the spec's.
        chance: a number in [0, 1) to spread the starts with.
    """

    def __init__(self, policy: Restart, chance: Callable[[], float]) -> None:
        self.failure: CategoryFailure | None = None
        """Set while the category is FAILED: until a worker is ready again, which may be some time after the pause."""
        self.in_a_row = 0
        """Deaths since a call was answered, or since there was none for a whole period."""
        self._policy = policy
        self._chance = chance
        self._intensity = Intensity(policy)
        self._last_death = float("-inf")
        self._anew_at = float("inf")

    def failed(self, now: float) -> bool:
        """Say whether nothing may be started now, because the category is FAILED."""
        return self.failure is not None and now < self.failure.until

    def died(self, now: float, how: str) -> float:
        """Note a death that nobody ordered; return when the next start may be."""
        self._begin_anew(now)
        if now - self._last_death > self._policy.period:
            self.in_a_row = 0
        self.in_a_row += 1
        self._last_death = now
        if not self._intensity.allows(now):
            return self._fail(now, f"died too often, the last one {how}")
        return self.ended(now)

    def refused(self, now: float, how: str) -> float:
        """Note a worker that cannot serve at all; return when the next start may be."""
        self._begin_anew(now)
        return self._fail(now, how)

    def ended(self, now: float) -> float:
        """Return when the next start may be after one that was ordered to end."""
        start = now + backoff(max(1, self.in_a_row), self._policy, self._chance())
        return start if self.failure is None else max(start, self.failure.until)

    def _fail(self, now: float, because: str) -> float:
        if self.failure is None or now >= self.failure.until:  # one that fails meanwhile does not prolong it
            self.failure = CategoryFailure(because, now + self._policy.pause)
            self._anew_at = self.failure.until
        return self.failure.until

    def _begin_anew(self, now: float) -> None:
        if now >= self._anew_at:
            self._intensity.forget()
            self.in_a_row = 0
            self._anew_at = float("inf")


def backoff(failures: int, policy: Restart, chance: float) -> float:
    """Return the seconds to wait before the start after `failures` deaths in a row (1 or more); `chance` is below 1."""
    doublings = min(failures - 1, 32)
    longest: float = min(policy.first_backoff * 2.0**doublings, policy.longest_backoff)
    return longest * (1 - policy.jitter * chance)
