"""Texts of the terminal's bottom lines, and the clock that redraws them.

Rule: they are taken from the controller and the scrollback at each drawing; the only state is the time of the last
change.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Final

from supervisor.clients.console import status_bar, styled_text
from supervisor.clients.console.application import size
from supervisor.clients.console.scrollback import Scrollback
from supervisor.clients.console.session_controller import SessionController
from supervisor.display.columns import cut
from supervisor.display.escape import visible

_TICK: Final = 0.1
_BELOW: Final = 6
"""Rows that the unfinished part of an answer leaves to the rest."""
_OUTPUT_ROWS: Final = 8


class BottomStatus:
    """The bottom lines.

    Args:
        draw: lets them be drawn again.
    """

    def __init__(self, controller: SessionController, scrollback: Scrollback, draw: Callable[[], None]) -> None:
        self._controller = controller
        self._scrollback = scrollback
        self._draw = draw
        self._since = time.monotonic()
        self._state = ("", False)
        self._tick_at: asyncio.TimerHandle | None = None

    def refresh(self) -> None:
        """Take note that something has changed."""
        state = (self._controller.state.turn_state, self._controller.cancelling)
        if state != self._state:
            self._state, self._since = state, time.monotonic()
        if self._tick_at is None:
            self._tick()

    def _tick(self) -> None:
        """Let the clock run while something is waited for."""
        self._tick_at = None
        if self.progress():
            self._tick_at = asyncio.get_running_loop().call_later(_TICK, self._tick)
            self._draw()

    def tail(self, ahead: Sequence[str]) -> str:
        """Return what is not finished: the answer's last block, what a command writes, or lines that wait."""
        rows = max(1, size().rows - _BELOW)
        tail = self._scrollback.tail(rows)
        if tail:
            return tail
        state = self._controller.state
        running = [call for call in state.running if call.output]
        if running and state.turn_state == "Executing":
            lines = visible(running[-1].output).rstrip("\n").split("\n")
            return "\n".join(f"  {line}" for line in lines[-min(rows, _OUTPUT_ROWS) :])
        return "\n".join(f"> {cut(line, size().columns - 3)}" for line in ahead[:rows])

    def progress(self) -> styled_text.Fragments:
        """Return the line of what is going on."""
        controller = self._controller
        if not controller.session:
            return []
        seconds = time.monotonic() - self._since
        return status_bar.progress(controller.state, size().columns - 1, seconds, cancelling=controller.cancelling)

    def bar(self, mode: str, *, leaving: bool) -> styled_text.Fragments:
        """Return the bar, for keys that go to `mode`."""
        controller = self._controller
        hints = "leaving" if leaving else "cancelling" if controller.cancelling else ""
        if not hints and mode in ("reason", "confirm"):
            hints = mode
        elif not hints and mode == "line" and controller.state.turn_state == "ReviewAction":
            hints = "busy"
        return status_bar.bar(
            controller.state, size().columns - 1, status="" if controller.session else "Connecting", hints=hints
        )
