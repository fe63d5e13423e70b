"""Actions of lines and keys, whatever draws the screen: send, queue, answer, interrupt, leave.

Rule: lines that are typed while something runs wait; what need not wait is done at once. Keys that answer a question go
to `ApprovalQueue`, which knows whether they were meant.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any, Final, Protocol

from supervisor.clients.connection.link_events import PermissionPrompt
from supervisor.clients.console import status_bar, styled_text
from supervisor.clients.console.approval_queue import ApprovalQueue
from supervisor.clients.console.attention import LONG_S
from supervisor.clients.console.session_controller import SessionController
from supervisor.clients.console.session_state import QUIET
from supervisor.clients.console.shown import Item, Note, ShownPrompt
from supervisor.clients.console.slash_commands import (
    Leave,
    execute,
    is_command,
    is_sent,
    leaves,
    runs_meanwhile,
    while_waiting,
)
from supervisor.clients.console.turn_status import TurnStatus
from supervisor.clients.console.waiting_lines import WaitingLines

_WORKING: Final = ("Thinking", "Executing", "Finalizing")


class KeyScreen(Protocol):
    """The screen, as far as lines and keys change it."""

    def mode(self) -> str:
        """Return what the keys go to: "line", "review", "confirm", "rule" or "reason"."""

    def show(self, item: Item) -> None:
        """Show something, below everything shown before."""

    def draw(self) -> None:
        """Draw everything again, soon."""

    def is_open(self) -> bool:
        """Return whether the person has not left yet."""

    def exit(self) -> None:
        """Go."""


class Window(Protocol):
    """The window that the screen is in."""

    def focus(self, *, has: bool) -> None:
        """Take note that it has got the focus, or lost it."""

    def title(self, text: str) -> None:
        """Say what goes on."""

    def call(self, text: str) -> None:
        """Call the person, unless they are looking."""


class KeyActions:
    """The actions of one session.

    Args:
        session: is controlled.
        lines: what is typed, and what waits.
        approvals: the questions.
        status: says what goes on.
        attention: the window.
        face: is changed.
    """

    def __init__(
        self,
        session: SessionController,
        lines: WaitingLines,
        approvals: ApprovalQueue,
        status: TurnStatus,
        attention: Window,
        face: KeyScreen,
    ) -> None:
        self.leaving = False
        """Whether the next Ctrl-C leaves."""
        self.failure: BaseException | None = None
        """What went wrong, so that there was nothing but to leave."""
        self._session = session
        self._lines = lines
        self._approvals = approvals
        self._status = status
        self._attention = attention
        self._face = face
        self._work: asyncio.Task[None] | None = None
        self._switching: asyncio.Task[None] | None = None

    # --- life -----------------------------------------------------------------------------------------------------

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Do what everything else waits for."""
        self._work = asyncio.get_running_loop().create_task(work)
        self._work.add_done_callback(self._ended)

    def stop(self) -> None:
        """Wait for nothing any more."""
        if self._work is not None:
            self._work.cancel()

    def _ended(self, work: "asyncio.Task[None]") -> None:
        if work.cancelled():  # for another, or at the end
            return
        self._work = None
        error = work.exception()
        if isinstance(error, Leave):
            self.leave()
        elif error is not None:
            self.fail(error)
        else:
            self.refresh()

    def fail(self, error: BaseException) -> None:
        """Take note of what went wrong, and leave: the terminal must not stay as it is."""
        self.failure = self.failure or error
        self.leave()

    def leave(self) -> None:
        """Go; a turn that runs goes on in the daemon."""
        session = self._session
        if self._face.is_open():
            if self.is_busy() and session.session and not session.cancelling and self.failure is None:
                self._face.show(Note("The turn goes on in the daemon; `strongroom console --continue` shows it."))
            self._face.exit()

    # --- what happens ---------------------------------------------------------------------------------------------

    def refresh(self) -> None:
        """Draw what has changed; where nothing runs any more, send the next line that waits."""
        if self._lines.ahead and self._face.is_open() and not self.is_busy() and (line := self._lines.next()):
            self._send(line)
        self._status.refresh()
        self._attention.title(status_bar.title(self._session.state, asked=self._approvals.waits))
        self._face.draw()

    def turn_ended(self, *, ok: bool) -> None:
        """Give lines that wait back to the person where it ended in another way than they could expect."""
        if not ok:
            self._lines.hand_back()
        if self._status.elapsed() >= LONG_S and not self._lines.ahead:
            self._attention.call("The turn has ended.")

    def request_approval(self, question: PermissionPrompt) -> None:
        """Let the person decide, after the questions that wait."""
        self._approvals.request_approval(question)
        self._attention.call(f"{question.request.tool} waits for your answer.")

    def focus(self, *, has: bool) -> None:
        """Take note of the window's focus; a question can be read from when it has that."""
        self._attention.focus(has=has)
        if has and self._approvals.waits:
            self._approvals.read_anew()

    def is_busy(self) -> bool:
        """Return whether something is being done, by whomever."""
        return self._work is not None or self._session.state.turn_state not in QUIET

    def works(self) -> bool:
        """Return whether a turn runs, or waits, in which nothing is asked."""
        state = self._session.state
        runs = state.waits or state.turn_state in _WORKING
        return bool(self._session.session) and runs and not self._approvals.waits

    def escapes(self) -> bool:
        """Return whether Escape in the line is of use: it interrupts a turn, or leaves where nothing is typed."""
        return self.works() if self._session.session and self.is_busy() else not self._lines.text

    # --- keys -----------------------------------------------------------------------------------------------------

    def typed(self) -> None:
        """Take note that the line has changed."""
        self.leaving = False
        self._approvals.line_changed()

    def enter(self) -> None:
        """Send the line, run the call as it stands in the box, or reject it with the reason that was typed."""
        match self._face.mode():
            case "line" if not self.is_busy():
                self._send(self._lines.taken())
            case "line" if self._session.state.waits and self._lines.text.startswith("/"):
                self._obey(self._lines.taken())
            case "line" if self._approvals.waits:
                self._lines.wait(aside=True)
                self._approvals.line_changed()
            case "line" if self.works() and runs_meanwhile(self._session, self._lines.text):
                self._obey(self._lines.taken())
            case "line":
                self._lines.wait()
                self._face.draw()
            case "review":
                self._approvals.enter()
            case "reason":
                self._approvals.reject(self._approvals.reason.text)
            case "rule":
                self._approvals.edit_rule(self._approvals.rule.text)

    def _send(self, line: str) -> None:
        self.leaving = False
        if is_command(line):
            if not is_sent(self._session, line):
                self._face.show(ShownPrompt(line))
            self.start(execute(self._session, line))
        elif line.strip():
            self.start(self._session.prompt(line))

    def _obey(self, line: str) -> None:
        """Run a command while a turn waits or runs: beside what follows it, or in place of that."""
        if not leaves(line):
            self._switching = asyncio.get_running_loop().create_task(while_waiting(self._session, line))
            return
        if self._work is not None:
            self._work.cancel()
        self._lines.hand_back()
        self._send(line)

    def escape(self) -> None:
        """Leave, reject, or interrupt the turn; while a question waits that has not the keys, do nothing."""
        match self._face.mode():
            case "line" if self.works():
                self._session.cancel()
            case "line":
                self.leave()
            case "review":
                self._approvals.escape()
            case "confirm":
                self._approvals.confirm("n")
            case "reason":
                self._approvals.reject("")
            case "rule":
                self._approvals.edit_rule("")

    def interrupt(self) -> None:
        """Clear the line, cancel the turn, or leave, when pressed a second time."""
        if self._session.session and self._session.state.turn_state not in QUIET:
            if self._session.cancelling:
                self.leave()
            else:
                self._session.cancel()
        elif self._lines.ahead:
            self._lines.hand_back()
        elif self._lines.text:
            self._lines.clear()
        elif self.leaving:
            self.leave()
        else:
            self.leaving = True

    def next_mode(self) -> None:
        """Ask about other changes than now; a turn that runs goes on meanwhile."""
        if self._session.session:
            self._switching = asyncio.get_running_loop().create_task(self._session.switch_mode())

    def expand(self) -> None:
        """Show what is asked about, or what the model thinks or did last, in full."""
        if not self._approvals.expand() and (newest := self._session.state.newest) is not None:
            self._face.show(styled_text.full_document(newest))
