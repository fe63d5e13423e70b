"""A session as Markdown: `strongroom export`, and `/export` of the console. Pure.

Rule: what a person or the model said stands as it was said; what tools were given and printed stands in fences that it
cannot end.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from supervisor.agent.blocks import result_text
from supervisor.agent.models.model import message_text
from supervisor.display.argument_text import argument_text
from supervisor.display.command_output import output_text
from supervisor.display.differences import painted, shown
from supervisor.display.escape import one_line, visible
from supervisor.display.fragments import plain
from supervisor.display.proposed_effects import presented
from supervisor.journal.facts import (
    CallDecided,
    CallEnded,
    CallStarted,
    Replied,
    ReplyCut,
    SessionOpened,
    TurnStarted,
    effective,
)
from supervisor.journal.journal import JournalEntry
from supervisor.journal.lineage import turn_line
from supervisor.reports.call_lines import decision_lines
from supervisor.reports.session_parts import CallPart, session_parts
from supervisor.reports.session_text import OPEN, damages, is_open, notes, profile_and_model, turn_words
from supervisor.tools.content_words import described

_TITLE: Final = 100
_FENCE: Final = "```"


def session_markdown(entries: Sequence[JournalEntry]) -> str:
    """Return the conversation."""
    title = next((one_line(each.fact.text, _TITLE) for each in entries if isinstance(each.fact, TurnStarted)), "")
    parts = [f"# {title or 'Conversation'}\n"]
    stand = turn_line(entries).turns
    for part in session_parts(entries):
        parts += [f"*{damage}*\n" for damage in damages(part)]
        if isinstance(part, JournalEntry) and isinstance(part.fact, TurnStarted):
            parts.append(f"*{turn_words(part.fact, stand)}*\n")
        parts += [_call(part)] if isinstance(part, CallPart) else _part(part)
    return "\n".join([*parts, *([f"*{OPEN}*\n"] if is_open(entries) else [])])


def _part(part: JournalEntry) -> Iterator[str]:
    fact = part.fact
    if isinstance(fact, SessionOpened):
        root = one_line(fact.context.working_directory, 4096)
        yield f"Session {part.session}, {profile_and_model(fact)}, root {root}\n"
    elif isinstance(fact, TurnStarted):
        asked = [*(f"[{described(each)}]" for each in fact.contents), *visible(fact.text).split("\n")]
        yield "\n".join(f"> {line}".rstrip() for line in asked) + "\n"
    elif isinstance(fact, Replied | ReplyCut):
        said = message_text(fact.content) if isinstance(fact, Replied) else fact.text
        yield from [f"{said}\n"] if (said := visible(said, prose=True).strip("\n")) else []
    yield from (f"*{note}*\n" for note in notes(fact))


def _call(part: CallPart) -> str:
    """Return a call as an item of a list: its arguments, what came of it, and what it changed."""
    started, ended = part.started, part.ended
    tool = started.tool if started is not None else ended.tool if ended is not None else ""
    outcome = "no outcome" if ended is None else "ok" if ended.ok else str(ended.kind)
    lines = [f"- `{one_line(tool, _TITLE)}` ({outcome})\n"]
    for fact in (entry.fact for entry in part.entries):
        if isinstance(fact, CallStarted):
            lines.append(_fenced(argument_text(effective(fact)), ""))
        elif isinstance(fact, CallDecided):
            lines += [f"  {line}\n" for line in decision_lines(fact)]
            found = painted(shown(presented(fact.effects)), colour=False) if fact.effects is not None else ()
            lines.append(_fenced("\n".join(map(plain, found)), "diff"))
        elif isinstance(fact, CallEnded):
            said = output_text(fact.tool, result_text(fact)) if fact.ok else fact.content
            lines.append(_fenced(visible(said), ""))
    return "\n".join(lines)


def _fenced(text: str, language: str) -> str:
    """Return a text in a fence that it cannot end, indented into a list item."""
    if not text:
        return ""
    fence = _FENCE
    while fence in text:
        fence += "`"
    lines = [f"{fence}{language}", *text.rstrip("\n").split("\n"), fence]
    return "".join(f"  {line}\n" for line in lines)
