"""The category `search`: three tools on one program, ripgrep.

Rule: the tools import light; the rest is imported where the category is prepared.

    search_files -> text_search  -> rg_arguments, rg_process, rg_records, hits
    find_files   -> file_listing -> rg_arguments, listed_names -> rg_process, hits
    rank_files   -> known_files  -> rg_arguments, listed_names -> rg_process, file_order
"""

from typing import Final

from workers.search.find_files import find_files
from workers.search.rank_files import rank_files
from workers.search.search_files import search_files
from workers.tool import Tool

TOOLS: Final[tuple[Tool, ...]] = (search_files, find_files, rank_files)
