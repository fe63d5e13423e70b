"""One time limit for all of a fetch.

Rule: whoever waits asks `left` first, which never says 0. Work of others' code that cannot be asked, such as the
parsing of a hostile page, has an alarm (`workers.libraries.alarm`).
"""

import time

from workers.errors import ToolError


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
