"""Layout of the terminal's bottom lines for prompt_toolkit.

Rule: no state of its own; every piece asks the terminal for its content at each drawing. Lines are not padded to the
right edge without need, for a terminal that is made narrower breaks full lines in two.

    a blank line
    the answer's unfinished part
    the line of what is going on
    the input line | the review box, and what has to be confirmed | the line for a reason
    what Tab offers
    the bar
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import ANSI, StyleAndTextTuples
from prompt_toolkit.layout.containers import AnyContainer, ConditionalContainer, HSplit, VerticalAlign, VSplit, Window
from prompt_toolkit.layout.controls import BufferControl, FormattedTextControl
from prompt_toolkit.layout.dimension import Dimension
from prompt_toolkit.layout.layout import Layout
from prompt_toolkit.layout.menus import CompletionsMenu
from prompt_toolkit.styles import Style

from supervisor.clients.console.application import size
from supervisor.clients.console.approval_queue import ApprovalQueue
from supervisor.clients.console.styled_text import Fragments

_MENU: Final = 7
"""Lines of the completion menu."""

STYLE: Final = {
    "dim": "dim",
    "bold": "bold",
    "red": "ansired",
    "green": "ansigreen",
    "yellow": "ansiyellow",
    "cyan": "ansicyan",
    "prompt": "bold ansigreen",
    "box": "ansigreen",
    "box.title": "bold ansigreen",
    "problem": "ansired",
    "completion-menu": "bg:default default",
    "completion-menu.completion": "bg:default default",
    "completion-menu.completion.current": "reverse",
    "completion-menu.meta.completion": "bg:default dim",
    "completion-menu.meta.completion.current": "bg:default dim",
    "scrollbar.background": "bg:default",
    "scrollbar.button": "bg:default",
}


@dataclass(frozen=True)
class Parts:
    """What the layout shows; the callables are asked at each drawing."""

    line: Buffer
    approvals: ApprovalQueue
    mode: Callable[[], str]
    """"line", "review", "confirm" or "reason": what the keys go to."""
    tail: Callable[[], str]
    """Rendered, with escape sequences of ours alone."""
    progress: Callable[[], Fragments]
    bar: Callable[[], Fragments]


class Drawn:
    """The layout, and the windows where keys can go."""

    def __init__(self, parts: Parts) -> None:
        approvals = parts.approvals
        line, box, reason = _input(parts.line, "> "), _input(approvals.box, ""), _input(approvals.reason, "why? ")
        confirmation = FormattedTextControl(
            lambda: [("class:bold class:yellow", approvals.confirmation(size().columns))], focusable=True
        )
        confirm = Window(confirmation, dont_extend_height=True, wrap_lines=True)
        self._windows = {"line": line, "review": box, "confirm": confirm, "reason": reason}
        pieces: list[AnyContainer] = [
            Window(height=1),
            _shown(lambda: bool(parts.tail()), _text(lambda: ANSI(parts.tail()))),
            _shown(lambda: bool(parts.progress()), _text(lambda: toned(parts.progress()))),
            _shown(lambda: parts.mode() == "line", line),
            _shown(lambda: parts.mode() in ("review", "confirm"), _boxed(box, approvals)),
            _shown(lambda: parts.mode() == "confirm", confirm),
            _shown(lambda: parts.mode() == "reason", reason),
            CompletionsMenu(max_height=_MENU, scroll_offset=1),
            _text(lambda: toned(parts.bar())),
        ]
        self.layout = Layout(HSplit(pieces, align=VerticalAlign.TOP), focused_element=line)

    def focus(self, mode: str) -> None:
        """Send the keys where they go in a mode."""
        self.layout.focus(self._windows[mode])


def style() -> Style:
    """Return how the pieces look."""
    return Style.from_dict(STYLE)


def toned(fragments: Fragments) -> StyleAndTextTuples:
    """Return fragments as prompt_toolkit takes them."""
    return [("".join(f"class:{each} " for each in tone.split()), text) for tone, text in fragments]


def _shown(when: Callable[[], bool], container: AnyContainer) -> ConditionalContainer:
    return ConditionalContainer(container, filter=Condition(when))


def _text(content: Callable[[], Any]) -> Window:
    return Window(FormattedTextControl(content), dont_extend_height=True)


def _input(buffer: Buffer, prompt: str) -> Window:
    def prefix(number: int, wrapped: int) -> StyleAndTextTuples:
        first = number == 0 and wrapped == 0
        return [("class:prompt", prompt if first else " " * len(prompt))]

    return Window(
        BufferControl(buffer, focusable=True),
        height=lambda: Dimension(min=1, max=max(1, size().rows // 2)),
        get_line_prefix=prefix,
        wrap_lines=True,
        dont_extend_height=True,
    )


def _boxed(body: Window, approvals: ApprovalQueue) -> HSplit:
    """Return the box of a review: a green border around the text that can be edited."""
    side = Window(width=1, char="│", style="class:box")

    def edge(begin: str, text: Callable[[int], str], end: str, style: str) -> VSplit:
        return VSplit(
            [
                Window(width=1, height=1, char=begin, style="class:box"),
                Window(width=1, height=1, char="─", style="class:box"),
                Window(
                    FormattedTextControl(lambda: [(style, text(size().columns))]),
                    height=1,
                    dont_extend_width=True,
                    wrap_lines=False,
                ),
                Window(height=1, char="─", style="class:box"),
                Window(width=1, height=1, char=end, style="class:box"),
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
