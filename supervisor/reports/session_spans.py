"""Spans of OpenTelemetry, by its conventions for generative AI: a fold over a session's entries. Pure.

Rule: a span is what its facts say, and so are its ids, so whoever makes it again makes the same one. It is there when
it has ended. A turn is a trace: `invoke_agent`, and below that `chat` for each request and `execute_tool` for each
call. What was said, read and printed is in them only where that is wanted.
Sources: https://opentelemetry.io/docs/specs/semconv/gen-ai/, https://opentelemetry.io/docs/specs/otlp/

Facts ignored: BatchStarted, BudgetChanged, BudgetReserved, CallDecided, ContentsRefused, FaultsAllowed,
InstructionsRead, ModeChanged, OptionChosen, ReplyCut, Rewound, RuleRevoked, SessionDeleted, ToolsChanged,
TurnQuestioned, TurnResumed, TurnSuspended, Unreadable.
"""

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import msgspec

from supervisor.agent.models.model import Usage
from supervisor.journal.facts import (
    UNKNOWN,
    CallEnded,
    CallStarted,
    Compacted,
    ModelRetried,
    ModelSwitched,
    Replied,
    SessionChanged,
    SessionOpened,
    TurnEnded,
    TurnStarted,
    effective,
)
from supervisor.journal.journal import JournalEntry
from supervisor.version import VERSION

_AGENT: Final = "strongroom"
_SCHEMA: Final = "https://opentelemetry.io/schemas/1.41.0"
_INTERNAL: Final = 1
_CLIENT: Final = 3
_ERROR: Final = 2
_NS: Final = 10**9
_NAME: Final = 128
"""Characters of a name that a model may have invented."""
_PROVIDERS: Final[Mapping[str, str]] = MappingProxyType({"gemini": "gcp.gemini"})
"""Where the conventions have a name of their own."""
_CACHED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "cache_read_input_tokens": "gen_ai.usage.cache_read.input_tokens",
        "cache_creation_input_tokens": "gen_ai.usage.cache_creation.input_tokens",
    }
)
"""Tokens that the conventions count as input as well."""

Value = str | int | Sequence[str]


class _SpanStatus(msgspec.Struct, frozen=True, omit_defaults=True):
    code: int = 0


