"""What each key does.

Rule: a table of keys; what they do is a method of the terminal. Editing keys are prompt_toolkit's own.
"""

from typing import Protocol

from prompt_toolkit.filters import Condition, has_completions
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys


class Target(Protocol):
    """What keys act on."""

    def mode(self) -> str:
        """Return what the keys go to."""

    def is_empty(self) -> bool:
        """Return whether nothing is typed."""

    def is_idle(self) -> bool:
        """Return whether nothing runs."""

    def enter(self) -> None:
        """Send, run, or reject: what is typed is ready."""

    def escape(self) -> None:
        """Leave, or reject."""

    def interrupt(self) -> None:
        """Clear, cancel, or leave."""

    def leave(self) -> None:
        """Go."""

    def expand(self) -> None:
        """Show the last call in full."""

    def suspend(self) -> None:
        """Stop, until the shell lets it go on."""


def bindings(target: Target) -> KeyBindings:
    """Return the console's own keys."""
    keys = KeyBindings()
    typing = Condition(lambda: target.mode() == "line")
    empty = typing & Condition(target.is_empty)
    may_escape = Condition(lambda: target.mode() != "line") | (empty & Condition(target.is_idle))

    @keys.add("enter")
    def _(_event: KeyPressEvent) -> None:
        target.enter()

    @keys.add("escape", "enter", filter=Condition(lambda: target.mode() != "reason"))
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.newline(copy_margin=False)

    @keys.add("escape", filter=may_escape)
    def _(_event: KeyPressEvent) -> None:
        target.escape()

    @keys.add("escape", filter=typing & has_completions)
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.cancel_completion()

    @keys.add("c-c")
    @keys.add(Keys.SIGINT)
    def _(_event: KeyPressEvent) -> None:
        target.interrupt()

    @keys.add("c-d", filter=empty)
    def _(_event: KeyPressEvent) -> None:
        target.leave()

    @keys.add("c-o")
    def _(_event: KeyPressEvent) -> None:
        target.expand()

    @keys.add("c-z")
    def _(_event: KeyPressEvent) -> None:
        target.suspend()

    return keys
