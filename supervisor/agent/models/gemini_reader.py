"""Gemini's answers without a socket: bytes and events in, one Reply out.

Rule: nothing that a server sends may surprise us. Each part is kept as far as the API knows it, with its signature, to
go back so; an answer is complete when it has ended and said why. Errors come as events, or as JSON in their place.

Sources: https://ai.google.dev/api/generate-content, https://ai.google.dev/gemini-api/docs/thought-signatures
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from supervisor.agent.models.event_stream import Event, EventDecoder, json_object
from supervisor.agent.models.gemini_contents import FORMAT_NAME, Part
from supervisor.agent.models.json_body import JsonBodyDecoder
from supervisor.agent.models.model import Block, Progress, Reply, TextDelta, ThoughtDelta, ToolUse, Usage
from supervisor.agent.models.server_errors import reported_error
from supervisor.errors import ModelError, ModelErrorKind
from supervisor.journal.facts import ReplyOrigin

_REFUSED: Final = "refusal"
_STOPS: Final[Mapping[str, str]] = {
    "STOP": "",
    "FINISH_REASON_UNSPECIFIED": "",
    "MAX_TOKENS": "max_tokens",
    "CONTINUATION": "max_tokens",
    "PAUSE_TURN": "",
    **dict.fromkeys(
        ("SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "MODEL_ARMOR", "ESCALATION"),
        _REFUSED,
    ),
    **dict.fromkeys(("IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION"), _REFUSED),
}
"""Why an answer ended, to the Messages API's stop reason; "" is the obvious one. It has no pauses."""
_FAILED: Final[Mapping[str, tuple[ModelErrorKind, str]]] = {
    "MALFORMED_FUNCTION_CALL": ("api_error", "the model wrote a tool call that its server cannot read"),
    "UNEXPECTED_TOOL_CALL": ("api_error", "the model called a tool that it was not offered"),
    "TOO_MANY_TOOL_CALLS": ("api_error", "the model called too many tools at once"),
    "MALFORMED_RESPONSE": ("api_error", "the model wrote what its server cannot read"),
    "MISSING_THOUGHT_SIGNATURE": ("invalid_request", "the server misses the signature of a thought"),
    "PUP_LIMITED_DISABLED": ("permission", "the account is limited"),
    **dict.fromkeys(
        ("OTHER", "IMAGE_OTHER", "NO_IMAGE"),
        ("api_error", "the model stopped for a reason that its server does not say"),
    ),
}
"""Those that leave nothing to go on with."""
_OTHERS: Final = ("executableCode", "codeExecutionResult", "inlineData", "fileData", "toolCall", "toolResponse")
"""Parts of a reply that only Gemini knows what to do with."""
_BARE: Final = re.compile(rb"[\r\n][ \t]*[{\[]")
"""Where JSON stands in place of an event: no line of one begins so."""


class GeminiDecoder:
    """Cuts the bytes of an answer into events; from bare JSON on, each document is one."""

    def __init__(self) -> None:
        self._events = EventDecoder()
        self._bare: JsonBodyDecoder | None = None
        self._before = b"\n"
        """The byte before the next."""

    def feed(self, chunk: bytes) -> list[Event]:
        if self._bare is not None or not chunk:
            return self._bare.feed(chunk) if self._bare is not None else []
        begins = _BARE.search(self._before + chunk)
        if begins is None:
            self._before = chunk[-1:]
            return self._events.feed(chunk)
        start = begins.start()  # the line end before it, which is in `chunk` unless it is the first
        self._bare = JsonBodyDecoder()
        return [*self._events.feed(chunk[:start]), *self._bare.feed(chunk[start:])]

    def end(self) -> list[Event]:
        """Return nothing: what was not ended is cut."""
        return []


