"""The texts of a question, as prompt_toolkit has them edited.

Rule: adapters for prompt_toolkit only.
"""

from collections.abc import Callable

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition

from supervisor.clients.console.approval_queue import ApprovalQueue


class EditedText(Buffer):
    """A text that the person edits; the console puts one there also where they may not."""

    def put(self, text: str, at: int = 0) -> None:
        self.set_document(Document(text, at), bypass_readonly=True)


def edited_texts(approvals: Callable[[], ApprovalQueue]) -> tuple[EditedText, EditedText, EditedText]:
    """Return the box, the line for a reason, and that for a rule, of the queue that there is by then."""

    def engage(_box: Buffer) -> None:
        approvals().engage()

    box = EditedText(
        multiline=True,
        read_only=Condition(lambda: not approvals().editable),
        on_text_changed=engage,
        on_cursor_position_changed=engage,
    )
    return box, EditedText(multiline=False), EditedText(multiline=False)
