"""What the driver wants of whatever shows things: the terminal, or plain lines."""

from typing import Protocol

from supervisor.clients.connection.link_events import PermissionPrompt
from supervisor.clients.console.shown import Item


class Screen(Protocol):
    """Where everything is shown."""

    def show(self, item: Item) -> None:
        """Show something, below everything shown before."""

    def changed(self) -> None:
        """Note that the driver's view has changed."""

    def ask(self, question: PermissionPrompt) -> None:
        """Let the person decide, after the questions that wait."""

    def withdraw(self, question: PermissionPrompt | None) -> None:
        """Forget a question; None: all of them."""

    def hold(self) -> int:
        """Forget what of the answer is not on the screen for good; return how many characters are."""

    def clear(self) -> None:
        """Begin on an empty screen."""

    def width(self) -> int:
        """Return the columns there are."""
