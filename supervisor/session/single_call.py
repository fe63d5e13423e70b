"""A single call's context: what becomes of what happens on its way, without a turn around it."""

from collections.abc import Callable

from supervisor.agent.turn import CallOutput, Event
from supervisor.journal.facts import CallDecided, CallStarted, Fact
from supervisor.journal.journal_writer import JournalWriter
from supervisor.tools.partial_output import PartialOutput


class SingleCallContext:
    """What becomes of what happens on the way of a single call."""

    def __init__(
        self,
        writer: JournalWriter,
        session: str,
        started: CallStarted,
        show: Callable[[Event], None],
        recorded: Callable[[CallStarted | CallDecided], None],
    ) -> None:
        self.started = started
        self.decided: CallDecided | None = None
        self.partial_output = PartialOutput()
        self._writer = writer
        self._session = session
        self._show = show
        self._recorded = recorded

    async def record(self, *facts: Fact) -> None:
        await self._writer.append(self._session, *facts)
        for fact in facts:
            match fact:
                case CallStarted():
                    self.started, self.decided = fact, None
                    self._recorded(fact)
                case CallDecided():
                    self.decided = fact
                    self._recorded(fact)
                case _:
                    pass

    def output(self, call: str, text: str) -> None:
        self.partial_output.add(call, text)
        self._show(CallOutput(call, text))

    def awaiting_approval(self, *, begins: bool) -> None:
        """Nobody watches the state of a single call."""
