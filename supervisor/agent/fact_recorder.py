"""The recorder of a conversation's facts. Rule: they are durable first, then taken into account, then shown."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from supervisor.agent.turn import Event
from supervisor.journal.facts import Fact
from supervisor.journal.journal_writer import JournalWriter


@dataclass(frozen=True)
class FactRecorder:
    """The recorder of one session."""

    session: str
    """Its id in the journal."""
    writer: JournalWriter
    take: Callable[[Fact], None]
    """Takes a fact into account."""
    show: Callable[[Event], None]
    """Shows it to whoever is there."""

    async def record(self, *facts: Fact) -> None:
        """Make facts durable, then take them into account, then show them.

        Raises:
            JournalError: they cannot be recorded; nothing else has happened.
        """
        if facts:
            await self.writer.append(self.session, *facts, then=partial(self._tell, facts))

    def record_at_once(self, *facts: Fact) -> None:
        """Do the same without letting anything else happen meanwhile; all sessions wait for it.

        Raises:
            JournalError: as `record`.
        """
        if facts:
            self.writer.journal.append(self.session, *facts)
            self._tell(facts)

    def _tell(self, facts: Sequence[Fact]) -> None:
        for fact in facts:
            self.take(fact)
        for fact in facts:
            self.show(fact)
