"""The window's title, the bell and notifications: what is told to whom, and when nothing is."""

from typing import Final

import pytest

from supervisor.clients.console.attention import Attention

BELL: Final = "\x07"
CALLED: Final = f"\x1b]9;Strongroom: It waits.{BELL}{BELL}"
ROWS: Final[dict[str, tuple[str, bool, bool | None, str]]] = {
    "nobody is looking": ("xterm-256color", True, False, CALLED),
    "as urxvt takes it": ("foot", True, False, f"\x1b]777;notify;Strongroom;It waits.{BELL}{BELL}"),
    "somebody is": ("xterm-256color", True, True, ""),
    "nobody knows": ("xterm-256color", True, None, BELL),
    "no colours are wanted": ("xterm-256color", False, False, ""),
    "a dumb terminal": ("dumb", True, False, ""),
}


@pytest.mark.parametrize(("terminal", "wanted", "focus", "told"), ROWS.values(), ids=ROWS)
def test_a_person_is_called_where(terminal: str, wanted: bool, focus: bool | None, told: str) -> None:
    written: list[str] = []
    attention = Attention(written.append, terminal, wanted=wanted)
    if focus is not None:
        attention.focus(has=focus)
    attention.call("It\nwaits.")
    assert "".join(written) == told


def test_the_title_is_told_once_made_safe_and_given_back() -> None:
    written: list[str] = []
    attention = Attention(written.append, "xterm", wanted=True)
    for text in ("Ready, a\x1b]0;x\x07", "Ready, a\x1b]0;x\x07", "Thinking, a"):
        attention.title(text)
    attention.end()
    assert written == [
        f"\x1b[22;2t\x1b]2;Strongroom: Ready, a\\x1b]0;x\\x07{BELL}",
        f"\x1b]2;Strongroom: Thinking, a{BELL}",
        "\x1b[23;2t",
    ]
