"""Translation of ripgrep's --json output to matches.

Rule: pure, and bounded: of a record that is longer than `RECORD_LIMIT`, only its two ends are kept, however long the
line is that it tells. Source: https://docs.rs/grep-printer/latest/grep_printer/struct.JSON.html

    {"type":"match","data":{"path":{"text":..},"lines":{"text":..},"line_number":3,"absolute_offset":..,
                            "submatches":[{"match":{"text":..},"start":..,"end":..}]}}

A text that is not UTF-8 is {"bytes": base64} instead of {"text": ..}.
"""

import binascii
import re
from collections.abc import Iterator
from typing import Final, NamedTuple

import msgspec

RECORD_LIMIT: Final = 2**20
"""Bytes of a record that is kept as a whole."""

LINE_LIMIT: Final = 300
"""Characters of a line that are shown."""

_BEFORE: Final = 100
"""Characters before the first match that are shown of a line that is cut."""

_MATCH: Final = b'{"type":"match"'
_SUMMARY: Final = b'"type":"summary"}'

_HEAD: Final = 2**16
_TAIL: Final = 2**13
_LINE_ENDS: Final = b'"},"line_number":'
"""Stands behind the line and nowhere in it: there, a quotation mark has a backslash before it."""
_STRING: Final = rb'"(text|bytes)":"((?:[^"\\]|\\u[0-9a-f]{4}|\\[^u])*)'
_PATH: Final = re.compile(_MATCH + rb',"data":\{"path":\{' + _STRING + b'"')
_AFTER: Final = re.compile(_LINE_ENDS + rb'(\d+),.{1,99}?"submatches":\[(?:\{"match":\{' + _STRING + rb")?", re.DOTALL)


class Match(NamedTuple):
    """One line that matches. `path` is None where it is not UTF-8; it is as ripgrep tells it, with ./ before it."""

    path: str | None
    line: int
    text: str


class Finished(NamedTuple):
    """ripgrep has said that it is done."""


class _RgText(msgspec.Struct):
    text: str | None = None
    raw: str | None = msgspec.field(default=None, name="bytes")

    def as_bytes(self) -> bytes:
        """Return the text as it stands in the file."""
        return binascii.a2b_base64(self.raw) if self.raw is not None else (self.text or "").encode()


class _Submatch(msgspec.Struct):
    start: int


class _Data(msgspec.Struct):
    path: _RgText
    lines: _RgText
    line_number: int
    submatches: list[_Submatch]


class _RgRecord(msgspec.Struct):
    data: _Data


_decoder: Final = msgspec.json.Decoder(_RgRecord)


class Records:
    """Cuts one run's output into records."""

    def __init__(self) -> None:
        self._rest = b""
        self._long: _Long | None = None

    def feed(self, chunk: bytes) -> Iterator[Match | Finished]:
        """Take some output, and yield what is complete by now.

        Raises:
            ValueError: it is not ripgrep's.
        """
        if self._long is not None:
            end = chunk.find(b"\n")
            self._long.feed(chunk if end < 0 else chunk[:end])
            if end < 0:
                return
            yield self._long.match()
            self._long = None
            chunk = chunk[end + 1 :]
        lines = (self._rest + chunk).split(b"\n")
        self._rest = lines.pop()
        if len(self._rest) > RECORD_LIMIT:
            self._long = _Long(self._rest)
            self._rest = b""
        for line in lines:
            if line.startswith(_MATCH):
                yield _match(line)
            elif line.endswith(_SUMMARY) and line.startswith(b'{"data"'):
                yield Finished()


class _Long:
    """A record that is too long: its head, which has the path, and what comes after its line."""

    def __init__(self, started: bytes) -> None:
        self._head = b""
        self._tail = b""
        self.feed(started)

    def feed(self, part: bytes) -> None:
        self._head += part[: _HEAD - len(self._head)]
        if self._tail.startswith(_LINE_ENDS):
            self._tail += part[: _TAIL - len(self._tail)]
            return
        window = self._tail + part
        at = window.find(_LINE_ENDS)
        self._tail = window[1 - len(_LINE_ENDS) :] if at < 0 else window[at : at + _TAIL]

    def match(self) -> Match:
        path, after = _PATH.match(self._head), _AFTER.match(self._tail)
        if path is None or after is None:
            raise ValueError(f"a record that is not ripgrep's: {self._head[:99]!r}")
        name = _unescaped(path[2]) if path[1] == b"text" else None
        return Match(name, int(after[1]), cut_around(_piece(after), 0, begins=False, ends=False))


def _match(line: bytes) -> Match:
    data = _decoder.decode(line).data
    start = data.submatches[0].start if data.submatches else 0
    text = data.lines.text
    if text is None or len(text) > LINE_LIMIT:
        return Match(data.path.text, data.line_number, shown_line(data.lines.as_bytes(), start))
    return Match(data.path.text, data.line_number, _without_end(text))


def shown_line(line: bytes, start: int) -> str:
    """Return a line as it is shown, cut around the match at byte `start`; what is not UTF-8 is U+FFFD."""
    before = len(line[:start].decode("utf-8", "replace"))
    return cut_around(_without_end(line.decode("utf-8", "replace")), before)


def cut_around(text: str, at: int, *, begins: bool = True, ends: bool = True) -> str:
    """Return at most `LINE_LIMIT` characters of `text`, among them that at `at`, with ... where something is missing.

    `begins` and `ends` say whether `text` is all that there is on that side.
    """
    first = max(0, min(at - _BEFORE, len(text) - LINE_LIMIT))
    last = first + LINE_LIMIT
    before = "" if begins and first == 0 else "..."
    after = "" if ends and last >= len(text) else "..."
    return before + text[first:last] + after


def _without_end(text: str) -> str:
    return text.removesuffix("\n").removesuffix("\r")


def _piece(found: re.Match[bytes]) -> str:
    """Return what could be kept of a matching text; nothing where ripgrep tells of none, as with the query "$"."""
    if found[2] is None:
        return ""
    if found[2] == b"text":
        return _unescaped(found[3])
    whole = found[3][: len(found[3]) // 4 * 4]
    return binascii.a2b_base64(whole).decode("utf-8", "replace")


def _unescaped(string: bytes) -> str:
    """Return what the inside of a JSON string says; a character that was cut off at its end is left out."""
    text: str = msgspec.json.decode(b'"' + string.decode("utf-8", "ignore").encode() + b'"')
    return text
