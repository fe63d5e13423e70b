"""Lines that a person types on a terminal, or that a pipe holds: for the prompt, or for a question.

Rule: while a question is asked, what is typed belongs to it. It is answered by a line that was begun when it could be
read for `READABLE_S`, and `QUIET_S` after the line before, and not pasted among others; every other line is set aside.
"""

import asyncio
import os
import select
import sys
import termios
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from typing import Any, Final, Protocol, TextIO

from supervisor.clients.console import answer_guard
from supervisor.clients.console.daemon_link import in_thread
from supervisor.display.escape import visible

_CHUNK: Final = 2**16


class Waiting(Protocol):
    """Waits for something, unless Ctrl-C or a failure comes first, and raises that."""

    async def __call__(self, work: Awaitable[Any]) -> Any:
        """Return what it comes to."""


class TypedLines:
    """Reads standard input.

    Args:
        out: takes prompts.
        attended: whether a person types on a terminal.
        wait: waits for what is typed.
    """

    def __init__(self, out: TextIO, wait: Waiting, *, attended: bool) -> None:
        self.ahead: list[str] = []
        """Lines that wait for the end of the turn."""
        self._out = out
        self._attended = attended
        self._wait = wait
        self._input = b""
        self._readers: list[asyncio.Future[None] | None] = []
        """Who waits for the terminal: the last one is next. None is a question, until it listens."""

    async def line(self, prompt: str) -> str | None:
        """Return the next line without its end; None at the end of the input."""
        self.prompt(prompt)
        while b"\n" not in self._input and sys.stdin is not None:
            if self._attended:
                await self._wait(self._typed())
                if not _is_there():  # it went to a question
                    continue
            chunk = _read() if self._attended else await self._wait(asyncio.wrap_future(in_thread(_read)))
            if not chunk:
                break
            self._input += chunk
        line, end, self._input = self._input.partition(b"\n")
        return line.decode("utf-8", "replace").removesuffix("\r") if line or end else None

    async def text(self, prompt: str) -> str | None:
        """Return the next line, unless it was pasted among others; None at the end."""
        while (line := await self.line(prompt)) is not None and self._has_line():
            self.set_aside(line)
        return line

    async def answer(self, prompt: str) -> str | None:
        """Return the next line that was begun when the prompt could be read, and not pasted; None at the end."""
        wait = answer_guard.READABLE_S
        while True:
            while self._has_line():
                if (early := await self.line("")) is None:
                    return None
                self.set_aside(early)
            self._input += _half_typed()
            self.prompt(prompt)
            if wait:
                await self._wait(asyncio.sleep(wait))
                wait = answer_guard.QUIET_S
                if self._has_line():
                    continue
                self._input += _half_typed()
            is_early = bool(self._input)
            line = await self.line("")
            if line is None or not (is_early or self._has_line()):
                return line
            self.set_aside(line)

    async def there(self) -> list[str | None]:
        """Return the lines that are there; None is the end of the input."""
        lines: list[str | None] = []
        while self._has_line() and None not in lines:
            lines.append(await self.line(""))
        return lines

    def set_aside(self, line: str, but: str = "not an answer, but ") -> None:
        """Keep a line that answers nothing; `but` says so, where something was asked."""
        self.ahead.append(line)
        self._out.write(f"({but}for after this turn: {visible(line)})\n")

    def prompt(self, prompt: str) -> None:
        if self._attended:
            self._out.write(prompt)
            self._out.flush()

    @contextmanager
    def for_question(self) -> Iterator[None]:
        """Let nobody have what is typed meanwhile but who calls `answer` and `text`."""
        self._readers.append(None)
        self._listen()
        try:
            yield
        finally:
            self._readers.remove(None)
            self._listen()

    async def _typed(self) -> None:
        """Wait until the terminal has something for who asked last."""
        mine: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._readers.append(mine)
        self._listen()
        try:
            await mine
        finally:
            self._readers.remove(mine)
            self._listen()

    def _listen(self) -> None:
        loop = asyncio.get_running_loop()
        loop.remove_reader(0)
        reader = self._readers[-1] if self._readers else None
        if reader is not None:
            loop.add_reader(0, _wake, reader)
            if b"\n" in self._input:
                _wake(reader)

    def _has_line(self) -> bool:
        return b"\n" in self._input or _is_there()


def _wake(reader: "asyncio.Future[None]") -> None:
    if not reader.done():
        reader.set_result(None)


def _is_there() -> bool:
    """Say whether a read would not wait."""
    return bool(select.select([0], [], [], 0)[0])


def _read() -> bytes:
    """Return what there is on standard input; not through `sys.stdin`, whose lock would outlive us."""
    try:
        return os.read(0, _CHUNK)
    except OSError:
        return b""


def _half_typed() -> bytes:
    """Take from the terminal what was typed of a line that is not finished; a Ctrl-D, which is a zero byte, is not."""
    try:
        lines = termios.tcgetattr(0)
        keys = [*lines[:3], lines[3] & ~termios.ICANON, *lines[4:]]
        try:
            termios.tcsetattr(0, termios.TCSANOW, keys)
            return _read().replace(b"\0", b"") if _is_there() else b""
        finally:
            termios.tcsetattr(0, termios.TCSANOW, lines)
    except termios.error:  # it is gone
        return b""
