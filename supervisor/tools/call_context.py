"""The owner of a running call, as tools/ knows it."""

from typing import Protocol

from supervisor.journal.facts import Fact


class CallContext(Protocol):
    """Receives what happens while a call runs."""

    async def record(self, *facts: Fact) -> None:
        """Make facts durable.

        Raises:
            JournalError: they cannot be; what they would have allowed does not happen.
        """

    def output(self, call: str, text: str) -> None:
        """Show what a tool prints."""

    def awaiting_approval(self, *, begins: bool) -> None:
        """A person is being asked from here on, or has answered."""
