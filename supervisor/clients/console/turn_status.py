"""Words for what a session does, and for how long: the line of what goes on, and the bar.

Rule: texts are taken from the session at each drawing; the only state is the time of the last change. A clock lets them
be drawn again while something is waited for.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Final

from supervisor.clients.console import status_bar
from supervisor.clients.console.session_link import SessionLink
from supervisor.clients.console.session_state import IDLE, SUSPENDED
from supervisor.display.fragments import Fragments

_TICK: Final = 0.1
_WIDE: Final = 80


class TurnStatus:
    """What one session does.

    Args:
        session: the session.
        draw: lets it be drawn again.
    """

    def __init__(self, session: SessionLink, draw: Callable[[], None]) -> None:
        self._session = session
        self._draw = draw
        self._since = time.monotonic()
        self._state = ("", False, "")
        self._begun: float | None = None
        self._took = 0.0
        """When the turn began, if one runs; and how long the last one took."""
        self._tick_at: asyncio.TimerHandle | None = None

    def refresh(self) -> None:
        state = (self._session.state.turn_state, self._session.cancelling, self._session.session)
        if state != self._state:
            if state[-1] != self._state[-1]:
                self._begun, self._took = None, 0.0
            self._state, self._since = state, time.monotonic()
            self._time_turn()
        if self._tick_at is None:
            self._tick()

    def elapsed(self) -> float:
        """Return for how many seconds the turn goes on, or how long the last one took; 0 where there was none."""
        return self._took if self._begun is None else time.monotonic() - self._begun

    def _time_turn(self) -> None:
        """Take note of a turn's begin or end."""
        runs = self._session.state.turn_state not in (IDLE, "Done")
        if self._begun is not None and not runs:
            self._took = self._since - self._begun
            self._begun = None
        elif self._begun is None and runs:
            self._begun = self._since

    def _tick(self) -> None:
        """Let the clock run while something is waited for."""
        self._tick_at = None
        if self.progress(_WIDE):
            self._tick_at = asyncio.get_running_loop().call_later(_TICK, self._tick)
            self._draw()

    def progress(self, columns: int) -> Fragments:
        """Return the line of what is going on, of at most so many columns."""
        session = self._session
        if not session.session:
            return []
        seconds = time.monotonic() - self._since
        return status_bar.progress(session.state, columns, seconds, time.time(), cancelling=session.cancelling)

    def bar(self, columns: int, mode: str, *, leaving: bool, asked: bool, waiting: int) -> Fragments:
        """Return the bar of so many columns.

        Args:
            columns: at most so many are used.
            mode: what the keys go to.
            leaving: whether the next Ctrl-C leaves.
            asked: whether a question waits for its answer.
            waiting: how many lines wait.
        """
        session = self._session
        hints = "leaving" if leaving else "cancelling" if session.cancelling else ""
        if not hints and mode in ("reason", "confirm", "rule", "pick"):
            hints = mode
        elif not hints and asked:
            hints = "ReviewAction" if mode == "review" else "asked"
        elif not hints and session.state.waits:
            hints = "waits"
        status = "" if session.session else "Connecting"
        if not status and session.state.turn_state == IDLE and session.state.suspended is not None:
            status, hints = status_bar.ASKS, hints or SUSPENDED
        elif asked:
            status = status_bar.ASKS
        return status_bar.bar(
            session.state, columns, status=status, hints=hints, waiting=waiting, seconds=self.elapsed()
        )
