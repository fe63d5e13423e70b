"""The console on a terminal: finished text goes into the scrollback, the bottom lines are drawn again and again.

Rule: one prompt_toolkit application lives as long as the console; everything here runs in its event loop. What is shown
for good is written just before the next drawing, above the bottom lines.
"""

import asyncio
import signal
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final

from prompt_toolkit.application import run_in_terminal
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.key_binding.vi_state import InputMode
from prompt_toolkit.styles import DynamicStyle

from supervisor.clients.connection.link_events import PermissionPrompt
from supervisor.clients.console import clipboard
from supervisor.clients.console.application import BottomLines, TerminalInput, TerminalOutput, size
from supervisor.clients.console.approval_fields import edited_texts
from supervisor.clients.console.approval_queue import ApprovalQueue
from supervisor.clients.console.attention import Attention
from supervisor.clients.console.bottom_lines import Drawn, page_rows, style_of, unfinished
from supervisor.clients.console.choice_list import Choice
from supervisor.clients.console.daemon_link import Connecting
from supervisor.clients.console.external_editor import edited, editor_of, opened
from supervisor.clients.console.file_finder import FileFinder
from supervisor.clients.console.input_line import InputLine, LineOrSearch
from supervisor.clients.console.key_actions import KeyActions
from supervisor.clients.console.keys import bindings
from supervisor.clients.console.late_markdown import LateMarkdown
from supervisor.clients.console.links import Links, takes_links
from supervisor.clients.console.options import ConsoleOptions
from supervisor.clients.console.picker import Picker
from supervisor.clients.console.proposal_pages import ProposalPages
from supervisor.clients.console.question_fields import Fields
from supervisor.clients.console.scrollback import Scrollback
from supervisor.clients.console.session_controller import SessionController
from supervisor.clients.console.shown import Item, Note, Said
from supervisor.clients.console.theme_command import chosen
from supervisor.clients.console.turn_status import TurnStatus
from supervisor.config.settings import Settings
from supervisor.display.themes import ToneTable
from supervisor.errors import ConfigError

_SOON: Final = 0.15
"""Seconds after the start at which Markdown's renderer is imported: the prompt comes first."""
_ADVANCE: Final = 0.05
"""Seconds between two looks at an answer that is coming in."""
_SHARE: Final = 10
"""One part of so many of the time, at most, goes into such looks: long blocks are looked at less often."""


