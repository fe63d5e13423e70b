"""Hands at a line and an approval queue, at a time of their own."""

import heapq
import itertools
import json
from collections.abc import Callable
from typing import Any, Final

from supervisor.acp import extensions, schema
from supervisor.clients.connection.link_events import PermissionPrompt
from supervisor.clients.console.application import size
from supervisor.clients.console.approval_fields import edited_texts
from supervisor.clients.console.approval_queue import ApprovalQueue
from supervisor.clients.console.bottom_lines import page_rows
from supervisor.clients.console.proposal_pages import ProposalPages
from supervisor.clients.console.question_fields import Fields

PROTECTED: Final = extensions.ProposedEffects([extensions.ChangedName(".git/config", "modified", protected="git")])
TRACKED: Final = extensions.ProposedEffects([extensions.ChangedName("a", "deleted", tracked=True)])
LOST: Final = extensions.ProposedEffects([extensions.ChangedName("a", "modified")], cannot_undo="too large to keep")
HIDDEN: Final = extensions.ProposedEffects([extensions.ChangedName("a", "modified")], unseen=1)
LONG: Final = extensions.ProposedEffects([extensions.ChangedName("a", "modified", diff="+x\n" * 40)], {"modified": 1})
"""Three pages of a screen of 24 rows."""
LONG_ONE: Final[dict[str, Any]] = {"stage": "effects", "effects": LONG}
LONG_TEXT: Final[dict[str, Any]] = {"command": "ls # " + "a" * 3000 + "\nrm x"}
PLAIN: Final = extensions.ProposedEffects([extensions.ChangedName("a", "modified", diff="-a\n+b\n")], {"modified": 1})


class Typist:
    """Hands, a line and an approval queue, at a time of their own."""

    def __init__(self) -> None:
        self.now = 100.0
        self.text = ""
        self.mode = "line"
        self.seen = True
        """Whether the screen has room for the box."""
        self.sent: list[str] = []
        self.shown: list[object] = []
        self.answers: list[tuple[int, schema.PermissionResult]] = []
        """Each with the question's number."""
        self._order = itertools.count()
        self._numbers = itertools.count(1)
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        fields = Fields(*edited_texts(lambda: self.queue))
        self.queue = ApprovalQueue(
            self, fields, size, page_rows, self._go_to, self._pages, lambda: self.now, self._later
        )

        self._acts: dict[str, Callable[[], object]] = {
            "Enter": self.queue.enter,
            "Escape": self.queue.escape,
            "PgDn": lambda: self.queue.turn(forward=True),
            "Ctrl-O": self.queue.expand,
            "Tab": self.queue.edit,
            "Alt-S": lambda: self.queue.widen("session"),
            "Alt-A": lambda: self.queue.widen("always"),
            "Alt-U": lambda: self.queue.widen(None),
        }

    def _pages(self, question: PermissionPrompt, text: str) -> ProposalPages:
        return ProposalPages(question.request, "", 80, self.shown.append, text=text)

    def _go_to(self, mode: str) -> None:
        self.mode = mode
        self._later(0, lambda: self.queue.drawn(whole=self.seen))

    def _later(self, wait: float, act: Callable[[], None]) -> None:
        heapq.heappush(self._due, (self.now + wait, next(self._order), act))

    def insert_text(self, data: str) -> None:
        self.text += data

    def rest(self, seconds: float) -> None:
        """Let the time go by."""
        until = self.now + seconds
        while self._due and self._due[0][0] <= until:
            at, _, act = heapq.heappop(self._due)
            self.now = max(self.now, at)
            act()
        self.now = until

    def stall(self, seconds: float) -> None:
        """Let the time go by while the console does nothing, and reads no key."""
        self.now += seconds

    def ask(
        self, command: str = "ls", tool: str = "run_cmd", kind: schema.ToolKind | None = None, **more: Any
    ) -> PermissionPrompt:
        number = next(self._numbers)
        given = {"arguments": json.dumps({"command": command}), "reason": "", **more}
        request = extensions.ApprovalRequest(tool, **given)
        call = schema.PermissionCall(tool_call_id="1", kind=kind)
        params = schema.PermissionParams("s", call, [], meta={extensions.REVIEW: request})
        question = PermissionPrompt(number, params, lambda result: self.answers.append((number, result)))
        self.queue.request_approval(question)
        return question

    def press(self, key: str) -> None:
        """Press a key, as the terminal's table has it act."""
        self.queue.pressed()
        match self.mode, key:
            case "line", "Enter" if self.queue.waits:
                self.sent.append(self.text)
                self.text = ""
            case "line", "Enter":
                pass
            case "line", _:
                self.text += key
            case "review", _ if key in self._acts:
                self._acts[key]()
            case "review", _:
                self.queue.letter(key)
            case "confirm", _:
                self.queue.confirm(key)
            case "reason", "Enter" | "Escape":
                self.queue.reject("")
        if self.mode == "line":
            self.queue.line_changed()

    @property
    def approved(self) -> int:
        return sum(answer.outcome.option_id == "allow_once" for _, answer in self.answers)
