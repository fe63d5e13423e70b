"""A tool call as clients see it: facts of the journal to updates of the protocol. Pure.

Rule: a person decides by what is shown here, so the input is shown in full; only results are cut.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import msgspec

from supervisor.acp import ours
from supervisor.acp.schema import Content, Diff, Location, Text, ToolCall, ToolCallUpdate, ToolKind, ToolStatus
from supervisor.agent.transcript import shown
from supervisor.facts import CallEnded, CallStarted
from supervisor.render import one_line
from supervisor.tools.router import allowed, as_error

SHOWN_LIMIT: Final = 64 * 1024
"""Characters of a tool's result that clients are shown; the model and the journal have all of it."""
_TITLE: Final = 100

_KINDS: Final[Mapping[str, ToolKind]] = MappingProxyType(
    {
        "read_file": "read",
        "write_file": "edit",
        "edit_file": "edit",
        "list_files": "search",
        "list_directory": "read",
        "find_files": "search",
        "search_files": "search",
        "fetch_url": "fetch",
        "exec_shell": "execute",
        "run_cmd": "execute",
    }
)
_MAIN_ARGUMENT: Final = ("path", "pattern", "query", "url", "command")
"""What a call is about, in a few words: the first of these that it has."""


def begun(call: CallStarted, root: str, status: ToolStatus) -> ToolCall:
    """Return a call when it is first heard of, on the session's root."""
    arguments = _raw(call.arguments)
    path = arguments.get("path") if isinstance(arguments, dict) else None
    where = f"{root}/{path}" if isinstance(path, str) and path and not path.startswith("/") else None
    return ToolCall(
        tool_call_id=call.call,
        title=title(call),
        kind=_KINDS.get(call.tool, "other"),
        status=status,
        content=_changes(call.tool, where, arguments),
        locations=[Location(path=where)] if where else None,
        raw_input=arguments,
        meta={ours.CALL: _call_facts(call)},
    )


def title(call: CallStarted) -> str:
    """Return a call in a few words."""
    arguments = _raw(call.arguments)
    if isinstance(arguments, dict):
        for name in _MAIN_ARGUMENT:
            if isinstance(arguments.get(name), str):
                return one_line(f"{call.tool} {arguments[name]}", _TITLE)
    return one_line(call.tool, _TITLE)


def _call_facts(call: CallStarted) -> ours.CallFacts:
    return ours.CallFacts(
        tool=call.tool,
        arguments=call.arguments[:SHOWN_LIMIT],
        decision=call.decision,
        reason=call.reason,
        edited=None if call.edited is None else call.edited[:SHOWN_LIMIT],
    )


def decided(call: CallStarted) -> ToolCallUpdate:
    """Return what a person decided about a call."""
    return ToolCallUpdate(
        tool_call_id=call.call,
        status="in_progress" if allowed(call) else None,
        raw_input=_raw(call.edited) if call.edited is not None else None,
        meta={ours.CALL: _call_facts(call)},
    )


def unseen(call: CallEnded) -> ToolCall:
    """Return a call that is first heard of by its end: it was cut, or not wanted any more."""
    return ToolCall(tool_call_id=call.call, title=one_line(call.tool, _TITLE), kind=_KINDS.get(call.tool, "other"))


def ended(fact: CallEnded) -> ToolCallUpdate:
    """Return how a call ended."""
    said = shown(fact) if fact.ok else fact.content
    if len(said) > SHOWN_LIMIT:
        said = f"{said[:SHOWN_LIMIT]}\n[the first {SHOWN_LIMIT} of {len(said)} characters]"
    return ToolCallUpdate(
        tool_call_id=fact.call,
        status="completed" if fact.ok else "failed",
        content=text(said),
        raw_output=None if fact.ok else {"error": as_error(fact)},
        meta={
            ours.CALL: ours.CallFacts(tool=fact.tool, kind=fact.kind, note=fact.note, seconds=fact.seconds),
        },
    )


def text(said: str) -> list[Content | Diff]:
    """Return what a call shows, where that is text."""
    return [Content(content=Text(text=said))]


def _changes(tool: str, path: str | None, arguments: Any) -> list[Content | Diff] | None:
    """Return what a call would change, for editors to show."""
    if path is None:
        return None
    match tool, arguments:
        case "write_file", {"content": str(new)}:
            return [Diff(path=path, new_text=new[:SHOWN_LIMIT])]
        case "edit_file", {"old": str(old), "new": str(new)}:
            return [Diff(path=path, old_text=old[:SHOWN_LIMIT], new_text=new[:SHOWN_LIMIT])]
        case _:
            return None


def _raw(arguments: str) -> Any:
    """Return the arguments as the JSON that they are, else as the text that they are."""
    try:
        return msgspec.json.decode(arguments or "{}")
    except (msgspec.DecodeError, RecursionError):
        return arguments
