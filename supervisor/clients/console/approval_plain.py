"""Approvals in plain lines: the request is written, and answers are read until one of them decides.

Rule: the same as in the box. Only "y" is a yes, and a yes to more than is shown is confirmed in full. A line that is no
answer decides nothing.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TextIO

from supervisor.acp import extensions
from supervisor.clients.connection.link_events import PermissionPrompt
from supervisor.clients.console.approval_form import ApprovalForm, offered_rule, wider_approvals, with_rule
from supervisor.clients.console.proposal_pages import ProposalPages
from supervisor.clients.console.shown import Item
from supervisor.clients.console.typed_lines import TypedLines
from supervisor.display.command_text import title_of
from supervisor.display.escape import visible
from supervisor.rules.edited_rule import editable

_ROWS: Final = 200
"""Rows of what a call would change that are shown at once."""
_MORE: Final = "the answers `more` and `all` show them"
_WIDER: Final[Mapping[str, extensions.Scope | None]] = {"s": "session", "a": "always", "u": None}
"""Answers that say yes to more than what is shown, where that is offered."""
_VERBS: Final[Mapping[str, str]] = {
    "runs": "run",
    "applies": "apply",
    "rehearses": "rehearse",
    "goes": "go",
    "leaves": "leave",
}
_MEANINGS: Final[Mapping[str, str]] = {
    "y": "yes, this once",
    "n": "no, as an empty line is; you can say why",
    "s": "yes, and to the like of it in this session: a rule, shown first",
    "a": "yes, and always to the like of it: a rule, shown first",
    "u": "run it on the real system, outside the sandbox",
    "e": "change it; what it would do is shown again",
}
_YES: Final = ("y", "yes")
_NO: Final = ("", "n", "no")


@dataclass
class PlainApproval:
    """One question."""

    question: PermissionPrompt
    printed: str
    """What the rehearsed command has printed."""
    show: Callable[[Item], None]
    """Shows an item."""
    out: TextIO
    """Takes questions."""
    columns: int
    lines: TypedLines
    """Gives answers."""

    def __post_init__(self) -> None:
        self._form = ApprovalForm(self.question.request)
        call = self.question.params.tool_call.tool_call_id
        self._pages = ProposalPages(self.question.request, self.printed, self.columns, self.show, _MORE, call=call)

    async def decide(self) -> None:
        form = self._form
        self._pages.first(_ROWS)
        what = title_of(form.request.tool, form.request.arguments)
        asked = what if form.brief else f"{form.request.tool}, {form.label}:\n{form.to_read}"
        self._write(f"{asked}\n({form.request.reason})" if form.label else form.text)
        decided = False
        while not decided:
            answer = await self.lines.answer(self._prompt())
            if answer is None:
                self.question.reject()
                return
            decided = await self._take(answer)

    async def _take(self, line: str) -> bool:
        """Do what an answer says; return whether that decides it."""
        request, answer = self._form.request, line.strip().lower()
        match answer:
            case "y" | "yes":
                return self._settled(self._form.text)
            case "e" | "edit" if request.editable:
                return self._settled(await self.lines.text("instead: ") or "")
            case _ if answer in _WIDER and (request.covers if _WIDER[answer] else request.escalation):
                return await self._widened(_WIDER[answer])
            case _ if answer in _NO:
                self.question.reject(await self.lines.text("why? ") or "")
                return True
            case "?":
                told = {**_MEANINGS, **({"more, all": "what has not been shown yet"} if self._pages.unread else {})}
                offered = [each for each in told if each in self._answers() or len(each) > 1]
                self._write("\n".join(f"  {each:9}  {told[each]}" for each in offered))
            case "all" | "more":
                self._pages.turn(True) if answer == "more" else self._pages.everything()
            case _:
                self.lines.set_aside(line)
        return False

    def _settled(self, text: str) -> bool:
        """Let the call run with a text, or write why it cannot; return which."""
        problem = self._form.settle(text)
        if problem:
            self._write(f"{problem}\n{self._form.text}")
        else:
            self.question.allow(self._form.edited)
        return not problem

    async def _widened(self, to: extensions.Scope | None) -> bool:
        """Ask for a yes to more than what is shown; return whether it was given."""
        problem, steps = wider_approvals(self._form, self._form.text, to)
        if problem:
            self._write(problem)
            return False
        for at, step in enumerate(steps):
            rule = offered_rule(self._form.request) if step.scope != "once" else None
            self._write(step.text)
            answer = (await self.lines.answer("[y/N/e] " if rule else "[y/N] ") or "").strip().lower()
            while rule is not None and answer in ("e", "edit"):
                self._write(f"The rule: {editable(rule)}")
                try:
                    steps[at] = with_rule(self._form, step, await self.lines.text("instead: ") or "")
                except ValueError as error:
                    self._write(str(error))
                self._write(steps[at].text)
                answer = (await self.lines.answer("[y/N/e] ") or "").strip().lower()
            if answer not in _YES:
                return False
        last = steps[-1]
        self.question.allow(scope=last.scope, unconfined=last.unconfined, rule=last.rule)
        return True

    def _write(self, text: str) -> None:
        self.out.write(visible(f"{text}\n"))

    def _prompt(self) -> str:
        """Return the question for a yes, with the answers that there are."""
        request = self._form.request
        verb, _, rest = self._form.promise(self._form.text).partition(" ")
        unread = f" ({self._pages.unread})" if self._pages.unread else ""
        rest += "; u runs it on the real system" if request.stage == "refused" else ""
        return f"{_VERBS[verb]} {rest}{unread}? [{'/'.join(self._answers()).replace('n', 'N')}/?] "

    def _answers(self) -> list[str]:
        """Return the answers of one letter that decide it."""
        request = self._form.request
        wider = [*("sa" if request.covers else ""), *("u" if request.escalation else "")]
        return ["y", "n", *wider, *("e" if request.editable else "")]
