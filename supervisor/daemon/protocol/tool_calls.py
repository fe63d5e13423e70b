"""A tool call as clients see it: facts of the journal to updates of the protocol. Pure.

Rule: a person decides by what is shown here, so the input is shown in full; only results are cut. Everything is visible
(`supervisor.display.escape`), and protected paths come first.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final, TypeVar

import msgspec

from supervisor.acp import extensions
from supervisor.acp.schema import (
    Content,
    DiffContent,
    Location,
    PermissionCall,
    Text,
    ToolCall,
    ToolCallUpdate,
    ToolKind,
    ToolStatus,
)
from supervisor.agent.blocks import result_text
from supervisor.daemon.protocol.effect_blocks import block, differences_shown, effects_shown, fenced
from supervisor.display import changes, differences, proposed_effects
from supervisor.display.command_output import output_text
from supervisor.display.command_text import text_of, title_of
from supervisor.display.escape import name, one_line, visible
from supervisor.journal.facts import CallDecided, CallEnded, CallStarted, effective
from supervisor.rules.rule_sentence import sentence
from supervisor.tools.approval import ApprovalQuestion
from supervisor.tools.outcomes import allowed, as_error
from supervisor.tools.partial_output import OUTPUT
from workers.catalog import find_tool

_S = TypeVar("_S", ToolCallUpdate, PermissionCall)

SHOWN_LIMIT: Final = 64 * 1024
"""Characters of a tool's result that clients are shown; the model and the journal have all of it."""
_TITLE: Final = 100


def started(call: CallStarted, root: str, status: ToolStatus) -> ToolCall:
    """Return a call when it is first heard of, on the session's root."""
    arguments = _raw(effective(call))
    path = arguments.get("path") if isinstance(arguments, dict) else None
    where = f"{root}/{path}" if isinstance(path, str) and path and not path.startswith("/") else None
    return ToolCall(
        tool_call_id=call.call,
        title=title_of(call.tool, effective(call)),
        name=one_line(call.tool, _TITLE),
        kind=_kind(call.tool),
        status=status,
        content=_changes(call.tool, where, arguments),
        locations=[Location(path=where)] if where else None,
        raw_input=arguments,
        meta={extensions.CALL: _call_facts(call)},
    )


def _kind(tool: str) -> ToolKind:
    row = find_tool(tool)
    return "other" if row is None else row.kind


def _call_facts(call: CallStarted) -> extensions.CallFacts:
    return extensions.CallFacts(
        tool=call.tool,
        arguments=call.arguments[:SHOWN_LIMIT],
        decision=call.decision,
        reason=call.reason,
        edited=None if call.edited is None else call.edited[:SHOWN_LIMIT],
    )


def awaiting_approval(question: ApprovalQuestion, root: str) -> tuple[extensions.ApprovalRequest, ToolCall]:
    """Return a call that a person is about to decide: as our own clients are told it, and with all that must be seen.

    Decodes no message, so it may run in a thread.
    """
    told = _approval_request(question)
    shown = started(question.call, root, "pending")
    own = (shown.content or []) if question.effects is None else []  # what the arguments themselves say of the change
    title = changes.TITLES.get(question.stage, shown.title)
    return told, msgspec.structs.replace(shown, title=title, content=[*_explained(question, told, root), *own])


def _approval_request(question: ApprovalQuestion) -> extensions.ApprovalRequest:
    return extensions.ApprovalRequest(
        tool=question.call.tool,
        arguments=effective(question.call),
        reason=question.reason,
        editable=question.stage
        not in ("network", "turn", "switch", "narrow", "refused"),  # the one is about what this very command has tried
        stage=question.stage,
        effects=None
        if question.effects is None
        else proposed_effects.presented(question.effects, question.cannot_undo, lacks=question.escalation),
        covers="" if question.rule is None else sentence(question.rule),
        rule={} if question.rule is None else msgspec.to_builtins(question.rule),
        escalation=question.escalation,
    )


def _explained(question: ApprovalQuestion, told: extensions.ApprovalRequest, root: str) -> list[Content | DiffContent]:
    """Return the command in full, and what is to be known of this stage."""
    arguments = effective(question.call)
    command = text_of(question.call.tool, arguments)
    shown: list[Content | DiffContent] = [] if command == arguments else [fenced(visible(command))]
    rehearsed = question.effects if question.stage == "effects" else None
    words = changes.explained(told if rehearsed is None else msgspec.structs.replace(told, effects=None))
    reason = name(question.reason)
    shown.append(block(words if reason in [text for _, text in words] else [("", reason), *words]))
    return shown + (effects_shown(rehearsed, root, told.effects) if rehearsed is not None and told.effects else [])


