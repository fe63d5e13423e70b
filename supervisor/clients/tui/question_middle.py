"""The middle of the screen: the question that waits, what it is about, and what has to be confirmed or typed for it.

Rule: no key answers what is not there in whole, which `is_whole` says after each drawing.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from textual.containers import Container
from textual.content import Content
from textual.errors import NoWidget
from textual.screen import Screen

from supervisor.clients.console.approval_queue import ApprovalQueue
from supervisor.clients.console.question_fields import Fields
from supervisor.clients.console.shown import Item, ShownProposal
from supervisor.clients.tui.middle_layout import MiddleLayout, ScreenSpace, divided
from supervisor.clients.tui.question_pane import Confirmation, EditedLine, QuestionBox, clickable
from supervisor.clients.tui.rows_view import RowsView
from supervisor.display.escape import visible

if TYPE_CHECKING:
    from textual.widget import Widget

    from supervisor.display.fragments import Fragments

_HALF: Final = 2


class QuestionMiddle:
    """The widgets of a question.

    Args:
        queue: gives the questions.
        enter: takes what is typed.
        escape: leaves it.
        draw: draws everything anew, soon.
        space: tells the columns and rows of all the screen.
    """

    def __init__(
        self,
        queue: Callable[[], ApprovalQueue],
        enter: Callable[[], None],
        escape: Callable[[], None],
        draw: Callable[[], None],
        space: Callable[[], ScreenSpace],
    ) -> None:
        self.box = QuestionBox(queue, enter, escape, draw)
        self.reason = EditedLine("reason", "why? Enter rejects, Escape gives no reason", enter, escape)
        self.rule = EditedLine("rule", "the rule; Enter shows what it covers", enter, escape)
        self.confirmation = Confirmation(queue, escape)
        self.fields = Fields(self.box, self.reason, self.rule)
        self._page = RowsView(id="page")
        self.middle = Container(self.box, self._page, id="middle")
        self.keyboards: dict[str, Widget] = {
            "review": self.box,
            "confirm": self.confirmation,
            "reason": self.reason,
            "rule": self.rule,
        }
        """What has the keys in its modes."""
        self._queue = queue
        self._draw = draw
        self._space = space
        self._proposal: list[Fragments] = []

    def layout(self, box_rows: int | None = None) -> MiddleLayout:
        """Return how the middle is divided; `box_rows`: rows of the text, where that is known."""
        return divided(self._space(), box_rows)

    def box_space(self) -> ScreenSpace:
        """Return the space of which the box may have half the rows."""
        box = self.layout().box
        return ScreenSpace(box.columns, _HALF * (box.rows - 2))

    def page_rows(self, _box: int) -> int:
        """Return how many rows a page may have."""
        return self.layout().page.rows - 2

    def begin_pages(self) -> int:
        """Show nothing of what was asked about before; return the columns that a page has."""
        self._proposal = []
        return self.layout().page.columns - 1

    def propose(self, page: Item) -> None:
        if isinstance(page, ShownProposal):
            self._proposal = [*page.lines]
            self._page.put(self._proposal, self.layout().page.columns - 1)
            self._draw()

    def turn_page(self, *, forward: bool) -> None:
        """Scroll what a question is about, or turn its page."""
        if forward and self._page.scroll_y < self._page.max_scroll_y:
            self._page.scroll_page_down(animate=False)
        elif not forward and self._page.scroll_y > 0:
            self._page.scroll_page_up(animate=False)
        else:
            self._queue().turn(forward=forward)

    def draw(self, mode: str, columns: int) -> None:
        """Draw what is asked, in a mode of the keys."""
        approvals = self._queue()
        self.middle.display = approvals.waits and mode != "reason"
        self.reason.display = mode == "reason"
        self.rule.display = mode == "rule"
        confirming = approvals.confirmation(columns - 2) if mode == "confirm" else ""
        problem = visible(approvals.problem)
        said: list[Fragments] = [[("bold yellow", line)] for line in confirming.split("\n") if confirming]
        said += [[("red", line)] for line in problem.split("\n") if problem]
        self.confirmation.fit(said, columns)
        if not approvals.waits:
            return
        rows = min(self.box.wrapped_document.height, approvals.rows)
        layout = self.layout(rows)
        self.middle.set_class(layout.beside, "beside")
        box, page = layout.box, layout.page
        room = page.rows - (self.confirmation.count if said else 0)
        height = min(max(3, room), max(self._page.count, rows + 2 if layout.beside else 0))
        self._page.styles.height, self._page.styles.width = height, page.columns
        self._page.display = bool(self._proposal)
        width = box.columns if self._proposal else columns
        self.box.styles.width = width
        self.box.styles.height = rows + 2
        self.box.border_title = Content(approvals.title(width).strip())
        self.box.border_subtitle = clickable(approvals.hint(width).strip())

    def is_whole(self, screen: Screen[object], mode: str) -> bool:
        """Say whether the box, and all of what has to be confirmed, is on the screen."""
        needed = [self.box, *([self.confirmation] if mode == "confirm" else [])]
        try:
            places = [screen.find_widget(each) for each in needed]
        except NoWidget:
            return False
        fits = self.confirmation.count <= self.confirmation.size.height
        return all(place.region.area and place.clip.contains_region(place.region) for place in places) and (
            fits or mode != "confirm"
        )
