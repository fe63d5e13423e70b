"""Notices of a turn's facts that clients show between what is said: what the model is offered, shown and told. Pure."""

import msgspec

from supervisor.acp import extensions, schema
from supervisor.agent.amount import UNIT
from supervisor.agent.compaction_words import compaction_notice
from supervisor.agent.told_instructions import instructions_notice
from supervisor.journal.facts import Compacted, ContentsRefused, InstructionsRead, ToolsChanged
from supervisor.tools.content_words import refusal_notice
from supervisor.tools.outcomes import availability_notice


def fact_notice(
    fact: ContentsRefused | InstructionsRead | ToolsChanged | Compacted, step: int
) -> schema.AgentThoughtChunk:
    """Return what is told of a fact, as a message of its own."""
    if isinstance(fact, ContentsRefused):
        said, what = refusal_notice(fact), f"refused-{step}"
    elif isinstance(fact, InstructionsRead):
        said, what = instructions_notice(fact), f"instructions-{step}"
    elif isinstance(fact, Compacted):
        said, what = compaction_notice(fact), f"compacted-{step}-{fact.step}"
    else:
        said, what = availability_notice(fact), f"tools-{step}-{fact.category}"
    notice = schema.AgentThoughtChunk.of(f"\n\n({said})\n", f"turn-{fact.turn}-{what}")
    if isinstance(fact, Compacted):
        return msgspec.structs.replace(notice, meta={extensions.COMPACTION: _done(fact)})
    return notice


def shown_to(client: schema.ClientCapabilities, update: schema.Update) -> schema.Update:
    """Return an update as a client can show it: a compaction as one where it knows of those."""
    if not isinstance(update, schema.AgentThoughtChunk) or extensions.COMPACTION not in (update.meta or {}):
        return update
    if not client.has("session", "compaction"):
        return update
    done = (update.meta or {})[extensions.COMPACTION]
    summary = [{"type": "text", "text": done.summary}] if done.summary else None
    return schema.CompactionUpdate(
        compaction_id=update.message_id or "", status="completed", summary=summary, meta=update.meta
    )


def _done(fact: Compacted) -> extensions.CompactionDone:
    sizes = {"before": fact.before, "after": fact.after, "cost": fact.cost / UNIT}
    summary = {"summary": fact.summary, "failure": fact.failure, "model": fact.model}
    return msgspec.convert({"because": fact.because, **sizes, **summary}, extensions.CompactionDone)
