"""Text of an answer that stands on the screen already, where the answer is told again. Pure."""

from typing import Final

from supervisor.clients.console.shown import AnswerEnds, Item, Note, Said, ShownAnswer

_AGAIN: Final = "The answer starts again."


class CarriedText:
    """The text, "" for none; gone once all of it was told again, or something else was."""

    def __init__(self) -> None:
        self.text = ""

    def unseen(self, answer: ShownAnswer, text: str) -> list[Item]:
        """Return what of an answer, to which `text` was added, is not on the screen."""
        carried = self.text
        if not carried:
            return [Said(text)]
        if carried.startswith(answer.text):
            return []
        self.text = ""
        if answer.text.startswith(carried):
            return [Said(answer.text[len(carried) :])]
        return [AnswerEnds(), Note(_AGAIN), Said(answer.text)]
