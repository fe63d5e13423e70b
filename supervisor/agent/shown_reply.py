"""The reply that is just coming in, as far as it was shown.

Rule: what people have read is a fact once no more of it comes: as the request is made again, as the model fails, as the
turn ends or is left to the next process. Only a kill of this process leaves none of it.
"""

from supervisor.agent.models.model import TextDelta, ThoughtDelta
from supervisor.journal.facts import ReplyCut


class ShownReply:
    """What has come in of one reply."""

    def __init__(self) -> None:
        self._text: list[str] = []
        self._thinking: list[str] = []

    def add(self, piece: TextDelta | ThoughtDelta) -> None:
        """Take a piece that is shown."""
        (self._text if isinstance(piece, TextDelta) else self._thinking).append(piece.text)

    def take(self) -> tuple[str, str]:
        """Return its text and its thinking, and forget them."""
        shown = "".join(self._text), "".join(self._thinking)
        self._text.clear()
        self._thinking.clear()
        return shown

    def cut(self, turn: int, step: int) -> list[ReplyCut]:
        """Return the fact that no more of it comes, unless nothing was shown; forget it."""
        text, thinking = self.take()
        return [ReplyCut(turn, step, text, thinking)] if text or thinking else []
