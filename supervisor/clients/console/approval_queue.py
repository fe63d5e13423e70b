"""Approval requests that wait for the person, one at a time.

Rule: the first one has the box. It gets the keyboard when the line is empty, and its keys count when they can be meant
(`answer_guard`): until then letters go to the line, and nothing that is typed is lost. Enter alone approves ordinary
changes; what `typed_yes` names, and a yes to more than is shown, wants a "y" of its own.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import Final

from supervisor.acp import extensions
from supervisor.clients.connection.link_events import PermissionPrompt
from supervisor.clients.console.answer_guard import BEAT_S, BURST_S, TYPIST_S, AnswerGuard
from supervisor.clients.console.approval_form import (
    ApprovalForm,
    WiderApproval,
    comes_back,
    offered_rule,
    typed_yes,
    wider_approvals,
    with_rule,
)
from supervisor.clients.console.proposal_pages import ProposalPages
from supervisor.clients.console.question_fields import Fields, Line, ScreenSize
from supervisor.display.columns import cut, rows_of, width, wrapped
from supervisor.rules.edited_rule import editable
from supervisor.rules.rule import Rule

_NOT_YET: Final = " readable in a moment "
_NO_ROOM: Final = " too few rows "
_PENDING: Final = " y counts if no key follows "
_LINE_FIRST: Final = " your line has the keys: Enter sets it aside "
_FRAME: Final = 4
"""Columns of the box that are not its text's."""
_LONG: Final = 10
"""Lines from which on it is said how many there are."""
_LEAST: Final = 6
_BRIEF: Final = 3
"""Rows of a text that a difference shows, until it is edited."""
_HINT_FRAME: Final = 7
"""Columns of the box's edge that are never text, and the blanks around it."""


