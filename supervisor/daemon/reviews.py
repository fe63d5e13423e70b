"""Asking people: a call that policy asks about goes to every client of its session, and the first answer counts.

Rule: only a clear yes is a yes. An answer that is not understood, an option that was not offered, an error: all of them
decline. Nobody there is no answer at all: the question stays for the client that comes next. Each question has an
answer of its own: what comes late for one never counts for the next, also where both are about one call.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final, get_args

import msgspec
import trio

from supervisor.acp import ours, rpc, schema
from supervisor.daemon import calls
from supervisor.daemon.connection import Connection
from supervisor.facts import Scope, effective
from supervisor.render import name as on_one_line
from supervisor.tools.review import Ask, Review, Stage

_ALLOW: Final = "allow_once"
_YES: Final[Mapping[Stage, str]] = MappingProxyType(
    {
        "call": "Run it",
        "effects": "Apply these changes",
        "direct": "Run it on the root itself",
        "network": "Rehearse it with the network",
    }
)
_LONGER: Final[Mapping[str, tuple[Scope, str]]] = MappingProxyType(
    {"allow_session": ("session", "For this session"), "allow_always": ("always", "Always")}
)
"""Options that make a rule: for how long, and how they begin."""
_REJECT: Final = schema.PermissionOption(option_id="reject_once", name="Reject", kind="reject_once")
_EDIT: Final = schema.PermissionOption(option_id="edit", name="Edit, then run...", kind="allow_once")
_OURS_ALONE: Final = frozenset({ours.EDITED, ours.SCOPE, ours.UNCONFINED})
"""Keys of an answer that count from clients alone which say that they know them."""
_FORM_TYPES: Final = ("string", "integer", "number", "boolean")
"""What a field of a form may be (elicitation's flat schemas)."""


class Question:
    """One question about a call, that waits for a person.

    Args:
        session: its id.
        ask: what is asked.
        shown: the call as clients show it.
        schema_of: the JSON Schema of the tool's arguments.
    """

    def __init__(
        self, session: str, ask: Ask, shown: schema.ToolCall | schema.ToolCallUpdate, schema_of: dict[str, Any]
    ) -> None:
        self.ask = ask
        self.shown = shown
        self.answered = trio.Event()
        self.review = Review(approved=False)
        self._told = calls.review(ask)
        self._session = session
        self._asking: set[Connection] = set()
        self._unable: set[Connection] = set()
        self._schema = schema_of

    def settle(self, review: Review) -> None:
        """Take an answer, unless there was one."""
        if not self.answered.is_set():
            self.review = review
            self.answered.set()

    async def put_to(self, client: Connection) -> None:
        """Ask one client, until it or another has answered; nothing more where it is being asked already."""
        if client in self._asking:
            return
        self._asking.add(client)
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._ask, client, nursery.cancel_scope.cancel)
                await self.answered.wait()
                nursery.cancel_scope.cancel()
        finally:
            self._asking.discard(client)

    async def _ask(self, client: Connection, done: Callable[[], None]) -> None:
        options = [*self._allowing(), _REJECT]
        form = None if client.knows_ours or not self._told.editable else self._form()
        if form is not None and client.shows_forms:
            options.insert(1, _EDIT)
        response = await client.ask("session/request_permission", self._params(options))
        if response is not None and response.result is None:
            self._unable.add(client)  # it knows no such request, or failed: that is nobody's answer
        if response is None or response.result is None:
            done()  # the question stays, for others
            return
        review = self._understood(response.result, client, [option.option_id for option in options])
        if review is None:
            assert form is not None
            review = await self._edited(client, form)
        if review is not None:
            self.settle(review)
        else:
            done()

    def _allowing(self) -> list[schema.PermissionOption]:
        """Return the ways to say yes; those that make a rule say exactly which."""
        once = schema.PermissionOption(option_id=_ALLOW, name=_YES[self.ask.stage], kind="allow_once")
        covers = self._told.covers
        longer = [
            schema.PermissionOption(option_id=option, name=f"{begin}: {on_one_line(covers)}", kind="allow_always")
            for option, (_, begin) in _LONGER.items()
            if covers
        ]
        return [once, *longer]

    def _params(self, options: list[schema.PermissionOption]) -> schema.PermissionParams:
        shown = self.shown
        call = schema.PermissionCall(
            tool_call_id=shown.tool_call_id,
            title=shown.title,
            kind=shown.kind,
            status="pending",
            content=shown.content,
            locations=shown.locations,
            raw_input=shown.raw_input,
        )
        meta = {ours.REVIEW: self._told}
        return schema.PermissionParams(session_id=self._session, tool_call=call, options=options, meta=meta)

    def is_lost_on(self, client: Connection) -> bool:
        """Say whether a client will never answer."""
        return client.mute or client in self._unable

    def _understood(self, answer: bytes, client: Connection, offered: list[str]) -> Review | None:
        """Return what the client answered; None where it wants to edit."""
        by = client.name
        result = rpc.decoded(answer, schema.PermissionResult)
        if not isinstance(result, schema.PermissionResult):
            return Review(approved=False, by=by)
        meta = result.meta or {}
        remark = meta.get(ours.REMARK, "")
        chosen = result.outcome.option_id if result.outcome.outcome == "selected" else None
        if chosen not in offered or chosen == _REJECT.option_id:
            return Review(approved=False, remark=_sayable(remark), by=by)
        if chosen == _EDIT.option_id:
            return None
        scope = _LONGER[chosen][0] if chosen in _LONGER else "once"
        if not client.knows_ours and set(meta) & _OURS_ALONE:
            return Review(approved=False, by=by)  # it never said that it knows what they mean
        return self._ours(meta, Review(approved=True, remark=_sayable(remark), by=by, scope=scope))

    def _ours(self, meta: dict[str, Any], yes: Review) -> Review:
        """Return a yes with what the keys of ours say; a no where they say what was not offered."""
        if ours.EDITED in meta:  # is judged anew: nothing that was offered for the text before holds for it
            edited = msgspec.json.encode(meta[ours.EDITED]).decode()
            return replace(yes, approved=self._told.editable, edited=edited, scope="once")
        scope = meta.get(ours.SCOPE, yes.scope)
        unconfined = meta.get(ours.UNCONFINED, False)
        offered = scope == "once" or (self.ask.rule is not None and scope in get_args(Scope))
        if unconfined is not False:
            offered = unconfined is True and self.ask.escalation and scope == "once"
        return replace(yes, scope=scope, unconfined=unconfined) if offered else replace(yes, approved=False)

    def _form(self) -> dict[str, Any] | None:
        """Return a flat form with the call's arguments as defaults; None where they do not fit one."""
        try:
            given = msgspec.json.decode(effective(self.ask.call) or "{}")
        except (msgspec.DecodeError, RecursionError):
            return None
        properties = self._schema.get("properties", {})
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
        return {"type": "object", "properties": fields, "required": list(fields)}

    async def _edited(self, client: Connection, form: dict[str, Any]) -> Review | None:
        params = schema.ElicitationParams(
            session_id=self._session,
            message=f"Edit what {self.ask.call.tool} shall run with, then accept.",
            requested_schema=form,
            tool_call_id=self.ask.call.call,
        )
        response = await client.ask("elicitation/create", params)
        if response is None:
            return None
        result = schema.ElicitationResult(action="decline")
        if response.result is not None:
            answer = rpc.decoded(response.result, schema.ElicitationResult)
            result = answer if isinstance(answer, schema.ElicitationResult) else result
        if result.action != "accept" or result.content is None or set(result.content) != set(form["properties"]):
            return Review(approved=False, by=client.name)
        return Review(approved=True, edited=msgspec.json.encode(result.content).decode(), by=client.name)


def _sayable(remark: Any) -> str:
    """Return a remark that a journal can hold."""
    return remark.encode("utf-8", "replace").decode() if isinstance(remark, str) else ""
