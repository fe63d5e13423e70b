"""The input line of the console, for prompt_toolkit: what is typed, what was typed before, and what Tab offers.

Rule: adapters for prompt_toolkit only.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable
from pathlib import Path

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import CompleteEvent, Completer, Completion, ThreadedCompleter
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition
from prompt_toolkit.history import History

from supervisor.clients.console.daemon_link import in_thread
from supervisor.clients.console.offers import offered
from supervisor.clients.console.session_controller import SessionController
from supervisor.clients.console.typed_history import append, load
from supervisor.clients.console.waiting_lines import WaitingLines


class Completions(Completer):
    """Offers what fits the session, for the Tab key."""

    def __init__(self, controller: SessionController) -> None:
        self._controller = controller

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """Yield what may follow the cursor: without the Tab key only commands."""
        for offer in offered(self._controller, document.text_before_cursor, wanted=complete_event.completion_requested):
            yield Completion(offer.text, -offer.length, display=offer.shown or None, display_meta=offer.about or None)


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
        self.lines = WaitingLines(self)
        """The line as a whole, and those that wait."""

    def is_choosing(self) -> bool:
        """Return whether Enter takes a completion, and does not send the line yet."""
        state = self.complete_state
        return state is not None and state.current_completion is not None and not self.text.startswith("/")

    def put(self, text: str) -> None:
        self.set_document(Document(text, len(text)))

    def before_cursor(self) -> str:
        return self.document.text_before_cursor

    def replace_before(self, count: int, text: str) -> None:
        self.delete_before_cursor(count)
        self.insert_text(text)

    def remember(self) -> None:
        self.append_to_history()

    def ends_in_paste(self) -> bool:
        return bool(self.lines.paste_before(self.document.text_before_cursor))

    def delete_paste(self) -> None:
        self.delete_before_cursor(self.lines.paste_before(self.document.text_before_cursor))


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
        return self._line.text or (" " if self._searches() else "")

    def insert_text(self, data: str) -> None:
        self._line.lines.paste(data)


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
        append(self._path, string)
