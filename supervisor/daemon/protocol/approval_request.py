"""One approval request: put to every client of its session, decided by the first answer.

Rule: only a clear yes is a yes. An answer that is not understood, an option that was not offered, an error: all of them
decline. Without any client there is no answer: the question waits for the next one. Each question has an answer of its
own: a late one never counts for the next question, also where both are about one call.
"""

import hashlib
import time
from collections.abc import Callable
from typing import Any, Final

import msgspec
import trio

from supervisor.acp import extensions, schema
from supervisor.daemon.protocol import approval_options, tool_calls
from supervisor.daemon.protocol.connection import Connection
from supervisor.tools.approval import ApprovalDecision
from supervisor.tools.catalog import offers

_ID: Final = 8
"""Characters of a question's id."""


class PendingApproval:
    """One question about a call, that waits for a person.

    Args:
        session_id: of the call's session.
        asked: what our own clients are told of it.
        shown: the call as clients show it.
        number: of this question among those of the session; two about one call, word by word alike, are two.
    """

    def __init__(
        self,
        session_id: str,
        asked: extensions.ApprovalRequest,
        shown: schema.ToolCall | schema.ToolCallUpdate,
        number: int = 0,
    ) -> None:
        self.id = _id_of(session_id, shown.tool_call_id, asked, number)
        self.asked_at = time.time()
        """Seconds since the epoch."""
        self.shown = shown
        self.answered = trio.Event()
        self.decision = ApprovalDecision(approved=False)
        self._request = asked
        self._session_id = session_id
        self._call = shown.tool_call_id
        self._asking: set[Connection] = set()
        self._unable: set[Connection] = set()

    @property
    def is_of_turn(self) -> bool:
        """Whether it is about the turn, which goes on where nobody answers."""
        return self._request.stage == "turn"

    def decide(self, decision: ApprovalDecision) -> bool:
        """Take an answer, unless there was one; say whether it counts."""
        if self.answered.is_set():
            return False
        self.decision = decision
        self.answered.set()
        return True

    def listed(self) -> schema.PermissionParams:
        """Return the question as it is put to a client that is asked in no form."""
        return self._params(approval_options.options(self._request, forms=False))

    def take(self, answer: schema.PermissionResult, client: Connection) -> bool:
        """Take the answer of a client that was not asked, but has found the question; say whether it counts."""
        offered = [option.option_id for option in self.listed().options]
        given, known = msgspec.json.encode(answer), client.knows_extensions
        decision = approval_options.understood(self._request, given, offered, by=client.name, knows_extensions=known)
        return decision is not None and self.decide(decision)

    def is_lost_on(self, client: Connection) -> bool:
        """Say whether a client will never answer."""
        return client.mute or client in self._unable

    async def ask_client(self, client: Connection) -> None:
        """Ask one client, until it or another has answered; nothing more where it is being asked already."""
        if self._request.stage == "refused" and not client.knows_extensions:
            self._unable.add(client)  # it could not say the one thing that this is about
        if client in self._asking or client in self._unable:
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
        """Take a client's answer; call `done` where it has none, and the question stays for others."""
        forms = client.capabilities.has("elicitation", "form") and not client.knows_extensions
        form = approval_options.form(self._request, _schema_of(self._request.tool)) if forms else None
        options = approval_options.options(self._request, forms=form is not None)
        response = await client.send_request("session/request_permission", self._params(options))
        if response is not None and (response.result is None or self._says_nothing(response.result)):
            self._unable.add(client)  # it knows no such request, failed, or has nobody to ask: that is nobody's answer
            done()
            return
        decision = None
        if response is not None and response.result is not None:
            offered = [option.option_id for option in options]
            decision = approval_options.understood(
                self._request, response.result, offered, by=client.name, knows_extensions=client.knows_extensions
            )
            if decision is None and form is not None:
                decision = await self._edited(client, form)
        if decision is not None:
            self.decide(decision)
        else:
            done()

    def _says_nothing(self, result: bytes) -> bool:
        """Say whether a client has asked nobody about what is no call; of a call, that is a no."""
        return self._request.stage in ("switch", "narrow") and approval_options.is_cancelled(result)

    def _params(self, options: list[schema.PermissionOption]) -> schema.PermissionParams:
        call = tool_calls.reshaped(self.shown, schema.PermissionCall, status="pending", meta=None)
        meta = {extensions.REVIEW: self._request}
        return schema.PermissionParams(session_id=self._session_id, tool_call=call, options=options, meta=meta)

    async def _edited(self, client: Connection, form: dict[str, Any]) -> ApprovalDecision | None:
        params = schema.ElicitationParams(
            session_id=self._session_id,
            message=f"Edit what {self._request.tool} shall run with, then accept.",
            requested_schema=form,
            tool_call_id=self._call,
        )
        response = await client.send_request("elicitation/create", params)
        if response is None:
            return None
        return approval_options.filled(self._request, form, response.result, by=client.name)


def _id_of(session_id: str, call: str, asked: extensions.ApprovalRequest, number: int) -> str:
    """Return an id of exactly this question, that can be typed."""
    whole = msgspec.json.encode((session_id, call, asked, number))
    return hashlib.sha256(whole).hexdigest()[:_ID]


def _schema_of(tool: str) -> dict[str, Any]:
    """Return the JSON Schema of a tool's arguments; nothing for one that no model may call."""
    try:
        return offers([tool])[tool].input_schema
    except KeyError:
        return {}
