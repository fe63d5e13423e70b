"""Themes of the full screen: dark, light, and one of high contrast.

Rule: a row a theme: the colours of the screen, and those that a terminal's sixteen are shown in.
"""

from typing import Final, NamedTuple

from rich.terminal_theme import TerminalTheme
from textual.theme import Theme

_Colour = tuple[int, int, int]


class ScreenTheme(NamedTuple):
    """A theme for Textual, and its terminal colours."""

    theme: Theme
    colours: TerminalTheme


def _hex(code: str) -> _Colour:
    return int(code[1:3], 16), int(code[3:5], 16), int(code[5:7], 16)


def _row(name: str, dark: bool, background: str, foreground: str, panel: str, accent: str, codes: str) -> ScreenTheme:
    """Return a theme; `codes`: black, red, green, yellow, blue, magenta, cyan and white, and those again, bright."""
    theme = Theme(
        name,
        primary=accent,
        foreground=foreground,
        background=background,
        surface=background,
        panel=panel,
        success=codes.split()[2],
        error=codes.split()[1],
        warning=codes.split()[3],
        dark=dark,
        variables={"block-cursor-text-style": "none"},
    )
    colours = [_hex(code) for code in codes.split()]
    return ScreenTheme(theme, TerminalTheme(_hex(background), _hex(foreground), colours, colours))


THEMES: Final = {
    each.theme.name: each
    for each in (
        _row(
            "dark",
            True,
            "#14171a",
            "#d8dee4",
            "#22282e",
            "#5fafd7",
            "#3a4148 #ff7b72 #7ee787 #e3b341 #79b8ff #d2a8ff #56d4dd #d8dee4",
        ),
        _row(
            "light",
            False,
            "#fbfbfa",
            "#1f2328",
            "#e9ebee",
            "#0550ae",
            "#24292f #b4151c #116329 #7d4e00 #0550ae #6639ba #0b6570 #57606a",
        ),
        _row(
            "high-contrast",
            True,
            "#000000",
            "#ffffff",
            "#333333",
            "#ffff00",
            "#000000 #ff9a9a #00ff5f #ffff00 #a0c8ff #ffb0ff #00ffff #ffffff",
        ),
    )
}
"""By their names."""