class GeminiReader:
    """Puts one reply together and shows it as it arrives."""

    def __init__(self, show: Callable[[Progress], None]) -> None:
        self._show = show
        self._parts: list[Part] = []
        self._texts: list[str] = []
        """Pieces of the last part, where that is a text without a signature."""
        self._usage: Usage = {}
        self._counted = False
        """What it cost was told with its last part, or after it."""
        self._reason = ""
        self.started = False
        """The server has sent something of this API."""
        self.complete = False
        """It never says that this was all: older models, and gateways, say with each part why they have ended."""

    def feed(self, event: Event) -> None:
        if event.data.lstrip()[:1] == b"[":
            for told in json_object(Event("", b'{"all":' + event.data + b"}"))["all"]:
                if not isinstance(told, dict):
                    raise ModelError("bad_response", "an event is not a JSON object")
                self._take(told)
        else:
            self._take(json_object(event))

    @property
    def stopped(self) -> bool:
        """The server has said why it ended; more may follow."""
        return bool(self._reason)

    def reply(self) -> Reply:
        self._close_text()
        content: list[Block] = []
        calls: list[ToolUse] = []
        for part in self._parts:
            match part:
                case {"functionCall": dict(call)}:
                    name, given = call.get("id") or "", call.get("args") or {}
                    calls.append(ToolUse(name, call["name"], msgspec.json.encode(given).decode()))
                    content.append({"type": "tool_use", "id": name, "name": call["name"], "input": given})
                case {"text": str(text)} if not part.get("thought"):
                    _append_text(content, text)
        stop = _STOPS.get(self._reason.upper(), self._reason.lower()) or ("tool_use" if calls else "end_turn")
        if not self._counted:
            self._usage.pop("output_tokens", None)  # as many as had been written before it ended
        return Reply(content, stop, self._usage, calls, ReplyOrigin("", "", FORMAT_NAME, self._parts))

    def _take(self, told: dict[str, Any]) -> None:
        if told.get("error") is not None:
            raise reported_error(told)
        match told.get("candidates"):
            case None | []:
                pass
            case [dict(first), *_]:
                self._counted = False
                self._candidate(first)
            case _:
                raise ModelError("bad_response", "an answer's candidates are no list of objects")
        match told:
            case {"promptFeedback": {"blockReason": str(reason)}} if reason and not self._parts:
                self._reason = "PROHIBITED_CONTENT"
            case {"usageMetadata": dict(usage)}:
                self._usage, self._counted = _counted(usage), True
        self.started = self.started or not told.keys().isdisjoint(("candidates", "usageMetadata", "promptFeedback"))

    def _candidate(self, candidate: dict[str, Any]) -> None:
        content = candidate.get("content") or {}
        parts = content.get("parts") or [] if isinstance(content, dict) else None
        if not isinstance(parts, list):
            raise ModelError("bad_response", "an answer's content has no list of parts")
        for part in parts:
            self._part(part)
        reason = candidate.get("finishReason")
        if isinstance(reason, str) and reason:
            if reason in _FAILED:
                kind, words = _FAILED[reason]
                said = candidate.get("finishMessage")
                raise ModelError(kind, f"{words} ({reason})" + (f": {said}" if isinstance(said, str) else ""))
            self._reason = reason

    def _part(self, part: Any) -> None:
        match part:
            case {"functionCall": {"name": str(name), **call}} if name:
                if not isinstance(call.get("args") or {}, dict) or not isinstance(call.get("id") or "", str):
                    raise ModelError("bad_response", "a tool call's arguments are no object")
                known = {key: call[key] for key in ("id", "args") if call.get(key)}
                self._keep({"functionCall": {"name": name, **known}}, part)
            case {"functionCall": _}:
                raise ModelError("bad_response", "a tool call lacks its name")
            case {"text": str(text)}:
                self._text(part, text)
            case dict():
                found = next((key for key in _OTHERS if isinstance(part.get(key), dict)), None)
                if found is not None:
                    self._keep({found: part[found]}, part)
            case _:
                raise ModelError("bad_response", "a part of an answer is no object")

    def _text(self, part: Part, text: str) -> None:
        thought = part.get("thought") is True
        if text:
            self._show(ThoughtDelta(text) if thought else TextDelta(text))
        if _is_signed(part):
            self._keep({"text": text} | ({"thought": True} if thought else {}), part)
        elif text and not thought:  # what is only shown of its thinking need not go back
            if not self._texts:
                self._parts.append({"text": ""})
            self._texts.append(text)

    def _keep(self, part: Part, sent: Part) -> None:
        """Keep a part with the signature that it was sent with."""
        self._close_text()
        self._parts.append(part | ({"thoughtSignature": sent["thoughtSignature"]} if _is_signed(sent) else {}))

    def _close_text(self) -> None:
        if self._texts:
            self._parts[-1] = {"text": "".join(self._texts)}
            self._texts = []


def _is_signed(part: Part) -> bool:
    signature = part.get("thoughtSignature")
    return isinstance(signature, str) and bool(signature)


def _append_text(content: list[Block], text: str) -> None:
    """Append a text to a reply's blocks; pieces of one text are one block."""
    if content and content[-1]["type"] == "text":
        content[-1] = {"type": "text", "text": content[-1]["text"] + text}
    elif text:
        content.append({"type": "text", "text": text})


def _counted(usage: dict[str, Any]) -> Usage:
    """Return token counts by the Messages API's names: what was cached is no input, and thoughts are output."""

    def count(name: str) -> int:
        value = usage.get(name)
        return value if type(value) is int and value >= 0 else 0

    cached, thoughts = count("cachedContentTokenCount"), count("thoughtsTokenCount")
    told = {
        "input_tokens": max(count("promptTokenCount") - cached, 0) + count("toolUsePromptTokenCount"),
        "output_tokens": count("candidatesTokenCount") + thoughts,
    }
    if count("promptTokenCount"):  # none is told by leaving it out
        told["cache_read_input_tokens"] = cached
    return told | ({"reasoning_tokens": thoughts} if thoughts else {})
