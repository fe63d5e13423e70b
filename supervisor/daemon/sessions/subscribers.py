"""The clients of one session: told what happens, and asked to approve calls.

Rule: every client is told the same, in the same order. A question goes to each of them once, and to those that join
later; it waits as long as somebody could answer, or nobody is there at all.
"""

import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

import trio

from supervisor.acp import extensions, jsonrpc, schema
from supervisor.agent.models.model import Retrying
from supervisor.agent.turn import Event, State
from supervisor.daemon.protocol.approval_request import PendingApproval
from supervisor.daemon.protocol.connection import Connection
from supervisor.daemon.protocol.fact_notices import shown_to
from supervisor.daemon.protocol.tool_calls import awaiting_approval
from supervisor.daemon.protocol.turn_messages import suspension
from supervisor.daemon.protocol.updates import Projection
from supervisor.display.escape import one_line
from supervisor.journal.facts import (
    Compacted,
    ContentsRefused,
    Fact,
    ModelSwitched,
    Replied,
    ToolsChanged,
    TurnEnded,
    TurnStarted,
    TurnSuspended,
)
from supervisor.reports.prompt_cache import PromptCache
from supervisor.system.off_loop import off_loop
from supervisor.tools.approval import ApprovalDecision, ApprovalQuestion
from supervisor.tools.outcomes import failed

_TITLE: Final = 100
_NOTICE: Final = 600
_REMEMBERED: Final = 50
"""Questions that are remembered, for whoever answers too late."""


