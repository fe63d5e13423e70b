"""Tool calls of Chat Completions as they arrive: in pieces or whole, with an index, an id, both or neither.

Rule: pure. Which call a piece belongs to is said by its index, else by its id, else it is the last. A piece that names
a tool begins another call where it cannot go on with that one: servers give all calls the index 0, repeat ids, say
the name again with each piece, and make up an id for each.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from supervisor.agent.models.event_stream import parsed_object
from supervisor.agent.models.model import ToolUse
from supervisor.errors import ModelError

_KNOWN: Final = frozenset({"index", "id", "type", "function", "name", "arguments"})
_LONGEST_NAME: Final = 128
"""Characters after which a name that comes in pieces is none."""
_LOOKS: Final = 16
"""How often it is looked whether a call's arguments are whole, each time at all of them; then they come in pieces."""


@dataclass
class _ArrivingCall:
    id: str
    name: str = ""
    pieces: list[str] = field(default_factory=list)
    looks: int = 0
    more: dict[str, Any] = field(default_factory=dict)
    """What else its server said of it: signatures, say."""

    @property
    def raw(self) -> str:
        return "".join(self.pieces)

    def looks_whole(self) -> bool:
        """Say whether its arguments are a JSON object."""
        if self.looks == _LOOKS or not self.pieces[-1].rstrip().endswith("}"):
            return False
        self.looks += 1
        raw = self.raw
        return parsed_object(raw) != {} or raw.strip() == "{}"


class ArrivingCalls:
    """The calls of one reply."""

    def __init__(self) -> None:
        self._calls: list[_ArrivingCall] = []
        self._by_index: dict[int, _ArrivingCall] = {}
        self._by_id: dict[str, _ArrivingCall] = {}

    def take(self, piece: object) -> None:
        """Take an entry of `tool_calls`, or the `function_call` of old; what is none is ignored."""
        if not isinstance(piece, dict):
            return
        function = piece["function"] if isinstance(piece.get("function"), dict) else piece
        index = piece["index"] if type(piece.get("index")) is int else None
        call_id, name = _text(piece.get("id")), _text(function.get("name"))
        arguments = _arguments(function.get("arguments"))
        call = self._of(index, call_id)
        if call is None or _begins_another(call, call_id, name, arguments, index):
            call = _ArrivingCall(call_id)
            self._calls.append(call)
        if index is not None:
            self._by_index[index] = call
        call.id = call.id or call_id
        self._by_id[call.id] = call
        if name != call.name and len(call.name) < _LONGEST_NAME:  # else it is said again
            call.name += name
        if arguments:
            call.pieces.append(arguments)
        call.more |= {key: value for key, value in piece.items() if key not in _KNOWN and value is not None}

    def finished(self) -> Iterator[tuple[ToolUse, dict[str, Any]]]:
        """Yield the calls, with what else their server said of each.

        Raises:
            ModelError: one has no name.
        """
        for call in self._calls:
            if call.name:
                yield ToolUse(call.id, call.name, call.raw or "{}"), call.more
            elif call.pieces:
                raise ModelError("bad_response", "a tool call lacks its name")

    def _of(self, index: int | None, call_id: str) -> _ArrivingCall | None:
        """Return the call that a piece may belong to."""
        if index is not None:
            return self._by_index.get(index)
        last = self._calls[-1] if self._calls else None
        return self._by_id.get(call_id, last) if call_id else last


def _begins_another(call: _ArrivingCall, call_id: str, name: str, arguments: str, index: int | None) -> bool:
    """Say whether a piece is of another call than the one that its place is for."""
    if not name or not call.name:
        return False
    if call_id and call.id and call_id != call.id:
        return True
    if not call.pieces:
        return index is None and not (call_id and call_id == call.id)
    if name == call.name and not arguments:
        return False
    return name != call.name or call.looks_whole()


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _arguments(value: object) -> str:
    """Return a piece of arguments; some servers send them as the object that they are."""
    if isinstance(value, str):
        return value
    return msgspec.json.encode(value).decode() if isinstance(value, Mapping) else ""
