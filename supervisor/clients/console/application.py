"""Adapters for prompt_toolkit: an application that survives resizing, the input history, completions.

Rule: adapters only; `input_history` and `completion` do the work.
"""

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, Iterable
from pathlib import Path
from typing import Any, Final

from prompt_toolkit.application import Application
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.data_structures import Size
from prompt_toolkit.document import Document
from prompt_toolkit.history import History
from prompt_toolkit.output.vt100 import Vt100_Output

from supervisor.clients.console import completion, input_history
from supervisor.clients.console.daemon_link import in_thread
from supervisor.clients.console.session_controller import SessionController
from supervisor.clients.console.slash_commands import known

_ERASE_DOWN: Final = "\x1b[K\x1b7\x1b[B\x1b[J\x1b8"
"""The line; then, from the next one on, the rest; and back."""


class BottomLines(Application[None]):
    """Finds the beginning of its lines again when the terminal was made narrower, and has broken them."""

    def _on_resize(self) -> None:
        screen = self.renderer.last_rendered_screen
        size = self.output.get_size()
        if screen is not None and size.columns:
            cursor = screen.get_cursor_position(self.layout.current_window)
            broken = sum(_last_column(screen, row) // size.columns for row in range(cursor.y))
            self.output.cursor_up(broken + cursor.x // size.columns)
        super()._on_resize()


class TerminalOutput(Vt100_Output):
    """Writes to the terminal that standard output is, and never asks it anything."""

    def __init__(self) -> None:
        super().__init__(sys.stdout, size, enable_bell=False, enable_cpr=False)

    def erase_down(self) -> None:
        """Erase from the cursor on; not in one piece: tmux keeps a screen erased from its first cell as history."""
        self.write_raw(_ERASE_DOWN)


def _last_column(screen: Any, row: int) -> int:
    """Return the last column of a drawn row in which something stands; 0 for none."""
    cells = screen.data_buffer.get(row) or {}
    return max((column for column, cell in cells.items() if cell.char.strip()), default=0)


def size() -> Size:
    """Return the terminal's size, and that of an ordinary one where it does not say."""
    try:
        columns, rows = os.get_terminal_size(1)
    except OSError:
        columns = rows = 0
    return Size(rows=rows or 24, columns=columns or 80)


class Remembered(History):
    """The file of what was typed."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path

    async def load(self) -> AsyncGenerator[str, None]:
        """Yield the lines, newest first; the file is read in a thread, after the first drawing."""
        if not self._loaded:
            self._loaded = True
            lines = await asyncio.wrap_future(in_thread(lambda: input_history.load(self._path)))
            self._loaded_strings = [*self._loaded_strings, *reversed(lines)]
        for line in self._loaded_strings:
            yield line

    def load_history_strings(self) -> Iterable[str]:
        """Return the lines, newest first."""
        return reversed(input_history.load(self._path))

    def store_string(self, string: str) -> None:
        """Remember a line."""
        input_history.append(self._path, string)


class Completions(Completer):
    """Offers the items of `completion`."""

    def __init__(self, controller: SessionController) -> None:
        self._controller = controller

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """Yield what may follow the cursor: without the Tab key only commands."""
        if not complete_event.completion_requested and not document.text.startswith("/"):
            return
        state = self._controller.state
        choices = {option.id: [choice.value for choice in option.options] for option in state.options}
        choices["undo"] = ["turn", "session", "force"]
        choices["resume"] = [info.session_id for info in self._controller.known_sessions]
        for offer in completion.offers(
            document.text_before_cursor,
            root=state.facts.root,
            tools=state.facts.tools,
            commands=known(self._controller),
            choices=choices,
        ):
            yield Completion(
                offer.text, -offer.replaces, display=offer.shown or offer.text, display_meta=offer.about or None
            )
