"""The Responses API's events without a socket: events in, one Reply out.

Rule: nothing that a server sends may surprise us. A reply is complete with `response.completed` or with
`response.incomplete` or not at all; its items are those of that event, else those that were done before, else what
their pieces make.

    Event -> ResponsesReader -> Reply, its origin with the items
                 |-> show(TextDelta | ThoughtDelta)

Source: https://platform.openai.com/docs/api-reference/responses-streaming
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from supervisor.agent.models.adjustment import without
from supervisor.agent.models.event_stream import Event, json_object, parsed_object
from supervisor.agent.models.model import Block, Progress, Reply, TextDelta, ThoughtDelta, ToolUse, Usage
from supervisor.agent.models.server_errors import reported_error
from supervisor.errors import ModelError
from supervisor.journal.facts import ReplyOrigin

FORMAT_NAME: Final = "responses"
_TEXTS: Final = frozenset({"response.output_text.delta", "response.refusal.delta"})
_THOUGHTS: Final = frozenset({"response.reasoning_summary_text.delta", "response.reasoning_text.delta"})
_ARGUMENTS: Final = "response.function_call_arguments"
_ENDS: Final = frozenset({"response.completed", "response.incomplete", "response.failed", "response.cancelled"})
_KEPT: Final = ("message", "function_call", "reasoning")
"""Items that a reply is made of; others belong to tools of the vendor's, which nobody has asked for."""
_ANSWERED: Final = ("completed", "incomplete")
"""Statuses of a response that is an answer."""
_INCOMPLETE: Final = {"content_filter": "refusal"}
"""Reasons for an incomplete reply by the Messages API's names; all others are that it was cut."""


@dataclass
class _ArrivingItem:
    item: dict[str, Any]
    is_done: bool = False
    pieces: list[str] = field(default_factory=list)

    @property
    def whole(self) -> dict[str, Any]:
        """The item; where it was not said to be done, with what has arrived of it."""
        said = "".join(self.pieces)
        if self.is_done or not said:
            return self.item
        if self.item.get("type") == "function_call":
            return {**self.item, "arguments": said}
        return {**self.item, "content": [{"type": "output_text", "text": said, "annotations": []}]}


class ResponsesReader:
    """Puts one reply together and shows it as it arrives."""

    def __init__(self, show: Callable[[Progress], None]) -> None:
        self._show = show
        self._items: dict[int, _ArrivingItem] = {}
        self._output: list[dict[str, Any]] = []
        self._usage: Usage = {}
        self._stop = ""
        self.started = False
        """The server has sent an event of this API."""
        self.complete = False
        """The server has said that this was all."""
        self.stopped = False
        """It says so with all that there is, and never before."""

    def feed(self, event: Event) -> None:
        data = event.data.strip()
        if self.complete or not data or data == b"[DONE]":
            return
        told = json_object(event)
        name = told.get("type")
        name = name if isinstance(name, str) else event.name
        if name == "error" or (told.get("error") and told.get("object") != "response"):
            raise reported_error(told)
        self.started |= name.startswith("response.")
        match told:
            case {"delta": str(piece), **place} if piece:
                self._piece(name, piece, place)
            case {"response": dict(response)} if name in _ENDS:
                self._end(response, name)
            case {"object": "response"} if not told.get("type"):
                self._end(told, "")
                for text in _texts(self._output):
                    self._show(TextDelta(text))
            case _ if name in _ENDS:
                raise ModelError("bad_response", f"a {name} event came without what belongs to it")
            case _:
                self._item(name, told)

    def reply(self) -> Reply:
        """Return the complete reply.

        Raises:
            ModelError: a tool call has no name.
        """
        content: list[Block] = []
        calls: list[ToolUse] = []
        items: list[dict[str, Any]] = []
        for item in map(_with_own_id, self._output):
            match item:
                case {"type": "function_call"}:
                    use, given, sane = _called(item)
                    calls.append(use)
                    content.append({"type": "tool_use", "id": use.id, "name": use.name, "input": given})
                    items.append(sane)
                case {"type": "message"}:
                    if text := "".join(_texts([item])):
                        content.append({"type": "text", "text": text})
                        items.append(_said(item, text))
                case _:
                    items.append(_thought(item))
        stop = self._stop or ("tool_use" if calls else "refusal" if _only_refuses(self._output) else "end_turn")
        return Reply(content, stop, self._usage, calls, ReplyOrigin("", "", FORMAT_NAME, items))

    def _item(self, name: str, told: dict[str, Any]) -> None:
        """Take what is said of an item beside its pieces."""
        match told:
            case {"item": dict(item), "output_index": int(index)} if name.startswith("response.output_item."):
                if name.endswith(".done") or index not in self._items:
                    self._items[index] = _ArrivingItem(item, name.endswith(".done"))
            case {"arguments": str(whole), "output_index": int(index)} if name == f"{_ARGUMENTS}.done":
                if arriving := self._items.get(index):
                    arriving.pieces = [whole]
            case {"summary_index": int(number)} if name == "response.reasoning_summary_part.added" and number > 0:
                self._show(ThoughtDelta("\n\n"))

    def _piece(self, name: str, piece: str, place: Mapping[str, Any]) -> None:
        if name in _THOUGHTS:
            self._show(ThoughtDelta(piece))
            return
        if name in _TEXTS:
            self._show(TextDelta(piece))
        elif name != f"{_ARGUMENTS}.delta":
            return
        index = place.get("output_index")
        if type(index) is int:
            empty = {"type": "message", "role": "assistant"}
            self._items.setdefault(index, _ArrivingItem(empty)).pieces.append(piece)

    def _end(self, response: dict[str, Any], name: str) -> None:
        """Take the response as it is at its end.

        Raises:
            ModelError: it has failed.
        """
        status = response.get("status") or name.removeprefix("response.")
        if response.get("error") or status not in _ANSWERED:
            raise reported_error(response if response.get("error") else {"message": f"the response is {status!r}"})
        if status == "incomplete":
            details = response.get("incomplete_details")
            reason = details.get("reason") if isinstance(details, dict) else None
            self._stop = _INCOMPLETE.get(str(reason), "max_tokens")
        if isinstance(usage := response.get("usage"), dict):
            self._usage = _counted(usage)
        output = response.get("output")
        items = output if isinstance(output, list) and output else [self._items[at].whole for at in sorted(self._items)]
        self._output = [item for item in items if isinstance(item, dict) and item.get("type") in _KEPT]
        self.complete = True


