"""Approval requests that wait for the person, one at a time.

Rule: the first one has the box. It gets the keyboard only when the person has stopped typing something else, so an
Enter that was meant for a line runs nothing. A yes to more than is shown is confirmed in full, with a "y" of its own.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import Final

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition

from supervisor.acp import extensions
from supervisor.clients.connection.link_events import PermissionPrompt
from supervisor.clients.console.application import size
from supervisor.clients.console.approval_form import ApprovalForm, WiderApproval, wider_approvals
from supervisor.display.columns import cut, rows_of, width, wrapped

_TYPING: Final = 0.5
"""Seconds after the last key in which a request does not take the keyboard."""
_FRAME: Final = 4
"""Columns of the box that are not its text's."""
_LONG: Final = 10
"""Lines from which on it is said how many there are."""
_BESIDES: Final = 6
"""Rows that the frame of the box, and what is around it, take of a screen."""
_LEAST: Final = 6
_HINT_FRAME: Final = 7
"""Columns of the box's edge that are never text, and the blanks around it."""


class ApprovalQueue:
    """The questions, and the box that shows the first.

    Args:
        go_to: sends the keys to "line", "review", "confirm" or "reason".
        show: shows for good what a question is about, at most so many rows of it; 0 for all.
    """

    def __init__(self, go_to: Callable[[str], None], show: Callable[[PermissionPrompt, int], None]) -> None:
        self.box = Buffer(multiline=True, read_only=Condition(lambda: not (self._form and self._form.request.editable)))
        self.reason = Buffer(multiline=False)
        self.problem = ""
        """Why the text cannot run so."""
        self._go_to = go_to
        self._show = show
        self._confirmations: list[WiderApproval] = []
        """What the person has to say yes to, one after the other."""
        self._questions: deque[PermissionPrompt] = deque()
        self._form: ApprovalForm | None = None
        self._typed_at = 0.0

    def typed(self) -> None:
        """Take note that the person is typing something else."""
        self._typed_at = time.monotonic()

    def title(self, columns: int) -> str:
        """Return what the box is about."""
        if self._form is None:
            return ""
        request = self._form.request
        text, lines = self.box.text, self.box.document.line_count
        long = f"{lines} lines" if lines >= _LONG else "" if _fits(text) else f"{len(text)} characters"
        parts = [request.tool, self._form.label, long, request.reason]
        waiting = f" (1 of {len(self._questions)})" if len(self._questions) > 1 else ""
        about = " · ".join(part for part in parts if part)
        return f" {cut(about, max(8, columns - 6 - len(waiting)))}{waiting} "

    def request_approval(self, question: PermissionPrompt) -> None:
        """Let the person decide, after the questions that wait."""
        self._questions.append(question)
        self._next()

    def withdraw_approval(self, question: PermissionPrompt | None) -> None:
        """Forget a question; None: all of them."""
        first = self._questions[0] if self._questions else None
        if question is None:
            self._questions.clear()
        elif question in self._questions:
            self._questions.remove(question)
        if first is not None and (not self._questions or self._questions[0] is not first):
            self._close()

    def hint(self, columns: int) -> str:
        """Return what the keys do, as far as there is room."""
        if self._confirmations:
            return " y yes · n no "
        if self._form is None:
            return ""
        no = "goes on without" if self._form.request.stage == "network" else "rejects"
        keys = [f"Enter {self._form.promise(self.box.text)}", f"Esc {no}"]
        if not self._form.is_changed(self.box.text):
            keys += ["Alt-S this session", "Alt-A always"] if self._form.request.covers else []
            keys += ["Alt-U unconfined"] if self._form.request.escalation else []
        keys.append("Alt-Enter new line")
        while len(keys) > 1 and width(" · ".join(keys)) + _HINT_FRAME > columns:
            keys.pop()
        return f" {' · '.join(keys)} " if width(keys[0]) + _HINT_FRAME <= columns else ""

    def confirmation(self, columns: int) -> str:
        """Return what has to be confirmed; "" for nothing."""
        lines = self._confirmations[0].text.split("\n") if self._confirmations else []
        return "\n".join(piece for line in lines for piece in wrapped(line, columns, rest="  "))

    def expand(self) -> bool:
        """Show all of what the question is about; say whether there is one."""
        if self._form is None:
            return False
        self._show(self._questions[0], 0)
        return True

    def widen(self, to: extensions.Scope | None) -> None:
        """Ask for a yes that holds for longer; None for one outside of the sandbox."""
        if self._form is None:
            return
        self.problem, self._confirmations = wider_approvals(self._form, self.box.text, to)
        if self._confirmations:
            self._go_to("confirm")

    def confirm(self, said: str) -> None:
        """Take a key as the answer to what has to be confirmed: y, n, or nothing of it."""
        if said.lower() == "n":
            self._confirmations = []
            self._go_to("review")
        elif said.lower() == "y" and self._confirmations:
            said_yes, *self._confirmations = self._confirmations
            if self._confirmations:
                return
            self._decided().allow(scope=said_yes.scope, unconfined=said_yes.unconfined)

    def approve(self) -> None:
        """Let the call run as the box shows it, if it can."""
        assert self._form is not None
        self.problem = self._form.settle(self.box.text)
        if self.problem:
            if self._form.text != self.box.text:
                self._fill()
            return
        edited = self._form.edited
        self._decided().allow(edited)

    def reject(self, why: str) -> None:
        """Let it not run."""
        self._decided().reject(why.strip().encode("utf-8", "replace").decode())

    def _decided(self) -> PermissionPrompt:
        """Return the first question, whose box is closed."""
        question = self._questions.popleft()
        self._close()
        return question

    def _next(self) -> None:
        """Open the first question's box, once the person has stopped typing."""
        if not self._questions or self._form is not None:
            return
        wait = self._typed_at + _TYPING - time.monotonic()
        if wait > 0:
            asyncio.get_running_loop().call_later(wait, self._next)
            return
        self._form = ApprovalForm(self._questions[0].request)
        rows = size().rows
        self._show(self._questions[0], max(_LEAST, rows - _BESIDES - min(_needed(self._form.text), rows // 2)))
        self._fill()
        self._go_to("review")

    def _fill(self) -> None:
        assert self._form is not None
        text = self._form.text
        self.box.set_document(Document(text, len(text) if _fits(text) else 0), bypass_readonly=True)

    def _close(self) -> None:
        self._form, self.problem, self._confirmations = None, "", []
        self.reason.reset()
        self._go_to("line")
        self._next()


def _fits(text: str) -> bool:
    """Return whether the box can show a text at once; one that it cannot is shown from its beginning."""
    return _needed(text) <= size().rows // 2


def _needed(text: str) -> int:
    """Return the rows that a text takes in the box."""
    return rows_of(text.split("\n"), size().columns - _FRAME)
