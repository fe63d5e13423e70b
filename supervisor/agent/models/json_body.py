"""JSON documents in a stream of bytes, wherever the bytes were cut.

Rule: a document is an object or a list and ends where its brackets do; whether it is JSON its reader finds out. Some
servers send an error so in the middle of something else, others all that they say.
"""

import re
from typing import Final

from supervisor.agent.models.event_stream import Event

_MARK: Final = re.compile(rb'\\.|["{}\[\]]', re.DOTALL)


class JsonBodyDecoder:
    """Cuts a stream of bytes into documents, each an event without a name; what stands between them is no matter."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._rest = b""
        """A backslash whose character has not come yet."""
        self._depth = 0
        self._in_text = False

    def feed(self, chunk: bytes) -> list[Event]:
        chunk, self._rest = self._rest + chunk, b""
        found: list[Event] = []
        start = end = 0
        for match in _MARK.finditer(chunk):
            mark, end = match[0], match.end()
            if self._in_text:
                self._in_text = mark != b'"'
            elif mark == b'"':
                self._in_text = self._depth > 0
            elif mark in b"{[":
                start = start if self._depth else match.start()
                self._depth += 1
            elif mark in b"}]" and self._depth:
                self._depth -= 1
                if not self._depth:
                    found.append(Event("", b"".join([*self._pieces, chunk[start:end]])))
                    self._pieces = []
        if self._depth:
            if chunk.endswith(b"\\") and end < len(chunk):
                chunk, self._rest = chunk[:-1], b"\\"
            self._pieces.append(chunk[start:])
        return found

    def end(self) -> list[Event]:
        """Return nothing: a document that was not ended is cut."""
        return []
