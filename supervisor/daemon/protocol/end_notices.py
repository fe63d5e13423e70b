"""Notices at a turn's end, as clients are told them besides its answer: a message each. Pure.

Rule: no model has said any of it; a client tells by a message's id (`clients.connection.requests.said_besides`).
"""

from collections.abc import Iterator

from supervisor.acp import schema
from supervisor.agent.receipts.receipt_text import receipt_line, unproven_lines
from supervisor.journal.facts import TurnEnded


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
