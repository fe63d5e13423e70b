"""The owner of a call in tests: it keeps what it is told."""

from supervisor.journal.facts import CallDecided, Fact


class Course:
    """As `supervisor.tools.execution.Course`."""

    def __init__(self) -> None:
        self.facts: list[Fact] = []
        self.printed = ""
        self.asked = 0

    def record(self, *facts: Fact) -> None:
        self.facts += facts

    def output(self, _call: str, text: str) -> None:
        self.printed += text

    def asking(self, *, begins: bool) -> None:
        self.asked += begins

    @property
    def decided(self) -> list[CallDecided]:
        return [fact for fact in self.facts if isinstance(fact, CallDecided)]
