"""Key bindings of the console.

Rule: a table of keys; each calls a method of the terminal. Editing keys are prompt_toolkit's own.
"""

from collections.abc import Callable
from typing import Final, Protocol

from prompt_toolkit.filters import Condition, has_completions
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys

from supervisor.acp import extensions

_WIDER: Final[tuple[tuple[str, extensions.Scope | None], ...]] = (("s", "session"), ("a", "always"), ("u", None))
"""Keys that, with Alt, say yes to more than what is shown."""


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
        """Show what is asked about, or the last call, in full."""

    def widen(self, to: extensions.Scope | None) -> None:
        """Say yes for longer; None: for outside of the sandbox."""

    def confirm(self, said: str) -> None:
        """Take a key as an answer."""

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

    @keys.add("escape", "enter", filter=Condition(lambda: target.mode() in ("line", "review")))
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

    _review_keys(keys, target)
    return keys


def _review_keys(keys: KeyBindings, target: Target) -> None:
    """Add the keys that say yes to more than what is shown, and those that confirm it."""
    reviewing = Condition(lambda: target.mode() == "review")
    for key, scope in _WIDER:
        keys.add("escape", key, filter=reviewing)(_widening(target, scope))

    @keys.add(Keys.Any, filter=Condition(lambda: target.mode() == "confirm"))
    def _(event: KeyPressEvent) -> None:
        target.confirm(event.data)


def _widening(target: Target, scope: extensions.Scope | None) -> Callable[[KeyPressEvent], None]:
    return lambda _event: target.widen(scope)
