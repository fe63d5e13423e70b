"""The console on a terminal: finished text goes into the scrollback, the bottom lines are drawn again and again.

Rule: one prompt_toolkit application lives as long as the console; everything here runs in its event loop. What is shown
for good is written just before the next drawing, above the bottom lines.
"""

import asyncio
import signal
import time
from collections.abc import Coroutine
from concurrent.futures import Future
from functools import cached_property, partial
from typing import Any, Final

from prompt_toolkit.application import run_in_terminal
from prompt_toolkit.document import Document as TypedText
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.key_binding.vi_state import InputMode
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.styles import Style

from supervisor.clients.connection.link_events import PermissionPrompt
from supervisor.clients.console import status_bar, styled_text
from supervisor.clients.console.application import BottomLines, TerminalInput, TerminalOutput, size
from supervisor.clients.console.approval_queue import ApprovalQueue
from supervisor.clients.console.attention import LONG_S, Attention
from supervisor.clients.console.bottom_lines import STYLE, BottomStatus, Drawn
from supervisor.clients.console.daemon_link import Connecting, in_thread
from supervisor.clients.console.external_editor import edited, editor_of
from supervisor.clients.console.input_line import InputLine, LineOrSearch
from supervisor.clients.console.keys import bindings
from supervisor.clients.console.markdown_stream import MarkdownRenderer
from supervisor.clients.console.options import ConsoleOptions
from supervisor.clients.console.proposal_pages import ProposalPages
from supervisor.clients.console.scrollback import Scrollback
from supervisor.clients.console.session_controller import SessionController
from supervisor.clients.console.shown import Item, Note, Said, ShownPrompt
from supervisor.clients.console.slash_commands import (
    Leave,
    execute,
    is_command,
    is_sent,
    leaves,
    runs_meanwhile,
    while_waiting,
)
from supervisor.config.settings import Settings
from supervisor.errors import ConfigError

_ESCAPE: Final = 0.05
"""Seconds after which an Escape is the key itself, and not the beginning of an arrow key."""
_SOON: Final = 0.15
"""Seconds after the start at which Markdown's renderer is imported: the prompt comes first."""
_ADVANCE: Final = 0.05
"""Seconds between two looks at an answer that is coming in."""
_SHARE: Final = 10
"""One part of so many of the time, at most, goes into such looks: long blocks are looked at less often."""
_QUIET: Final = ("Input", "Done")
_WORKING: Final = ("Thinking", "Executing", "Finalizing")


