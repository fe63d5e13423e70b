"""The console on a terminal: finished text goes into the scrollback, the bottom lines are drawn again and again.

Rule: one prompt_toolkit application lives as long as the console; everything here runs in its event loop. What is shown
for good is written just before the next drawing, above the bottom lines, and is never touched again.
"""

import asyncio
import os
import signal
import sys
import time
from collections import deque
from collections.abc import AsyncGenerator, Coroutine, Iterable
from concurrent.futures import Future
from typing import Any, Final

from prompt_toolkit.application import Application
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import CompleteEvent, Completer, Completion, ThreadedCompleter
from prompt_toolkit.data_structures import Size
from prompt_toolkit.document import Document as Text
from prompt_toolkit.filters import Condition
from prompt_toolkit.history import History
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.output.vt100 import Vt100_Output

from supervisor.clients.console import bar, complete, history, layout, text
from supervisor.clients.console.blocks import Markdown, Stream
from supervisor.clients.console.commands import Leave, execute, known
from supervisor.clients.console.driver import Connecting, Driver, in_thread
from supervisor.clients.console.items import AnswerEnds, Asked, Document, Item, Note, Said
from supervisor.clients.console.keys import bindings
from supervisor.clients.console.options import ConsoleOptions
from supervisor.clients.console.review import Form
from supervisor.clients.link import Question
from supervisor.config import Settings
from supervisor.render import one_line, visible

_ESCAPE: Final = 0.05
"""Seconds after which an Escape is the key itself, and not the beginning of an arrow key."""
_TICK: Final = 0.1
_ADVANCE: Final = 0.05
"""Seconds between two looks at an answer that is coming in."""
_TYPING: Final = 0.5
"""Seconds after the last key in which a review does not take the keyboard: an Enter meant for a line runs nothing."""
_TAIL_RENDERED: Final = 4000
"""Characters of an unfinished block above which it is shown as it is."""
_BELOW: Final = 5
"""Rows that the unfinished part of an answer leaves to the rest."""
_OUTPUT_ROWS: Final = 8
_HINT: Final = " Enter runs it · Esc rejects · Alt-Enter new line "
_SHORT_HINT: Final = " Enter runs it · Esc rejects "
_NARROW: Final = 56


