"""The input line: what is typed, what was typed before, and the lines that wait for the end of what runs.

Rule: waiting lines are sent as they were typed, one after the other. They go back to the person where a turn fails or
is cancelled, and so does, after its turn, a line that was set aside for a question. The history of all sessions is a
file of JSON strings, one a line, oldest first; it is its owner's alone, and never longer than twice the cap. It cannot
stop the console: lines that cannot be read or written are left out.
"""

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import ThreadedCompleter
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition
from prompt_toolkit.history import History

from supervisor.clients.console.completion import Completions
from supervisor.clients.console.daemon_link import in_thread
from supervisor.clients.console.folded_pastes import FoldedPastes
from supervisor.clients.console.session_controller import SessionController
from supervisor.errors import StrongroomError
from supervisor.system.safe_files import own_file, read_bytes

CAP: Final = 1000
"""Lines that are kept."""
_LONGEST: Final = 10_000
"""Characters; what is longer was pasted, and is not remembered."""


class WaitingLine(NamedTuple):
    """A line that waits; one that was set `aside` for a question is not sent, but the person's again."""

    text: str
    aside: bool


class InputLine(Buffer):
    """The input line; `text` has a word in place of each long paste.

    Args:
        remembered: the file of what was typed.
        typed: is told of every change.
    """

    def __init__(self, controller: SessionController, remembered: Path, typed: Callable[[], None]) -> None:
        super().__init__(
            completer=ThreadedCompleter(Completions(controller)),
            complete_while_typing=Condition(lambda: self.text.startswith("/") and " " not in self.text),
            history=Remembered(remembered),
            multiline=True,
            on_text_changed=lambda _: typed(),
        )
        self._pastes = FoldedPastes()
        self.ahead: list[WaitingLine] = []
        """The lines that wait, in the order in which they were typed."""

    def is_choosing(self) -> bool:
        """Return whether Enter takes a completion, and does not send the line yet."""
        state = self.complete_state
        return state is not None and state.current_completion is not None and not self.text.startswith("/")

    def taken(self) -> str:
        """Return what is typed, with all that was pasted, and begin a line."""
        self.unfold()
        line = self.text
        if line.strip():
            self.append_to_history()
        self.reset()
        return line

    def paste(self, text: str) -> None:
        """Type what was pasted."""
        self.insert_text(self._pastes.folded(text.replace("\r\n", "\n").replace("\r", "\n")))

    def unfold(self) -> None:
        """Show all that was pasted."""
        whole = self._pastes.unfolded(self.text)
        if whole != self.text:
            self.set_document(Document(whole, len(whole)))

    def ends_in_paste(self) -> bool:
        """Return whether the word of a paste stands before the cursor."""
        return bool(self._pastes.length_before(self.document.text_before_cursor))

    def delete_paste(self) -> None:
        """Delete that word."""
        self.delete_before_cursor(self._pastes.length_before(self.document.text_before_cursor))

    def wait(self, *, aside: bool = False) -> None:
        """Let what is typed wait."""
        line = self.text
        if not aside:
            self.taken()
        if line.strip():
            self.ahead.append(WaitingLine(line, aside))
        self.reset()

    def next(self) -> str:
        """Return the first line that is to be sent; "" where there is none. Those set aside are the person's again."""
        waiting = [line for line in self.ahead if not line.aside]
        self._hand_back([line for line in self.ahead if line.aside])
        first, self.ahead = waiting[:1], waiting[1:]
        return self._pastes.unfolded(first[0].text) if first else ""

    def reclaim(self) -> None:
        """Put the last line that waits before what is typed."""
        *rest, last = self.ahead
        self._hand_back([last])
        self.ahead = rest

    def hand_back(self) -> None:
        """Put all lines that wait before what is typed."""
        self._hand_back(self.ahead)
        self.ahead = []

    def _hand_back(self, lines: Sequence[WaitingLine]) -> None:
        if lines:
            text = "\n".join([*(line.text for line in lines), *([self.text] if self.text else [])])
            self.text = text
            self.cursor_position = len(text)


class LineOrSearch:
    """The line as questions see it: who searches what they typed before has begun one, too.

    Args:
        searches: says whether that is so.
    """

    def __init__(self, line: InputLine, searches: Callable[[], bool]) -> None:
        self._line = line
        self._searches = searches

    @property
    def text(self) -> str:
        """What is typed; not empty either while it is searched for."""
        return self._line.text or (" " if self._searches() else "")

    def insert_text(self, data: str) -> None:
        """Type a text into it."""
        self._line.paste(data)


class Remembered(History):
    """The file of what was typed, for prompt_toolkit."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path

    async def load(self) -> AsyncGenerator[str, None]:
        """Yield the lines, newest first; the file is read in a thread, after the first drawing."""
        if not self._loaded:
            self._loaded = True
            lines = await asyncio.wrap_future(in_thread(lambda: load(self._path)))
            self._loaded_strings = [*self._loaded_strings, *reversed(lines)]
        for line in self._loaded_strings:
            yield line

    def load_history_strings(self) -> Iterable[str]:
        """Return the lines, newest first."""
        return reversed(load(self._path))

    def store_string(self, string: str) -> None:
        """Remember a line."""
        append(self._path, string)


def load(path: Path) -> list[str]:
    """Return what was typed, oldest first."""
    try:
        lines = read_bytes(path).splitlines()
    except OSError:
        return []
    found = []
    for line in lines[-CAP:]:
        try:
            found.append(msgspec.json.decode(line, type=str))
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue
    return found


def append(path: Path, text: str) -> None:
    """Remember a line; now and then, forget the oldest."""
    if len(text) > _LONGEST:
        return
    try:
        descriptor = own_file(path, os.O_RDWR | os.O_APPEND)
        with open(descriptor, "r+b") as file:
            file.write(msgspec.json.encode(text) + b"\n")
            file.flush()
            file.seek(0)
            lines = file.read().splitlines(keepends=True)
        if len(lines) > 2 * CAP:
            _replace(path, b"".join(lines[-CAP:]))
    except (OSError, StrongroomError, UnicodeError):
        return


def _replace(path: Path, content: bytes) -> None:
    beside = path.with_name(f"{path.name}.{os.getpid()}")
    with open(own_file(beside, os.O_WRONLY | os.O_TRUNC), "wb") as file:
        file.write(content)
    beside.replace(path)
