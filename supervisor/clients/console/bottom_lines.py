"""The terminal's bottom lines: their layout for prompt_toolkit.

Rule: texts are taken from the session and the scrollback at each drawing; the only state is where keys go. Lines are
not padded to the right edge without need, for a terminal that is made narrower breaks full lines in two.

    a blank line
    the answer's unfinished part
    the line of what is going on
    lines that wait
    the review box, and what has to be confirmed
    the input line, and what is searched in those before | the line for a reason
    files that the line may name, or what Tab offers
    the bar
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import ANSI, StyleAndTextTuples
from prompt_toolkit.layout.containers import AnyContainer, ConditionalContainer, HSplit, VerticalAlign, VSplit, Window
from prompt_toolkit.layout.controls import BufferControl, FormattedTextControl, SearchBufferControl
from prompt_toolkit.layout.dimension import Dimension
from prompt_toolkit.layout.layout import Layout
from prompt_toolkit.layout.menus import CompletionsMenu
from prompt_toolkit.styles import Style

from supervisor.clients.console import status_bar
from supervisor.clients.console.application import size
from supervisor.clients.console.approval_queue import ApprovalQueue
from supervisor.clients.console.file_finder import FileFinder
from supervisor.clients.console.input_line import InputLine
from supervisor.clients.console.picker import Picker
from supervisor.clients.console.scrollback import Scrollback
from supervisor.clients.console.session_state import RUNNING, SessionState
from supervisor.clients.console.turn_status import TurnStatus
from supervisor.display.escape import visible
from supervisor.display.fragments import Fragments
from supervisor.display.themes import TONES, ToneTable

_BELOW: Final = 6
"""Rows that the unfinished part of an answer leaves to the rest."""
_BESIDES: Final = 6
"""Rows that the frame of the box, and what is around it, take of a screen."""
_OUTPUT_ROWS: Final = 8
_QUEUED: Final = 3
"""Rows of the lines that wait."""
_MENU: Final = 7
"""Lines of the completion menu."""
_MENU_STYLE: Final[dict[str, str]] = {
    "completion-menu": "bg:default default",
    "completion-menu.completion": "bg:default default",
    "completion-menu.completion.current": "reverse",
    "completion-menu.meta.completion": "bg:default dim",
    "completion-menu.meta.completion.current": "bg:default dim",
    "scrollbar.background": "bg:default",
    "scrollbar.button": "bg:default",
}
_PIECES: Final = {"prompt": "bold green", "box": "green", "box.title": "bold green", "problem": "red"}
"""The tones of what has a name of its own here."""


def style_of(theme: ToneTable) -> Style:
    """Return a theme as prompt_toolkit takes it."""
    tones = {tone: tone for tone in TONES} | _PIECES
    return Style.from_dict(
        {name: " ".join(map(_word, theme.words(tone))) for name, tone in tones.items()} | _MENU_STYLE
    )


def _word(word: str) -> str:
    """Return a word of a theme as prompt_toolkit calls it."""
    named = {"white": "ansigray", "bright-white": "ansiwhite"}
    is_colour = word not in ("bold", "dim", "underline", "reverse")
    return named.get(word, f"ansi{word.replace('-', '')}" if is_colour else word)


def unfinished(scrollback: Scrollback, state: SessionState) -> str:
    """Return what is not finished: the answer's last block, or what a command writes."""
    rows = max(1, size().rows - _BELOW)
    tail = scrollback.tail(rows)
    if tail:
        return tail
    running = [call for call in state.running if call.output]
    if running and state.turn_state == RUNNING:
        lines = visible(running[-1].output).rstrip("\n").split("\n")
        return "\n".join(f"  {line}" for line in lines[-min(rows, _OUTPUT_ROWS) :])
    return ""


