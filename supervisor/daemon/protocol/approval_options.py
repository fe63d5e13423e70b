"""Options of an approval request, and what the chosen one allows. Pure.

Rule: only a clear yes is a yes. An answer that is not understood, an option or a scope that was not offered: all of
them decline.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final, get_args

import msgspec

from supervisor.acp import extensions, jsonrpc, schema
from supervisor.display.changes import counted_unseen
from supervisor.display.command_text import as_arguments, words_of
from supervisor.display.escape import name as on_one_line
from supervisor.display.escape import visible
from supervisor.journal.facts import Scope
from supervisor.rules.edited_rule import edited as edited_rule
from supervisor.rules.rule import Rule
from supervisor.tools.approval import ApprovalDecision

_ALLOW: Final = "allow_once"
_CANCELLED: Final = "cancelled"
_REJECT: Final = schema.PermissionOption(option_id="reject_once", name="Reject", kind="reject_once")
_STOP: Final = schema.PermissionOption(option_id="reject_once", name="Stop the turn", kind="reject_once")
_USE: Final = schema.PermissionOption(option_id="reject_once", name="Let the file count", kind="reject_once")
_EDIT: Final = schema.PermissionOption(option_id="edit", name="Edit, then run...", kind="allow_once")
_YES: Final[Mapping[extensions.Stage, str]] = MappingProxyType(
    {
        "call": "Run it",
        "effects": "Apply these changes",
        "direct": "Run it on the root itself",
        "network": "Rehearse it with the network",
        "turn": "Go on with the turn",
        "switch": "Ask the other model",
        "narrow": "Leave the file out",
        "refused": "Leave it at that",
    }
)
_LONGER: Final[Mapping[str, tuple[Scope, str]]] = MappingProxyType(
    {"allow_session": ("session", "For this session"), "allow_always": ("always", "Always")}
)
"""Options that make a rule: for how long, and how they begin."""
_EXTENSIONS: Final = frozenset({extensions.EDITED, extensions.SCOPE, extensions.UNCONFINED, extensions.RULE})
"""Keys of an answer that count from clients alone which say that they know them."""
_WORDS: Final = "words"
"""The one field of a form for a command."""
_FORM_TYPES: Final = ("string", "integer", "number", "boolean")
"""What a field of a form may be (elicitation's flat schemas)."""


def options(request: extensions.ApprovalRequest, *, forms: bool) -> list[schema.PermissionOption]:
    """Return what a client is offered; what makes a rule says exactly which. With `forms`, it may edit in a form."""
    hidden = request.effects is not None and request.stage == "effects" and request.effects.unseen
    yes = f"Apply {counted_unseen(request.effects)}" if request.effects is not None and hidden else _YES[request.stage]
    once = schema.PermissionOption(option_id=_ALLOW, name=yes, kind="allow_once")
    longer = [
        schema.PermissionOption(option_id=option, name=f"{begin}: {on_one_line(request.covers)}", kind="allow_always")
        for option, (_, begin) in _LONGER.items()
        if request.covers
    ]
    allowed = [once, *([_EDIT] if forms else []), *longer]
    no = {"turn": _STOP, "narrow": _USE}.get(request.stage, _REJECT)
    return [no, *allowed] if hidden else [*allowed, no]  # what is chosen unread is the first


def understood(
    request: extensions.ApprovalRequest, answer: bytes, offered: Collection[str], *, by: str, knows_extensions: bool
) -> ApprovalDecision | None:
    """Return what a client answered; None where it wants to edit in a form.

    Args:
        request: what it was told.
        answer: a permission's result, JSON.
        offered: the ids of the options.
        by: its name.
        knows_extensions: whether it said that it knows our extensions.
    """
    result = jsonrpc.decoded(answer, schema.PermissionResult)
    if not isinstance(result, schema.PermissionResult):
        return ApprovalDecision(approved=False, by=by)
    meta = result.meta or {}
    remark = _sayable(meta.get(extensions.REMARK, ""))
    chosen = result.outcome.option_id if result.outcome.outcome == "selected" else None
    if chosen is None or chosen not in offered or chosen == _REJECT.option_id:
        return ApprovalDecision(approved=False, remark=remark, by=by)
    if chosen == _EDIT.option_id:
        return None
    if not knows_extensions and set(meta) & _EXTENSIONS:
        return ApprovalDecision(approved=False, by=by)  # it never said that it knows what they mean
    scope = _LONGER[chosen][0] if chosen in _LONGER else "once"
    return _with_extensions(request, meta, ApprovalDecision(approved=True, remark=remark, by=by, scope=scope))


def is_cancelled(answer: bytes) -> bool:
    """Say whether a client has cancelled a question, in place of answering it."""
    result = jsonrpc.decoded(answer, schema.PermissionResult)
    return isinstance(result, schema.PermissionResult) and result.outcome.outcome == _CANCELLED


def _with_extensions(
    request: extensions.ApprovalRequest, meta: dict[str, Any], yes: ApprovalDecision
) -> ApprovalDecision:
    """Return a yes with what the keys of ours say; a no where they say what was not offered."""
    if extensions.EDITED in meta:  # is judged anew: nothing that was offered for the text before holds for it
        edited = msgspec.json.encode(meta[extensions.EDITED]).decode()
        return replace(yes, approved=request.editable, edited=edited, scope="once")
    scope = meta.get(extensions.SCOPE, yes.scope)
    unconfined = meta.get(extensions.UNCONFINED, False)
    offered = scope == "once" or (bool(request.covers) and scope in get_args(Scope))
    if unconfined is not False:
        offered = unconfined is True and request.escalation and scope == "once"
    rule = None
    if extensions.RULE in meta and offered:
        try:
            rule = edited_rule(msgspec.convert(request.rule, Rule), msgspec.json.encode(meta[extensions.RULE]).decode())
        except (ValueError, msgspec.ValidationError):
            offered = False
        offered = offered and scope != "once"
    decided = replace(yes, scope=scope, unconfined=unconfined, rule=rule)
    return decided if offered else replace(yes, approved=False, scope="once")


# --- editing in a form ------------------------------------------------------------------------------------------------


def form(request: extensions.ApprovalRequest, schema_of: dict[str, Any]) -> dict[str, Any] | None:
    """Return a flat form with the call's arguments as defaults; None where they do not fit one.

    The words of a command are one field.
    """
    if not request.editable:
        return None
    words = words_of(request.tool, request.arguments)
    if words is not None:
        title = "The command and its arguments, as words; no shell reads them"
        return (
            _flat({_WORDS: {"type": "string", "title": title, "default": words}}) if visible(words) == words else None
        )
    try:
        given = msgspec.json.decode(request.arguments or "{}")
    except (msgspec.DecodeError, RecursionError):
        return None
    properties = schema_of.get("properties", {})
    if not isinstance(given, dict) or not set(given) <= set(properties):
        return None
    fields: dict[str, Any] = {}
    for name, value in given.items():
        kind = properties[name].get("type") or next(
            (each.get("type") for each in properties[name].get("anyOf", ()) if each.get("type") != "null"), None
        )
        if kind not in _FORM_TYPES:
            return None
        fields[name] = {"type": kind, "title": name, "default": value}
    return _flat(fields)


def _flat(fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": fields, "required": list(fields)}


def filled(
    request: extensions.ApprovalRequest, form: dict[str, Any], answer: bytes | None, *, by: str
) -> ApprovalDecision:
    """Return what a client answered to a form; None is an error."""
    no = ApprovalDecision(approved=False, by=by)
    result = jsonrpc.decoded(answer, schema.ElicitationResult) if answer is not None else None
    if not isinstance(result, schema.ElicitationResult) or result.action != "accept" or result.content is None:
        return no
    if set(result.content) != set(form["properties"]):
        return no
    if words_of(request.tool, request.arguments) is None:
        return ApprovalDecision(approved=True, edited=msgspec.json.encode(result.content).decode(), by=by)
    try:
        return ApprovalDecision(
            approved=True, edited=as_arguments(str(result.content[_WORDS]), request.arguments), by=by
        )
    except ValueError:
        return no


def _sayable(remark: Any) -> str:
    """Return a remark that a journal can hold."""
    return remark.encode("utf-8", "replace").decode() if isinstance(remark, str) else ""
