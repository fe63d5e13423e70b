"""The terminal's application: its bottom lines survive resizing, stopping and a shell; its output asks nothing.

Rule: adapters for prompt_toolkit only.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from typing import Any, Final

from prompt_toolkit.application import Application, run_in_terminal
from prompt_toolkit.data_structures import Size
from prompt_toolkit.input.vt100 import Vt100Input
from prompt_toolkit.input.vt100_parser import Vt100Parser
from prompt_toolkit.key_binding.key_processor import KeyPress
from prompt_toolkit.keys import Keys
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.output.vt100 import Vt100_Output

_ESCAPE: Final = 0.05
"""Seconds after which an Escape is the key itself, and not the beginning of an arrow key."""
_FOCUS: Final = {"\x1b[I": True, "\x1b[O": False}
_ERASE_DOWN: Final = "\x1b[K\x1b7\x1b[B\x1b[J\x1b8"
"""The line; then, from the next one on, the rest; and back."""


class BottomLines(Application[None]):
    """Finds the beginning of its lines again when the terminal was made narrower, and has broken them.

    `reappears` is called before they are drawn on another screen than before: of another size, or after a stop.

    Ctrl-Z and SIGTSTP stop all that the shell started with the console. SIGSTOP does not ask, so the terminal is taken
    back from whatever state the shell has left it in.
    """

    _suspended = False
    reappears: Callable[[], None] = staticmethod(lambda: None)

    def __init__(self, *, colour: bool, **given: Any) -> None:
        depth = ColorDepth.DEPTH_4_BIT if colour else ColorDepth.DEPTH_1_BIT
        super().__init__(erase_when_done=True, color_depth=depth, **given)
        self.ttimeoutlen = self.timeoutlen = _ESCAPE

    def _on_resize(self) -> None:
        self.reappears()
        screen = self.renderer.last_rendered_screen
        size = self.output.get_size()
        if screen is not None and size.columns:
            cursor = screen.get_cursor_position(self.layout.current_window)
            broken = sum(_last_column(screen, row) // size.columns for row in range(cursor.y))
            self.output.cursor_up(broken + cursor.x // size.columns)
        super()._on_resize()

    # --- job control ----------------------------------------------------------------------------------------------

    def obey_signals(self) -> None:
        """Handle the signals that stop and continue a job, from now on."""
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTSTP, self.suspend)
        loop.add_signal_handler(signal.SIGCONT, self._continue)

    def suspend(self) -> None:
        """Stop, with the terminal as it was, until the shell lets it go on."""

        def stop() -> None:
            self._suspended = True
            loop.remove_signal_handler(signal.SIGTSTP)
            os.kill(0, signal.SIGTSTP)  # all that the shell started with us
            loop.add_signal_handler(signal.SIGTSTP, self.suspend)

        loop = asyncio.get_running_loop()
        run_in_terminal(stop)

    def _continue(self) -> None:
        """Take the terminal back from a shell, unless it was given away as it should be."""
        self.reappears()
        if not self._suspended:
            self.input.raw_mode().__enter__()
            self.renderer.erase()
            self.invalidate()
        self._suspended = False


class TerminalInput(Vt100Input):
    """Reads the terminal that standard input is; that its window gets or loses the focus is told, and is no key."""

    def __init__(self, focus: Callable[[bool], None]) -> None:
        super().__init__(sys.stdin)
        self.vt100_parser = _FocusParser(self._feed, focus)

    def _feed(self, key: KeyPress) -> None:
        self._buffer.append(key)  # which is another list after each reading


class _FocusParser(Vt100Parser):
    def __init__(self, key: Callable[[KeyPress], None], focus: Callable[[bool], None]) -> None:
        self._focus = focus
        super().__init__(key)

    def _get_match(self, prefix: str) -> Any:
        return Keys.Ignore if prefix in _FOCUS else super()._get_match(prefix)

    def _call_handler(self, key: Any, insert_text: str) -> None:
        if insert_text in _FOCUS:
            self._focus(_FOCUS[insert_text])
        else:
            super()._call_handler(key, insert_text)


class TerminalOutput(Vt100_Output):
    """Writes to the terminal that standard output is, and never asks it anything."""

    def __init__(self) -> None:
        super().__init__(sys.stdout, size, enable_bell=False, enable_cpr=False)
        self.reports_focus = False
        """Whether the window shall say when it gets or loses the focus, while keys are read."""

    def enable_bracketed_paste(self) -> None:
        """Begin to read keys."""
        super().enable_bracketed_paste()
        self.write_raw("\x1b[?1004h" * self.reports_focus)

    def disable_bracketed_paste(self) -> None:
        """Leave the terminal to others."""
        super().disable_bracketed_paste()
        self.write_raw("\x1b[?1004l" * self.reports_focus)

    def at_once(self, text: str) -> None:
        """Write what does not move the cursor."""
        self.write_raw(text)
        self.flush()

    def erase_down(self) -> None:
        """Erase from the cursor on; not in one piece: tmux keeps a screen erased from its first cell as history."""
        self.write_raw(_ERASE_DOWN)


def _last_column(screen: Any, row: int) -> int:
    """Return the last column of a drawn row in which something stands; 0 for none."""
    cells = screen.data_buffer.get(row) or {}
    return max((column for column, cell in cells.items() if cell.char.strip()), default=0)


def size() -> Size:
    """Return the terminal's size, and that of an ordinary one where it does not say."""
    try:
        columns, rows = os.get_terminal_size(1)
    except OSError:
        columns = rows = 0
    return Size(rows=rows or 24, columns=columns or 80)
