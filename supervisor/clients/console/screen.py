"""Protocol of a screen: the terminal, or plain lines."""

from typing import Protocol

from supervisor.clients.connection.link_events import PermissionPrompt
from supervisor.clients.console.shown import Item


class Screen(Protocol):
    """Shows everything."""

    def show(self, item: Item) -> None:
        """Show something, below everything shown before."""

    def refresh(self) -> None:
        """Note that the controller's view has changed."""

    def request_approval(self, question: PermissionPrompt) -> None:
        """Let the person decide, after the questions that wait."""

    def withdraw_approval(self, question: PermissionPrompt | None) -> None:
        """Forget a question; None: all of them."""

    def drop_unfinished(self) -> int:
        """Forget what of the answer is not on the screen for good; return how many characters are."""

    def clear(self) -> None:
        """Begin on an empty screen."""

    def width(self) -> int:
        """Return the columns there are."""
