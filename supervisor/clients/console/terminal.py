"""The console on a terminal: finished text goes into the scrollback, the bottom lines are drawn again and again.

Rule: one prompt_toolkit application lives as long as the console; everything here runs in its event loop. What is shown
for good is written just before the next drawing, above the bottom lines.
"""

import asyncio
import signal
import time
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, Final

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import ThreadedCompleter
from prompt_toolkit.filters import Condition
from prompt_toolkit.output import ColorDepth

from supervisor.clients.console import bar, layout, text
from supervisor.clients.console.application import BottomLines, Completions, Output, Remembered, size
from supervisor.clients.console.blocks import Markdown
from supervisor.clients.console.commands import Leave, execute
from supervisor.clients.console.driver import Driver
from supervisor.clients.console.items import Asked, Document, Item, Note, Said
from supervisor.clients.console.keys import bindings
from supervisor.clients.console.options import ConsoleOptions
from supervisor.clients.console.reviews import Reviews
from supervisor.clients.console.scrollback import Scrollback
from supervisor.clients.console.wire import Connecting, in_thread
from supervisor.clients.link import Question
from supervisor.config import Settings
from supervisor.render import visible

_ESCAPE: Final = 0.05
"""Seconds after which an Escape is the key itself, and not the beginning of an arrow key."""
_SOON: Final = 0.15
"""Seconds after the start at which Markdown's renderer is imported: the prompt comes first."""
_TICK: Final = 0.1
_ADVANCE: Final = 0.05
"""Seconds between two looks at an answer that is coming in."""
_SHARE: Final = 10
"""One part of so many of the time, at most, goes into such looks: long blocks are looked at less often."""
_BELOW: Final = 6
"""Rows that the unfinished part of an answer leaves to the rest."""
_OUTPUT_ROWS: Final = 8
_HINT: Final = " Enter runs it · Esc rejects · Alt-Enter new line "
_SHORT_HINT: Final = " Enter runs it · Esc rejects "
_NARROW: Final = 56
_QUIET: Final = ("Input", "Done")


