"""Counter of the calls that models have started, as the clients are told.

Rule: a call counts once, whoever is told of it and however often: a session that is taken up tells all of its calls
again.
"""

import threading


class StartedCalls:
    """Counts them, for several threads."""

    def __init__(self) -> None:
        self._seen: set[tuple[str, str]] = set()
        self._changed = threading.Condition()

    @property
    def total(self) -> int:
        """How many there have been."""
        return len(self._seen)

    def add(self, session: str, call: str) -> None:
        """Count a call, unless it was counted."""
        with self._changed:
            self._seen.add((session, call))
            self._changed.notify_all()

    def wait(self, until: float, seconds: float) -> None:
        """Return when there have been so many, or after some seconds."""
        with self._changed:
            self._changed.wait_for(lambda: self.total >= until, seconds)
