"""The owner of a call in tests: it keeps what it is told."""

from supervisor.journal.facts import CallDecided, Fact


class RecordingContext:
    """As `supervisor.tools.call_context.CallContext`."""

    def __init__(self) -> None:
        self.facts: list[Fact] = []
        self.output_text = ""
        self.approvals = 0

    async def record(self, *facts: Fact) -> None:
        self.facts += facts

    def output(self, _call: str, text: str) -> None:
        self.output_text += text

    def awaiting_approval(self, *, begins: bool) -> None:
        self.approvals += begins

    @property
    def decided(self) -> list[CallDecided]:
        return [fact for fact in self.facts if isinstance(fact, CallDecided)]
