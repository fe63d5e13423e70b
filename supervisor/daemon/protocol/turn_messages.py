"""A turn as clients are told of it: a reply, whole or not, why it is suspended, and notices at its end. Pure.

Rule: no model has said a notice; a client tells by its message's id (`clients.connection.requests.said_besides`).
"""

from collections.abc import Iterator, Mapping
from itertools import groupby
from types import MappingProxyType
from typing import Final

from supervisor.acp import extensions, schema
from supervisor.agent.receipts.receipt_text import receipt_line, unproven_lines
from supervisor.display.clock_time import clock_time
from supervisor.journal.facts import ModelRetried, Replied, ReplyCut, TurnEnded, TurnSuspended

_SAID: Final[Mapping[str, type[schema.AgentMessageChunk] | type[schema.AgentThoughtChunk]]] = MappingProxyType(
    {"text": schema.AgentMessageChunk, "thinking": schema.AgentThoughtChunk}
)
"""Blocks of a reply that are told; the text of each stands under its type's name."""


def reply_chunks(fact: Replied, message_id: str) -> "list[schema.AgentMessageChunk | schema.AgentThoughtChunk]":
    """Return a reply's thinking and text in their order, what belongs together as one."""
    told: list[schema.AgentMessageChunk | schema.AgentThoughtChunk] = []
    for kind, blocks in groupby(fact.content, lambda block: block["type"]):
        text = "".join(str(block.get(kind, "")) for block in blocks) if kind in _SAID else ""
        if text.strip():
            told.append(_SAID[kind].of(text, message_id))
    return told


def cut_chunks(fact: ModelRetried | ReplyCut, message_id: str) -> Iterator[schema.Update]:
    """Yield what was told of a reply of which no more has come; who was there then knows that."""
    if fact.thinking:
        yield schema.AgentThoughtChunk.of(fact.thinking, message_id)
    if fact.text:
        yield schema.AgentMessageChunk.of(fact.text, message_id)
        yield schema.AgentThoughtChunk.of("\n\n(The reply was cut here.)\n", f"{message_id}-cut")


def end_notices(fact: TurnEnded) -> Iterator[schema.AgentThoughtChunk]:
    """Yield why it failed, what the person is to know, what it did, and what of the answer nothing bears out."""
    if fact.status == "error" and fact.kind:
        yield _said(f"{fact.kind}: {fact.message}", f"turn-{fact.turn}-end")
    elif fact.note:
        yield _said(fact.note, f"turn-{fact.turn}-note")
    if fact.receipt is not None and (line := receipt_line(fact.receipt)):
        yield _said(line, f"turn-{fact.turn}-receipt")
    for number, line in enumerate(unproven_lines(fact.receipt) if fact.receipt is not None else ()):
        yield _said(line, f"turn-{fact.turn}-unproven-{number}-note")


def _said(text: str, message: str) -> schema.AgentThoughtChunk:
    return schema.AgentThoughtChunk.of(f"\n\n({text})\n", message)


def suspension(fact: TurnSuspended) -> extensions.Suspension:
    """Return why a turn is suspended, as clients are told."""
    return extensions.Suspension(kind=fact.kind, why=fact.why, until=fact.until or None)


def suspension_text(fact: TurnSuspended) -> str:
    """Return the same for people."""
    until = f" It goes on by itself at {clock_time(fact.until)}." if fact.until else ""
    return f"suspended: {fact.why}{until}"
