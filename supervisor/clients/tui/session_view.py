"""One session on the full screen: its history, the question or the live output, the line, and the bar.

Rule: a session that is not looked at goes on all the same; its question can be read from when it is looked at. What was
drawn is told to the queue of questions after each drawing, and no key answers what is not there in whole.
"""

from collections.abc import Callable, Sequence
from typing import Final

from textual.app import ComposeResult, SuspendNotSupported
from textual.containers import Vertical
from textual.content import Content
from textual.css.query import NoMatches
from textual.widget import Widget

from supervisor.clients.connection.link_events import PermissionPrompt
from supervisor.clients.console import status_bar
from supervisor.clients.console.approval_queue import ApprovalQueue
from supervisor.clients.console.daemon_link import Connecting
from supervisor.clients.console.external_editor import edited, editor_of
from supervisor.clients.console.file_finder import FileFinder
from supervisor.clients.console.key_actions import KeyActions
from supervisor.clients.console.markdown_stream import MarkdownRenderer
from supervisor.clients.console.offers import LineOffer, offered
from supervisor.clients.console.options import ConsoleOptions
from supervisor.clients.console.proposal_pages import ProposalPages
from supervisor.clients.console.session_controller import SessionController
from supervisor.clients.console.session_state import RUNNING
from supervisor.clients.console.shown import Item, Note, ShownPrompt
from supervisor.clients.console.styled_text import summary
from supervisor.clients.console.turn_status import TurnStatus
from supervisor.clients.tui.history_view import HistoryView
from supervisor.clients.tui.middle_layout import ScreenSpace
from supervisor.clients.tui.prompt_area import PromptArea
from supervisor.clients.tui.question_middle import QuestionMiddle
from supervisor.clients.tui.rows_view import RowsView
from supervisor.clients.tui.view_screen import Above, ViewScreen
from supervisor.config.settings import Settings
from supervisor.display.escape import visible
from supervisor.display.fragments import Fragments
from supervisor.errors import ConfigError

_QUEUED: Final = 3
"""Rows of the lines that wait."""
_LIVE: Final = 16_000
"""Characters of live output that are looked at."""


