"""A range of lines of a file, without loading the file.

Rule: memory holds one chunk and what is returned, however large the file and its lines are. A line ends with
LF. What would not fit `READ_LIMIT` is cut at a line's end, and the note says where to go on.
"""

import os

from workers.errors import ToolError
from workers.files.text_limits import CHUNK, READ_LIMIT, refuse_nul, text_of
from workers.tool import ResultWithNote
from workers.tree.root import shown


class LineReader:
    """An open file that is read once, forward."""

    def __init__(self, file: int, path: str) -> None:
        self._file = file
        self._path = path
        self._position = 0
        self._ended = False
        self._last = b""

    def read(self, first: int, count: int | None) -> str | ResultWithNote:
        """Return `count` lines from line `first` on (1-based); all that fit if `count` is None.

        Raises:
            ToolError: `not_text`, or `too_large` if not even one line fits.
        """
        found, rest = self._skip(first - 1)
        start = self._position - len(rest)
        data = self._collect(rest, count)
        if not data and first > 1:
            lines = found + (self._last not in {b"", b"\n"})
            return ResultWithNote("", f"the file has {lines} lines; offset={first} is past its end")
        end = _end_of_lines(data, count)
        if end > READ_LIMIT:
            end = data.rfind(b"\n", 0, READ_LIMIT) + 1
        if not end and data:
            raise self._line_too_long(first)
        text = text_of(data[:end], self._path, start)
        last = first - 1 + data.count(b"\n", 0, end) + (not data.endswith(b"\n", 0, end) and end > 0)
        if end < len(data) or self._chunk():
            return ResultWithNote(text, f"lines {first} to {last} of more; go on with offset={last + 1}")
        return ResultWithNote(text, f"lines {first} to {last}, the last") if first > 1 else text

    def _chunk(self) -> bytes:
        chunk = b"" if self._ended else os.read(self._file, CHUNK)
        self._ended = not chunk
        refuse_nul(chunk, self._path, self._position)
        self._position += len(chunk)
        self._last = chunk[-1:] or self._last
        return chunk

    def _skip(self, lines: int) -> tuple[int, bytes]:
        """Pass over lines; return how many there were, and what was read beyond them."""
        found = 0
        while found < lines and (chunk := self._chunk()):
            here = chunk.count(b"\n")
            if found + here >= lines:
                return lines, chunk[_end_of_lines(chunk, lines - found) :]
            found += here
        return found, b""

    def _collect(self, data: bytes, count: int | None) -> bytes:
        """Read on until there are enough lines, or one byte more than may be returned."""
        lines = data.count(b"\n")
        chunks = [data]
        size = len(data)
        while size <= READ_LIMIT and (count is None or lines < count) and (chunk := self._chunk()):
            chunks.append(chunk)
            size += len(chunk)
            lines += chunk.count(b"\n")
        return b"".join(chunks)

    def _line_too_long(self, line: int) -> ToolError:
        message = (
            f'Line {line} of "{shown(self._path)}" alone is longer than {READ_LIMIT} bytes, the most that '
            "can be returned. It cannot be read with this tool."
        )
        return ToolError("too_large", message, path=shown(self._path), line=line, limit=READ_LIMIT)


def _end_of_lines(data: bytes, count: int | None) -> int:
    """Return the index after the line end number `count`, or the length of `data` if it has fewer."""
    if count is None:
        return len(data)
    end = 0
    for _ in range(count):
        end = data.find(b"\n", end) + 1
        if not end:
            return len(data)
    return end