class Span(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """One span, as OTLP has it in JSON; ids in hexadecimal, times in nanoseconds since the epoch."""

    trace_id: str
    span_id: str
    name: str
    kind: int
    start_time_unix_nano: str
    end_time_unix_nano: str
    attributes: list[dict[str, Any]]
    parent_span_id: str = ""
    status: _SpanStatus = _SpanStatus()


def export_request(spans: Sequence[Span]) -> bytes:
    """Return an ExportTraceServiceRequest as JSON."""
    resource = {"attributes": _attributes({"service.name": _AGENT, "service.version": VERSION})}
    scope = {"scope": {"name": _AGENT, "version": VERSION}, "spans": spans, "schemaUrl": _SCHEMA}
    return msgspec.json.encode({"resourceSpans": [{"resource": resource, "scopeSpans": [scope], "schemaUrl": _SCHEMA}]})


class SessionSpans:
    """What a session has begun and not ended; give it all entries in their order.

    Args:
        session: its id.
        content: whether the spans have what was said, read and printed.
    """

    def __init__(self, session: str, *, content: bool) -> None:
        self._session, self._content = session, content
        self._setup: SessionOpened | SessionChanged = UNKNOWN
        self._detour = ""
        """The model that is asked instead until the turn's end."""
        self._turn: JournalEntry | None = None
        self._calls: dict[str, JournalEntry] = {}
        self._used: Counter[str] = Counter()
        self._last = 0.0
        """When the last fact was recorded."""

    def add(self, entry: JournalEntry) -> Iterator[Span]:
        """Take one more entry into account; yield the span that it ends."""
        match entry.fact:
            case SessionOpened() | SessionChanged() as fact:
                self._setup = fact
            case TurnStarted():
                self._turn, self._detour, self._used = entry, "", Counter()
            case ModelSwitched(model=model, approved=approved):
                self._detour = "" if approved is False else model
            case CallStarted(call=call):
                self._calls.setdefault(call, entry)
            case Replied() as fact:
                yield self._reply(entry, fact)
            case ModelRetried(turn=turn, kind=kind):
                told = self._request("", self._model) | {"error.type": kind}
                key = f"retried {entry.seq}"
                yield self._span(turn, key, f"chat {self._model}", _CLIENT, self._last, entry.at, told)
            case Compacted() as fact if fact.model:
                yield self._summary(entry, fact)
            case CallEnded() as fact:
                yield self._call(entry, fact, self._calls.pop(fact.call, entry))
            case TurnEnded() as fact:
                yield self._turn_span(entry, fact)
                self._turn, self._detour = None, ""
            case _:
                pass
        self._last = entry.at

    @property
    def _model(self) -> str:
        return self._detour or self._setup.model or "none"

    def _request(self, provider: str, model: str) -> dict[str, Value]:
        """Return what spans of a request and of a turn have in common."""
        provider = provider or model.partition(":")[0].partition("/")[0]
        told = {"gen_ai.conversation.id": self._session, "gen_ai.request.model": model}
        return {"gen_ai.operation.name": "chat", "gen_ai.provider.name": _PROVIDERS.get(provider, provider), **told}

    def _reply(self, entry: JournalEntry, fact: Replied) -> Span:
        origin = fact.origin
        told = self._request("" if origin is None else origin.provider, self._model) | _tokens(fact.usage)
        told["gen_ai.response.finish_reasons"] = [fact.stop_reason]
        if origin is not None:
            told["gen_ai.response.model"] = origin.answering or origin.model
        if self._content:
            told["gen_ai.output.messages"] = _message("assistant", fact.content, fact.stop_reason)
        self._used.update(fact.usage)
        began = entry.at - fact.ms / 1000
        return self._span(fact.turn, f"step {fact.step}", f"chat {self._model}", _CLIENT, began, entry.at, told)

    def _summary(self, entry: JournalEntry, fact: Compacted) -> Span:
        """Return the request for a summary of what was said."""
        told = self._request("", fact.model) | _tokens(fact.usage)
        if fact.failure:
            told["error.type"] = fact.failure
        if self._content:
            told["gen_ai.output.messages"] = _message("assistant", [{"type": "text", "text": fact.summary}])
        self._used.update(fact.usage)
        began = entry.at - fact.ms / 1000
        return self._span(fact.turn, f"compacted {entry.seq}", f"chat {fact.model}", _CLIENT, began, entry.at, told)

    def _call(self, entry: JournalEntry, fact: CallEnded, began: JournalEntry) -> Span:
        tool = fact.tool[:_NAME]
        told: dict[str, Value] = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.conversation.id": self._session,
            "gen_ai.tool.name": tool,
            "gen_ai.tool.call.id": fact.call,
            "gen_ai.tool.type": "function",
        }
        if not fact.ok:
            told["error.type"] = fact.kind or "_OTHER"
        if self._content:
            if isinstance(began.fact, CallStarted):
                told["gen_ai.tool.call.arguments"] = effective(began.fact)
            told["gen_ai.tool.call.result"] = fact.content
        return self._span(fact.turn, f"call {fact.call}", f"execute_tool {tool}", _INTERNAL, began.at, entry.at, told)

    def _turn_span(self, entry: JournalEntry, fact: TurnEnded) -> Span:
        began = self._turn or entry
        told = self._request("", self._setup.model or "none") | _tokens(self._used)
        told |= {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": _AGENT}
        told["strongroom.profile"] = self._setup.profile
        if fact.status != "ok":
            told["error.type"] = fact.kind or fact.status
        if self._content:
            if isinstance(began.fact, TurnStarted):
                told["gen_ai.input.messages"] = _message("user", [{"type": "text", "text": began.fact.text}])
            told["gen_ai.output.messages"] = _message("assistant", [{"type": "text", "text": fact.answer}])
        return self._span(fact.turn, _TURN, f"invoke_agent {_AGENT}", _INTERNAL, began.at, entry.at, told)

    def _span(
        self, turn: int, key: str, name: str, kind: int, began: float, ended: float, told: Mapping[str, Value]
    ) -> Span:
        """Return a span; one of a clock that was set back takes no time."""
        return Span(
            trace_id=_id(16, self._session, turn),
            span_id=_id(8, self._session, turn, key),
            name=name,
            kind=kind,
            start_time_unix_nano=str(round(min(began, ended) * _NS)),
            end_time_unix_nano=str(round(ended * _NS)),
            attributes=_attributes(told),
            parent_span_id=_id(8, self._session, turn, _TURN) if turn and key != _TURN else "",
            status=_SpanStatus(_ERROR if "error.type" in told else 0),
        )


_TURN: Final = "turn"


def _id(size: int, *of: str | int) -> str:
    return hashlib.sha256(b"strongroom span " + msgspec.json.encode(of)).hexdigest()[: 2 * size]


def _tokens(usage: Usage) -> dict[str, Value]:
    """Return token counts; what came from the provider's cache, or went into it, is input as well."""
    told: dict[str, Value] = {"gen_ai.usage.output_tokens": usage.get("output_tokens", 0)}
    told["gen_ai.usage.input_tokens"] = sum(usage.get(each, 0) for each in ("input_tokens", *_CACHED))
    return told | {name: usage[each] for each, name in _CACHED.items() if each in usage}


def _message(role: str, blocks: Sequence[Mapping[str, Any]], finish_reason: str = "") -> str:
    """Return a message in the JSON of the conventions, without the model's thinking."""
    parts: list[dict[str, Any]] = []
    for block in blocks:
        match block["type"]:
            case "text":
                parts.append({"type": "text", "content": block["text"]})
            case "tool_use":
                call = {"id": block["id"], "name": block["name"], "arguments": block["input"]}
                parts.append({"type": "tool_call", **call})
    told = {"role": role, "parts": parts} | ({"finish_reason": finish_reason} if finish_reason else {})
    return msgspec.json.encode([told]).decode()


def _attributes(values: Mapping[str, Value]) -> list[dict[str, Any]]:
    return [{"key": key, "value": _value(value)} for key, value in values.items()]


def _value(value: Value) -> dict[str, Any]:
    match value:
        case str():
            return {"stringValue": value}
        case int():
            return {"intValue": str(value)}
        case _:
            return {"arrayValue": {"values": [_value(each) for each in value]}}