class SessionView(Vertical):
    """A session, as long as it is open here.

    Args:
        settings: of this home.
        options: say which session.
        connecting: the connection.
        markdown: gives what renders answers.
        above: shows it, beside others.
    """

    def __init__(
        self,
        settings: Settings,
        options: ConsoleOptions,
        connecting: Connecting,
        markdown: Callable[[], MarkdownRenderer],
        above: Above,
    ) -> None:
        super().__init__()
        self.above = above
        self._settings = settings
        self.mode = "line"
        """What the keys go to."""
        face = ViewScreen(self)
        self.controller = SessionController(settings, options, connecting, face)
        self.history = HistoryView(markdown)
        self.status = TurnStatus(self.controller, self.draw)
        keys = {"ctrl+g": self._edit, "enter": self._send, "escape": self._interrupt, "ctrl+d": self._leave}
        self.prompt = PromptArea(settings.home / "console-history", self._typed, keys, self._offers)
        self.prompt.files = FileFinder(self.controller, self.prompt, self.draw)
        self._question = QuestionMiddle(self._queue_of, self._enter, self._escape, self.draw, self._space)
        self._live = RowsView(id="live")
        self._told, self._queue, self._bar = RowsView(id="told"), RowsView(id="queued"), RowsView(id="bar")
        self._offered = RowsView(id="offered")
        fields, space, page_rows = self._question.fields, self._question.box_space, self._question.page_rows
        self.approvals = ApprovalQueue(self.prompt, fields, space, page_rows, self._go_to, self._pages)
        self.actions = KeyActions(self.controller, self.prompt.lines, self.approvals, self.status, face, face)
        self._is_drawing = False

    def compose(self) -> ComposeResult:
        """Yield what stands one above the other."""
        yield self.history
        yield self._question.middle
        yield self._live
        yield self._question.confirmation
        yield self._question.reason
        yield self._question.rule
        yield self._told
        yield self._queue
        yield self._offered
        yield self.prompt
        yield self._bar

    async def on_mount(self) -> None:
        self.actions.start(self.controller.open())
        self.draw()
        await self.prompt.remember_all()

    def on_unmount(self) -> None:
        """Leave the session; what runs in it goes on."""
        self.actions.stop()
        self.controller.close()

    # --- what keys go to ------------------------------------------------------------------------------------------

    def _go_to(self, mode: str) -> None:
        self.mode = mode
        self.draw()

    def _typed(self) -> None:
        self.actions.typed()
        self.draw()

    def _queue_of(self) -> ApprovalQueue:
        return self.approvals

    def _send(self) -> bool:
        self.actions.enter()
        return True

    def _interrupt(self) -> bool:
        useful = self.actions.escapes()
        if useful:
            self.actions.escape()
        return useful

    def _leave(self) -> bool:
        empty = not self.prompt.text
        if empty:
            self.actions.leave()
        return empty

    def _edit(self) -> bool:
        """Let the person's own editor have the line; everything else waits until it has ended."""
        self.prompt.lines.unfold()
        try:
            command = editor_of(self._settings)
            with self.app.suspend():
                text = edited(self.prompt.text, command)
        except (ConfigError, SuspendNotSupported) as error:
            self.history.add(Note(str(error), "error"))
        else:
            self.prompt.put(text)
        self.approvals.read_anew()
        return True

    def _enter(self) -> None:
        self.actions.enter()

    def _escape(self) -> None:
        self.actions.escape()

    def _offers(self, before: str, wanted: bool) -> Sequence[LineOffer]:
        if not wanted and (" " in before or "\n" in before):
            return ()
        return list(offered(self.controller, before, wanted=wanted))

    @property
    def keyboard(self) -> Widget:
        """The widget that has the keys in this mode."""
        return self._question.keyboards.get(self.mode, self.prompt)

    # --- questions ------------------------------------------------------------------------------------------------

    def _space(self) -> ScreenSpace:
        return ScreenSpace(self.size.width or 80, self.size.height or 24)

    def _pages(self, question: PermissionPrompt, text: str) -> ProposalPages:
        call = question.params.tool_call.tool_call_id
        printed, columns = self.controller.state.output_of(call), self._question.begin_pages()
        return ProposalPages(question.request, printed, columns, self.propose, text=text, call=call)

    def propose(self, page: Item) -> None:
        self._question.propose(page)

    def answer(self, key: str) -> None:
        """Press a key of a question with the mouse."""
        self.approvals.pressed()
        if self.mode == "confirm":
            self.approvals.confirm(key)
        elif self.mode == "review" and not self._question.box.press(key):
            self.approvals.letter(key)

    def turn_page(self, *, forward: bool) -> bool:
        """Scroll what a question is about, or turn its page; return whether there is a question."""
        if not self.approvals.waits:
            return False
        self._question.turn_page(forward=forward)
        return True

    def unfold(self) -> None:
        """Show all of what is asked about, or of what the model thought or did last."""
        if not self.approvals.expand():
            self.history.unfold_newest()

    def is_shown(self) -> bool:
        return self.is_attached and self.above.is_looked_at(self)

    @property
    def title(self) -> str:
        """The first line of the person's."""
        entries = self.controller.state.entries
        return next((entry.text for entry in entries if isinstance(entry, ShownPrompt)), "")

    def appeared(self) -> None:
        if self.approvals.waits:
            self.approvals.read_anew()
        self.actions.refresh()

    def on_resize(self) -> None:
        """Divide the screen anew; what is asked about is shown from its beginning again."""
        self.approvals.reshape()
        self.draw()

    # --- drawing --------------------------------------------------------------------------------------------------

    def draw(self) -> None:
        """Draw everything but the history again, soon."""
        if not self._is_drawing and self.is_attached:
            self._is_drawing = True
            self.call_later(self._draw)

    def _draw(self) -> None:
        self._is_drawing = False
        if not (self.is_attached and self.display and self.size.width):
            return
        columns = self.size.width
        asked = self.approvals.waits
        self._question.draw(self.mode, columns)
        self._draw_live(asked)
        progress = self.status.progress(columns - 2)
        self._told.fit([progress] if progress and not asked else [], columns)
        queued = status_bar.queued(self.prompt.lines.ahead, columns - 2, 1 if asked else _QUEUED)
        self._queue.fit(_lines(queued), columns)
        self._offered.fit(self.prompt.offered(columns - 2) if self.mode == "line" else [], columns)
        bar = self.status.bar(
            columns - 2, self.mode, leaving=self.actions.leaving, asked=asked, waiting=len(self.prompt.lines.ahead)
        )
        self._bar.fit([[("", " "), *bar]], columns)
        self._focus()
        self.call_after_refresh(self._was_drawn)

    def _draw_live(self, asked: bool) -> None:
        """Show the end of what a command writes."""
        state = self.controller.state
        running = [call for call in state.running if call.output] if state.turn_state == RUNNING else []
        self._live.display = bool(running) and not asked
        if running:
            lines = visible(running[-1].output[-_LIVE:]).rstrip("\n").split("\n")
            rows = max(3, self.size.height // 3)
            self._live.styles.height = min(rows, len(lines) + 2)
            self._live.border_title = Content(summary(running[-1], max(8, self.size.width - 8)))
            self._live.put([[("", line)] for line in lines[-rows:]], self.size.width - 4, at_end=True)

    def _focus(self) -> None:
        self.prompt.can_focus = self.mode == "line"
        wanted = self.keyboard
        try:
            focused = self.screen.focused
        except NoMatches:
            return
        if self.is_shown() and focused is not wanted and (focused is None or focused.id in _FIELDS):
            self.screen.set_focus(wanted, scroll_visible=False)

    def _was_drawn(self) -> None:
        if self.approvals.waits:
            self.approvals.drawn(whole=self.is_shown() and self._question.is_whole(self.screen, self.mode))


_FIELDS: Final = frozenset({"prompt", "box", "confirmation", "reason", "rule"})
"""Where keys go by what is asked; the person can send them to the history, or a search, and they stay there."""


def _lines(fragments: Fragments) -> list[Fragments]:
    """Return fragments as lines, parted at line feeds."""
    lines: list[Fragments] = [[]] if fragments else []
    for tone, text in fragments:
        first, *rest = text.split("\n")
        lines[-1].append((tone, first))
        lines += ([(tone, piece)] for piece in rest)
    return lines
