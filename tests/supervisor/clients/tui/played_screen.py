"""The full screen without a terminal."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

from textual import events

from supervisor.clients.console.daemon_link import Connecting, in_thread
from supervisor.clients.console.options import ConsoleOptions
from supervisor.clients.tui.full_screen import FullScreen
from supervisor.clients.tui.session_view import SessionView
from supervisor.config.settings import Settings
from tests.supervisor.command import HANG_GUARD

if TYPE_CHECKING:
    from textual.pilot import Pilot

_T = TypeVar("_T")
_P = ParamSpec("_P")

_CHARACTERS: Final = {"space": " "}

QUICK: Final = {"READABLE_S": 0.05, "QUIET_S": 0.0, "TYPIST_S": 0.0, "BURST_S": 0.0}
"""Times of a person who reads and types quicker than people do."""


class PlayedScreen:
    """The screen, and its keys."""

    def __init__(self, app: FullScreen, pilot: "Pilot[int]") -> None:
        self.app = app
        self.pilot = pilot

    @property
    def view(self) -> SessionView:
        return self.app.view

    @property
    def text(self) -> str:
        strips = self.app.screen._compositor.render_strips(self.app.size)
        return "\n".join(strip.text.rstrip() for strip in strips)

    async def press(self, *keys: str) -> None:
        """Press keys, one right after the other; the pilot would wait after each until nothing moves."""
        for key in keys:
            self.app.post_message(events.Key(key, _CHARACTERS.get(key, key if len(key) == 1 else None)))
        await self.pilot._wait_for_screen()

    async def until(self, seen: Callable[[str], object] | str) -> str:
        """Wait until the screen shows a text, or what else is wanted of it; return it."""
        end = time.monotonic() + HANG_GUARD
        while not (seen in self.text if isinstance(seen, str) else seen(self.text)):
            assert time.monotonic() < end, self.text
            await self.pilot.pause(0.01)
        return self.text

    async def at_rest(self) -> None:
        """Wait until nothing is left to lay out or to draw: a scrollbar is drawn after what it scrolls."""
        await self.until(lambda _: self._rests)

    @property
    def _rests(self) -> bool:
        return not any(map(_is_pending, [self.app, *self.app.screen.walk_children(with_self=True)]))

    async def told(self, work: Callable[[], _T]) -> _T:
        """Wait for something of the daemon."""
        return await asyncio.wrap_future(in_thread(work))

    async def ready(self) -> None:
        """Wait until the next key would answer the question, which is not about to be drawn anew."""
        await self.until(lambda _: self._rests and self.view.approvals._guard.is_ready())


_LATER: Final = (
    *("_layout_required", "_repaint_required", "_recompose_required"),
    *("_dirty_widgets", "_callbacks", "_next_callbacks", "_timer"),
)
"""What Textual, and the history, still have to do for the program, a screen or a widget."""


def _is_pending(node: Any) -> bool:
    """Say whether something of it waits for its turn."""
    return any(getattr(node, each, None) for each in _LATER) or not node._message_queue.empty()


@asynccontextmanager
async def shown(
    settings: Settings, columns: int = 100, rows: int = 30, theme: str = "dark", **options: Any
) -> AsyncIterator[PlayedScreen]:
    """Show a session that is ready for a line."""
    chosen = ConsoleOptions(colour=True, **options)
    app = FullScreen(settings, chosen, Connecting(settings), theme)
    async with app.run_test(size=(columns, rows)) as pilot:
        screen = PlayedScreen(app, pilot)
        await screen.until("Ready")
        yield screen
    if app.failure is not None:
        raise app.failure


def play(story: Callable[[], Awaitable[None]]) -> None:
    """Run a test's story in an event loop of its own."""

    async def run() -> None:
        async with asyncio.timeout(2 * HANG_GUARD):  # `until` ends before, and tells what is on the screen
            await story()

    asyncio.run(run())


def played(test: Callable[_P, Awaitable[None]]) -> Callable[_P, None]:
    """Make a test that is played in an event loop of its own."""

    @wraps(test)
    def run(*given: _P.args, **named: _P.kwargs) -> None:
        play(partial(test, *given, **named))

    return run
