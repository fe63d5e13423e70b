"""A terminal's screen as SVG text: readable on a light and on a dark page. Pure."""

from html import escape
from itertools import groupby
from typing import Final

from pyte.screens import Char, Screen

_CELL: Final = (8.4, 18)
"""Width and height of a character, in pixels."""
_MARGIN: Final = 14

_COLOURS: Final = {
    # name of pyte: (on a light page, on a dark page)
    "default": ("#24292f", "#d0d7de"),
    "black": ("#6e7781", "#6e7681"),
    "red": ("#cf222e", "#ff7b72"),
    "green": ("#116329", "#56d364"),
    "brown": ("#7d4e00", "#e3b341"),
    "blue": ("#0550ae", "#79c0ff"),
    "magenta": ("#8250df", "#d2a8ff"),
    "cyan": ("#1b7c83", "#56d4dd"),
    "white": ("#57606a", "#c9d1d9"),
}
_PAGE: Final = ("#ffffff", "#0d1117", "#d0d7de", "#30363d")
"""Ground and frame, on a light page and on a dark one."""


def _style(character: Char) -> str:
    """Return the classes of one cell; bright colours are drawn as their plain ones."""
    colour = character.fg.removeprefix("bright")
    kind = colour if colour in _COLOURS else "default"
    dim = character.fg == "brightblack"
    return " ".join(
        ["c-black" if dim else f"c-{kind}", *(["b"] if character.bold else []), *(["i"] if character.italics else [])]
    )


def _css() -> str:
    light, dark, light_frame, dark_frame = _PAGE
    rules = [f".c-{name}{{fill:{pair[0]}}}" for name, pair in _COLOURS.items()]
    night = [f".c-{name}{{fill:{pair[1]}}}" for name, pair in _COLOURS.items()]
    return (
        f"text{{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;white-space:pre}}"
        f".b{{font-weight:bold}}.i{{font-style:italic}}rect{{fill:{light};stroke:{light_frame}}}{''.join(rules)}"
        f"@media(prefers-color-scheme:dark){{rect{{fill:{dark};stroke:{dark_frame}}}{''.join(night)}}}"
    )


def _first_row(screen: Screen) -> int:
    """Return the row of the person's line, if it is still there: what the console says of its session is left out."""
    return next((row for row, line in enumerate(screen.display) if line.startswith("> ")), 0)


def shown_lines(screen: Screen) -> list[str]:
    """Return the screen's lines from the person's on, as text."""
    lines = [line.rstrip() for line in screen.display[_first_row(screen) :]]
    return "\n".join(lines).rstrip().split("\n")


def drawn(screen: Screen, title: str) -> str:
    """Return the screen from the person's line on as one SVG document."""
    first = _first_row(screen)
    rows = range(first, first + len(shown_lines(screen)))
    lines = [[screen.buffer[row][column] for column in range(screen.columns)] for row in rows]
    width, height = screen.columns * _CELL[0] + 2 * _MARGIN, len(lines) * _CELL[1] + 2 * _MARGIN
    out = [
        (
            '<svg xmlns="http://www.w3.org/2000/svg" xml:space="preserve" role="img" '
            f'viewBox="0 0 {width:.0f} {height:.0f}">'
        ),
        f"<title>{escape(title)}</title><style>{_css()}</style>",
        f'<rect x=".5" y=".5" width="{width - 1:.0f}" height="{height - 1:.0f}" rx="8"/>',
    ]
    for row, cells in enumerate(lines):
        y, column = _MARGIN + row * _CELL[1] + 13, 0
        for style, group in groupby(cells, _style):
            text = "".join(cell.data for cell in group)
            if text.strip():
                x, length = _MARGIN + column * _CELL[0], len(text) * _CELL[0]
                out.append(f'<text x="{x:.1f}" y="{y}" textLength="{length:.1f}" class="{style}">{escape(text)}</text>')
            column += len(text)
    return "\n".join([*out, "</svg>", ""])
