"""A dialogue about all questions that wait, one after the other, in plain lines.

Rule: as in the plain console: an answer is a line that was begun when the question could be read. A question that is
answered elsewhere meanwhile is taken away, with what that answer was; Ctrl-D leaves without an answer.
"""

import asyncio
import sys
from collections.abc import Awaitable
from contextlib import suppress
from typing import Any, Final

from supervisor.acp import extensions
from supervisor.clients.console.approval_form import ApprovalForm
from supervisor.clients.console.approval_plain import PlainApproval
from supervisor.clients.console.plain_screen import PlainScreen
from supervisor.clients.console.proposal_pages import ProposalPages
from supervisor.clients.console.typed_lines import TypedLines
from supervisor.clients.waiting_questions import Inbox, listed, request_of, told
from supervisor.display.escape import visible

_LOOK_S: Final = 1.0
"""Seconds after which it is looked whether somebody else has answered."""


class _Left(Exception):
    """The person has left, without an answer to the question that was shown."""


class _AnswerLines(TypedLines):
    """Lines that answer, or do nothing: there is no prompt that they could wait for."""

    async def answer(self, prompt: str) -> str | None:
        line = await super().answer(prompt)
        if line is None:
            raise _Left
        return line

    def set_aside(self, line: str, but: str = "") -> None:  # noqa: ARG002 - nothing comes after it
        self._out.write(f"(not an answer: {visible(line)})\n")


class InboxDialogue:
    """A dialogue on a terminal that shows and gives lines."""

    def __init__(self) -> None:
        self._out = sys.stdout
        self._screen = PlainScreen(sys.stdout, sys.stdout, attended=True)
        self._lines = _AnswerLines(sys.stdout, _waited, attended=True)

    async def answer_all(self, inbox: Inbox) -> int:
        """Ask about each question that waits; return 1 where some still wait, for the person has left."""
        seen: set[str] = set()
        while fresh := [each for each in inbox.waiting() if each.id not in seen]:
            seen.add(fresh[0].id)
            self._say(f"\n{listed(fresh[0])}\n(1 of {len(fresh)}; Ctrl-D leaves it waiting)")
            try:
                await self._answer(inbox, fresh[0])
            except _Left:
                self._say("\nIt still waits.")
                return 1
        self._say("No question waits.")
        return 0

    async def confirmed(self, question: extensions.WaitingQuestion, why: str) -> bool:
        """Show all of a question, and say whether the person has typed that it is a yes."""
        request, call = request_of(question), question.asked.tool_call.tool_call_id
        form = ApprovalForm(request)
        ProposalPages(request, question.printed, self._screen.width(), self._screen.show, call=call).everything()
        self._say(f"{listed(question)}\n{form.to_read if form.label else form.text}")
        said: str | None = None
        with self._lines.for_question(), suppress(_Left):
            said = await self._lines.answer(f"{why}: type yes to allow it: ")
        return said is not None and said.strip().lower() == "yes"

    async def _answer(self, inbox: Inbox, question: extensions.WaitingQuestion) -> None:
        """Ask about one question until it is answered, here or elsewhere."""
        results: list[extensions.AnsweredQuestion] = []
        prompt, columns = inbox.prompt(question, results.append), self._screen.width()
        approval = PlainApproval(prompt, question.printed, self._screen.show, self._out, columns, self._lines)
        with self._lines.for_question():
            deciding = asyncio.ensure_future(approval.decide())
            try:
                while not (await asyncio.wait((deciding,), timeout=_LOOK_S))[0]:
                    waiting = {each.id for each in await asyncio.to_thread(inbox.waiting)}
                    if question.id not in waiting and not results:
                        gone = extensions.AnsweredQuestion(id=question.id, approved=False, by="")
                        results.append(inbox.answered.get(question.id, gone))
                        deciding.cancel()
                        await asyncio.wait((deciding,))
                        self._say("")
            finally:
                deciding.cancel()
        if not deciding.cancelled():
            deciding.result()
        self._say(told(results[0]))

    def _say(self, text: str) -> None:
        self._out.write(visible(f"{text}\n"))
        self._out.flush()


async def _waited(work: Awaitable[Any]) -> Any:
    return await work
