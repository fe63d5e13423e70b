"""The category `restore`: it takes back what a committed call did, from what was kept of it.

Rule: no model is offered its tools. A person asks for `undo`, `rewind`; `settle` is for a commit whose end nobody saw.
The tools import light; the rest is imported where the category is prepared.

    undo, settle -> restorer -> pack           what was kept
    rewind              |    -> merged_packs   the same of several calls
                             -> restore_plan   what is there now, and what is to be done about it
                             -> upper_layer    what lies over the root when all is restored, of `workers/commit`
                             -> settlement     what a killed commit has left
"""

from typing import TYPE_CHECKING, Final

from workers.restore.restore_inputs import RestoreInputs
from workers.restore.rewind import rewind
from workers.restore.settle import settle
from workers.restore.undo import undo
from workers.tool import Tool
from workers.wire import messages

if TYPE_CHECKING:
    from workers.confine.steps import Prepared

TOOLS: Final[tuple[Tool, ...]] = (undo, rewind, settle)


def prepare(start: messages.Start, inputs: RestoreInputs) -> "Prepared":
    """Import what restores, and open where packs are and where there is room for a layer.

    Raises:
        OSError: one of them cannot be opened.
        ValueError: one of them is not this user's own.
    """
    from workers.restore.private_tree import prepare as made_ready

    return made_ready(start, inputs)
