"""The input line, and the lines that wait until the session is open.

Rule: a waiting line is sent as it was typed. Lines behind one that starts a turn go back to the person, for the turn
may change their mind.
"""

from collections.abc import Callable
from pathlib import Path

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import ThreadedCompleter
from prompt_toolkit.filters import Condition

from supervisor.clients.console.application import Completions, Remembered
from supervisor.clients.console.session_controller import SessionController


class InputLine:
    """The input line.

    Args:
        remembered: the file of what was typed.
        typed: is told of every change.
    """

    def __init__(self, controller: SessionController, remembered: Path, typed: Callable[[], None]) -> None:
        self.buffer = Buffer(
            completer=ThreadedCompleter(Completions(controller)),
            complete_while_typing=Condition(lambda: self.text.startswith("/") and " " not in self.text),
            history=Remembered(remembered),
            multiline=True,
            on_text_changed=lambda _: typed(),
        )
        self.ahead: list[str] = []
        """The lines that wait."""

    @property
    def text(self) -> str:
        """What is typed."""
        return self.buffer.text

    def is_choosing(self) -> bool:
        """Return whether Enter takes a completion, and does not send the line yet."""
        state = self.buffer.complete_state
        return state is not None and state.current_completion is not None and not self.text.startswith("/")

    def taken(self) -> str:
        """Return what is typed, and begin a line."""
        line = self.text
        if line.strip():
            self.buffer.append_to_history()
        self.buffer.reset()
        return line

    def wait(self) -> None:
        """Let what is typed wait."""
        line = self.taken()
        if line.strip():
            self.ahead.append(line)

    def next(self) -> str:
        """Return the first line that waits."""
        line, *self.ahead = self.ahead
        if not line.startswith("/"):
            self.hand_back()
        return line

    def hand_back(self) -> None:
        """Put the lines that wait before what is typed."""
        text = "\n".join([*self.ahead, self.text] if self.text else self.ahead)
        if self.ahead:
            self.ahead = []
            self.buffer.text = text
            self.buffer.cursor_position = len(text)