class Subscribers:
    """The clients of a session, and what they have been told so far.

    Args:
        nursery: asks; outlives every client.
        session_id: of the session that they listen to.
        projection: how they are told.
        first_line: what its first turn was asked, if there was one: its title.
    """

    def __init__(self, nursery: trio.Nursery, session_id: str, projection: Projection, first_line: str = "") -> None:
        self.session_id = session_id
        self.projection = projection
        self.cache = PromptCache()
        """How much of the requests came from the provider's cache."""
        self.title = one_line(first_line, _TITLE)
        self.clients: list[Connection] = []
        self.approvals: dict[str, PendingApproval] = {}
        """The questions that wait for an answer, by call."""
        self.answered_approvals: deque[PendingApproval] = deque(maxlen=_REMEMBERED)
        """Those that did last."""
        self._questions = 0
        self.between_turns = trio.CancelScope()
        """Of a question that waits while no turn need run; it ends with the session."""
        self.left_at = trio.current_time()
        """When the last client left (trio's clock)."""
        self.state = State.DONE
        self.since = trio.current_time()
        """When the state was entered (trio's clock)."""
        self.prompter: Connection | None = None
        """The client whose prompt runs: the others are told its text, and it gets the turn's end as its answer."""
        self.last_end: TurnEnded | None = None
        self.suspended: TurnSuspended | None = None
        """Why the turn is in the state Suspended."""
        self._nursery = nursery

    @property
    def unanswerable(self) -> bool:
        """Whether a person is asked, and nobody is there who could answer."""
        return bool(self.approvals) and all(each.mute for each in self.clients)

    def join(self, client: Connection) -> None:
        """Let a client hear what happens from here on, and be asked what waits for an answer."""
        if client in self.clients:
            return
        self.clients.append(client)
        for pending in self.approvals.values():
            client.send(self.line(pending.shown))
            self._nursery.start_soon(self._ask_client, pending, client)
        if self.state is not State.DONE:
            self._tell_state(only=client)

    def leave(self, client: Connection) -> None:
        if client in self.clients:
            self.clients.remove(client)
            self.left_at = trio.current_time()

    def tell(self, updates: Sequence[schema.Update], *, but: Connection | None = None) -> None:
        """Send updates to every client but one."""
        listening = [client for client in self.clients if client is not but and not client.answers_only]
        for update in updates if listening else ():
            line = self.line(update)
            for client in listening:
                own = shown_to(client.capabilities, update)
                client.send(line if own is update else self.line(own))

    def tell_each(self, update_for: Callable[[Connection], schema.Update]) -> None:
        """Send every client an update of its own."""
        for client in self.clients:
            if not client.answers_only:
                client.send(self.line(update_for(client)))

    def notify(self, notices: Sequence[schema.Notice], *, only: Connection | None = None) -> None:
        """Send notices to clients; our own are told otherwise."""
        for client in [only] if only else self.clients:
            if not (client.knows_extensions or client.answers_only):
                for notice in notices:
                    client.send(self.line(notice))

    def offer(self, page: schema.UrlElicitation, client: Connection) -> None:
        """Ask whether a person wants to open a page, once a client; nothing waits for what they do there."""
        if client.capabilities.has("elicitation", "url") and page.url not in client.offered:
            client.offered.add(page.url)
            self._nursery.start_soon(client.send_request, "elicitation/create", page)

    def line(self, update: schema.Update) -> bytes:
        """Return an update of this session as a line."""
        return jsonrpc.notification("session/update", schema.SessionUpdate(session_id=self.session_id, update=update))

    def show(self, event: Event) -> None:
        match event:
            case State():
                self.state, self.since = event, trio.current_time()
                self._tell_state()
                return
            case Retrying(attempt=attempt, kind=kind, message=message, delay=delay):
                again = f"Asked again in {delay:.1f} s, attempt {attempt + 1}"
                self._tell_state(retry=f"{kind}: {message} {again}.")
                self.notify([schema.Notice.of(f"{again}: {kind}: {one_line(message, _NOTICE)}")])
            case TurnStarted(text=text):
                self.projection.apply(event)
                self.title = self.title or one_line(text, _TITLE)
                said, *notices = self.projection.of_prompt(event)
                self.tell([said], but=self.prompter)
                self.tell(notices)
                self.tell([schema.SessionInfoUpdate(title=self.title)])
                return
            case TurnSuspended():
                self.suspended = event
                self.projection.apply(event)
            case ModelSwitched():
                self.projection.apply(event)
                self._tell_state()
            case TurnEnded():
                self.last_end = event
                told, failed = self.projection.of_event(event), event.status == "error" and bool(event.kind)
                self.tell(told[:failed], but=self.prompter)  # who asked reads in the answer why it failed
                self.tell(told[failed:])
                self.projection.apply(event)
                return
            case ToolsChanged() | ContentsRefused() | Compacted():
                self.take(event)
            case _:
                pass
        self.tell(self.projection.of_event(event))
        if isinstance(event, Replied):
            self.take(event)
        if isinstance(event, Replied | Compacted):
            self.tell(self.projection.of_usage())

    def look_anew(self, projection: Projection) -> None:
        """Tell from here on what another conversation of the session comes to."""
        projection.usage.budgets, projection.contents = self.projection.usage.budgets, self.projection.contents
        self.projection = projection
        self.tell(projection.of_usage())

    def take(self, fact: Fact) -> None:
        """Take a fact into account that has just been recorded."""
        self.projection.apply(fact)
        self.cache.apply(fact, time.time())

    def wait(self, suspended: TurnSuspended) -> None:
        """Tell every client that the turn waits, unless it has been heard: an earlier process may have suspended it."""
        self.suspended = suspended
        if self.state is not State.SUSPENDED:
            self.show(State.SUSPENDED)

    async def request_approval(self, question: ApprovalQuestion) -> ApprovalDecision:
        """Ask every client about a call; wait for the first answer."""
        call = question.call
        size = len(question.effects.changes) if question.effects is not None else 0
        asked, shown = await off_loop(size, awaiting_approval, question, self.projection.root)
        self._questions += 1
        pending = PendingApproval(self.session_id, asked, self.projection.of_question(shown), self._questions)
        self.approvals[call.call] = pending
        self.tell([pending.shown])
        for client in self.clients:
            self._nursery.start_soon(self._ask_client, pending, client)
        try:
            await pending.answered.wait()
        except trio.Cancelled:
            if call.turn == 0:  # a turn tells the ends of its calls itself
                self.tell(self.projection.of_event(failed(call, "cancelled", "The call was cancelled before it ran.")))
            raise
        finally:
            pending.answered.set()  # also when it was cancelled: then nobody need answer any more
            del self.approvals[call.call]
            self.answered_approvals.append(pending)
        return pending.decision

    async def _ask_client(self, pending: PendingApproval, client: Connection) -> None:
        """Ask a client; where it will never answer, and nobody else is there who could, that is a no to a call."""
        await pending.ask_client(client)
        if pending.is_lost_on(client) and all(pending.is_lost_on(each) for each in self.clients):
            pending.decide(ApprovalDecision(approved=pending.is_of_turn, by=client.name, unanswered=True))

    def _tell_state(self, *, retry: str = "", only: Connection | None = None) -> None:
        """Tell the clients that know of it which state the turn is in."""
        wanted = [only] if only else self.clients
        listening = [client for client in wanted if client.knows_extensions and not client.answers_only]
        if not listening:
            return
        suspended = self.suspended if self.state is State.SUSPENDED else None
        state = extensions.TurnState(
            session_id=self.session_id,
            state=self.state.value,
            turn=self.projection.turn,
            retry=retry,
            suspended=None if suspended is None else suspension(suspended),
            other_model=self.projection.other_model,
        )
        line = jsonrpc.notification(extensions.TURN_STATE, state)
        for client in listening:
            client.send(line)
