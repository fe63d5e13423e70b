"""Key bindings of the console.

Rule: a table of keys; each calls a method of the terminal or of its approvals. Editing keys are prompt_toolkit's own.
"""

from collections.abc import Callable
from functools import partial
from typing import Final, Protocol

from prompt_toolkit.filters import Always, Condition, Filter, has_completions, is_searching, vi_mode, vi_navigation_mode
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys

from supervisor.acp import extensions
from supervisor.clients.console.approval_queue import ApprovalQueue

_WIDER: Final[tuple[tuple[str, extensions.Scope | None], ...]] = (("s", "session"), ("a", "always"), ("u", None))
"""Keys that, with Alt, say yes to more than what is shown."""
_ALWAYS: Final = Always()


class Target(Protocol):
    """What keys act on."""

    def mode(self) -> str:
        """Return what the keys go to."""

    def is_empty(self) -> bool:
        """Return whether nothing is typed."""

    def escapes(self) -> bool:
        """Return whether Escape in the line is of use."""

    def waits(self) -> bool:
        """Return whether a line waits."""

    def reclaim(self) -> None:
        """Let the person have the last line again that waits."""

    def enter(self) -> None:
        """Send, run, or reject: what is typed is ready."""

    def escape(self) -> None:
        """Leave, reject, or interrupt."""

    def edit(self) -> None:
        """Let the person's own editor have the line."""

    def paste(self, text: str) -> None:
        """Type what was pasted into the line."""

    def ends_in_paste(self) -> bool:
        """Return whether a folded paste stands before the cursor."""

    def delete_paste(self) -> None:
        """Delete that."""

    def interrupt(self) -> None:
        """Clear, cancel, or leave."""

    def leave(self) -> None:
        """Go."""

    def next_mode(self) -> None:
        """Ask about other changes than now."""

    def expand(self) -> None:
        """Show what is asked about, or the last call, in full."""


def bindings(target: Target, approvals: ApprovalQueue, suspend: Callable[[], None]) -> KeyBindings:
    """Return the console's own keys."""
    keys = KeyBindings()
    typing = Condition(lambda: target.mode() == "line") & ~is_searching
    reviewing = Condition(lambda: target.mode() == "review")
    confirming = Condition(lambda: target.mode() == "confirm")
    empty = typing & Condition(target.is_empty)

    def bind(act: Callable[[], None], *pressed: str, when: Filter = _ALWAYS) -> None:
        keys.add(*pressed, filter=when)(lambda _event: act())

    bind(target.enter, "enter", when=~is_searching)
    bind(approvals.edit, "tab", when=reviewing)
    commands = ~vi_mode | vi_navigation_mode  # where Escape does not end the writing of a line
    bind(target.escape, "escape", when=~is_searching & (~typing | (commands & Condition(target.escapes))))
    bind(target.reclaim, "up", when=empty & Condition(target.waits))
    bind(target.edit, "c-g", when=typing)
    bind(target.delete_paste, "backspace", when=typing & Condition(target.ends_in_paste))
    bind(target.interrupt, "c-c", when=~is_searching)
    bind(target.interrupt, Keys.SIGINT)
    bind(target.leave, "c-d", when=empty)
    bind(target.expand, "c-o")
    bind(target.next_mode, "s-tab", when=~has_completions)
    asked = Condition(lambda: approvals.waits)
    bind(partial(approvals.turn, forward=True), "pagedown", when=asked)
    bind(partial(approvals.turn, forward=False), "pageup", when=asked)
    bind(suspend, "c-z")
    for key, scope in _WIDER:
        bind(partial(approvals.widen, scope), "escape", key, when=reviewing)

    @keys.add("escape", "enter", filter=typing | reviewing)
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.newline(copy_margin=False)

    @keys.add("escape", filter=typing & has_completions)
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.cancel_completion()

    @keys.add(Keys.Any, filter=confirming)
    def _(event: KeyPressEvent) -> None:
        approvals.confirm(event.data)

    @keys.add(Keys.BracketedPaste, filter=typing)
    def _(event: KeyPressEvent) -> None:
        target.paste(event.data)

    # Alt with a key that does nothing is no Escape
    keys.add("escape", Keys.Any, filter=typing & ~vi_mode)(lambda _event: None)
    keys.add(Keys.BracketedPaste, filter=confirming)(lambda _event: None)  # nothing that is pasted confirms anything

    @keys.add(Keys.Any, filter=reviewing)
    def _(event: KeyPressEvent) -> None:
        if event.data.isprintable():
            approvals.letter(event.data)

    @keys.add(Keys.BracketedPaste, filter=reviewing)
    def _(event: KeyPressEvent) -> None:
        approvals.letter(event.data.replace("\r\n", "\n").replace("\r", "\n"), pasted=True)

    return keys