def reshaped(shown: ToolCall | ToolCallUpdate, shape: type[_S], **changes: Any) -> _S:
    """Return the view of a call in another of its shapes."""
    return shape(**msgspec.structs.asdict(shown) | changes)


def decided(call: CallStarted) -> ToolCallUpdate:
    """Return what a person decided about a call."""
    return ToolCallUpdate(
        tool_call_id=call.call,
        status="in_progress" if allowed(call) else None,
        raw_input=_raw(call.edited) if call.edited is not None else None,
        meta={extensions.CALL: _call_facts(call)},
    )


def decided_effects(fact: CallDecided) -> ToolCallUpdate:
    """Return what was decided about the effects of a call."""
    return ToolCallUpdate(
        tool_call_id=fact.call,
        status="in_progress" if fact.committed else None,
        raw_input=_raw(fact.edited) if fact.edited is not None else None,
        meta={
            extensions.CALL: extensions.CallFacts(
                tool="", decision=fact.decision, reason=fact.reason, decided=decision(fact)
            )
        },
    )


def decision(fact: CallDecided) -> extensions.Decided:
    """Return what was decided about the effects of a call, for our own clients."""
    effects = fact.effects
    return extensions.Decided(
        committed=fact.committed,
        changed="" if effects is None else changes.counted(proposed_effects.presented(effects)),
        by=fact.decided_by,
        scope=fact.scope,
        covered_by=fact.covered_by,
        kept=bool(fact.kept),
        not_kept=fact.not_kept,
        unconfined=fact.unconfined,
        undoes=fact.undoes,
        cannot_undo=fact.cannot_undo,
    )


def unannounced(call: CallEnded) -> ToolCall:
    """Return a call that is first heard of by its end: it was cut, or not wanted any more."""
    title = one_line(call.tool, _TITLE)
    return ToolCall(tool_call_id=call.call, title=title, name=title, kind=_kind(call.tool))


def ended(
    fact: CallEnded, root: str = "", decided: CallDecided | None = None, contents: Sequence[Content] = ()
) -> ToolCallUpdate:
    """Return how a call ended on a root, after what was decided about its effects.

    The first block is its result, and nothing else; what it changed follows, in words and as differences, for an update
    replaces what was shown; the last ones are images and documents that it has found.
    """
    said = _result(fact) if fact.ok else "\n".join([*_written(fact), fact.content])
    changed, shown = None, list[Content | DiffContent]()
    if fact.ok and decided is not None and decided.committed:
        changed = decision(decided)
        shown = text(changes.outcome(changed))
        if decided.effects is not None:
            told = differences.shown(proposed_effects.presented(decided.effects))
            changed = msgspec.structs.replace(changed, differences=told)
            shown += differences_shown(decided.effects, root)
    if len(said) > SHOWN_LIMIT:
        said = f"{said[:SHOWN_LIMIT]}\n[the first {SHOWN_LIMIT} of {len(said)} characters]"
    return ToolCallUpdate(
        tool_call_id=fact.call,
        status="completed" if fact.ok else "failed",
        content=[*text(said), *shown, *contents],
        raw_output=None if fact.ok else {"error": as_error(fact)},
        meta={
            extensions.CALL: extensions.CallFacts(
                tool=fact.tool, kind=fact.kind, note=fact.note, seconds=fact.seconds, decided=changed
            )
        },
    )


def _result(fact: CallEnded) -> str:
    """Return the result of a call that ended well: of a command as it was printed, safe to show."""
    said = result_text(fact)
    text = output_text(fact.tool, said)
    return said if text == said else visible(text)


def _written(fact: CallEnded) -> Iterator[str]:
    """Yield what a call that failed had printed until then, the end of each stream."""
    for stream in ("stdout", "stderr", OUTPUT):
        if said := str(fact.details.get(stream, "")).rstrip("\n"):
            yield said[-SHOWN_LIMIT // 4 :]


def text(said: str) -> list[Content | DiffContent]:
    """Return what a call shows, where that is text."""
    return [Content(content=Text(text=said))]


def _changes(tool: str, path: str | None, arguments: Any) -> list[Content | DiffContent] | None:
    """Return what a call would change, for editors to show."""
    if path is None:
        return None
    match _kind(tool), arguments:
        case "edit", {"content": str(new)}:
            return [DiffContent(path=path, new_text=new[:SHOWN_LIMIT])]
        case "edit", {"old": str(old), "new": str(new)}:
            return [DiffContent(path=path, old_text=old[:SHOWN_LIMIT], new_text=new[:SHOWN_LIMIT])]
        case _:
            return None


def _raw(arguments: str) -> Any:
    """Return the arguments as the JSON that they are, else as the text that they are."""
    try:
        return msgspec.json.decode(arguments or "{}")
    except (msgspec.DecodeError, RecursionError):
        return arguments
