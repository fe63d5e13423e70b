"""A stream of bytes cut into lines, within a limit. Pure.

Rule: a line that is too long is reported once, as soon as it is, and dropped up to its end; the next one is as good as
any other. Never more than the limit and one chunk is held.
"""

from collections.abc import Iterator
from typing import Final


class TooLong:
    """Stands for a line over the limit."""


TOO_LONG: Final = TooLong()


class LineBuffer:
    """Takes chunks, gives lines.

    Args:
        limit: bytes that a line may have, without its end.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._rest = bytearray()
        self._dropping = False

    def feed(self, chunk: bytes) -> Iterator[bytes | TooLong]:
        """Yield the lines that end in `chunk`, without their ends, and `TOO_LONG` for one that is over the limit."""
        first, *others = chunk.split(b"\n")
        yield from self._extend(first)
        for piece in others:
            if self._dropping:
                self._dropping = False
            else:
                yield bytes(self._rest)
            self._rest.clear()
            yield from self._extend(piece)

    def _extend(self, piece: bytes) -> Iterator[TooLong]:
        if self._dropping:
            return
        if len(self._rest) + len(piece) > self._limit:
            self._rest = bytearray()
            self._dropping = True
            yield TOO_LONG
        else:
            self._rest += piece
