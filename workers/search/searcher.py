"""The search program, prepared, and the time that one call of it has."""

import time
from collections.abc import Sequence

import msgspec

from workers.errors import ToolError
from workers.search.known_files import KnownFiles


class Searcher(msgspec.Struct, frozen=True):
    """What the tools of this category stand on."""

    program: str
    """The path of ripgrep."""
    jobs: int
    budget_s: float
    """Seconds for one call, a little less than the supervisor grants it."""
    known: KnownFiles = msgspec.field(default_factory=KnownFiles)
    """The files that were listed last, for a person who types a path."""

    def deadline(self, queued_s: float) -> float:
        """Return when a call ends that waited so long, in time.monotonic()."""
        return time.monotonic() + self.budget_s - queued_s

    def overdue(self, advice: str, found: Sequence[object], count: int) -> ToolError:
        """Return the error for a search whose time was over; `found` are some of the `count` things it came to."""
        message = (
            f"The search was stopped after {self.budget_s:g} s. {advice} "
            f"Found so far, incomplete and in no order: {msgspec.json.encode(found).decode() if found else 'nothing'}"
        )
        return ToolError("timeout", message, found=count)
