"""Completions for the Tab key of the console's line.

Rule: adapters for prompt_toolkit only.
"""

from collections.abc import Iterable

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from supervisor.clients.console.offers import offered
from supervisor.clients.console.session_controller import SessionController


class Completions(Completer):
    """Offers what fits the session."""

    def __init__(self, controller: SessionController) -> None:
        self._controller = controller

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """Yield what may follow the cursor: without the Tab key only commands."""
        for offer in offered(self._controller, document.text_before_cursor, wanted=complete_event.completion_requested):
            yield Completion(offer.text, -offer.length, display=offer.shown or None, display_meta=offer.about or None)
