"""The console's window beside its screen: its title, and a bell and a notification for who is not looking.

Rule: it tells nothing but sentences of ours and names that were made safe, and nothing where the terminal takes no such
sequences, or no colours are wanted. A window that has not said whether it has the focus gets the bell alone.
"""

from collections.abc import Callable
from typing import Final

from supervisor.display.escape import one_line

LONG_S: Final = 30.0
"""Seconds from which on a turn is one whose end people wait for."""
_WITHOUT: Final = ("", "dumb", "linux")
"""Terminals without windows."""
_OTHER: Final = ("rxvt", "foot")
"""How the names of those begin that take notifications as urxvt does; the others take them as iTerm2 does."""
_LONGEST: Final = 100
_KEEP_TITLE: Final = "\x1b[22;2t"
_OLD_TITLE: Final = "\x1b[23;2t"
_BELL: Final = "\x07"


class Attention:
    """The window, as far as this console knows it.

    Args:
        write: sends text to the terminal at once.
        terminal: its name, TERM.
        wanted: whether anything is told at all.
    """

    def __init__(self, write: Callable[[str], None], terminal: str, *, wanted: bool) -> None:
        self.told = wanted and terminal not in _WITHOUT
        """Whether anything is told."""
        self._write = write
        self._command = "777;notify;Strongroom;" if terminal.startswith(_OTHER) else "9;Strongroom: "
        self._focused: bool | None = None
        self._title = ""

    def focus(self, *, has: bool) -> None:
        self._focused = has

    def title(self, text: str) -> None:
        """Say what goes on; the title before is kept for `end`."""
        if self.told and text != self._title:
            keep = "" if self._title else _KEEP_TITLE
            self._title = text
            self._write(f"{keep}\x1b]2;Strongroom: {one_line(text, _LONGEST)}{_BELL}")

    def call(self, text: str) -> None:
        if self.told and not self._focused:
            notification = f"\x1b]{self._command}{one_line(text, _LONGEST)}{_BELL}" if self._focused is False else ""
            self._write(f"{notification}{_BELL}")

    def end(self) -> None:
        """Give the window the title back that it had."""
        if self._title:
            self._write(_OLD_TITLE)