class _Application(Application[None]):
    """Finds the beginning of its lines again when the terminal has been made narrower."""

    def _on_resize(self) -> None:
        screen = self.renderer.last_rendered_screen
        size = self.output.get_size()
        if screen is not None and size.columns:
            cursor = screen.get_cursor_position(self.layout.current_window)
            broken = sum(_width(screen, row) // size.columns for row in range(cursor.y) if _width(screen, row))
            self.output.cursor_up(broken + cursor.x // size.columns)
        super()._on_resize()


def _size() -> Size:
    """Return the terminal's size, and that of an ordinary one where it has none."""
    try:
        columns, rows = os.get_terminal_size(1)
    except OSError:
        columns = rows = 0
    return Size(rows=rows or 24, columns=columns or 80)


def _width(screen: Any, row: int) -> int:
    """Return the columns of a drawn row, less one, so that a row that just fits counts as whole."""
    cells = screen.data_buffer.get(row) or {}
    return max((column for column, cell in cells.items() if cell.char.strip()), default=0)


class _Remembered(History):
    """The file of what was typed."""

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self._path = settings.home / "console-history"

    async def load(self) -> AsyncGenerator[str, None]:
        if not self._loaded:
            lines = await asyncio.wrap_future(in_thread(lambda: history.load(self._path)))
            self._loaded_strings = [*self._loaded_strings, *reversed(lines)]
            self._loaded = True
        for line in self._loaded_strings:
            yield line

    def load_history_strings(self) -> Iterable[str]:
        return reversed(history.load(self._path))

    def store_string(self, string: str) -> None:
        history.append(self._path, string)


class _Completions(Completer):
    """Asks `complete` what there is."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver

    def get_completions(self, document: Text, complete_event: CompleteEvent) -> Iterable[Completion]:
        """Yield what may follow the cursor: without the Tab key only commands."""
        if not complete_event.completion_requested and not document.text.startswith("/"):
            return
        driver = self._driver
        choices = {option.id: [choice.value for choice in option.options] for option in driver.view.options}
        choices["resume"] = [info.session_id for info in driver.known_sessions]
        for offer in complete.offers(
            document.text_before_cursor,
            root=driver.view.facts.root,
            tools=driver.view.facts.tools,
            commands=known(driver),
            choices=choices,
        ):
            yield Completion(
                offer.text, -offer.replaces, display=offer.shown or offer.text, display_meta=offer.about or None
            )


class Terminal:
    """The console's edge on a terminal."""

    def __init__(self, settings: Settings, options: ConsoleOptions, connecting: Connecting) -> None:
        self._colour = options.colour
        self._driver = Driver(settings, options, connecting, self)
        self._markdown: Future[Markdown] = in_thread(self._renderer)
        self._stream: Stream | None = None
        self._pending: list[str] = []
        self._printed = ""
        """The kind of what was printed last."""
        self._questions: deque[Question] = deque()
        self._form: Form | None = None
        self._mode = "line"
        self._problem = ""
        self._leaving = False
        self._queued = False
        self._typed_at = 0.0
        self._since = time.monotonic()
        self._state = ""
        self._advance_at: asyncio.TimerHandle | None = None
        self._tail = ("", "")
        self._work: asyncio.Task[None] | None = None
        self._failure: BaseException | None = None
        self._line = Buffer(
            completer=ThreadedCompleter(_Completions(self._driver)),
            complete_while_typing=Condition(lambda: self._line.text.startswith("/") and " " not in self._line.text),
            history=_Remembered(settings),
            multiline=True,
            on_text_changed=lambda _: self._typed(),
        )
        self._box = Buffer(multiline=True, read_only=Condition(lambda: not (self._form and self._form.review.editable)))
        self._reason = Buffer(multiline=False)
        self._drawn = layout.Drawn(
            layout.Parts(
                line=self._line,
                box=self._box,
                reason=self._reason,
                mode=self.mode,
                tail=self._shown_tail,
                progress=self._progress,
                bar=self._bar,
                title=self._title,
                hint=lambda: _HINT if self.width() > _NARROW else _SHORT_HINT,
                problem=lambda: self._problem,
                rows=lambda: self._app.output.get_size().rows,
            )
        )
        self._app: Application[None] = _Application(
            layout=self._drawn.layout,
            key_bindings=bindings(self),
            style=layout.style(),
            erase_when_done=True,
            color_depth=ColorDepth.DEPTH_4_BIT if self._colour else ColorDepth.DEPTH_1_BIT,
            output=Vt100_Output(sys.stdout, _size, enable_bell=False, enable_cpr=False),
            before_render=lambda _: self._write(),
        )
        self._app.ttimeoutlen = self._app.timeoutlen = _ESCAPE

    def _renderer(self) -> Markdown:
        from supervisor.clients.console.markdown import RichMarkdown

        return RichMarkdown(colour=self._colour)

    # --- life -----------------------------------------------------------------------------------------------------

    async def run(self) -> int:
        """Run until the person leaves; return the exit code."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self.leave)
        ticking = loop.create_task(self._tick())
        try:
            await self._app.run_async(pre_run=lambda: self._start(self._open()))
        finally:
            ticking.cancel()
            if self._work is not None:
                self._work.cancel()
            self._driver.close()
        if self._failure is not None:
            raise self._failure
        return 0

    async def _open(self) -> None:
        await self._driver.open()
        facts = self._driver.view.facts
        self.show(Note(f"{facts.profile} on {facts.root}, {facts.model}"))

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
            self._failure = error
            self.leave()
        elif self._queued:
            self._queued = False
            self._send()
        self.changed()

    async def _tick(self) -> None:
        """Let the clock run where something is waited for."""
        while True:
            await asyncio.sleep(_TICK)
            if self._progress():
                self._app.invalidate()

    def leave(self) -> None:
        """Go; a turn that runs goes on in the daemon."""
        if self._app.is_running and not self._app.is_done:
            if self._driver.view.state != "Input" and self._driver.session and not self._driver.cancelling:
                self.show(Note("The turn goes on in the daemon; `strongroom console --continue` shows it."))
            self._app.exit()

    # --- what is shown --------------------------------------------------------------------------------------------

    def width(self) -> int:
        """Return the columns there are."""
        return self._app.output.get_size().columns

    def show(self, item: Item) -> None:
        """Show something for good, above the bottom lines."""
        match item:
            case Said():
                self._stream = self._stream or Stream(self._markdown.result())
                self._stream.feed(item.text)
                if self._advance_at is None:
                    self._advance_at = asyncio.get_running_loop().call_later(_ADVANCE, self._advance)
                return
            case AnswerEnds():
                stream, self._stream = self._stream, None
                self._print("answer", stream.end(self.width()) if stream is not None else "")
            case _:
                lines = text.lines_of(item, self.width())
                kind = type(item).__name__ if isinstance(item, Asked | Document) else "line"
                self._print(kind, "".join(f"{text.styled(line, colour=self._colour)}\n" for line in lines))

    def _print(self, kind: str, lines: str) -> None:
        """Put lines into the scrollback, a blank line between things of different kinds."""
        if lines:
            gap = self._printed and (kind != self._printed or kind in ("Asked", "Document"))
            self._pending.append(f"\n{lines}" if gap else lines)
            self._printed = kind
        self._app.invalidate()

    def _advance(self) -> None:
        self._advance_at = None
        if self._stream is not None:
            self._print("answer", self._stream.finished(self.width()))

    def hold(self) -> int:
        """Forget what of the answer is not in the scrollback; return how many characters are."""
        return self._stream.hold() if self._stream is not None else 0

    def clear(self) -> None:
        """Begin on an empty screen."""
        self._pending.append("\x1b[2J\x1b[H")
        self._printed = ""
        self._app.invalidate()

    def changed(self) -> None:
        """Draw the bottom lines again."""
        shown = (self._driver.view.state, self._driver.cancelling)
        if str(shown) != self._state:
            self._state, self._since = str(shown), time.monotonic()
        self._app.invalidate()

    def _write(self) -> None:
        """Write what is new above the bottom lines; they are drawn again right after it."""
        out, self._pending = "".join(self._pending), []
        renderer = self._app.renderer
        last = renderer.last_rendered_screen
        size = self._app.output.get_size()
        wanted = self._drawn.layout.container.preferred_height(size.columns, size.rows).preferred
        if out or (last is not None and wanted < last.height):
            renderer.erase(leave_alternate_screen=False)
        if out:
            self._app.output.write_raw(out)

    def _shown_tail(self) -> str:
        """Return what is not finished: the answer's last block, or what a command writes."""
        rows = max(1, self._app.output.get_size().rows - _BELOW)
        if self._stream is not None and self._stream.tail.strip():
            tail = self._stream.tail
            if self._tail[0] != tail:
                short = len(tail) <= _TAIL_RENDERED
                shown = self._stream_render(tail) if short else visible(tail[-_TAIL_RENDERED:])
                self._tail = (tail, shown)
            return "\n".join(self._tail[1].split("\n")[-rows:])
        running = [call for call in self._driver.view.running if call.output]
        if running and self._driver.view.state == "Executing":
            lines = visible(running[-1].output).rstrip("\n").split("\n")
            return "\n".join(f"  {line}" for line in lines[-min(rows, _OUTPUT_ROWS) :])
        return ""

    def _stream_render(self, tail: str) -> str:
        return self._markdown.result().render(tail, self.width())

    def _progress(self) -> text.Fragments:
        driver = self._driver
        if not driver.session:
            return []
        seconds = time.monotonic() - self._since
        return bar.progress(driver.view, self.width() - 1, seconds, cancelling=driver.cancelling)

    def _bar(self) -> text.Fragments:
        state = "" if self._driver.session else "Connecting"
        hints = "leaving" if self._leaving else "cancelling" if self._driver.cancelling else ""
        if self._mode == "reason":
            hints = hints or "reason"
        elif not state and self._mode != "review" and self._driver.view.state == "ReviewAction":
            hints = hints or "busy"
        return bar.bar(self._driver.view, self.width() - 1, state=state, hints=hints)

    def _title(self) -> str:
        if self._form is None:
            return ""
        waiting = f" (1 of {len(self._questions)})" if len(self._questions) > 1 else ""
        review = self._form.review
        why = f" · {review.reason}" if review.reason else ""
        lines = self._box.document.line_count
        long = f" · {lines} lines" if lines > self._app.output.get_size().rows // 2 else ""
        return f" {one_line(f'{review.tool} · {self._form.label}{why}{long}{waiting}', max(8, self.width() - 8))} "

    # --- keys -----------------------------------------------------------------------------------------------------

    def mode(self) -> str:
        """Return what the keys go to."""
        return self._mode

    def is_empty(self) -> bool:
        """Return whether nothing is typed."""
        return not self._line.text

    def is_idle(self) -> bool:
        """Return whether nothing runs."""
        return self._work is None or not self._driver.session

    def _typed(self) -> None:
        self._leaving = self._queued = False
        if self._work is not None:
            self._typed_at = time.monotonic()

    def enter(self) -> None:
        """Send the line, run the call as it stands in the box, or reject it with the reason that was typed."""
        match self._mode:
            case "line" if self._line.complete_state and self._line.complete_state.current_completion:
                self._line.complete_state = None
            case "line" if self._work is None:
                self._send()
            case "line":
                self._queued = not self._driver.session  # sent as soon as there is a session
            case "review":
                self._run()
            case "reason":
                self._reject(self._reason.text)

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
                self._reject("")

    def interrupt(self) -> None:
        """Clear the line, cancel the turn, or leave, when pressed a second time."""
        if self._work is not None and self._driver.view.state != "Input":
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
        self._questions.append(question)
        self._next()

    def withdraw(self, question: Question | None) -> None:
        """Forget a question; None: all of them."""
        first = self._questions[0] if self._questions else None
        if question is None:
            self._questions.clear()
        elif question in self._questions:
            self._questions.remove(question)
        if first is not None and (not self._questions or self._questions[0] is not first):
            self._close_box()

    def _next(self) -> None:
        """Open the first question's box, once the person has stopped typing."""
        if not self._questions or self._form is not None:
            return
        wait = self._typed_at + _TYPING - time.monotonic()
        if wait > 0:
            asyncio.get_running_loop().call_later(wait, self._next)
            return
        self._form = Form(self._questions[0].review)
        self._fill()
        self._go_to("review")

    def _fill(self) -> None:
        assert self._form is not None
        self._box.set_document(Text(self._form.text, len(self._form.text)), bypass_readonly=True)

    def _close_box(self) -> None:
        self._form, self._problem = None, ""
        self._reason.reset()
        self._go_to("line")
        self._next()

    def _go_to(self, mode: str) -> None:
        self._mode = mode
        window = {"line": self._drawn.line, "review": self._drawn.box, "reason": self._drawn.reason}[mode]
        self._drawn.layout.focus(window)
        self._app.invalidate()

    def _run(self) -> None:
        assert self._form is not None
        self._problem = self._form.settle(self._box.text)
        if self._problem:
            if self._form.text != self._box.text:
                self._fill()
            return
        form, question = self._form, self._questions.popleft()
        self._close_box()
        question.allow(form.edited)

    def _reject(self, why: str) -> None:
        question = self._questions.popleft()
        self._close_box()
        question.reject(why.strip().encode("utf-8", "replace").decode())


def run_terminal(settings: Settings, options: ConsoleOptions, connecting: Connecting) -> int:
    """Run the console on the terminal that standard input and output are; return the exit code."""

    async def main() -> int:
        return await Terminal(settings, options, connecting).run()

    return asyncio.run(main())
