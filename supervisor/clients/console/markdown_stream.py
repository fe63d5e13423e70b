"""An answer in Markdown as it comes: what is finished is handed out once, what is not can be looked at. Pure.

Rule: a block is finished when another one has begun after it, for only the last block of a text can still change. Each
block is rendered by itself, so an answer looks the same however it was cut into pieces.
"""

import re
from typing import Final, Protocol

_LINE_ENDS: Final = re.compile("(?<=\n)")
"""Behind each; only a line feed ends a line."""


class MarkdownRenderer(Protocol):
    """What knows Markdown."""

    def starts(self, text: str) -> list[int]:
        """Return the numbers of the lines at which a top-level block starts."""

    def terminal_text(self, block: str, width: int) -> str:
        """Return a block for the terminal: lines without an end."""


class Stream:
    """One answer."""

    def __init__(self, markdown: MarkdownRenderer) -> None:
        self.text = ""
        self._markdown = markdown
        self._done = 0
        self._looked_at = -1
        self._first = True

    @property
    def tail(self) -> str:
        """The part that is not finished."""
        return self.text[self._done :]

    def feed(self, piece: str) -> None:
        self.text += piece

    def drop_unfinished(self) -> int:
        """Forget what has not been handed out, it is going to be fed again; return how much has been."""
        self.text = self.text[: self._done]
        return self._done

    def finished(self, width: int) -> str:
        """Return the blocks that are newly finished, rendered, each with its line end; "" for none."""
        lines = self.text.rfind("\n")
        if lines <= self._looked_at:
            return ""
        self._looked_at = lines
        *whole, _ = self._blocks()
        return self._take(whole, width)

    def end_answer(self, width: int) -> str:
        return self._take(self._blocks(), width)

    def _blocks(self) -> list[str]:
        lines = _LINE_ENDS.split(self.tail)
        starts = self._markdown.starts(self.tail)
        ends = [*starts[1:], len(lines)]
        starts[:1] = [0]
        return ["".join(lines[start:end]) for start, end in zip(starts, ends, strict=True)]

    def _take(self, blocks: list[str], width: int) -> str:
        parts = []
        for block in blocks:
            self._done += len(block)
            rendered = self._markdown.terminal_text(block, width)
            if rendered:
                parts.append(rendered if self._first else f"\n{rendered}")
                self._first = False
        return "".join(f"{part}\n" for part in parts)
