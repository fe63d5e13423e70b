"""Screen of a console without a terminal: lines to standard output and standard error.

Rule: answers, and what was asked for with a slash, go to standard output as they come; everything else goes to standard
error. No escape sequence ever.
"""

import asyncio
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, TextIO

from supervisor.clients.connection.link_events import PermissionPrompt
from supervisor.clients.console import styled_text
from supervisor.clients.console.choice_list import Choice
from supervisor.clients.console.shown import AnswerEnds, Document, Item, Lines, Said, ShownPrompt
from supervisor.display.columns import broken, width
from supervisor.display.escape import visible
from supervisor.display.fragments import plain
from supervisor.display.themes import ToneTable
from supervisor.errors import ConfigError

_NOBODY: Final = "Nobody is there to be asked: the console's input is not a terminal."
_WIDTH: Final = 100
_INDENT: Final = "  "
"""What rows of an answer begin with on a terminal: frames are in the first column."""


class PlainScreen:
    """Writes items as they come."""

    def __init__(self, out: TextIO, errors: TextIO, *, attended: bool) -> None:
        self._out, self._errors = out, errors
        self.questions: asyncio.Queue[PermissionPrompt] = asyncio.Queue()
        self.withdrawn: set[PermissionPrompt] = set()
        self.asking: PermissionPrompt | None = None
        """The question that is asked now."""
        self.ends: Callable[[], object] = lambda: None
        """Ends that, for it was withdrawn."""
        self._attended = attended
        self._one_terminal = os.isatty(1)
        """Whether a line on standard error would break one on standard output."""
        self._read_at_once = attended and errors.isatty()
        """Whether a line on standard error is broken where a terminal ends."""
        self._said = ""
        self._in_line = False
        self._column = 0
        """Where the terminal's cursor stands in the answer."""

    def show(self, item: Item) -> None:
        match item:
            case Said():
                self._write(item.text)
            case AnswerEnds():
                self._end_line()
                self._said = ""
            case Document():
                self._end_line()
                lines = styled_text.lines_of(item, self.width(), colour=False)
                self._write("".join(f"{plain(line)}\n" for line in lines))
                self._in_line = False
            case ShownPrompt(id="") if self._attended:
                pass  # the terminal shows it already
            case _:
                self._tell(item)

    def _write(self, piece: str) -> None:
        text = visible(piece, prose=True)
        self._out.write(self._indented(text) if self._one_terminal and self._attended else text)
        self._out.flush()
        self._said += piece
        self._in_line = not piece.endswith("\n") if piece else self._in_line

    def _indented(self, text: str) -> str:
        """Return a piece of an answer for a terminal: no row of it begins where a frame could."""
        rows = []
        room = self.width() - 1
        for at, line in enumerate(text.split("\n")):
            begun = self._column if at == 0 else 0
            indent = "" if begun or not line else _INDENT
            first, *rest = broken(" " * begun + indent + line, room)
            more = [part for each in rest for part in broken(each, room - len(_INDENT))]
            rows.append("\n".join([first[begun:], *(_INDENT + part for part in more)]))
            self._column = width(_INDENT + more[-1]) if more else width(first)
        return "\n".join(rows)

    def _end_line(self) -> None:
        self._column = 0
        if self._in_line:
            self._in_line = False
            self._out.write("\n")
            self._out.flush()

    def _tell(self, item: Lines) -> None:
        if self._one_terminal:
            self._end_line()
        for line in styled_text.lines_of(item, self.width(), wrap=self._read_at_once, colour=False):
            self._errors.write(f"{plain(line)}\n")
        self._errors.flush()

    def refresh(self) -> None:
        """There is nothing to draw."""

    def request_approval(self, question: PermissionPrompt) -> None:
        """Ask, or decline where nobody is there."""
        if self._attended:
            self.questions.put_nowait(question)
        else:
            question.decline(_NOBODY)

    def withdraw_approval(self, question: PermissionPrompt | None) -> None:
        if question is None:
            while not self.questions.empty():
                self.questions.get_nowait()
        else:
            self.withdrawn.add(question)
        if question in (None, self.asking):
            self.ends()

    def turn_ended(self, *, ok: bool) -> None:
        """Lines that wait are sent, however it ended."""

    def drop_unfinished(self) -> int:
        """Everything that was said is out."""
        return len(self._said)

    def clear(self) -> None:
        """There is no screen to clear."""

    def copy(self, _text: str) -> str:
        raise ConfigError("Only the console on a terminal copies; /export writes a file.")

    async def open_file(self, _path: Path) -> None:
        raise ConfigError("Only the console on a terminal opens an editor.")

    theme_name = ""

    def take_theme(self, _theme: ToneTable) -> None:
        raise ConfigError("Only the console on a terminal has colours.")

    picks = False

    async def pick(self, _title: str, _choices: Sequence[Choice], _current: str) -> str | None:
        """Nothing is taken: lists are shown."""
        return None

    def width(self) -> int:
        return shutil.get_terminal_size((_WIDTH, 24)).columns if self._attended else _WIDTH
