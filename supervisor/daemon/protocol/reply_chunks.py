"""Pieces of a reply as clients are told of one that has come, whole or not. Pure."""

from collections.abc import Iterator, Mapping
from itertools import groupby
from types import MappingProxyType
from typing import Final

from supervisor.acp import schema
from supervisor.journal.facts import ModelRetried, Replied, ReplyCut

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