class ApprovalQueue:
    """The questions, and the box that shows the first.

    Args:
        line: has the keyboard as long as something stands in it.
        fields: for the first question's texts.
        size: tells the columns in which the box is, its frame included, and rows of which it may have half.
        page_rows: tells how many rows a page of what a question is about may have, beside a box of so many rows.
        go_to: sends the keys to "line", "review", "confirm", "rule" or "reason", and draws; `drawn` says how that went.
        pages: gives what a question is about, to be shown page by page; None for nothing. The text is what the box
            has no room for.
        clock: tells the time, in seconds.
        later: calls a function after so many seconds; by default the event loop does.
    """

    def __init__(
        self,
        line: Line,
        fields: Fields,
        size: Callable[[], ScreenSize],
        page_rows: Callable[[int], int],
        go_to: Callable[[str], None],
        pages: Callable[[PermissionPrompt, str], ProposalPages | None],
        clock: Callable[[], float] = time.monotonic,
        later: Callable[[float, Callable[[], None]], object] | None = None,
    ) -> None:
        self.box, self.reason, self.rule = fields
        self.problem = ""
        """Why the text cannot run so, or not yet."""
        self._line = line
        self._size = size
        self._page_rows = page_rows
        self._mode = "line"
        self._send_keys = go_to
        self._pages_of = pages
        self._pages: ProposalPages | None = None
        self._clock = clock
        self._later = later or (lambda wait, act: asyncio.get_running_loop().call_later(wait, act))
        self._guard = AnswerGuard()
        self._beats = self._ready = False
        """Whether it is looked after the keys, and whether it was said that the next one answers."""
        self._has_room = True
        """Whether there was room for the question when it was last drawn."""
        self._confirmations: list[WiderApproval] = []
        """What the person has to say yes to, one after the other."""
        self._questions: deque[PermissionPrompt] = deque()
        self._form: ApprovalForm | None = None
        self._wants_yes = ""
        self._engaged = False
        """Whether the person edits the box."""
        self._unread = ""
        """What the box has no room for."""
        self._early = ""
        """A "y" that came too early: the first letter of a line, or nothing."""

    @property
    def waits(self) -> bool:
        """Whether a question waits for its answer."""
        return self._form is not None

    @property
    def editable(self) -> bool:
        """Whether the person may change the text in the box."""
        return self._form is not None and self._form.request.editable

    @property
    def _typed_yes(self) -> str:
        """Why Enter alone is no yes, but "y"; empty where it is one."""
        return self._wants_yes or (self._pages.unread if self._pages is not None else "")

    @property
    def rows(self) -> int:
        """How many rows of the screen the box may take: few where a difference is what is asked about."""
        return _BRIEF if self._form is not None and self._form.brief and not self._engaged else self._half

    @property
    def _half(self) -> int:
        return self._size().rows // 2

    # --- keys -----------------------------------------------------------------------------------------------------

    def pressed(self, at: float | None = None) -> None:
        """Take note of a key before it does anything; `at`: when it was read, if that is not now."""
        now = self._clock() if at is None else at
        self._guard.pressed(now)
        self._ready = False
        if self._mode == "line":
            self._guard.typed(now)

    def letter(self, text: str, *, pasted: bool = False) -> None:
        """Take a letter, or what was pasted, while the question has the keys: a yes, an edit, a line's begin."""
        guard, form = self._guard, self._form
        if form is None:
            return
        is_yes = text in ("y", "Y") and not (pasted or self._engaged)
        if is_yes and (guard.answers() or not self._early):
            self._early = text  # of a line, if a letter follows
            typist = guard.is_typist()
            self._if_meant(self._approve, TYPIST_S if typist else BURST_S)
            if typist:
                guard.typed(self._clock())
            return
        if self.editable and (self._engaged or (guard.is_readable() and not guard.is_typist() and not pasted)):
            self.box.insert_text(self._early + text)
            self._early = ""
        else:
            self._type(text)

    def enter(self) -> None:
        """Let the call run as the box shows it, if it can, and if Enter may say so."""
        if self._early and self._guard.is_typist():
            self._type("")
            return
        self._early = ""
        if not self._guard.answers() or self._form is None:
            return
        changed = self._form.is_changed(self.box.text)
        if not self._typed_yes or (changed and comes_back(self._form.request)):
            self._if_meant(self._approve)
        elif changed:
            self._confirmations = [
                WiderApproval(f"Let it run as it stands now? Enter alone is no yes: {self._typed_yes}.")
            ]
            self._confirm_next()
        else:
            self.problem = f"Enter alone is no yes here: {self._typed_yes}. Press y, or Escape to reject it."
            self._go_to("review")

    def escape(self) -> None:
        """Ask for the reason of a no."""
        if self._guard.answers():
            self._go_to("reason")

    def confirm(self, said: str) -> None:
        """Take a key as the answer to what has to be confirmed: y, n, e for the rule in it, or nothing of it."""
        rule = self._editable_rule()
        if said.lower() == "n":
            self._confirmations = []
            self._go_to("review")
        elif said.lower() == "y" and self._confirmations:
            self._if_meant(self._confirmed)
        elif said.lower() == "e" and rule is not None and self._guard.answers():
            text = self._confirmations[0].rule or editable(rule)
            self.rule.put(text, len(text))
            self._go_to("rule")

    def edit_rule(self, text: str) -> None:
        """Take a rule as the person wrote it, and have it confirmed; "" leaves it as it was."""
        assert self._form is not None
        try:
            if text.strip():
                self._confirmations[0] = with_rule(self._form, self._confirmations[0], text)
        except ValueError as error:
            self.problem = str(error)
            self._go_to("rule")
            return
        self.problem = ""
        self._confirm_next()

    def _editable_rule(self) -> Rule | None:
        longer = self._form is not None and self._confirmations and self._confirmations[0].scope != "once"
        return offered_rule(self._form.request) if self._form is not None and longer else None

    def line_changed(self) -> None:
        """Take the keyboard, once the line is empty and nothing was typed in it for a moment."""
        if self._form is None or self._mode != "line" or self._line.text:
            return
        wait = self._guard.rests(self._clock())
        if wait > 0:
            self._later(wait, self.line_changed)
        else:
            self._go_to("review")

    def _type(self, text: str) -> None:
        """Let the line have what belongs to it, and the keyboard."""
        text, self._early = self._early + text, ""
        self._guard.typed(self._clock())
        self._go_to("line")
        self._line.insert_text(text)

    def _if_meant(self, act: Callable[[], None], wait: float = BURST_S) -> None:
        """Do what the last key says, if it may answer and no other comes within `wait`."""
        key, form = self._guard.last, self._form

        def alone() -> None:
            if self._guard.last == key and self._form is form:
                act()

        if self._guard.answers():
            self._later(wait, alone)

    def _beat(self) -> None:
        """While a question waits, look after the keys, and draw again when they begin to count."""
        self._beats = self._form is not None
        if not self._beats:
            return
        self._guard.beat(self._clock())
        if self._guard.is_ready() and not self._ready:
            self._ready = True
            self._send_keys(self._mode)
        self._later(BEAT_S, self._beat)

    def _go_to(self, mode: str) -> None:
        self._mode = mode
        self._send_keys(mode)

    # --- what can be read -----------------------------------------------------------------------------------------

    def drawn(self, *, whole: bool) -> None:
        """Take note that the screen was drawn just now; `whole`: with all that its keys would answer."""
        if whole:
            self._has_room = True
            self._guard.shown(self._clock())
        elif self._form is not None and self._has_room:
            self._has_room = False
            self.read_anew()

    def read_anew(self) -> None:
        """Let no key answer before what is drawn next could be read."""
        self._guard.hidden()
        self._ready = False
        self._send_keys(self._mode)

    def reshape(self) -> None:
        """Show what is asked about anew, on a screen of another size."""
        if self._form is not None:
            self._show_pages(self._questions[0])
            self.read_anew()

    # --- texts ----------------------------------------------------------------------------------------------------

    def title(self, columns: int) -> str:
        """Return what the box is about."""
        if self._form is None:
            return ""
        request = self._form.request
        text = self.box.text
        lines = text.count("\n") + 1
        long = f"{lines} lines" if lines >= _LONG else "" if self._fits(text) else f"{len(text)} characters"
        label = self._form.label
        parts = [request.tool, label, long, request.reason if label else ""]
        waiting = f" (1 of {len(self._questions)})" if len(self._questions) > 1 else ""
        about = " · ".join(part for part in parts if part)
        return f" {cut(about, max(8, columns - 6 - len(waiting)))}{waiting} "

    def request_approval(self, question: PermissionPrompt) -> None:
        self._questions.append(question)
        self._next()

    def withdraw_approval(self, question: PermissionPrompt | None) -> None:
        first = self._questions[0] if self._questions else None
        if question is None:
            self._questions.clear()
        elif question in self._questions:
            self._questions.remove(question)
        if first is not None and (not self._questions or self._questions[0] is not first):
            self._close()

    def hint(self, columns: int) -> str:
        """Return what the keys do, as far as there is room."""
        if self._form is None:
            return ""
        if self._mode == "line" and self._line.text:
            return _LINE_FIRST if width(_LINE_FIRST) + _HINT_FRAME <= columns + 2 else ""
        if self._mode not in ("reason", "rule") and (self._mode == "line" or not self._guard.is_ready()):
            return _NOT_YET if self._has_room else _NO_ROOM
        if self._early:
            return _PENDING
        if self._confirmations:
            return " y yes · n no · e edits the rule " if self._editable_rule() else " y yes · n no "
        keys = self._form.keys(self.box.text, "y" if self._typed_yes else "Enter", engaged=self._engaged)
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
        if self._pages is not None:
            self._pages.everything()
            self.problem = ""
            self.read_anew()
        return True

    def turn(self, *, forward: bool) -> None:
        """Show the next page of what the question is about, or the one before."""
        if self._form is not None and self._pages is not None:
            self._pages.turn(forward)
            self.problem = ""
            self.read_anew()

    def widen(self, to: extensions.Scope | None) -> None:
        """Ask for a yes that holds for longer; None for one outside of the sandbox."""
        if self._form is None:
            return
        self.problem, self._confirmations = wider_approvals(self._form, self.box.text, to)
        if self._confirmations:
            if to is None and self._pages is not None and self._pages.unread:
                self._pages.everything()
            self._confirm_next()

    def edit(self) -> None:
        """Let letters change the text in the box."""
        self._engaged = True
        self._go_to("review")

    def engage(self) -> None:
        """Take note that the person edits the box: from here on letters change its text."""
        self._engaged = True

    def _confirm_next(self) -> None:
        self._mode = "confirm"
        self.read_anew()

    def _confirmed(self) -> None:
        said_yes, *self._confirmations = self._confirmations
        if self._confirmations:
            self._confirm_next()
        elif said_yes.scope != "once" or said_yes.unconfined:
            self._decided().allow(scope=said_yes.scope, unconfined=said_yes.unconfined, rule=said_yes.rule)
        else:
            self._go_to("review")
            self._approve()

    def _approve(self) -> None:
        """Let the call run as the box shows it, if it can."""
        assert self._form is not None
        self.problem = self._form.settle(self.box.text)
        if self.problem:
            if self._form.text != self.box.text:
                self._fill()
            self._go_to("review")
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
        """Show the first question; it has the keys once the line is empty."""
        if not self._questions or self._form is not None:
            return
        question = self._questions[0]
        self._form = ApprovalForm(question.request)
        self._wants_yes = typed_yes(question.request, question.params.tool_call.kind)
        first_seen = question.request.stage in ("call", "direct")
        unread = first_seen and (self._form.is_escaped or not self._fits(self._form.text))
        self._engaged, self._early, self._has_room = False, "", True
        self._unread = self._form.to_read if unread else ""
        self._show_pages(question)
        self._fill()
        self._engaged = False
        self.read_anew()
        if not self._beats:
            self._beat()
        self.line_changed()

    def _show_pages(self, question: PermissionPrompt) -> None:
        assert self._form is not None
        self._pages = self._pages_of(question, self._unread)
        if self._pages is not None:
            self._pages.first(max(_LEAST, self._page_rows(min(self._needed(self._form.text), self.rows))))

    def _fill(self) -> None:
        assert self._form is not None
        text = self._form.text
        self.box.put(text, len(text) if self._needed(text) <= self.rows else 0)

    def _close(self) -> None:
        self._form, self._pages, self.problem, self._confirmations = None, None, "", []
        self.reason.put("")
        self.rule.put("")
        self._go_to("line")
        self._next()

    def _fits(self, text: str) -> bool:
        """Return whether the box can show a text at once; one that it cannot is shown from its beginning."""
        return self._needed(text) <= self._half

    def _needed(self, text: str) -> int:
        """Return the rows that a text takes in the box."""
        return rows_of(text.split("\n"), self._size().columns - _FRAME)
