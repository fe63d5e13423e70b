"""The search program, prepared, and the time that one call of it has."""

import time

import msgspec


class Searcher(msgspec.Struct, frozen=True):
    """What the tools of this category stand on."""

    program: str
    """The path of ripgrep."""
    jobs: int
    budget_s: float
    """Seconds for one call, a little less than the supervisor grants it."""

    def deadline(self, queued_s: float) -> float:
        """Return when a call ends that waited so long, in time.monotonic()."""
        return time.monotonic() + self.budget_s - queued_s
