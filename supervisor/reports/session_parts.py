"""Parts of a session as people follow it: each fact for itself, but those of a call together. Pure.

Rule: a call stands where it has ended, one without an end behind all. Reports show parts, and fold no facts themselves.
"""

from collections.abc import Iterable, Iterator

import msgspec

from supervisor.journal.facts import CallDecided, CallEnded, CallStarted
from supervisor.journal.journal import JournalEntry


class CallPart(msgspec.Struct):
    """A call: how it was started, also anew, what was decided about it, and its end, in this order."""

    call: str
    entries: list[JournalEntry]

    @property
    def started(self) -> CallStarted | None:
        """How it was asked for; None where that row is lost, or it was never judged."""
        return next((entry.fact for entry in self.entries if isinstance(entry.fact, CallStarted)), None)

    @property
    def ended(self) -> CallEnded | None:
        return next((entry.fact for entry in self.entries if isinstance(entry.fact, CallEnded)), None)


SessionPart = JournalEntry | CallPart


def session_parts(entries: Iterable[JournalEntry]) -> Iterator[SessionPart]:
    """Yield the parts of a session."""
    running: dict[str, CallPart] = {}
    for entry in entries:
        fact = entry.fact
        if not isinstance(fact, CallStarted | CallDecided | CallEnded):
            yield entry
            continue
        part = running.setdefault(fact.call, CallPart(fact.call, []))
        part.entries.append(entry)
        if isinstance(fact, CallEnded):
            yield running.pop(fact.call)
    yield from running.values()
