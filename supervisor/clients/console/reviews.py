"""The questions that wait for the person, one at a time.

Rule: the first question has the box. It gets the keyboard only when the person has stopped typing something else, so
an Enter that was meant for a line runs nothing.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import Final

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition

from supervisor.clients.columns import cut, width
from supervisor.clients.console.application import size
from supervisor.clients.console.review import Form
from supervisor.clients.link import Question

_TYPING: Final = 0.5
"""Seconds after the last key in which a review does not take the keyboard."""
_FRAME: Final = 4
"""Columns of the box that are not its text's."""
_LONG: Final = 10
"""Lines from which on it is said how many there are."""


class Reviews:
    """The questions, and the box that shows the first.

    Args:
        go_to: sends the keys to "line", "review" or "reason".
    """

    def __init__(self, go_to: Callable[[str], None]) -> None:
        self.box = Buffer(multiline=True, read_only=Condition(lambda: not self._editable()))
        self.reason = Buffer(multiline=False)
        self.problem = ""
        """Why the text cannot run so."""
        self._go_to = go_to
        self._questions: deque[Question] = deque()
        self._form: Form | None = None
        self._typed_at = 0.0

    def _editable(self) -> bool:
        return self._form is not None and self._form.review.editable

    def typed(self) -> None:
        """Take note that the person is typing something else."""
        self._typed_at = time.monotonic()

    def title(self, columns: int) -> str:
        """Return what the box is about."""
        if self._form is None:
            return ""
        review = self._form.review
        text, lines = self.box.text, self.box.document.line_count
        long = f"{lines} lines" if lines >= _LONG else "" if _fits(text) else f"{len(text)} characters"
        parts = [review.tool, self._form.label, long, review.reason]
        waiting = f" (1 of {len(self._questions)})" if len(self._questions) > 1 else ""
        about = " · ".join(part for part in parts if part)
        return f" {cut(about, max(8, columns - 6 - len(waiting)))}{waiting} "

    def ask(self, question: Question) -> None:
        """Let the person decide, after the questions that wait."""
        self._questions.append(question)
        self._next()

    def withdraw(self, question: Question | None) -> None:
        """Forget a question; None: all of them."""
        first = self._questions[0] if self._questions else None
        if question is None:
            self._questions.clear()
        elif question in self._questions:
            self._questions.remove(question)
        if first is not None and (not self._questions or self._questions[0] is not first):
            self._close()

    def run(self) -> None:
        """Let the call run as the box shows it, if it can."""
        assert self._form is not None
        self.problem = self._form.settle(self.box.text)
        if self.problem:
            if self._form.text != self.box.text:
                self._fill()
            return
        form, question = self._form, self._questions.popleft()
        self._close()
        question.allow(form.edited)

    def reject(self, why: str) -> None:
        """Let it not run."""
        question = self._questions.popleft()
        self._close()
        question.reject(why.strip().encode("utf-8", "replace").decode())

    def _next(self) -> None:
        """Open the first question's box, once the person has stopped typing."""
        if not self._questions or self._form is not None:
            return
        wait = self._typed_at + _TYPING - time.monotonic()
        if wait > 0:
            asyncio.get_running_loop().call_later(wait, self._next)
            return
        self._form = Form(self._questions[0].review)
        self._fill()
        self._go_to("review")

    def _fill(self) -> None:
        assert self._form is not None
        text = self._form.text
        self.box.set_document(Document(text, len(text) if _fits(text) else 0), bypass_readonly=True)

    def _close(self) -> None:
        self._form, self.problem = None, ""
        self.reason.reset()
        self._go_to("line")
        self._next()


def _fits(text: str) -> bool:
    """Return whether the box can show a text at once; one that it cannot is shown from its beginning."""
    rows, columns = size()
    needed = sum(max(1, -(-width(line) // max(1, columns - _FRAME))) for line in text.split("\n"))
    return needed <= rows // 2
