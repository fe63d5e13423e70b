"""Updates of tool calls, as the console's entries of them take them up. Pure."""

from typing import Final

import msgspec

from supervisor.acp import extensions, schema
from supervisor.clients.connection.requests import call_facts
from supervisor.clients.console.shown import ShownCall
from supervisor.display import changes

_CUT: Final = ("cancelled", "outcome_unknown")
"""Kinds of a call's end that may not say what it had printed."""


def fill(call: ShownCall, update: schema.ToolCall | schema.ToolCallUpdate) -> None:
    """Take into account what an update says of a call."""
    facts = call_facts(update.meta) or extensions.CallFacts(tool="")
    call.title = update.title or call.title
    call.tool = facts.tool or call.tool or call.title.split(" ", 1)[0]
    call.status = update.status or call.status
    call.command = call.command or update.kind == "execute"
    call.arguments = facts.arguments or call.arguments
    if not call.arguments and update.raw_input is not None:
        call.arguments = msgspec.json.encode(update.raw_input).decode()
    if facts.edited is not None and facts.edited != call.edited:
        call.edited, call.output = facts.edited, ""  # what it printed before, it printed with other arguments
    call.reason = facts.reason or call.reason
    call.kind, call.note, call.seconds = facts.kind or call.kind, facts.note or call.note, facts.seconds
    if facts.decided is not None and update.status == "completed":
        call.outcome, call.differences = changes.outcome(facts.decided), facts.decided.differences
    texts = [text.removesuffix(f"\n\n[{call.note}]") for text in schema.texts_of(update.content)]
    if texts and update.status != "pending":  # then it is what would change, and not what was printed
        shown = call.output.rstrip()
        cut = facts.kind in _CUT and not call.ended and shown not in texts[0]
        call.output = f"{shown}\n{texts[0]}" if cut else texts[0]  # the rest we say ourselves