def _parts(item: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the parts of a message, each with its type and its text; what is none is left out."""
    parts = item.get("content") if item.get("type") == "message" else None
    found: list[tuple[str, str]] = []
    for part in parts if isinstance(parts, list) else ():
        match part:
            case {"type": "output_text", "text": str(text)} | {"type": "refusal", "refusal": str(text)}:
                found.append((part["type"], text))
    return found


def _texts(items: list[dict[str, Any]]) -> Iterator[str]:
    """Yield the texts of messages that say something, refusals among them."""
    for item in items:
        said = [text for _, text in _parts(item)]
        if "".join(said).strip():
            yield from said


def _only_refuses(items: list[dict[str, Any]]) -> bool:
    """Say whether a reply has a refusal and no text."""
    return {kind for item in items for kind, _ in _parts(item)} == {"refusal"}


def _with_own_id(item: dict[str, Any]) -> dict[str, Any]:
    """Return an item without an id that is none."""
    own = item.get("id")
    return item if isinstance(own, str) and own else without("id", item)


def _said(item: dict[str, Any], text: str) -> dict[str, Any]:
    """Return a message as it goes back: as it was sent, if that is one."""
    whole = item.get("content")
    if isinstance(whole, list) and len(_parts(item)) == len(whole):
        return {**item, "role": "assistant"}
    part = {"type": "output_text", "text": text, "annotations": []}
    return {"type": "message", "role": "assistant", "content": [part]}


def _thought(item: dict[str, Any]) -> dict[str, Any]:
    """Return a reasoning item as it goes back; one that is none has nothing that could."""
    encrypted, content = item.get("encrypted_content"), item.get("content")
    sane = isinstance(encrypted, str | None) and isinstance(content, list | None)
    summary = item.get("summary")
    return {**(item if sane else {"type": "reasoning"}), "summary": summary if isinstance(summary, list) else []}


def _called(item: dict[str, Any]) -> tuple[ToolUse, dict[str, Any], dict[str, Any]]:
    """Return a call, its arguments, and the item as it goes back: what is no JSON object is not repeated."""
    name, raw, call_id = item.get("name"), item.get("arguments"), item.get("call_id")
    if not isinstance(name, str) or not name:
        raise ModelError("bad_response", "a tool call lacks its name")
    raw = raw if isinstance(raw, str) and raw else "{}"
    given = parsed_object(raw)
    use = ToolUse(call_id if isinstance(call_id, str) else "", name, raw)
    return use, given, {**item, "arguments": raw if given else "{}"}


def _counted(usage: Mapping[str, Any]) -> Usage:
    """Return token counts by the Messages API's names."""
    read, written = (_count(usage, "input_tokens_details", name) for name in ("cached_tokens", "cache_write_tokens"))
    counted = {
        "input_tokens": max(_count({"": usage}, "", "input_tokens") - read - written, 0),
        "output_tokens": _count({"": usage}, "", "output_tokens"),
    }
    if isinstance(details := usage.get("input_tokens_details"), Mapping) and "cached_tokens" in details:
        counted["cache_read_input_tokens"] = read  # none is told as well
    reasoning = _count(usage, "output_tokens_details", "reasoning_tokens")
    more = {"cache_creation_input_tokens": written, "reasoning_tokens": reasoning}
    return counted | {name: count for name, count in more.items() if count}


def _count(usage: Mapping[str, Any], holder: str, name: str) -> int:
    details = usage.get(holder)
    value = details.get(name) if isinstance(details, Mapping) else None
    return value if type(value) is int and value > 0 else 0
