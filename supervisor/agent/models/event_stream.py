"""Streams of events without a socket: bytes in, JSON objects out.

Rule: nothing that a server sends may surprise us: bytes may be cut anywhere, and what is nested deeper than any reply
is a ModelError "bad_response". Half a character, as gateways leave that cut a text in two, costs no reply.

Formats: https://html.spec.whatwg.org/multipage/server-sent-events.html, and https://github.com/ndjson/ndjson-spec
"""

import re
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from supervisor.errors import ModelError

MAX_DEPTH: Final = 64
"""Levels of nesting in what a server sends. It becomes history, and writing that as JSON recurses."""

_ESCAPE: Final = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})|\\.", re.DOTALL
)
"""A character of two halves, or (the group) a half one; or any other escaped one."""


@dataclass(frozen=True)
class Event:
    """One server-sent event. `name` is "" when the server gave none: the data says the same."""

    name: str
    data: bytes


class EventDecoder:
    r"""Cuts a stream of bytes into events, wherever the bytes were cut. Lines end in \n, \r\n or \r.

    What begins with a brace is no such stream but one JSON object, which is an event: so errors come from servers that
    were to stream, and whole answers from those that cannot.
    """

    def __init__(self) -> None:
        self._begun = self._plain = False
        self._line: list[bytes] = []
        self._after_return = False
        self._name = b""
        self._data: list[bytes] = []

    def feed(self, chunk: bytes) -> list[Event]:
        if not self._begun and (start := chunk.lstrip()):
            self._begun, self._plain = True, start.startswith(b"{")
        if self._plain:
            self._line.append(chunk)
            return []
        if not chunk:
            return []
        if self._after_return:
            chunk = chunk.removeprefix(b"\n")
        self._after_return = chunk.endswith(b"\r")
        *lines, rest = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        if lines:
            lines[0] = b"".join([*self._line, lines[0]])
            self._line = []
        self._line.append(rest)
        return [event for line in lines if (event := self._take(line))]

    def end(self) -> list[Event]:
        """Return what only the end of the answer completes; an event that was not ended is none."""
        return [Event("", b"".join(self._line))] if self._plain else []

    def _take(self, line: bytes) -> Event | None:
        if line:
            name, _, value = line.partition(b":")
            value = value.removeprefix(b" ")
            if name == b"data":
                self._data.append(value)
            elif name == b"event":
                self._name = value
            return None
        event = Event(self._name.decode("utf-8", "replace"), b"\n".join(self._data)) if self._data else None
        self._name, self._data = b"", []
        return event


class LineDecoder:
    """Cuts a stream of bytes into lines, each an event without a name."""

    def __init__(self) -> None:
        self._rest: list[bytes] = []

    def feed(self, chunk: bytes) -> list[Event]:
        """Return the lines that `chunk` completes; those without a text are left out."""
        *lines, rest = chunk.split(b"\n")
        if lines:
            lines[0] = b"".join([*self._rest, lines[0]])
            self._rest = []
        self._rest.append(rest)
        return [Event("", stripped) for line in lines if (stripped := line.strip())]

    def end(self) -> list[Event]:
        """Return nothing: a line that was not ended may be cut."""
        return []


def json_object(event: Event) -> dict[str, Any]:
    """Return the JSON object that an event is.

    Raises:
        ModelError: it is none, or nested too deep.
    """
    try:
        found = msgspec.json.decode(event.data)
    except (ValueError, RecursionError) as error:
        found = _with_whole_characters(event.data)
        if found is None:
            raise ModelError("bad_response", f"an event is not JSON ({error})") from error
    if not isinstance(found, dict):
        raise ModelError("bad_response", "an event is not a JSON object")
    if len(event.data) > 2 * MAX_DEPTH and nests_too_deep(found):
        raise ModelError("bad_response", "an event is nested too deep")
    return found


def _with_whole_characters(data: bytes) -> object:
    """Return JSON that has nothing wrong but half characters, with U+FFFD in place of each; None for any other."""
    whole = _ESCAPE.sub(lambda found: r"\ufffd" if found[1] else found[0], data.decode("utf-8", "replace"))
    try:
        return msgspec.json.decode(whole)
    except (ValueError, RecursionError):
        return None


def parsed_object(raw: str) -> dict[str, Any]:
    """Return a call's arguments as far as they parse: {} where they are no JSON object."""
    try:
        value = msgspec.json.decode(raw)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) and not nests_too_deep(value) else {}


def nests_too_deep(value: object) -> bool:
    """Say whether a value has more levels than `MAX_DEPTH`."""
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [
            child
            for parent in level
            if isinstance(parent, dict | list)
            for child in (parent.values() if isinstance(parent, dict) else parent)
        ]
        if not level:
            return False
    return True