class Terminal:
    """The console's edge on a terminal."""

    def __init__(self, settings: Settings, options: ConsoleOptions, connecting: Connecting) -> None:
        self._colour = options.colour
        self._controller = SessionController(settings, options, connecting, self)
        linked = options.colour and takes_links(settings.environment, settings.config.console.links)
        links = Links(lambda: self._controller.state.facts.root) if linked else None
        self._markdown = LateMarkdown(lambda: self._scrollback.theme, colour=options.colour)
        self._scrollback = Scrollback(self._markdown.renderer, self.width, colour=options.colour, links=links)
        self._scrollback.theme, self._theme_problem = chosen(settings)
        self._style = style_of(self._scrollback.theme)
        self._status = TurnStatus(self._controller, self.draw)
        self._advance_at: asyncio.TimerHandle | None = None
        self._pause = _ADVANCE
        self._editing: asyncio.Task[None] | None = None
        self._line = InputLine(self._controller, settings.home / "console-history", self._typed)
        self._finder = FileFinder(self._controller, self._line, self.draw)
        self._picker = Picker(self._pick_keys)
        begun = LineOrSearch(self._line, self._is_searching)
        boxes = edited_texts(lambda: self._approvals)
        self._approvals = ApprovalQueue(begun, Fields(*boxes), size, page_rows, self._go_to, self._propose)
        shown = self._line, self._finder, self._picker, self._approvals, boxes, self._status, self._unfinished
        self._drawn = Drawn(*shown, lambda: self._actions.leaving)
        output = TerminalOutput()
        self._attention = Attention(output.at_once, settings.variable("TERM"), wanted=options.colour)
        output.reports_focus = self._attention.told
        self._actions = KeyActions(
            self._controller, self._line.lines, self._approvals, self._status, self._attention, self
        )
        self._app = BottomLines(
            layout=self._drawn.layout,
            style=DynamicStyle(lambda: self._style),
            colour=options.colour,
            input=TerminalInput(lambda has: self._actions.focus(has=has)),
            output=output,
            before_render=lambda _: self._write(),
            after_render=lambda _: self._approvals.drawn(whole=self._drawn.is_whole()),
        )
        self._app.reappears = self._approvals.read_anew
        keyed = self._line, self._finder, self._picker, self._approvals
        self._app.key_bindings = bindings(self, self._actions, *keyed, self._app.suspend)
        self._app.key_processor.before_key_press += lambda _: self._approvals.pressed()
        self._app.key_processor.after_key_press += lambda _: self._pressed()
        self._settings = settings
        self._searches = False
        self._go_to("line")

    # --- life -----------------------------------------------------------------------------------------------------

    async def run(self) -> int:
        """Run until the person leaves; return the exit code."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self._actions.leave)
        self._app.obey_signals()
        fail = self._actions.fail
        loop.set_exception_handler(lambda _, bug: fail(bug.get("exception") or RuntimeError(bug["message"])))
        loop.call_later(_SOON, self._markdown.begin)
        if self._theme_problem:
            self.show(Note(self._theme_problem, "error"))
        try:
            begin = partial(self._actions.start, self._controller.open())
            await self._app.run_async(pre_run=begin, set_exception_handler=False)
        finally:
            self._actions.stop()
            self._controller.close()
            self._attention.end()
        if self._actions.failure is not None:
            raise self._actions.failure
        return 0

    # --- what is shown --------------------------------------------------------------------------------------------

    def width(self) -> int:
        return size().columns

    def show(self, item: Item) -> None:
        """Show something for good, above the bottom lines."""
        self._scrollback.show(item)
        if not isinstance(item, Said):
            self.draw()
        elif self._advance_at is None:
            self._advance_at = asyncio.get_running_loop().call_later(self._pause, self._advance)

    def _advance(self) -> None:
        begun = time.monotonic()
        self._scrollback.advance()
        self._advance_at = None
        self._pause = max(_ADVANCE, (time.monotonic() - begun) * _SHARE)
        self.draw()

    def draw(self) -> None:
        """Draw the bottom lines again, soon."""
        self._app.invalidate()

    def _unfinished(self) -> str:
        return unfinished(self._scrollback, self._controller.state)

    def drop_unfinished(self) -> int:
        """Forget what of the answer is not in the scrollback; return how many characters are."""
        return self._scrollback.drop_unfinished()

    def clear(self) -> None:
        self._scrollback.clear()
        self.draw()

    def refresh(self) -> None:
        """Draw the bottom lines again, and send what waits."""
        self._actions.refresh()

    def turn_ended(self, *, ok: bool) -> None:
        self._actions.turn_ended(ok=ok)

    def is_open(self) -> bool:
        return self._app.is_running and not self._app.is_done

    def exit(self) -> None:
        self._app.exit()

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
        return self._drawn.mode

    def _go_to(self, mode: str) -> None:
        self._drawn.focus(mode)
        vi = self._settings.config.console.keys == "vi" and self._drawn.mode == "line"
        self._app.editing_mode = EditingMode.VI if vi else EditingMode.EMACS
        self.draw()

    def _pick_keys(self, mode: str) -> bool:
        """Let the list have the keys, unless a question has them; or the line, and then what waits."""
        if mode == "pick" and self._drawn.mode != "line":
            return False
        self._go_to(mode)
        self._approvals.line_changed()
        return True

    def _is_searching(self) -> bool:
        return self._drawn.searches() or self._picker.is_open

    def _pressed(self) -> None:
        """Look what the line names; let a question have the keyboard when a search is over that has found nothing."""
        self._finder.changed()
        before, self._searches = self._searches, self._is_searching()
        if before and not self._searches:
            self._approvals.line_changed()

    def _typed(self) -> None:
        self._actions.typed()

    def enter(self) -> None:
        """Send the line, or answer, unless Enter takes what Tab offered."""
        self._app.vi_state.input_mode = InputMode.INSERT
        if self._drawn.mode == "line" and self._line.is_choosing():
            self._line.complete_state = None
        else:
            self._actions.enter()

    def edit(self) -> None:
        """Let the person's own editor have the line; what waits for an answer can be read after that."""
        self._line.lines.unfold()
        self._editing = asyncio.get_running_loop().create_task(self._edit())

    async def _edit(self) -> None:
        try:
            work = partial(edited, self._line.text, editor_of(self._settings))
            text = await run_in_terminal(work, in_executor=True)
        except ConfigError as error:
            self.show(Note(str(error), "error"))
        else:
            self._line.put(text)
        self._approvals.read_anew()

    def copy(self, text: str) -> str:
        self._app.output.write_raw(clipboard.sequence(text, self._settings.variable("TERM")))
        self._app.output.flush()
        return clipboard.doubt(self._settings.environment)

    async def open_file(self, path: Path) -> None:
        try:
            await run_in_terminal(partial(opened, path, editor_of(self._settings)), in_executor=True)
        finally:
            self._approvals.read_anew()

    @property
    def theme_name(self) -> str:
        return self._scrollback.theme.name

    def take_theme(self, theme: ToneTable) -> None:
        if not self._colour:
            raise ConfigError("There are no colours here: NO_COLOR is set, or the terminal has none.")
        self._scrollback.theme, self._style = theme, style_of(theme)
        self._markdown.forget()
        self.draw()

    picks = True

    async def pick(self, title: str, choices: Sequence[Choice], current: str) -> str | None:
        return await self._picker.pick(title, choices, current)

    def request_approval(self, question: PermissionPrompt) -> None:
        self._actions.request_approval(question)

    def withdraw_approval(self, question: PermissionPrompt | None) -> None:
        self._approvals.withdraw_approval(question)

    def _propose(self, question: PermissionPrompt, text: str) -> ProposalPages:
        """Return what a person should see before they decide, in pages."""
        call = question.params.tool_call.tool_call_id
        printed = self._controller.state.output_of(call)
        return ProposalPages(question.request, printed, self.width(), self.show, text=text, call=call)


async def run_terminal(settings: Settings, options: ConsoleOptions, connecting: Connecting) -> int:
    """Run the console on the terminal that standard input and output are; return the exit code."""
    return await Terminal(settings, options, connecting).run()
