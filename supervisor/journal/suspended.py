"""The suspension that stands at the end of a session's entries."""

from collections.abc import Sequence

from supervisor.journal.facts import TurnEnded, TurnResumed, TurnStarted, TurnSuspended
from supervisor.journal.journal import JournalEntry


def suspended_in(entries: Sequence[JournalEntry]) -> TurnSuspended | None:
    """Return why the session's turn goes no further; None where it does, or has ended."""
    of_turn = (
        entry.fact
        for entry in reversed(entries)
        if isinstance(entry.fact, TurnStarted | TurnResumed | TurnSuspended | TurnEnded)
    )
    last = next(of_turn, None)
    return last if isinstance(last, TurnSuspended) else None
