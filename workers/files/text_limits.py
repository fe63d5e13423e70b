"""Text: strict decoding, and the limits of one read and one write.

Rule: strict UTF-8 without NUL, returned as it stands: byte order marks and line ends are kept.
"""

import os
from collections.abc import Iterator
from typing import Final

from workers.errors import ToolError
from workers.tree.root import shown

READ_LIMIT: Final = 2 * 2**20
"""Bytes of text that one answer holds."""

WRITE_LIMIT: Final = 4 * 2**20
"""Bytes of text that one write or edit takes."""

CHUNK: Final = 2**18


def text_of(data: bytes, path: str, start: int = 0) -> str:
    """Decode bytes that stand at offset `start` of a file.

    Raises:
        ToolError: `not_text`, with the offset of the first byte that is none.
    """
    refuse_nul(data, path, start)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise _not_text(path, start + error.start, "is not UTF-8") from error


def refuse_nul(data: bytes, path: str, start: int = 0) -> None:
    """Check for NUL, which no text has.

    Raises:
        ToolError: `not_text`, with the offset.
    """
    at = data.find(b"\0")
    if at >= 0:
        raise _not_text(path, start + at, "is NUL")


def bytes_of(text: str, field: str) -> bytes:
    """Encode text that a model wrote.

    Raises:
        ToolError: `invalid_arguments` for lone surrogates and NUL, `too_large` above `WRITE_LIMIT`.
    """
    try:
        data = text.encode()
    except UnicodeEncodeError as error:
        message = f"{field} is not Unicode text: there is a lone surrogate at character {error.start}."
        raise ToolError("invalid_arguments", message) from error
    if b"\0" in data:
        message = f"{field} is not text: there is a NUL at character {text.index(chr(0))}. Only text can be written."
        raise ToolError("invalid_arguments", message)
    if len(data) > WRITE_LIMIT:
        raise ToolError(
            "too_large",
            f"{field} has {len(data)} bytes; at most {WRITE_LIMIT} can be written at once. Split it up.",
            size=len(data),
            limit=WRITE_LIMIT,
        )
    return data


def pieces(file: int, size: int, most: int = CHUNK) -> Iterator[bytes]:
    """Yield the first `size` bytes of a file, `most` at a time, as far as there are."""
    at = 0
    while at < size and (piece := os.pread(file, min(most, size - at), at)):
        yield piece
        at += len(piece)


def _not_text(path: str, offset: int, why: str) -> ToolError:
    message = f'"{shown(path)}" is not text: byte {offset} {why}. Only UTF-8 text can be read.'
    return ToolError("not_text", message, path=shown(path), offset=offset)
