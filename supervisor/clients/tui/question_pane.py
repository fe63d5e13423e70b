"""A question on the full screen: the text that can be edited in a green border, its effects, and what is confirmed.

Rule: every key goes to the queue of questions (`approval_queue`), which knows whether it was meant; nothing here says
yes by itself.
"""

from collections.abc import Callable
from typing import Final

from textual import events
from textual.content import Content
from textual.document._document import EditResult
from textual.document._edit import Edit
from textual.style import Style
from textual.widgets import Input, TextArea
from textual.widgets.text_area import Selection

from supervisor.acp import extensions
from supervisor.clients.console.approval_queue import ApprovalQueue
from supervisor.clients.tui.prompt_area import NEW_LINE
from supervisor.clients.tui.rows_view import RowsView

_WIDER: Final[dict[str, extensions.Scope | None]] = {"alt+s": "session", "alt+a": "always", "alt+u": None}
"""Keys that say yes to more than what is shown."""
_KEYS: Final = {"Enter": "enter", "Esc": "escape", "Tab": "tab", "Alt-S": "alt+s", "Alt-A": "alt+a", "Alt-U": "alt+u"}
"""Keys by how hints name them."""


def clickable(hint: str) -> Content:
    """Return what the keys do, as words that can be clicked on: each is pressed so, and counts as the key counts."""
    parts: list[Content] = []
    for part in hint.split(" · "):
        name = part.split(" ", 1)[0]
        key = _KEYS.get(name, name.lower() if len(name) == 1 else "")
        style = Style.from_meta({"@click": f"app.answer({key!r})"}) if key else Style.null()
        parts += [Content(" · "), Content.styled(part, style)]
    return Content("").join(parts[1:])


class QuestionBox(TextArea):
    """The text that a question is about.

    Args:
        approvals: returns the queue.
        enter: lets the call run as it stands, if it may.
        escape: asks for the reason of a no.
        changed: is told of each edit.
    """

    def __init__(
        self,
        approvals: Callable[[], ApprovalQueue],
        enter: Callable[[], None],
        escape: Callable[[], None],
        changed: Callable[[], None],
    ) -> None:
        self._putting = True
        super().__init__(id="box", soft_wrap=True, show_line_numbers=False, highlight_cursor_line=False)
        self.cursor_blink = False
        self._approvals = approvals
        self._enter = enter
        self._escape = escape
        self._changed = changed
        self._putting = False

    def put(self, text: str, at: int = 0) -> None:
        """Show another text, with the cursor at its beginning, or its end."""
        self._putting = True
        self.read_only = not self._approvals().editable
        self.load_text(text)
        self.move_cursor(self.document.end if at else (0, 0))
        self._putting = False

    def insert_text(self, data: str) -> None:
        self.insert(data)

    def edit(self, edit: Edit) -> EditResult:
        result = super().edit(edit)
        self._engage()
        return result

    def watch_selection(self, before: Selection, now: Selection) -> None:
        """Who moves the cursor edits."""
        if before != now:
            self._engage()

    def _engage(self) -> None:
        if not self._putting:
            self._approvals().engage()
            self._changed()

    def press(self, key: str) -> bool:
        """Do what a key means; return whether it means anything."""
        approvals = self._approvals()
        if key in NEW_LINE:
            if approvals.editable:
                self.insert("\n")
        elif key in _WIDER:
            approvals.widen(_WIDER[key])
        elif key == "enter":
            self._enter()
        elif key == "escape":
            self._escape()
        elif key == "tab":
            approvals.edit()
        else:
            return False
        return True

    async def _on_key(self, event: events.Key) -> None:
        if not self.press(event.key):
            if not event.is_printable or event.character is None:
                return
            self._approvals().letter(event.character)
        event.stop()
        event.prevent_default()

    async def _on_mouse_down(self, event: events.MouseDown) -> None:
        if event.get_content_offset(self) is None:  # a word of the border that is clicked on edits nothing
            event.prevent_default()

    async def _on_paste(self, event: events.Paste) -> None:
        event.prevent_default()
        self._approvals().letter(event.text.replace("\r\n", "\n").replace("\r", "\n"), pasted=True)


class Confirmation(RowsView, can_focus=True):
    """What has to be confirmed, letter by letter; nothing that is pasted confirms anything.

    Args:
        approvals: returns the queue.
        escape: is a no.
    """

    def __init__(self, approvals: Callable[[], ApprovalQueue], escape: Callable[[], None]) -> None:
        super().__init__(id="confirmation")
        self._approvals = approvals
        self._escape = escape

    async def _on_key(self, event: events.Key) -> None:
        if event.key == "escape":
            self._escape()
        elif event.is_printable and event.character is not None:
            self._approvals().confirm(event.character)
        else:
            return
        event.stop()
        event.prevent_default()


class EditedLine(Input):
    """A line for the reason of a no, or for a rule.

    Args:
        enter: takes it.
        escape: leaves it.
    """

    def __init__(self, name: str, prompt: str, enter: Callable[[], None], escape: Callable[[], None]) -> None:
        super().__init__(id=name, compact=True, placeholder=prompt, select_on_focus=False)
        self._acts = {"enter": enter, "escape": escape}

    @property
    def text(self) -> str:
        return self.value

    def put(self, text: str, at: int = 0) -> None:
        self.value = text
        self.cursor_position = at

    def insert_text(self, data: str) -> None:
        self.insert_text_at_cursor(data)

    async def _on_key(self, event: events.Key) -> None:
        act = self._acts.get(event.key)
        if act is not None:
            act()
            event.stop()
            event.prevent_default()
