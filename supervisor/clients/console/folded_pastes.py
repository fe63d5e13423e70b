"""Long pastes: the line shows one word in place of each, and the whole text is sent.

Rule: a word stands for what was pasted as long as it is whole; a key that would take its last letter takes all of it.
"""

from typing import Final

_LINES: Final = 10
_CHARACTERS: Final = 2000
"""What has more lines or characters than these is folded."""
_KEPT: Final = 50
"""Pastes that are remembered, the latest ones."""


class FoldedPastes:
    """What was pasted, by the word that stands for it."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    def folded(self, text: str) -> str:
        """Return what the line shows for a text that was pasted."""
        lines = text.count("\n") + (not text.endswith("\n"))
        if lines <= _LINES and len(text) <= _CHARACTERS:
            return text
        size = f"{lines} lines" if lines > _LINES else f"{len(text)} characters"
        word, number = f"[pasted {size}]", 1
        while self._texts.get(word, text) != text:
            number += 1
            word = f"[pasted {size}, {number}]"
        self._texts = {**dict(list(self._texts.items())[1 - _KEPT :]), word: text}
        return word

    def unfolded(self, line: str) -> str:
        """Return a line with all that was pasted."""
        for word, text in self._texts.items():
            line = line.replace(word, text)
        return line

    def length_before(self, before: str) -> int:
        """Return how many characters the word has that a text ends with; 0 where it ends with none."""
        return next((len(word) for word in self._texts if before.endswith(word)), 0)
