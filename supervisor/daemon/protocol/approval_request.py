"""Asking people: a call that policy asks about goes to every client of its session, and the first answer counts.

Rule: only a clear yes is a yes. An answer that is not understood, an option that was not offered, an error: all of them
decline. Nobody there is no answer at all: the question stays for the client that comes next. Each question has an
answer of its own: what comes late for one never counts for the next, also where both are about one call.
"""

from collections.abc import Callable
from typing import Any

import trio

from supervisor.acp import extensions, schema
from supervisor.daemon.protocol import approval_options, tool_calls
from supervisor.daemon.protocol.connection import Connection
from supervisor.tools.approval import ApprovalDecision, ApprovalQuestion


class PendingApproval:
    """One question about a call, that waits for a person.

    Args:
        session: its id.
        ask: what is asked.
        shown: the call as clients show it.
        schema_of: the JSON Schema of the tool's arguments.
    """

    def __init__(
        self,
        session: str,
        ask: ApprovalQuestion,
        shown: schema.ToolCall | schema.ToolCallUpdate,
        schema_of: dict[str, Any],
    ) -> None:
        self.ask = ask
        self.shown = shown
        self.answered = trio.Event()
        self.review = ApprovalDecision(approved=False)
        self._told = tool_calls.review(ask)
        self._session = session
        self._asking: set[Connection] = set()
        self._unable: set[Connection] = set()
        self._schema = schema_of

    def settle(self, review: ApprovalDecision) -> None:
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
        form = None if client.knows_ours or not client.shows_forms else approval_options.form(self._told, self._schema)
        options = approval_options.options(self._told, forms=form is not None)
        response = await client.ask("session/request_permission", self._params(options))
        if response is not None and response.result is None:
            self._unable.add(client)  # it knows no such request, or failed: that is nobody's answer
        if response is None or response.result is None:
            done()  # the question stays, for others
            return
        offered = [option.option_id for option in options]
        review = approval_options.understood(
            self._told, response.result, offered, by=client.name, knows_ours=client.knows_ours
        )
        if review is None:
            assert form is not None
            review = await self._edited(client, form)
        if review is not None:
            self.settle(review)
        else:
            done()

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
        meta = {extensions.REVIEW: self._told}
        return schema.PermissionParams(session_id=self._session, tool_call=call, options=options, meta=meta)

    def is_lost_on(self, client: Connection) -> bool:
        """Say whether a client will never answer."""
        return client.mute or client in self._unable

    async def _edited(self, client: Connection, form: dict[str, Any]) -> ApprovalDecision | None:
        params = schema.ElicitationParams(
            session_id=self._session,
            message=f"Edit what {self.ask.call.tool} shall run with, then accept.",
            requested_schema=form,
            tool_call_id=self.ask.call.call,
        )
        response = await client.ask("elicitation/create", params)
        if response is None:
            return None
        return approval_options.filled(self._told, form, response.result, by=client.name)
