"""A suspended turn, as clients are told of it, and in words for people."""

from supervisor.acp import extensions
from supervisor.display.clock_time import clock_time
from supervisor.journal.facts import TurnSuspended


def suspension(fact: TurnSuspended) -> extensions.Suspension:
    """Return why a turn is suspended, as clients are told."""
    return extensions.Suspension(kind=fact.kind, why=fact.why, until=fact.until or None)


def suspension_text(fact: TurnSuspended) -> str:
    """Return the same for people."""
    until = f" It goes on by itself at {clock_time(fact.until)}." if fact.until else ""
    return f"suspended: {fact.why}{until}"
