"""The Messages API's event stream without a socket: bytes in, one Reply out.

Rule: nothing that a server sends may surprise us. What the API may yet invent (event, block and delta types)
is ignored or kept; what contradicts the format is a ModelError "bad_response"; and a reply is complete with
its message_stop or not at all.

    bytes -> EventDecoder -> (name, data) -> Accumulator -> Reply
                                                 |-> show(TextDelta | ThoughtDelta)

Formats: https://html.spec.whatwg.org/multipage/server-sent-events.html (lines) and
https://docs.anthropic.com/en/api/messages-streaming (events).
"""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from supervisor.agent.models.model import Block, Progress, Reply, TextDelta, ThoughtDelta, ToolUse, Usage
from supervisor.agent.models.retry import TYPE_KINDS
from supervisor.errors import ModelError

MAX_STREAM: Final = 64 * 1024 * 1024
"""Bytes that one reply may take on the wire; the longest real ones stay below a tenth of it."""

MAX_DEPTH: Final = 64
"""Levels of nesting in what a server sends. It becomes history, and writing that as JSON recurses."""

_KNOWN: Final = frozenset(
    {"content_block_delta", "content_block_start", "message_start", "message_delta", "message_stop"}
)
"""Events that a reply is made of."""


@dataclass(frozen=True)
class Event:
    """One server-sent event. `name` is "" when the server gave none: the data says the same."""

    name: str
    data: bytes


class EventDecoder:
    r"""Cuts a stream of bytes into events, wherever the bytes were cut. Lines end in \n, \r\n or \r."""

    def __init__(self) -> None:
        self._line: list[bytes] = []
        self._after_return = False
        self._name = b""
        self._data: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> list[Event]:
        """Return the events that `chunk` completes.

        Raises:
            ModelError: the stream is larger than any reply.
        """
        self._size += len(chunk)
        if self._size > MAX_STREAM:
            raise ModelError("bad_response", f"the reply is larger than {MAX_STREAM} bytes")
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


@dataclass
class _ArrivingBlock:
    """A block that is still arriving: how it started, and the pieces that came for each of its fields."""

    block: Block
    pieces: defaultdict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    citations: list[dict[str, Any]] = field(default_factory=list)


class Accumulator:
    """Puts one reply together and shows it as it arrives."""

    def __init__(self, show: Callable[[Progress], None]) -> None:
        self._show = show
        self._parts: list[_ArrivingBlock] = []
        self._open: dict[int, _ArrivingBlock] = {}
        self._usage: Usage = {}
        self._stop_reason: str | None = None
        self.started = False
        """The server has sent an event of this API."""
        self.complete = False
        """The server has said that this was all."""

    def feed(self, event: Event) -> None:
        """Take the next event; nothing counts after the last.

        Raises:
            ModelError: the server reports an error, or what it sends is not this API.
        """
        if self.complete or event.name == "ping":
            return
        match _payload(event):
            case {"type": "content_block_delta", "index": int(index), "delta": dict(delta)}:
                if part := self._open.get(index):
                    self._extend(part, delta)
            case {"type": "content_block_start", "index": int(index), "content_block": {"type": str()} as block}:
                self._start(index, block)
            case {"type": "message_start", "message": dict(message)}:
                self.started = True
                self._count(message)
            case {"type": "message_delta", "delta": dict(delta)} as payload:
                reason = delta.get("stop_reason")
                self._stop_reason = reason if isinstance(reason, str) else self._stop_reason
                self._count(payload)
            case {"type": "message_stop"} if self.started:
                self.complete = True
            case {"type": "error"} as payload:
                raise _reported(payload)
            case {"type": name} if name in _KNOWN:
                raise ModelError("bad_response", f"a {name} event came without what belongs to it")

    def reply(self) -> Reply:
        """Return the complete reply.

        A server that names no stop reason gets the obvious one.
        """
        content = [block for part in self._parts if (block := _finished(part))]
        calls = [
            ToolUse(part.block["id"], part.block["name"], _arguments(part))
            for part in self._parts
            if part.block["type"] == "tool_use"
        ]
        return Reply(content, self._stop_reason or ("tool_use" if calls else "end_turn"), self._usage, calls)

    def _start(self, index: int, block: Block) -> None:
        match block:
            case {"type": "tool_use", "id": str(name), "name": str(tool)} if name and tool:
                pass
            case {"type": "tool_use"}:
                raise ModelError("bad_response", "a tool call lacks its id or its name")
        part = _ArrivingBlock(block)
        self._parts.append(part)
        self._open[index] = part
        if block["type"] == "text" and isinstance(text := block.get("text"), str) and text:
            self._show(TextDelta(text))

    def _extend(self, part: _ArrivingBlock, delta: dict[str, Any]) -> None:
        match delta:
            case {"type": "text_delta", "text": str(text)}:
                part.pieces["text"].append(text)
                if text:
                    self._show(TextDelta(text))
            case {"type": "input_json_delta", "partial_json": str(piece)}:
                part.pieces["input"].append(piece)
            case {"type": "thinking_delta", "thinking": str(thought)}:
                part.pieces["thinking"].append(thought)
                if thought:
                    self._show(ThoughtDelta(thought))
            case {"type": "signature_delta", "signature": str(signature)}:
                part.pieces["signature"].append(signature)
            case {"type": "citations_delta", "citation": dict(citation)}:
                part.citations.append(citation)

    def _count(self, holder: dict[str, Any]) -> None:
        if isinstance(usage := holder.get("usage"), dict):
            self._usage.update({name: n for name, n in usage.items() if type(n) is int})


def _payload(event: Event) -> dict[str, Any]:
    try:
        payload = msgspec.json.decode(event.data)
    except (ValueError, RecursionError) as error:
        raise ModelError("bad_response", f"an event is not JSON ({error})") from error
    if not isinstance(payload, dict):
        raise ModelError("bad_response", "an event is not a JSON object")
    if len(event.data) > 2 * MAX_DEPTH and _nests_too_deep(payload):
        raise ModelError("bad_response", "an event is nested too deep")
    payload.setdefault("type", event.name)
    return payload


def _reported(payload: dict[str, Any]) -> ModelError:
    """Return the error that an error event tells of."""
    match payload.get("error"):
        case {"message": str(message), **rest}:
            return ModelError(TYPE_KINDS.get(str(rest.get("type")), "api_error"), message)
        case _:
            return ModelError("api_error", "an error without a message")


def _finished(part: _ArrivingBlock) -> Block | None:
    """Return the block as it goes into the history, or None for one that the API would not take back."""
    block = dict(part.block)
    for name, pieces in part.pieces.items():
        if name != "input":
            start = block.get(name)
            block[name] = (start if isinstance(start, str) else "") + "".join(pieces)
    if part.citations:
        start = block.get("citations")
        block["citations"] = [*(start if isinstance(start, list) else []), *part.citations]
    if block["type"] == "tool_use" or "input" in part.pieces:
        block["input"] = _object(_arguments(part))
    if block["type"] == "text" and not (isinstance(block.get("text"), str) and block["text"].strip()):
        return None
    return block


def _arguments(part: _ArrivingBlock) -> str:
    """Return a call's arguments as the model wrote them; some servers send them whole, with the start."""
    if raw := "".join(part.pieces.get("input", [])):
        return raw
    return msgspec.json.encode(part.block.get("input") or {}).decode()


def _object(raw: str) -> dict[str, Any]:
    try:
        value = msgspec.json.decode(raw)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) and not _nests_too_deep(value) else {}


def _nests_too_deep(value: object) -> bool:
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
