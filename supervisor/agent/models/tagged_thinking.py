"""Thinking between tags in the text of a reply, as DeepSeek R1 and Qwen write it where their server leaves it there.

Rule: only `<think>` at the very beginning of a reply begins it, and the first `</think>` ends it; whatever else looks
like them is text. No piece of text is kept waiting unless it may be a part of a tag, or is the space around one.
"""

from collections.abc import Iterator
from typing import Final

from supervisor.agent.models.model import TextDelta, ThoughtDelta

_BEGIN: Final = "<think>"
_END: Final = "</think>"


class TaggedThinking:
    """Tells the thinking of one reply from its text, wherever its pieces are cut."""

    def __init__(self) -> None:
        self._waiting = ""
        self._take = self._before

    def take(self, piece: str) -> list[TextDelta | ThoughtDelta]:
        """Return what is certain after another piece of the reply's text."""
        held, self._waiting = self._waiting + piece, ""
        return list(self._take(held))

    def rest(self) -> list[TextDelta | ThoughtDelta]:
        """Return what was kept waiting, once the reply has ended."""
        held, self._waiting = self._waiting, ""
        if not held or self._take == self._after:
            return []
        return [ThoughtDelta(held) if self._take == self._within else TextDelta(held)]

    def _before(self, held: str) -> Iterator[TextDelta | ThoughtDelta]:
        begun = held.lstrip()
        if begun.startswith(_BEGIN):
            self._take = self._within
            yield from self._within(begun.removeprefix(_BEGIN))
        elif _BEGIN.startswith(begun):
            self._waiting = held
        else:
            self._take = self._text
            yield TextDelta(held)

    def _within(self, held: str) -> Iterator[TextDelta | ThoughtDelta]:
        thought, end, text = held.partition(_END)
        if end:
            self._take = self._after
        else:
            kept = next((size for size in range(len(_END) - 1, 0, -1) if held.endswith(_END[:size])), 0)
            thought, self._waiting = held[: len(held) - kept], held[len(held) - kept :]
        if thought:
            yield ThoughtDelta(thought)
        if text:
            yield from self._after(text)

    def _after(self, held: str) -> Iterator[TextDelta | ThoughtDelta]:
        if text := held.lstrip():
            self._take = self._text
            yield TextDelta(text)

    def _text(self, held: str) -> Iterator[TextDelta | ThoughtDelta]:
        yield TextDelta(held)