class Drawn:
    """The layout, and the windows where keys can go.

    Args:
        line: where the person types.
        finder: has the files that the line may name.
        picker: has the list in the place of the line.
        approvals: say what is asked.
        boxes: hold the texts of a question: the box, the reason of a no, and a rule.
        status: says what goes on.
        tail: gives what is not finished, at each drawing.
        leaving: says whether the next Ctrl-C leaves.
    """

    def __init__(
        self,
        line: InputLine,
        finder: FileFinder,
        picker: Picker,
        approvals: ApprovalQueue,
        boxes: Sequence[Buffer],
        status: TurnStatus,
        tail: Callable[[], str],
        leaving: Callable[[], bool],
    ) -> None:
        self.mode = "line"
        """"line", "pick", "review", "confirm", "rule" or "reason": what the keys go to."""
        self._picker = picker
        self._narrowing = Buffer(multiline=False, on_text_changed=lambda typed: picker.narrow(typed.text))

        def queued() -> Fragments:
            return status_bar.queued(line.lines.ahead, _columns(), 1 if approvals.waits else _QUEUED)

        def progress() -> Fragments:
            return status.progress(_columns())

        def bar() -> Fragments:
            waiting = len(line.lines.ahead)
            return status.bar(_columns(), self.mode, leaving=leaving(), asked=approvals.waits, waiting=waiting)

        found = SearchBufferControl(ignore_case=True)
        sought = BufferControl(line, search_buffer_control=found, preview_search=True)
        typed, search = _input(sought, "> "), _input(found, "search: ")
        pick = _input(BufferControl(self._narrowing), lambda: f"{picker.title}: ")
        asked = _question_windows(approvals, boxes)
        self._windows = {"line": typed, "pick": pick, **asked}
        pieces: list[AnyContainer] = [
            Window(height=1),
            _shown(lambda: bool(tail()), _text(lambda: ANSI(tail()))),
            _shown(lambda: bool(progress()) and not approvals.waits, _text(lambda: toned(progress()))),
            _shown(lambda: bool(line.lines.ahead), _text(lambda: toned(queued()))),
            _shown(lambda: approvals.waits and self.mode != "reason", _boxed(asked["review"], approvals)),
            _shown(lambda: self.mode == "confirm", asked["confirm"]),
            _shown(lambda: self.mode == "line", typed),
            _shown(self.searches, search),
            _shown(lambda: self.mode == "reason", asked["reason"]),
            _shown(lambda: self.mode == "rule", asked["rule"]),
            _shown(lambda: finder.is_open and self.mode == "line", _text(lambda: _rows(finder))),
            _shown(lambda: self.mode == "pick", pick),
            _shown(lambda: self.mode == "pick", _text(lambda: _rows(picker))),
            CompletionsMenu(max_height=_MENU, scroll_offset=1),
            _text(lambda: toned(bar())),
        ]
        self.layout = Layout(HSplit(pieces, align=VerticalAlign.TOP), focused_element=typed)

    def is_whole(self) -> bool:
        """Say whether what was drawn last shows the box, and all of what has to be confirmed."""
        needed = {self._windows["review"], self._windows["confirm" if self.mode == "confirm" else "review"]}
        room = self._windows["confirm"].render_info if self.mode == "confirm" else None
        is_cut = room is not None and room.window_height < room.content_height
        return needed <= set(self.layout.visible_windows) and not is_cut

    def focus(self, mode: str) -> None:
        """Send the keys where they go in a mode; a search, and a list in its place, are part of the line."""
        if mode == "line" and (self.searches() or self._picker.is_open):
            return
        self._narrowing.reset()
        self.layout.search_links.clear()
        self.mode = mode
        self.layout.focus(self._windows[mode])

    def searches(self) -> bool:
        """Return whether keys go to a search in what was typed before."""
        return self.layout.is_searching


def page_rows(box: int) -> int:
    """Return how many rows a page of what a question is about may have, beside a box of so many rows."""
    return size().rows - _BESIDES - box


def _columns() -> int:
    """Return the columns of a line that is not broken where the terminal is made a little narrower."""
    return size().columns - 1


def _rows(listed: FileFinder | Picker) -> StyleAndTextTuples:
    """Return what can be chosen, a row each."""
    rows = [toned(line) for line in listed.lines(_columns(), max(1, size().rows // 3))]
    return [piece for row in rows for piece in (*row, ("", "\n"))][:-1]


def toned(fragments: Fragments) -> StyleAndTextTuples:
    """Return fragments as prompt_toolkit takes them."""
    return [("".join(f"class:{each} " for each in tone.split()), text) for tone, text in fragments]


def _shown(when: Callable[[], bool], container: AnyContainer) -> ConditionalContainer:
    return ConditionalContainer(container, filter=Condition(when))


def _text(content: Callable[[], Any]) -> Window:
    return Window(FormattedTextControl(content), dont_extend_height=True)


def _input(
    control: BufferControl, prompt: str | Callable[[], str], rows: Callable[[], int] = lambda: size().rows // 2
) -> Window:
    def prefix(number: int, wrapped: int) -> StyleAndTextTuples:
        first = number == 0 and wrapped == 0
        text = prompt if isinstance(prompt, str) else prompt()
        return [("class:prompt", text if first else " " * len(text))]

    return Window(
        control,
        height=lambda: Dimension(min=1, max=max(1, rows())),
        get_line_prefix=prefix,
        wrap_lines=True,
        dont_extend_height=True,
    )


def _question_windows(approvals: ApprovalQueue, boxes: Sequence[Buffer]) -> dict[str, Window]:
    """Return the windows of a question: its box, what has to be confirmed, the reason of a no, and a rule."""
    confirmation = FormattedTextControl(
        lambda: [("class:bold class:yellow", approvals.confirmation(size().columns))], focusable=True
    )
    return {
        "review": _input(BufferControl(boxes[0]), "", lambda: approvals.rows),
        "confirm": Window(confirmation, dont_extend_height=True, wrap_lines=True),
        "reason": _input(BufferControl(boxes[1]), "why? "),
        "rule": _input(BufferControl(boxes[2]), "rule: "),
    }


def _boxed(body: Window, approvals: ApprovalQueue) -> HSplit:
    """Return the box of a review: a green border around the text that can be edited."""
    side = Window(width=1, char="│", style="class:box")

    stroke = partial(Window, height=1, style="class:box")

    def edge(begin: str, text: Callable[[int], str], end: str, style: str) -> VSplit:
        words = FormattedTextControl(lambda: [(style, text(size().columns))])
        middle = Window(words, height=1, dont_extend_width=True, wrap_lines=False)
        return VSplit(
            [
                stroke(width=1, char=begin),
                stroke(width=1, char="─"),
                middle,
                stroke(char="─"),
                stroke(width=1, char=end),
            ]
        )

    problem = FormattedTextControl(lambda: [("class:problem", approvals.problem)])
    return HSplit(
        [
            edge("╭", approvals.title, "╮", "class:box.title"),
            VSplit([side, Window(width=1), body, Window(width=1), side]),
            edge("╰", approvals.hint, "╯", "class:dim"),
            _shown(lambda: bool(approvals.problem), Window(problem, dont_extend_height=True, wrap_lines=True)),
        ]
    )
