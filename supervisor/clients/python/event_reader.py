"""Typed events of what is heard of a session. Pure.

Rule: a call is told twice, when it is first heard of and when it has ended; what it prints meanwhile is not.
"""

from contextlib import suppress
from typing import Any, Final

import msgspec

from supervisor.acp import extensions, schema
from supervisor.clients.connection import requests
from supervisor.clients.connection.link_events import SessionEvent
from supervisor.clients.console.call_updates import fill
from supervisor.clients.console.shown import ShownCall
from supervisor.clients.python.typed_events import (
    AnswerPart,
    ConversationCompacted,
    NoticeGiven,
    PlanChanged,
    ThoughtPart,
    ToolEnded,
    ToolStarted,
    TurnEvent,
    TurnResult,
    decoded_arguments,
)
from supervisor.journal.receipt import Receipt

_DENIED: Final = "denied"


class EventReader:
    """What is heard of a session, as its program reads it."""

    def __init__(self) -> None:
        self._calls: dict[str, ShownCall] = {}
        self._denied: list[str] = []
        self._cost: schema.Cost | None = None
        """Of the session so far."""
        self._cost_before = 0.0

    def begin_turn(self) -> None:
        """What is heard from here on is of the next turn."""
        self._calls.clear()
        self._denied.clear()
        self._cost_before = self._cost.amount if self._cost is not None else 0.0

    def take(self, event: SessionEvent) -> list[TurnEvent]:
        """Return what an event is to a program."""
        told: list[TurnEvent] = []
        match event:
            case extensions.TurnState(retry=why) if why:
                told.append(NoticeGiven(why))
            case schema.SessionUpdate(update=schema.AgentMessageChunk() as chunk):
                told.append(AnswerPart(chunk.content.text, chunk.message_id or ""))
            case schema.SessionUpdate(update=schema.AgentThoughtChunk() as chunk):
                told.append(_thought(chunk))
            case schema.SessionUpdate(update=schema.ToolCall() | schema.ToolCallUpdate() as update):
                told += self._call(update)
            case schema.SessionUpdate(update=schema.Plan(entries=entries)):
                told.append(PlanChanged(tuple(entries)))
            case schema.SessionUpdate(update=schema.UsageUpdate(cost=cost)):
                self._cost = cost or self._cost
            case _:
                pass
        return told

    def ended(
        self, summary: extensions.TurnSummary, usage: schema.TokenUsage | None, *, structured: bool
    ) -> TurnResult:
        """Return how a turn ended; `structured`: its answer is JSON that was asked for by a schema."""
        data = msgspec.json.decode(summary.answer) if structured and summary.status == "ok" else None
        cost = None if self._cost is None else round(self._cost.amount - self._cost_before, 6)
        return TurnResult(
            status=summary.status,
            answer=summary.answer,
            data=data,
            kind=summary.kind,
            message=summary.message,
            note=summary.note,
            receipt=None if summary.receipt is None else msgspec.convert(summary.receipt, Receipt),
            steps=summary.steps,
            denied=tuple(self._denied),
            usage=usage,
            cost=cost,
            currency=self._cost.currency if self._cost is not None else "",
        )

    def _call(self, update: schema.ToolCall | schema.ToolCallUpdate) -> list[TurnEvent]:
        told: list[TurnEvent] = []
        call = self._calls.get(update.tool_call_id)
        if call is None:
            call = ShownCall(update.tool_call_id, len(self._calls) + 1, update.title or update.tool_call_id)
            self._calls[call.id] = call
        fresh = not call.tool
        fill(call, update)
        if fresh:
            told.append(ToolStarted(call.id, call.tool, call.title, _arguments(call)))
        if update.status in ("completed", "failed") and not call.ended:
            call.ended = True
            told.append(self._call_ended(call, ok=update.status == "completed"))
        return told

    def _call_ended(self, call: ShownCall, *, ok: bool) -> ToolEnded:
        if call.kind == _DENIED:
            self._denied.append(call.title)
        return ToolEnded(
            call=call.id,
            tool=call.tool,
            title=call.title,
            arguments=_arguments(call),
            ok=ok,
            output=call.output,
            kind=call.kind,
            changed=call.outcome,
            differences=tuple(call.differences),
            seconds=call.seconds,
        )


def _arguments(call: ShownCall) -> Any:
    return decoded_arguments(call.edited if call.edited is not None else call.arguments)


def _thought(chunk: schema.AgentThoughtChunk) -> NoticeGiven | ThoughtPart | ConversationCompacted:
    text, message = chunk.content.text, chunk.message_id or ""
    if (done := (chunk.meta or {}).get(extensions.COMPACTION)) is not None:
        with suppress(msgspec.ValidationError):
            return ConversationCompacted(requests.unwrapped(text), msgspec.convert(done, extensions.CompactionDone))
    match requests.said_besides(message):
        case "":
            return ThoughtPart(text, message)
        case "end":
            return NoticeGiven(requests.unwrapped(text), "error")
        case _:
            return NoticeGiven(requests.unwrapped(text))