class Terminal:
    """The console's edge on a terminal."""

    def __init__(self, settings: Settings, options: ConsoleOptions, connecting: Connecting) -> None:
        self._colour = options.colour
        self._controller = SessionController(settings, options, connecting, self)
        self._scrollback = Scrollback(self._renderer, self.width, colour=options.colour)
        self._bottom = BottomStatus(self._controller, self._scrollback, self._draw)
        self._leaving = False
        self._advance_at: asyncio.TimerHandle | None = None
        self._pause = _ADVANCE
        self._work: asyncio.Task[None] | None = None
        self._switching: asyncio.Task[None] | None = None
        self._failure: BaseException | None = None
        self._line = InputLine(self._controller, settings.home / "console-history", self._typed)
        begun = LineOrSearch(self._line, self._is_searching)
        self._approvals = ApprovalQueue(begun, self._go_to, self._propose)
        self._drawn = Drawn(self._line, self._approvals, self._bottom, lambda: self._leaving)
        output = TerminalOutput()
        self._attention = Attention(output.at_once, settings.variable("TERM"), wanted=options.colour)
        output.reports_focus = self._attention.told
        self._app = BottomLines(
            layout=self._drawn.layout,
            style=Style.from_dict(STYLE),
            erase_when_done=True,
            color_depth=ColorDepth.DEPTH_4_BIT if options.colour else ColorDepth.DEPTH_1_BIT,
            input=TerminalInput(self._focus),
            output=output,
            before_render=lambda _: self._write(),
            after_render=lambda _: self._approvals.drawn(whole=self._drawn.is_whole()),
        )
        self._app.reappears = self._approvals.read_anew
        self._app.ttimeoutlen = self._app.timeoutlen = _ESCAPE
        self._app.key_bindings = bindings(self, self._line, self._approvals, self._app.suspend)
        self._app.key_processor.before_key_press += lambda _: self._approvals.pressed()
        self._app.key_processor.after_key_press += lambda _: self._searched()
        self._settings = settings
        self._searches = False
        self._go_to("line")

    # --- life -----------------------------------------------------------------------------------------------------

    async def run(self) -> int:
        """Run until the person leaves; return the exit code."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self.leave)
        self._app.obey_signals()
        loop.set_exception_handler(lambda _, bug: self._fail(bug.get("exception") or RuntimeError(bug["message"])))
        loop.call_later(_SOON, lambda: self._markdown)
        try:
            await self._app.run_async(pre_run=lambda: self._start(self._controller.open()), set_exception_handler=False)
        finally:
            if self._work is not None:
                self._work.cancel()
            self._controller.close()
            self._attention.end()
        if self._failure is not None:
            raise self._failure
        return 0

    @cached_property
    def _markdown(self) -> "Future[MarkdownRenderer]":
        """The renderer of Markdown, as soon as it is imported; the first look begins with that."""

        def renderer() -> MarkdownRenderer:
            from supervisor.clients.console.markdown_display import RichMarkdown

            return RichMarkdown(colour=self._colour)

        return in_thread(renderer)

    def _renderer(self) -> MarkdownRenderer:
        return self._markdown.result()

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        self._work = asyncio.get_running_loop().create_task(work)
        self._work.add_done_callback(self._ended)

    def _ended(self, work: "asyncio.Task[None]") -> None:
        if work.cancelled():  # for another, or at the end
            return
        self._work = None
        error = work.exception()
        if isinstance(error, Leave):
            self.leave()
        elif error is not None:
            self._fail(error)
        else:
            self.refresh()

    def _fail(self, error: BaseException) -> None:
        """Take note of what went wrong, and leave: the terminal must not stay as it is."""
        self._failure = self._failure or error
        self.leave()

    def leave(self) -> None:
        """Go; a turn that runs goes on in the daemon."""
        controller = self._controller
        if self._is_open():
            if self._busy() and controller.session and not controller.cancelling and self._failure is None:
                self.show(Note("The turn goes on in the daemon; `strongroom console --continue` shows it."))
            self._app.exit()

    def _is_open(self) -> bool:
        return self._app.is_running and not self._app.is_done

    # --- what is shown --------------------------------------------------------------------------------------------

    def width(self) -> int:
        """Return the columns there are."""
        return size().columns

    def show(self, item: Item) -> None:
        """Show something for good, above the bottom lines."""
        self._scrollback.show(item)
        if not isinstance(item, Said):
            self._draw()
        elif self._advance_at is None:
            self._advance_at = asyncio.get_running_loop().call_later(self._pause, self._advance)

    def _advance(self) -> None:
        begun = time.monotonic()
        self._scrollback.advance()
        self._advance_at = None
        self._pause = max(_ADVANCE, (time.monotonic() - begun) * _SHARE)
        self._draw()

    def _draw(self) -> None:
        self._app.invalidate()

    def drop_unfinished(self) -> int:
        """Forget what of the answer is not in the scrollback; return how many characters are."""
        return self._scrollback.drop_unfinished()

    def clear(self) -> None:
        """Begin on an empty screen."""
        self._scrollback.clear()
        self._draw()

    def refresh(self) -> None:
        """Draw the bottom lines again; where nothing runs any more, send the next line that waits."""
        if self._line.ahead and self._is_open() and not self._busy() and (line := self._line.next()):
            self._send(line)
        self._bottom.refresh()
        self._attention.title(status_bar.title(self._controller.state, asked=self._approvals.waits))
        self._draw()

    def turn_ended(self, *, ok: bool) -> None:
        """Give lines that wait back to the person where it ended in another way than they could expect."""
        if not ok:
            self._line.hand_back()
        if self._bottom.elapsed() >= LONG_S and not self._line.ahead:
            self._attention.call("The turn has ended.")

    def _focus(self, has: bool) -> None:
        """Take note of the window's focus; a question can be read from when it has that."""
        self._attention.focus(has=has)
        if has and self._approvals.waits:
            self._approvals.read_anew()

    def _write(self) -> None:
        """Write what is new above the bottom lines; they are drawn again right after it."""
        out = self._scrollback.take()
        last = self._app.renderer.last_rendered_screen
        now = size()
        wanted = self._drawn.layout.container.preferred_height(now.columns, now.rows).preferred
        if out or (last is not None and wanted < last.height):
            self._app.renderer.erase(leave_alternate_screen=False)
        if out:
            self._app.output.write_raw(out)

    # --- keys -----------------------------------------------------------------------------------------------------

    def mode(self) -> str:
        """Return what the keys go to."""
        return self._drawn.mode

    def _go_to(self, mode: str) -> None:
        vi = self._settings.config.console.keys == "vi" and mode == "line"
        self._app.editing_mode = EditingMode.VI if vi else EditingMode.EMACS
        self._drawn.focus(mode)
        self._draw()

    def _is_searching(self) -> bool:
        return self._drawn.searches()

    def _searched(self) -> None:
        """Let a question have the keyboard when a search is over that has found nothing."""
        before, self._searches = self._searches, self._is_searching()
        if before and not self._searches:
            self._approvals.line_changed()

    def escapes(self) -> bool:
        """Return whether Escape in the line is of use: it interrupts a turn, or leaves where nothing is typed."""
        return self._works() if self._controller.session and self._busy() else not self._line.text

    def _works(self) -> bool:
        """Return whether a turn runs, or waits, in which nothing is asked."""
        state = self._controller.state
        runs = state.waits or state.turn_state in _WORKING
        return bool(self._controller.session) and runs and not self._approvals.waits

    def _busy(self) -> bool:
        """Return whether something is being done, by whomever."""
        return self._work is not None or self._controller.state.turn_state not in _QUIET

    def _typed(self) -> None:
        self._leaving = False
        self._approvals.line_changed()

    def enter(self) -> None:
        """Send the line, run the call as it stands in the box, or reject it with the reason that was typed."""
        self._app.vi_state.input_mode = InputMode.INSERT
        match self._drawn.mode:
            case "line" if self._line.is_choosing():
                self._line.complete_state = None
            case "line" if not self._busy():
                self._send(self._line.taken())
            case "line" if self._controller.state.waits and self._line.text.startswith("/"):
                self._obey(self._line.taken())
            case "line" if self._approvals.waits:
                self._line.wait(aside=True)
                self._approvals.line_changed()
            case "line" if self._works() and runs_meanwhile(self._controller, self._line.text):
                self._obey(self._line.taken())
            case "line":
                self._line.wait()
                self._draw()
            case "review":
                self._approvals.enter()
            case "reason":
                self._approvals.reject(self._approvals.reason.text)
            case "rule":
                self._approvals.edit_rule(self._approvals.rule.text)

    def _send(self, line: str) -> None:
        self._leaving = False
        if is_command(line):
            if not is_sent(self._controller, line):
                self.show(ShownPrompt(line))
            self._start(execute(self._controller, line))
        elif line.strip():
            self._start(self._controller.prompt(line))

    def _obey(self, line: str) -> None:
        """Run a command while a turn waits or runs: beside what follows it, or in place of that."""
        if not leaves(line):
            self._switching = asyncio.get_running_loop().create_task(while_waiting(self._controller, line))
            return
        if self._work is not None:
            self._work.cancel()
        self._line.hand_back()
        self._send(line)

    def edit(self) -> None:
        """Let the person's own editor have the line; what waits for an answer can be read after that."""
        self._line.unfold()
        self._switching = asyncio.get_running_loop().create_task(self._edit())

    async def _edit(self) -> None:
        try:
            work = partial(edited, self._line.text, editor_of(self._settings))
            text = await run_in_terminal(work, in_executor=True)
        except ConfigError as error:
            self.show(Note(str(error), "error"))
        else:
            self._line.set_document(TypedText(text, len(text)))
        self._approvals.read_anew()

    def escape(self) -> None:
        """Leave, reject, or interrupt the turn; while a question waits that has not the keys, do nothing."""
        match self._drawn.mode:
            case "line" if self._works():
                self._controller.cancel()
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
        if self._controller.session and self._controller.state.turn_state not in _QUIET:
            if self._controller.cancelling:
                self.leave()
            else:
                self._controller.cancel()
        elif self._line.ahead:
            self._line.hand_back()
        elif self._line.text:
            self._line.reset()
        elif self._leaving:
            self.leave()
        else:
            self._leaving = True

    def next_mode(self) -> None:
        """Ask about other changes than now; a turn that runs goes on meanwhile."""
        if self._controller.session:
            self._switching = asyncio.get_running_loop().create_task(self._controller.switch_mode())

    def expand(self) -> None:
        """Show what is asked about, or what the model thinks or did last, in full."""
        if not self._approvals.expand() and (newest := self._controller.state.newest) is not None:
            self.show(styled_text.full_document(newest))

    def request_approval(self, question: PermissionPrompt) -> None:
        """Let the person decide, after the questions that wait."""
        self._approvals.request_approval(question)
        self._attention.call(f"{question.request.tool} waits for your answer.")

    def withdraw_approval(self, question: PermissionPrompt | None) -> None:
        """Forget a question; None: all of them."""
        self._approvals.withdraw_approval(question)

    def _propose(self, question: PermissionPrompt, text: str) -> ProposalPages:
        """Return what a person should see before they decide, in pages."""
        call = question.params.tool_call.tool_call_id
        printed = self._controller.state.output_of(call)
        return ProposalPages(question.request, printed, self.width(), self.show, text=text, call=call)


async def run_terminal(settings: Settings, options: ConsoleOptions, connecting: Connecting) -> int:
    """Run the console on the terminal that standard input and output are; return the exit code."""
    return await Terminal(settings, options, connecting).run()
