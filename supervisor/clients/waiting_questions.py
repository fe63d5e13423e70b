"""`strongroom inbox`: the questions of all sessions that wait for a person, and answers to them.

Rule: an answer is to the one question that has its id, as it was listed; the first one counts, and whoever comes later
is told which that was. Where Enter alone would be no yes in the console, a yes wants to be typed at a terminal.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from supervisor.acp import extensions, schema
from supervisor.clients.connection.link import Link
from supervisor.clients.connection.link_events import PermissionPrompt, decline
from supervisor.clients.connection.start import connect_running
from supervisor.clients.console.approval_form import typed_yes
from supervisor.config.settings import Settings
from supervisor.display.changes import TITLES, detailed
from supervisor.display.command_text import title_of
from supervisor.display.escape import name, one_line
from supervisor.errors import StrongroomError
from supervisor.journal.index import utc

_WIDTH: Final = 100


class Inbox:
    """The questions of one daemon; None of a daemon has none."""

    def __init__(self, link: Link | None) -> None:
        self._link = link
        self.answered: dict[str, extensions.AnsweredQuestion] = {}
        """Those that were answered, as of the last look."""

    def waiting(self) -> list[extensions.WaitingQuestion]:
        """Return the questions that wait now, the oldest first."""
        if self._link is None:
            return []
        found = self._link.request(extensions.INBOX_METHOD, schema.Object(), extensions.InboxResult)
        self.answered = {each.id: each for each in found.answered}
        return found.questions

    def prompt(
        self, question: extensions.WaitingQuestion, told: Callable[[extensions.AnswerResult], None]
    ) -> PermissionPrompt:
        """Return a question as consoles ask it; `told` hears what became of the answer."""

        def reply(answer: Any) -> None:
            assert self._link is not None
            params = extensions.AnswerParams(question=question.id, answer=answer)
            told(self._link.request(extensions.ANSWER_METHOD, params, extensions.AnswerResult))

        return PermissionPrompt(0, question.asked, reply)


@contextmanager
def opened(settings: Settings, *, quiet: bool = False) -> Iterator[Inbox]:
    """Give the inbox of the daemon that runs; without one nothing waits. If `quiet`, nothing is said of the daemon."""
    connected = connect_running(settings, decline, "inbox")
    if connected is None:
        yield Inbox(None)
        return
    with connected:
        if not quiet:
            connected.warn()
        yield Inbox(connected.link)


def answer(
    settings: Settings, wanted: str, remark: str | None, confirms: Callable[[extensions.WaitingQuestion, str], bool]
) -> extensions.AnswerResult:
    """Answer one question; return what became of that.

    Args:
        settings: of the home.
        wanted: the question's id.
        remark: why not, for the model; None is a yes.
        confirms: is shown a question where Enter alone would be no yes, with the reason, and says whether it is one.

    Raises:
        StrongroomError: there is no such question, or it was not confirmed.
    """
    with opened(settings) as inbox:
        question = next((each for each in inbox.waiting() if each.id == wanted), None)
        if question is None:
            if (before := inbox.answered.get(wanted)) is not None:
                return extensions.AnswerResult(id=wanted, approved=before.approved, by=before.by, counts=False)
            raise StrongroomError(f"No question {name(wanted)} waits. `strongroom inbox list` shows those that do.")
        results: list[extensions.AnswerResult] = []
        prompt = inbox.prompt(question, results.append)
        if remark is not None:
            prompt.reject(remark)
        elif not (why := typed_yes(prompt.request, question.asked.tool_call.kind)) or confirms(question, why):
            prompt.allow()
        else:
            raise StrongroomError("It was not answered, and still waits.")
        return results[0]


def told(result: extensions.AnsweredQuestion) -> str:
    """Return what became of an answer, or of a question that somebody else has answered, for a person to read."""
    said = "yes" if result.approved else "no"
    by = f"by {one_line(result.by, _WIDTH)}: {said}"
    if isinstance(result, extensions.AnswerResult) and result.counts:
        return f"answered: {said}"
    if not result.by:
        return "This needs no answer any more."
    if isinstance(result, extensions.AnswerResult):
        return f"It had been answered already, {by}. This answer does not count."
    return f"Answered meanwhile {by}."


def request_of(question: extensions.WaitingQuestion) -> extensions.ApprovalRequest:
    """Return what a question is about."""
    return PermissionPrompt(0, question.asked, lambda _answer: None).request


def listed(question: extensions.WaitingQuestion) -> str:
    """Return a question in two lines."""
    request = request_of(question)
    about = TITLES.get(request.stage) or title_of(request.tool, request.arguments)
    changes = f": {detailed(request.effects)}" if request.effects is not None and request.stage == "effects" else ""
    why = typed_yes(request, question.asked.tool_call.kind)
    marked = f" ({why})" if why else ""
    place = f"{question.asked.session_id}, {question.title or '-'}, {question.root}"
    return f"{question.id}  {utc(question.since)}  {one_line(about + changes, _WIDTH)}{marked}\n          {name(place)}"
