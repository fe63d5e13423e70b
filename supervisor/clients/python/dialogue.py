"""A chat on a terminal or in a notebook: what the person sees of a turn, and decides.

Rule: what was typed before a question is no answer to it, and where nobody can be asked the answer is no.
"""

import sys
import termios
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from supervisor.acp import extensions
from supervisor.clients.python.typed_events import (
    AnswerPart,
    Approval,
    NoticeGiven,
    Question,
    ToolEnded,
    ToolStarted,
    TurnEvent,
)
from supervisor.display import changes
from supervisor.display.command_text import text_of
from supervisor.display.escape import name, visible

_SHOWN: Final = 10_000
"""Characters of a call's arguments that are shown before a person decides."""

_LINES: Final = 200
"""Lines of what a call would change."""
_YES: Final[Mapping[extensions.Stage, str]] = {
    "call": "Let it run",
    "effects": "Apply these changes",
    "direct": "Let it run on the root itself",
    "network": "Rehearse it with the network",
    "turn": "Go on with this turn",
    "switch": "Ask the other model",
    "narrow": "Leave the file out",
    "refused": "Leave it at that",
}
_SCOPES: Final[Mapping[str, extensions.Scope]] = {"s": "session", "a": "always"}
_LONGER: Final[Mapping[extensions.Scope, str]] = {
    "session": "Until this session ends:",
    "always": "From now on, on this root:",
}


class Dialogue:
    """Prints an answer as it comes, a tool's call as a line of its own, and asks."""

    def __init__(self) -> None:
        self._in_line = False
        self._message: str | None = None

    def take(self, event: TurnEvent) -> None:
        """Print what a person wants to see of an event."""
        match event:
            case NoticeGiven(text=text, tone="notice"):
                self._note(f"({visible(text)})")
            case AnswerPart(text=text):
                if event.message != self._message:
                    self.end_line()
                    self._message = event.message
                put(visible(text), end="")
                self._in_line = not text.endswith("\n")
            case ToolStarted(title=title):
                self._note(f"[{visible(title)}]")
            case ToolEnded(ok=True, changed=changed) if changed:
                self._note(f"({visible(changed)})")
            case _:
                pass

    def decide(self, question: Question) -> Approval:
        """Show a question and ask the person; where nobody can be asked, the answer is no."""
        review, reason = question.request, visible(question.reason)
        self._show(review)
        try:
            return _decision(review, reason)
        except _nobody():
            put(f"(declined: {reason}; nobody can be asked here)")
            return Approval(review.stage == "turn")  # which is no call, and goes on

    def end_line(self) -> None:
        if self._in_line:
            put("")
            self._in_line = False

    def _show(self, review: extensions.ApprovalRequest) -> None:
        """Print what a person should see before they decide."""
        about = f"{review.tool} {visible(text_of(review.tool, review.arguments)[:_SHOWN])}"
        self._note(changes.TITLES.get(review.stage, about))
        lines = changes.explained(review)
        for _, line in lines[:_LINES]:
            put(line)
        if len(lines) > _LINES:
            put(f"... {len(lines) - _LINES} more lines; `strongroom console` shows them all")

    def _note(self, line: str) -> None:
        self.end_line()
        put(line)


def put(text: str, end: str = "\n") -> None:
    """Print at once."""
    sys.stdout.write(text + end)
    sys.stdout.flush()


class NobodyListens(Exception):
    """No person can be asked here."""


def _decision(review: extensions.ApprovalRequest, reason: str) -> Approval:
    """Return what the person answers; the end of the input is a no.

    Raises:
        Exception: one of `_nobody`: no person can be asked.
    """
    if not _somebody_listens():
        raise NobodyListens
    said = "n"
    scope: extensions.Scope | None = None
    with suppress(EOFError):
        longer = "/s/a" if review.covers else ""
        said = _answer(f"{reason}. {_YES[review.stage]}? [y/N{longer}, or why not] ")
        scope = _SCOPES.get(said.lower()) if review.covers else None
        if scope is not None:
            put(f"{_LONGER[scope]} {name(review.covers)}")
            said = "n"
            said = _answer("Apply these changes, and make this rule? [y/N] ")
    if said.lower() in ("y", "yes"):
        return Approval(True, scope=scope or "once")
    return Approval(False, remark="" if said.lower() in ("", "n", "no") else said)


def _somebody_listens() -> bool:
    """Say whether a person may be asked: at a terminal, or in a notebook, whose kernel has `input` of its own."""
    return "ipykernel.kernelapp" in sys.modules or (sys.stdin is not None and sys.stdin.isatty())


def _nobody() -> tuple[type[Exception], ...]:
    """Return what says that no person can be asked: also a kernel's word, whose front end has no way to."""
    errors = sys.modules.get("IPython.core.error")
    return (NobodyListens,) if errors is None else (NobodyListens, errors.StdinNotImplementedError)


def _answer(prompt: str) -> str:
    """Return a line that was typed after its prompt; what was typed before answers nothing, and is gone."""
    with suppress(OSError, ValueError, termios.error):  # no terminal
        termios.tcflush(sys.stdin, termios.TCIFLUSH)
    return input(prompt).strip()
