"""The clients of one session: told what happens, and asked what policy asks about.

Rule: every client hears the same, in the same order. A question is put to each of them once, and to who comes later; it
waits for an answer as long as anybody could give one, or nobody is there at all.
"""

from collections.abc import Sequence
from typing import Any

import trio

from supervisor.acp import extensions, jsonrpc, schema
from supervisor.agent.states import State
from supervisor.daemon.protocol.approval_request import PendingApproval
from supervisor.daemon.protocol.connection import Connection
from supervisor.tools.approval import ApprovalDecision, ApprovalQuestion


class Subscribers:
    """Who listens to a session.

    Args:
        nursery: asks; outlives every client.
    """

    def __init__(self, nursery: trio.Nursery) -> None:
        self.session = ""
        self.clients: list[Connection] = []
        self.questions: dict[str, PendingApproval] = {}
        self.left_at = trio.current_time()
        """When the last client left (trio's clock)."""
        self._nursery = nursery

    @property
    def unanswerable(self) -> bool:
        """Whether a person is asked, and nobody is there who could answer."""
        return bool(self.questions) and all(each.mute for each in self.clients)

    def join(self, client: Connection) -> bool:
        """Let a client hear what happens from here on, and be asked what waits; say whether it is new."""
        if client in self.clients:
            return False
        self.clients.append(client)
        for question in self.questions.values():
            client.send(self.line(question.shown))
            self._nursery.start_soon(self._put, question, client)
        return True

    def leave(self, client: Connection) -> None:
        """Forget a client."""
        if client in self.clients:
            self.clients.remove(client)
            self.left_at = trio.current_time()

    def tell(self, updates: Sequence[schema.Update], *, but: Connection | None = None) -> None:
        """Send updates to every client but one."""
        for update in updates:
            line = self.line(update)
            for client in tuple(self.clients):
                if client is not but:
                    client.send(line)

    def tell_state(self, state: State, turn: int, *, retry: str = "", only: Connection | None = None) -> None:
        """Tell the clients that know of it which state a turn is in."""
        line = jsonrpc.notification(
            extensions.TURN_STATE,
            extensions.TurnState(session_id=self.session, state=state.value, turn=turn, retry=retry),
        )
        for client in [only] if only else tuple(self.clients):
            if client.knows_ours:
                client.send(line)

    def line(self, update: schema.Update) -> bytes:
        """Return an update of this session as a line."""
        return jsonrpc.notification("session/update", schema.SessionUpdate(session_id=self.session, update=update))

    async def ask(
        self, ask: ApprovalQuestion, shown: schema.ToolCall | schema.ToolCallUpdate, schema_of: dict[str, Any]
    ) -> ApprovalDecision:
        """Ask one question about a call, of whose arguments there is a schema; wait for the first answer."""
        call = ask.call.call
        question = self.questions[call] = PendingApproval(self.session, ask, shown, schema_of)
        self.tell([shown])
        for client in self.clients:
            self._nursery.start_soon(self._put, question, client)
        try:
            await question.answered.wait()
        finally:
            question.answered.set()  # also when it was cancelled: then nobody need answer any more
            del self.questions[call]
        return question.review

    async def _put(self, question: PendingApproval, client: Connection) -> None:
        """Ask a client; where it will never answer, and nobody else is there who could, that is a no."""
        await question.put_to(client)
        if question.is_lost_on(client) and all(question.is_lost_on(each) for each in self.clients):
            question.settle(ApprovalDecision(approved=False, by=client.name))
