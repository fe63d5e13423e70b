"""The two ends of a chat in a Python session: what is heard of the daemon, and what the person sees and decides.

Rule: the link's thread only puts what it hears into a queue; it is printed, and the person asked, where they called.
"""

import sys
import termios
from collections.abc import Mapping
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Final

from supervisor.acp import extensions, schema
from supervisor.clients.connection import requests
from supervisor.clients.connection.link_events import (
    ConnectionLost,
    LinkEvent,
    PermissionPrompt,
    PromptWithdrawn,
    SessionEvent,
)
from supervisor.display import changes
from supervisor.display.command_text import text_of
from supervisor.display.escape import name, visible

_LOOK: Final = 1.0
"""Seconds after which a wait begins anew."""
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
    "refused": "Leave it at that",
}
_SCOPES: Final[Mapping[str, extensions.Scope]] = {"s": "session", "a": "always"}
_LONGER: Final[Mapping[extensions.Scope, str]] = {
    "session": "Until this session ends:",
    "always": "From now on, on this root:",
}


class EventQueue:
    """Events from the link's thread, for the thread that chats."""

    def __init__(self) -> None:
        self.is_lost = False
        self._events: SimpleQueue[SessionEvent | None] = SimpleQueue()
        self._awaited = False

    def begin_turn(self) -> None:
        """Somebody begins to wait for a turn's end."""
        self.drain()
        self._awaited = True

    def next_event(self) -> SessionEvent | None:
        """Wait for the next event; None is the turn's end."""
        while True:
            try:
                return self._events.get(timeout=_LOOK)
            except Empty:
                continue  # and a Ctrl-C that came just before the wait is seen

    def drain(self) -> list[SessionEvent]:
        """Return the events that are there, without waiting."""
        events = [self._events.get() for _ in range(self._events.qsize())]
        return [event for event in events if event is not None]

    def end_turn(self) -> None:
        """The turn that was waited for has its answer."""
        self._awaited = False
        self._events.put(None)

    def hear(self, event: LinkEvent) -> None:
        """Queue an event of the session; reject an approval request for which no person waits."""
        match event:
            case ConnectionLost():
                self.is_lost = True  # whoever waits for an answer is told by that
            case PromptWithdrawn():
                pass  # an answer that comes too late is not sent
            case PermissionPrompt() if not self._awaited:
                event.decline()
            case _:
                self._events.put(event)


class Printer:
    """Prints an answer as it comes, a tool's call as a line of its own."""

    def __init__(self) -> None:
        self._in_line = False
        self._message: str | None = None

    def take(self, event: SessionEvent) -> None:
        """Print what a person wants to see of an event."""
        match event:
            case extensions.TurnState(retry=why) if why:
                self._note(f"({visible(why)})")
            case PermissionPrompt(request=review):
                about = f"{review.tool} {visible(text_of(review.tool, review.arguments)[:_SHOWN])}"
                self._note(changes.TITLES.get(review.stage, about))
                self._tell(review)
            case schema.SessionUpdate(update=schema.AgentMessageChunk() as chunk):
                if chunk.message_id != self._message:
                    self.end_line()
                    self._message = chunk.message_id
                put(visible(chunk.content.text), end="")
                self._in_line = not chunk.content.text.endswith("\n")
            case schema.SessionUpdate(update=schema.ToolCall(title=title)):
                self._note(f"[{visible(title)}]")
            case schema.SessionUpdate(update=schema.ToolCallUpdate(status="completed") as update):
                facts = requests.call_facts(update.meta)
                if facts is not None and facts.decided is not None:
                    self._note(f"({visible(changes.outcome(facts.decided))})")

    def _tell(self, review: extensions.ApprovalRequest) -> None:
        """Print what a person should see before they decide."""
        lines = changes.explained(review)
        for _, line in lines[:_LINES]:
            put(line)
        if len(lines) > _LINES:
            put(f"... {len(lines) - _LINES} more lines; `strongroom console` shows them all")

    def _note(self, line: str) -> None:
        self.end_line()
        put(line)

    def end_line(self) -> None:
        """End the line that was begun."""
        if self._in_line:
            put("")
            self._in_line = False


def decide(question: PermissionPrompt) -> None:
    """Ask the person about a call that has been shown; where nobody can be asked, decline."""
    review = question.request
    reason = visible(review.reason)
    if sys.stdin is None or not sys.stdin.isatty():
        put(f"(declined: {reason}; nobody can be asked here)")
        question.decline()
        return
    said = "n"
    scope: extensions.Scope | None = None
    try:
        longer = "/s/a" if review.covers else ""
        said = _answer(f"{reason}. {_YES[review.stage]}? [y/N{longer}, or why not] ")
        scope = _SCOPES.get(said.lower()) if review.covers else None
        if scope is not None:
            put(f"{_LONGER[scope]} {name(review.covers)}")
            said = "n"
            said = _answer("Apply these changes, and make this rule? [y/N] ")
    except EOFError:
        put("")
    finally:
        if said.lower() in ("y", "yes"):
            question.allow(scope=scope or "once")
        else:
            question.reject("" if said.lower() in ("", "n", "no") else said)


def _answer(prompt: str) -> str:
    """Return a line that was typed after its prompt; what was typed before answers nothing, and is gone."""
    with suppress(OSError, ValueError, termios.error):  # no terminal
        termios.tcflush(sys.stdin, termios.TCIFLUSH)
    return input(prompt).strip()


def put(text: str, end: str = "\n") -> None:
    """Print at once."""
    sys.stdout.write(text + end)
    sys.stdout.flush()
