"""Replies as a conversation takes them: such that the API takes them back.

Rule: pure. Tool ids are ones that the conversation has not seen, names have the API's letters only (a call keeps the
name that the model wrote), and no block is empty. Of very many calls only the first stay, and of what it has used only
what can be counted together: a server's mistake would stand in the session's cost for ever.
"""

import itertools
import re
from collections.abc import Set as AbstractSet
from typing import Final

from supervisor.agent.models.model import Block, Reply, ToolUse
from supervisor.tools.outcome_bounds import CALLS_ANSWERED

_ID: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_NOT_IN_NAMES: Final = re.compile(r"[^a-zA-Z0-9_-]")
_NAME_LIMIT: Final = 128
_MOST_TOKENS: Final = 2**40
"""More than any reply has used."""


def accepted(reply: Reply, known: AbstractSet[str]) -> Reply:
    """Return the reply as the API takes it back; `known` are the ids of the conversation's calls so far."""
    content: list[Block] = []
    calls: list[ToolUse] = []
    pending = iter(reply.calls)
    given: set[str] = set()
    for block in reply.content:
        if block["type"] == "text" and not block["text"].strip():
            continue
        if block["type"] == "tool_use":
            if len(calls) == CALLS_ANSWERED:
                continue
            call = next(pending)
            unique = _unique(call.id, known, given)
            given.add(unique)
            calls.append(ToolUse(unique, call.name, call.arguments))
            name = _NOT_IN_NAMES.sub("_", call.name[:_NAME_LIMIT]) or "_"
            block = block | {"id": unique, "name": name}  # noqa: PLW2901 - a changed copy
        content.append(block)
    usage = {name: count for name, count in reply.usage.items() if 0 <= count <= _MOST_TOKENS}
    return Reply(content, reply.stop_reason, usage, calls, reply.origin)


def _unique(wanted: str, known: AbstractSet[str], given: AbstractSet[str]) -> str:
    """Return an id that no call of the conversation has, nor one of those `given` to the same reply's."""
    if _ID.fullmatch(wanted) and wanted not in known and wanted not in given:
        return wanted
    names = (f"call_{number}" for number in itertools.count(len(known) + len(given) + 1))
    return next(name for name in names if name not in known and name not in given)
