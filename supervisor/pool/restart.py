"""How often, and how soon, a worker is started again. Pure: time is an argument.

Rule: the algorithm is OTP's `supervisor:add_restart/3` (a list of times, drop the old, compare the length) plus
an exponential backoff, which OTP leaves to the child.
"""

from collections import deque

from supervisor.pool.spec import Restart


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


def backoff(failures: int, policy: Restart) -> float:
    """Return the seconds to wait before the start after `failures` deaths in a row (1 or more)."""
    doublings = min(failures - 1, 32)
    return min(policy.first_backoff * 2.0**doublings, policy.longest_backoff)
