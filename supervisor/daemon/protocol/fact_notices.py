"""Notices of a turn's facts that clients show between what is said: what the model is offered, shown and told. Pure."""

from supervisor.acp import schema
from supervisor.agent.told_instructions import instructions_notice
from supervisor.journal.facts import ContentsRefused, InstructionsRead, ToolsChanged
from supervisor.tools.content_words import refusal_notice
from supervisor.tools.outcomes import availability_notice


def fact_notice(fact: ContentsRefused | InstructionsRead | ToolsChanged, step: int) -> schema.AgentThoughtChunk:
    """Return what is told of a fact, as a message of its own."""
    if isinstance(fact, ContentsRefused):
        said, what = refusal_notice(fact), f"refused-{step}"
    elif isinstance(fact, InstructionsRead):
        said, what = instructions_notice(fact), f"instructions-{step}"
    else:
        said, what = availability_notice(fact), f"tools-{step}-{fact.category}"
    return schema.AgentThoughtChunk.of(f"\n\n({said})\n", f"turn-{fact.turn}-{what}")
