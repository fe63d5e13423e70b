"""The Messages API's events without a socket: events in, one Reply out.

Rule: nothing that a server sends may surprise us. What the API may yet invent (event, block and delta types)
is ignored or kept; what contradicts the format is a ModelError "bad_response"; and a reply is complete with
its message_stop, or with the end of the answer once that has said why it stopped.

    Event -> MessagesReader -> Reply
                 |-> show(TextDelta | ThoughtDelta)

Source: https://docs.anthropic.com/en/api/messages-streaming
"""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from supervisor.agent.models.event_stream import Event, json_object, parsed_object
from supervisor.agent.models.model import Block, Progress, Reply, TextDelta, ThoughtDelta, ToolUse, Usage
from supervisor.agent.models.server_errors import reported_error
from supervisor.errors import ModelError

_KNOWN: Final = frozenset(
    {"content_block_delta", "content_block_start", "message_start", "message_delta", "message_stop"}
)
"""Events that a reply is made of."""


@dataclass
class _ArrivingBlock:
    """A block that is still arriving: how it started, and the pieces that came for each of its fields."""

    block: Block
    pieces: defaultdict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    citations: list[dict[str, Any]] = field(default_factory=list)


class MessagesReader:
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
        if self.complete or event.name == "ping":
            return
        told = json_object(event)
        told.setdefault("type", event.name)
        match told:
            case {"type": "content_block_delta", "index": int(index), "delta": dict(delta)}:
                if part := self._open.get(index):
                    self._extend(part, delta)
            case {"type": "content_block_start", "index": int(index), "content_block": {"type": str()} as block}:
                self._start(index, block)
            case {"type": "message_start", "message": dict(message)}:
                self.started = True
                self._count(message)
                self._usage.pop("output_tokens", None)  # as many as have been written by then
            case {"type": "message_delta", "delta": dict(delta)}:
                reason = delta.get("stop_reason")
                self._stop_reason = reason if isinstance(reason, str) else self._stop_reason
                self._count(told)
            case {"type": "message_stop"} if self.started:
                self.complete = True
            case {"type": "error"} | {"type": "", "error": _}:
                raise reported_error(told)
            case {"type": str(name)} if name in _KNOWN:
                raise ModelError("bad_response", f"a {name} event came without what belongs to it")

    @property
    def stopped(self) -> bool:
        """The server has said why it stopped, after all blocks and with what they cost."""
        return self._stop_reason is not None

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
        block["input"] = parsed_object(_arguments(part))
    if block["type"] == "text" and not (isinstance(block.get("text"), str) and block["text"].strip()):
        return None
    return block


def _arguments(part: _ArrivingBlock) -> str:
    """Return a call's arguments as the model wrote them; some servers send them whole, with the start."""
    if raw := "".join(part.pieces.get("input", [])):
        return raw
    return msgspec.json.encode(part.block.get("input") or {}).decode()