class Terminal:
    """The console's edge on a terminal."""

    def __init__(self, settings: Settings, options: ConsoleOptions, connecting: Connecting) -> None:
        self._colour = options.colour
        self._driver = Driver(settings, options, connecting, self)
        self._scrollback = Scrollback(lambda: self._load().result(), self.width, colour=options.colour)
        self._reviews = Reviews(self._go_to)
        self._loading: Future[Markdown] | None = None
        self._mode = "line"
        self._leaving = False
        self._queued = False
        self._since = time.monotonic()
        self._state = ("", False)
        self._advance_at: asyncio.TimerHandle | None = None
        self._tick_at: asyncio.TimerHandle | None = None
        self._pause = _ADVANCE
        self._work: asyncio.Task[None] | None = None
        self._failure: BaseException | None = None
        self._line = Buffer(
            completer=ThreadedCompleter(Completions(self._driver)),
            complete_while_typing=Condition(lambda: self._line.text.startswith("/") and " " not in self._line.text),
            history=Remembered(settings.home / "console-history"),
            multiline=True,
            on_text_changed=lambda _: self._typed(),
        )
        self._drawn = layout.Drawn(
            layout.Parts(
                line=self._line,
                box=self._reviews.box,
                reason=self._reviews.reason,
                mode=self.mode,
                tail=self._tail,
                progress=self._progress,
                bar=self._bar,
                title=lambda: self._reviews.title(self.width()),
                hint=lambda: _HINT if self.width() > _NARROW else _SHORT_HINT,
                problem=lambda: self._reviews.problem,
                rows=lambda: size().rows,
            )
        )
        self._app = BottomLines(
            layout=self._drawn.layout,
            key_bindings=bindings(self),
            style=layout.style(),
            erase_when_done=True,
            color_depth=ColorDepth.DEPTH_4_BIT if options.colour else ColorDepth.DEPTH_1_BIT,
            output=Output(),
            before_render=lambda _: self._write(),
        )
        self._app.ttimeoutlen = self._app.timeoutlen = _ESCAPE

    # --- life -----------------------------------------------------------------------------------------------------

    async def run(self) -> int:
        """Run until the person leaves; return the exit code."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self.leave)
        loop.set_exception_handler(lambda _, context: self._break(context))
        loop.call_later(_SOON, self._load)
        try:
            await self._app.run_async(pre_run=lambda: self._start(self._driver.open()), set_exception_handler=False)
        finally:
            if self._work is not None:
                self._work.cancel()
            self._driver.close()
        if self._failure is not None:
            raise self._failure
        return 0

    def _load(self) -> "Future[Markdown]":
        """Return what renders Markdown, as soon as it is imported; begin with that, if nobody has."""

        def renderer() -> Markdown:
            from supervisor.clients.console.markdown import RichMarkdown

            return RichMarkdown(colour=self._colour)

        self._loading = self._loading or in_thread(renderer)
        return self._loading

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        self._work = asyncio.get_running_loop().create_task(work)
        self._work.add_done_callback(self._ended)

    def _ended(self, work: "asyncio.Task[None]") -> None:
        self._work = None
        if work.cancelled():
            return
        error = work.exception()
        if isinstance(error, Leave):
            self.leave()
        elif error is not None:
            self._fail(error)
        elif self._queued:
            self._queued = False
            self._send()
        self.changed()

    def _break(self, context: dict[str, Any]) -> None:
        """Take note of a bug of ours, and leave: the terminal must not stay as it is."""
        self._fail(context.get("exception") or RuntimeError(context.get("message")))

    def _fail(self, error: BaseException) -> None:
        self._failure = self._failure or error
        self.leave()

    def _tick(self) -> None:
        """Let the clock run while something is waited for."""
        self._tick_at = None
        if self._progress():
            self._tick_at = asyncio.get_running_loop().call_later(_TICK, self._tick)
            self._app.invalidate()

    def leave(self) -> None:
        """Go; a turn that runs goes on in the daemon."""
        if self._app.is_running and not self._app.is_done:
            if self._busy() and self._driver.session and not self._driver.cancelling and self._failure is None:
                self.show(Note("The turn goes on in the daemon; `strongroom console --continue` shows it."))
            self._app.exit()

    # --- what is shown --------------------------------------------------------------------------------------------

    def width(self) -> int:
        """Return the columns there are."""
        return size().columns

    def show(self, item: Item) -> None:
        """Show something for good, above the bottom lines."""
        self._scrollback.show(item)
        if not isinstance(item, Said):
            self._app.invalidate()
        elif self._advance_at is None:
            self._advance_at = asyncio.get_running_loop().call_later(self._pause, self._advance)

    def _advance(self) -> None:
        begun = time.monotonic()
        self._scrollback.advance()
        self._advance_at = None
        self._pause = max(_ADVANCE, (time.monotonic() - begun) * _SHARE)
        self._app.invalidate()

    def hold(self) -> int:
        """Forget what of the answer is not in the scrollback; return how many characters are."""
        return self._scrollback.hold()

    def clear(self) -> None:
        """Begin on an empty screen."""
        self._scrollback.clear()
        self._app.invalidate()

    def changed(self) -> None:
        """Draw the bottom lines again."""
        state = (self._driver.view.state, self._driver.cancelling)
        if state != self._state:
            self._state, self._since = state, time.monotonic()
        if self._tick_at is None:
            self._tick()
        self._app.invalidate()

    def _write(self) -> None:
        """Write what is new above the bottom lines; they are drawn again right after it."""
        out = self._scrollback.take()
        last = self._app.renderer.last_rendered_screen
        now = size()
        wanted = self._drawn.layout.container.preferred_height(now.columns, now.rows).preferred
        if out or (last is not None and wanted < last.height):
            self._app.renderer.erase(leave_alternate_screen=False)
        if out:
            self._app.output.write_raw(out)

    def _tail(self) -> str:
        """Return what is not finished: the answer's last block, or what a command writes."""
        rows = max(1, size().rows - _BELOW)
        tail = self._scrollback.tail(rows)
        view = self._driver.view
        running = [call for call in view.running if call.output]
        if tail or not running or view.state != "Executing":
            return tail
        lines = visible(running[-1].output).rstrip("\n").split("\n")
        return "\n".join(f"  {line}" for line in lines[-min(rows, _OUTPUT_ROWS) :])

    def _progress(self) -> text.Fragments:
        driver = self._driver
        if not driver.session:
            return []
        seconds = time.monotonic() - self._since
        return bar.progress(driver.view, self.width() - 1, seconds, cancelling=driver.cancelling)

    def _bar(self) -> text.Fragments:
        driver = self._driver
        hints = "leaving" if self._leaving else "cancelling" if driver.cancelling else ""
        if not hints and self._mode == "reason":
            hints = "reason"
        elif not hints and self._mode == "line" and driver.view.state == "ReviewAction":
            hints = "busy"
        return bar.bar(driver.view, self.width() - 1, state="" if driver.session else "Connecting", hints=hints)

    # --- keys -----------------------------------------------------------------------------------------------------

    def mode(self) -> str:
        """Return what the keys go to."""
        return self._mode

    def _go_to(self, mode: str) -> None:
        self._mode = mode
        window = {"line": self._drawn.line, "review": self._drawn.box, "reason": self._drawn.reason}[mode]
        self._drawn.layout.focus(window)
        self._app.invalidate()

    def is_empty(self) -> bool:
        """Return whether nothing is typed."""
        return not self._line.text

    def is_idle(self) -> bool:
        """Return whether nothing runs."""
        return not self._driver.session or not self._busy()

    def _busy(self) -> bool:
        """Return whether something is being done, by whomever."""
        return self._work is not None or self._driver.view.state not in _QUIET

    def _typed(self) -> None:
        self._leaving = self._queued = False
        if self._busy():
            self._reviews.typed()

    def enter(self) -> None:
        """Send the line, run the call as it stands in the box, or reject it with the reason that was typed."""
        match self._mode:
            case "line" if self._is_choosing():
                self._line.complete_state = None
            case "line" if not self._busy():
                self._send()
            case "line":
                self._queued = not self._driver.session  # sent as soon as there is a session
            case "review":
                self._reviews.run()
            case "reason":
                self._reviews.reject(self._reviews.reason.text)

    def _is_choosing(self) -> bool:
        """Return whether Enter takes a completion, and does not send the line yet."""
        state = self._line.complete_state
        return state is not None and state.current_completion is not None and not self._line.text.startswith("/")

    def _send(self) -> None:
        line = self._line.text
        self._leaving = False
        if not line.strip():
            self._line.reset()
            return
        self._line.append_to_history()
        self._line.reset()
        if line.startswith("/"):
            self.show(Asked(line))
            self._start(execute(self._driver, line))
        else:
            self._start(self._driver.prompt(line))

    def escape(self) -> None:
        """Leave, or reject."""
        match self._mode:
            case "line":
                self.leave()
            case "review":
                self._go_to("reason")
            case "reason":
                self._reviews.reject("")

    def interrupt(self) -> None:
        """Clear the line, cancel the turn, or leave, when pressed a second time."""
        if self._driver.session and self._driver.view.state not in _QUIET:
            if self._driver.cancelling:
                self.leave()
            else:
                self._driver.cancel()
        elif self._line.text:
            self._line.reset()
        elif self._leaving:
            self.leave()
        else:
            self._leaving = True

    def expand(self) -> None:
        """Show the last call in full."""
        calls = self._driver.view.calls
        if calls:
            self.show(Document(text.call_document(calls[-1])))

    # --- reviews --------------------------------------------------------------------------------------------------

    def ask(self, question: Question) -> None:
        """Let the person decide, after the questions that wait."""
        self._reviews.ask(question)

    def withdraw(self, question: Question | None) -> None:
        """Forget a question; None: all of them."""
        self._reviews.withdraw(question)


def run_terminal(settings: Settings, options: ConsoleOptions, connecting: Connecting) -> int:
    """Run the console on the terminal that standard input and output are; return the exit code."""

    async def main() -> int:
        return await Terminal(settings, options, connecting).run()

    return asyncio.run(main())
