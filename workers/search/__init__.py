"""The category `search`: two tools on one program, ripgrep.

Rule: the tools import light; the rest is imported where the category is prepared.

    search_files -> text_search  -> rg_arguments, rg_process, rg_records, hits
    find_files   -> file_listing -> rg_arguments, rg_process, hits
"""

from typing import TYPE_CHECKING, Final

from workers.search.find_files import find_files
from workers.search.search_files import search_files
from workers.search.search_inputs import SearchInputs
from workers.tool import Tool
from workers.wire import messages

if TYPE_CHECKING:
    from workers.confine.steps import Prepared

TOOLS: Final[tuple[Tool, ...]] = (search_files, find_files)


def prepare(start: messages.Start, inputs: SearchInputs) -> "Prepared":
    """Import what searches, and make ripgrep ready.

    Raises:
        ValueError: ripgrep is not there, or cannot run as the worker may, or the root cannot be entered.
    """
    from workers.search.prepare import prepare as made_ready

    return made_ready(start, inputs)
