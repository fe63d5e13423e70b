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
from supervisor.clients.console.file_finder import FileFinder
from supervisor.clients.console.input_line import InputLine
from supervisor.clients.console.key_actions import KeyActions
from supervisor.clients.console.picker import Picker

_WIDER: Final[tuple[tuple[str, extensions.Scope | None], ...]] = (("s", "session"), ("a", "always"), ("u", None))
"""Keys that, with Alt, say yes to more than what is shown."""
_ALWAYS: Final = Always()


class Target(Protocol):
    """What keys act on."""

    def mode(self) -> str:
        """Return what the keys go to."""

    def enter(self) -> None:
        """Send, run, or reject: what is typed is ready."""

    def edit(self) -> None:
        """Let the person's own editor have the line."""


def bindings(
    target: Target,
    actions: KeyActions,
    line: InputLine,
    finder: FileFinder,
    picker: Picker,
    approvals: ApprovalQueue,
    suspend: Callable[[], None],
) -> KeyBindings:
    """Return the console's own keys."""
    keys = KeyBindings()
    typing = Condition(lambda: target.mode() == "line") & ~is_searching
    reviewing = Condition(lambda: target.mode() == "review")
    empty = typing & Condition(lambda: not line.text)
    asked = Condition(lambda: approvals.waits)
    commands = ~vi_mode | vi_navigation_mode  # where Escape does not end the writing of a line
    rows: list[tuple[Callable[[], None], tuple[str, ...], Filter]] = [
        (target.enter, ("enter",), ~is_searching),
        (approvals.edit, ("tab",), reviewing),
        (actions.escape, ("escape",), ~is_searching & (~typing | (commands & Condition(actions.escapes)))),
        (line.lines.reclaim, ("up",), empty & Condition(lambda: bool(line.lines.ahead))),
        (target.edit, ("c-g",), typing),
        (line.delete_paste, ("backspace",), typing & Condition(line.ends_in_paste)),
        (actions.interrupt, ("c-c",), ~is_searching),
        (actions.interrupt, (Keys.SIGINT,), _ALWAYS),
        (actions.leave, ("c-d",), empty),
        (actions.expand, ("c-o",), _ALWAYS),
        (actions.next_mode, ("s-tab",), ~has_completions),
        (partial(approvals.turn, forward=True), ("pagedown",), asked),
        (partial(approvals.turn, forward=False), ("pageup",), asked),
        (suspend, ("c-z",), _ALWAYS),
        *((partial(approvals.widen, scope), ("escape", key), reviewing) for key, scope in _WIDER),
    ]
    for act, pressed, when in rows:
        keys.add(*pressed, filter=when)(lambda _event, act=act: act())
    keys.add("escape", "enter", filter=typing | reviewing)(
        lambda event: event.current_buffer.newline(copy_margin=False)
    )
    _bind_text(keys, line, typing)
    _bind_lists(keys, finder, typing, picker, Condition(lambda: target.mode() == "pick"))
    _bind_answers(keys, approvals, reviewing, Condition(lambda: target.mode() == "confirm"))
    return keys


def _bind_text(keys: KeyBindings, line: InputLine, typing: Filter) -> None:

    @keys.add("escape", filter=typing & has_completions)
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.cancel_completion()

    @keys.add(Keys.BracketedPaste, filter=typing)
    def _(event: KeyPressEvent) -> None:
        line.lines.paste(event.data)

    # Alt with a key that does nothing is no Escape
    keys.add("escape", Keys.Any, filter=typing & ~vi_mode)(lambda _event: None)


def _bind_lists(keys: KeyBindings, finder: FileFinder, typing: Filter, picker: Picker, picking: Filter) -> None:
    """Bind what chooses among the files that a line may name, or in a list in its place."""
    finding = typing & Condition(lambda: finder.is_open)
    rows: list[tuple[Callable[[], None], str, Filter]] = [
        (finder.take, "tab", finding),
        (finder.take, "enter", finding & Condition(lambda: finder.takes)),
        (partial(finder.move, 1), "down", finding),
        (partial(finder.move, -1), "up", finding),
        (finder.leave, "escape", finding),
        (picker.take, "enter", picking),
        (partial(picker.move, 1), "down", picking),
        (partial(picker.move, -1), "up", picking),
        *((picker.leave, key, picking) for key in ("escape", "c-c", Keys.SIGINT)),
    ]
    for act, key, when in rows:
        keys.add(key, filter=when)(lambda _event, act=act: act())


def _bind_answers(keys: KeyBindings, approvals: ApprovalQueue, reviewing: Filter, confirming: Filter) -> None:
    """Bind the letters that a question takes; nothing that is pasted confirms anything."""

    @keys.add(Keys.Any, filter=confirming)
    def _(event: KeyPressEvent) -> None:
        approvals.confirm(event.data)

    keys.add(Keys.BracketedPaste, filter=confirming)(lambda _event: None)

    @keys.add(Keys.Any, filter=reviewing)
    def _(event: KeyPressEvent) -> None:
        if event.data.isprintable():
            approvals.letter(event.data)

    @keys.add(Keys.BracketedPaste, filter=reviewing)
    def _(event: KeyPressEvent) -> None:
        approvals.letter(event.data.replace("\r\n", "\n").replace("\r", "\n"), pasted=True)
