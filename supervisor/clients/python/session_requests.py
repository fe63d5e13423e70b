"""Requests of one session, one at a time: what is heard until each has ended, and questions, which are answered.

Rule: nothing waits for ever. A question is put to the program's callback or declined, a lost daemon is an error, and
the next request takes the session up in the next daemon. Who gives up waiting for a request cancels it.
"""

import os
from contextlib import suppress
from typing import Any, Final

import msgspec

from supervisor.acp import extensions, schema
from supervisor.clients.connection import requests
from supervisor.clients.connection.link import Link, decoded
from supervisor.clients.connection.link_events import PermissionPrompt, SessionEvent
from supervisor.clients.python.event_reader import EventReader
from supervisor.clients.python.message_history import MessageHistory
from supervisor.clients.python.program_link import ProgramLink, SentRequest
from supervisor.clients.python.typed_events import Approval, ApprovalCallback, Question, TurnEvent, TurnResult
from supervisor.clients.python.waits import awaited
from supervisor.errors import DaemonLost, DaemonRefused, StrongroomError

_NOBODY: Final = "Nobody is there to be asked."
_NO_TURN: Final = b"null"
"""The result where there was no turn to go on with."""


class SessionRequests:
    """The requests of a session.

    Args:
        program: the connection.
        facts: the session's, as far as they are known.
        approvals: decides what is asked.
        link: over which it was opened just now; None for one that is to be taken up.
    """

    def __init__(
        self,
        program: ProgramLink,
        facts: extensions.SessionFacts,
        approvals: ApprovalCallback | None,
        link: Link | None = None,
    ) -> None:
        self.facts = facts
        self.history = MessageHistory()
        self._program = program
        self._approvals = approvals
        self._queue = program.queue(facts.session_id)
        self._link = link
        self._sent: SentRequest | None = None
        self._reader = EventReader()

    @property
    def link(self) -> Link | None:
        """The connection that knows the session; None where that is lost."""
        return None if self._link is None or self._link.ended else self._link

    async def take_up(self) -> bool:
        """Make sure that the connection knows the session; say whether it had to be loaded.

        Raises:
            StrongroomError: it cannot be.
        """
        link = await self._program.link()
        if link is self._link:
            return False
        options = extensions.SessionOptions(attended=self._approvals is not None)
        session = self.facts.session_id
        params = schema.ReopenParams(session_id=session, cwd=os.getcwd(), meta={extensions.OPTIONS: options})
        sent = self._program.submit(link, session, "session/load", params)
        history = MessageHistory()
        while (event := await self._next()) is not None:
            history.take(event)
        result = decoded(sent.future.result(), schema.SessionResult)
        self.facts = requests.session_facts(result.meta, session)
        self._link, self.history, self._sent = link, history, None
        return True

    async def send(self, method: str, params: Any) -> SentRequest:
        """Send a request, when the one before has ended.

        Raises:
            DaemonRefused: that one runs, and nobody has cancelled it.
            DaemonLost: the connection has ended since it was taken up.
        """
        if self._sent is not None and self._sent.runs:
            if not self._sent.cancelled:
                raise DaemonRefused("A turn of this session runs: iterate over it to its end, or cancel it.", "busy")
            with suppress(StrongroomError):
                await self._program.wait.result(self._sent.future)
        if self.link is None:
            raise DaemonLost("The connection to the daemon has ended.")
        if isinstance(params, schema.PromptParams):
            self.history.said("".join(each.get("text", "") for each in params.prompt))
        self._reader.begin_turn()
        self._sent = self._program.submit(self.link, self.facts.session_id, method, params)
        return self._sent

    def leave(self) -> None:
        """Cancel the request that runs; what others have asked for goes on."""
        if self._sent is not None:
            self._sent.cancel()

    async def next_events(self, sent: SentRequest) -> list[TurnEvent] | None:
        """Return what is heard next, as a program reads it; None at the end."""
        try:
            event = await self._next()
            if isinstance(event, PermissionPrompt):
                return [await self._decided(event)]
        except BaseException:
            sent.cancel()
            raise
        if event is None:
            return None
        self.history.take(event)
        return self._reader.take(event)

    def result_of(self, sent: SentRequest, *, structured: bool) -> TurnResult | None:
        """Return how a turn ended; None where there was none.

        Raises:
            StrongroomError: it did not begin, or the daemon has gone.
        """
        try:
            answer = sent.future.result()
        except DaemonRefused as error:
            if error.turn is None:
                raise
            return self._reader.ended(msgspec.convert(error.turn, extensions.TurnSummary), None, structured=False)
        if answer == _NO_TURN:
            return None
        result = decoded(answer, schema.PromptResult)
        told = (result.meta or {}).get(extensions.TURN)
        if told is not None:
            summary = msgspec.convert(told, extensions.TurnSummary)
        else:  # a command that was typed
            status: Any = "cancelled" if result.stop_reason == "cancelled" else "ok"
            summary = extensions.TurnSummary(turn=0, status=status, answer="")
        return self._reader.ended(summary, result.usage, structured=structured)

    async def _next(self) -> SessionEvent | None:
        event = await self._program.wait.result(self._queue.next())
        self._queue.taken()
        return event

    async def _decided(self, prompt: PermissionPrompt) -> Question:
        """Answer a question; it is declined where nobody decides, or the callback fails."""
        question = Question(self.facts.session_id, prompt.params.tool_call.tool_call_id, prompt.request)
        if self._approvals is None:
            prompt.decline(_NOBODY)
            return msgspec.structs.replace(question, answer=Approval(False, remark=_NOBODY))
        try:
            said = await awaited(self._approvals(question))
            answer = said if isinstance(said, Approval) else Approval(said is True)
            edited = None if answer.edited is None else msgspec.json.encode(answer.edited).decode()
        except BaseException:
            prompt.decline()
            raise
        if answer.allowed is True:
            prompt.allow(edited, scope=answer.scope if question.covers else "once")
        else:
            prompt.reject(answer.remark)
        return msgspec.structs.replace(question, answer=answer)
