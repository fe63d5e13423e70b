"""The console without a terminal: lines in, lines out, no escape sequence ever.

Rule: answers, and what was asked for with a slash, go to standard output as they come; everything else goes to standard
error. Where nobody can be asked, what policy asks about is declined. A line that answers nothing waits for the end of
the turn (`typed_lines`). While a turn waits, a command that comes after that was shown counts at once.
"""

import asyncio
import errno
import io
import os
import signal
import sys
from collections.abc import Awaitable, Coroutine
from typing import Any, Final, TypeVar

from supervisor.clients.connection.link_events import PermissionPrompt
from supervisor.clients.console.approval_plain import PlainApproval
from supervisor.clients.console.daemon_link import Connecting
from supervisor.clients.console.options import ConsoleOptions
from supervisor.clients.console.plain_screen import PlainScreen
from supervisor.clients.console.session_controller import SessionController
from supervisor.clients.console.slash_commands import Leave, execute, is_command, leaves, while_waiting
from supervisor.clients.console.typed_lines import TypedLines
from supervisor.config.settings import Settings

_T = TypeVar("_T")
_LOOK: Final = 0.25
"""Seconds after which it is looked whether the turn waits, and a command has come."""


class PlainConsole:
    """Reads lines and runs them, one after the other."""

    def __init__(self, settings: Settings, options: ConsoleOptions, connecting: Connecting) -> None:
        if sys.stdout is None:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        self._attended = sys.stdin is not None and sys.stdin.isatty()
        self._errors = sys.stderr or io.StringIO()
        self._screen = PlainScreen(sys.stdout, self._errors, attended=self._attended)
        self._controller = SessionController(settings, options, connecting, self._screen)
        self._interrupted = asyncio.Event()
        self._running = False
        self._lines = TypedLines(self._errors, self._or_interrupted, attended=self._attended)
        self._failure: BaseException | None = None

    async def run(self) -> int:
        """Run until the end of the input; return the exit code."""
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGINT, self._interrupt)
        loop.set_exception_handler(lambda _, context: self._break(context))
        approver = loop.create_task(self._approve_calls())
        try:
            await self._or_interrupted(self._followed(self._controller.open()))
            while (line := self._lines.ahead.pop(0) if self._lines.ahead else await self._lines.line("> ")) is not None:
                if line.strip():
                    await self._one(line)
        except Leave:
            pass
        finally:
            approver.cancel()
            loop.remove_signal_handler(signal.SIGINT)
            self._controller.close()
        return 1 if self._controller.failed else 0

    async def _one(self, line: str) -> None:
        self._running = True
        try:
            begun = execute(self._controller, line) if is_command(line) else self._controller.prompt(line)
            await self._or_interrupted(self._followed(begun))
        finally:
            self._running = False

    async def _followed(self, begun: Coroutine[Any, Any, None]) -> None:
        """Wait for the end of what a line has begun; while a turn waits, obey what comes after that was shown."""
        work = asyncio.ensure_future(begun)
        told = ended = False
        try:
            while not (await asyncio.wait((work,), timeout=_LOOK))[0]:
                for line in await self._lines.there() if self._waits() and not ended else ():
                    ended = line is None
                    if line is None and self._attended:
                        raise Leave
                    if line is not None and not (told and line.startswith("/")):
                        self._lines.set_aside(line, "")
                    elif line is not None and not leaves(line):
                        await while_waiting(self._controller, line)
                    elif line is not None:
                        work.cancel()
                        return await execute(self._controller, line)
                told = self._waits()
            return work.result()
        finally:
            work.cancel()

    def _waits(self) -> bool:
        """Say whether the turn waits for a time or a command, and not for an answer to a question."""
        return self._controller.state.waits and self._screen.asking is None

    def _interrupt(self) -> None:
        """Ctrl-C: cancel the turn; leave where none runs, or when it is pressed again."""
        if self._attended:
            self._errors.write("\n")
        if self._running and not self._controller.cancelling:
            self._controller.cancel()
        else:
            self._interrupted.set()

    def _break(self, context: dict[str, Any]) -> None:
        """Take note that what the daemon said could not be shown: nobody reads it, or there is a bug."""
        self._failure = context.get("exception") or RuntimeError(context.get("message"))
        self._interrupted.set()

    async def _or_interrupted(self, work: Awaitable[_T]) -> _T:
        task = asyncio.ensure_future(work)
        stop = asyncio.ensure_future(self._interrupted.wait())
        try:
            await asyncio.wait((task, stop), return_when=asyncio.FIRST_COMPLETED)
            if self._failure is not None:
                raise self._failure
            if not task.done():
                raise KeyboardInterrupt
            return task.result()
        finally:
            task.cancel()
            stop.cancel()

    async def _approve_calls(self) -> None:
        """Ask about calls, one at a time."""
        while True:
            question = await self._screen.questions.get()
            if question not in self._screen.withdrawn:
                await self._approve(question)

    async def _approve(self, question: PermissionPrompt) -> None:
        """Ask about one call, which has the input until it is decided, here or elsewhere."""
        printed = self._controller.state.output_of(question.params.tool_call.tool_call_id)
        out, columns = self._errors, self._screen.width()
        approval = PlainApproval(question, printed, self._screen.show, out, columns, self._lines)
        deciding = asyncio.ensure_future(approval.decide())
        self._screen.asking, self._screen.ends = question, deciding.cancel
        try:
            with self._lines.for_question():
                await asyncio.wait((deciding,))
        finally:
            deciding.cancel()
            self._screen.asking, self._screen.ends = None, lambda: None
        if deciding.cancelled():
            out.write("\n(this needs no answer any more)\n")
        else:
            deciding.result()
        if not self._running:
            self._lines.prompt("> ")


async def run_plain(settings: Settings, options: ConsoleOptions, connecting: Connecting) -> int:
    """Run the console on standard input and output; return the exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    return await PlainConsole(settings, options, connecting).run()
