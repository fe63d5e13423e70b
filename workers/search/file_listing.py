"""One listing of the files, in one run of ripgrep.

Rule: as list_files, but for what .gitignore and its like exclude. The whole tree is listed, because the first in order
may come last.
"""

from typing import Final

from workers.search import rg_arguments
from workers.search.hits import First
from workers.search.listed_names import decoded, listed_names
from workers.search.rg_process import Overdue
from workers.search.searcher import Searcher
from workers.tool import Result, ResultWithNote
from workers.tree.glob import SEPARATOR, Pattern
from workers.tree.root import shown

FILES_LIMIT: Final = 2000
"""Paths that one answer holds."""

_KEYS: Final = bytes.maketrans(b"\0/", f"/{SEPARATOR}".encode())


def find(searcher: Searcher, text: str, deadline: float) -> Result:
    """Return the files that match the pattern `text`, as find_files says; `deadline` is of time.monotonic().

    Raises:
        ToolError: it is no pattern, or the time or the memory did not suffice.
    """
    pattern = Pattern(text)
    first: First[None] = First(FILES_LIMIT, pattern)
    unread = 0
    try:
        for run, names in listed_names(searcher.program, rg_arguments.listing(pattern, searcher.jobs), deadline):
            _add(first, names)
            unread = run.unread
    except Overdue as error:
        found = [path for path, _, _ in first.first()][:100]
        raise searcher.overdue("Use a narrower pattern.", found, first.count) from error
    return _result(text, first, unread)


def _add(first: First[None], names: bytes) -> None:
    """Take names as ripgrep tells them, with a NUL between two."""
    keys, others = decoded(names.translate(_KEYS), b"/")
    first.add_files(keys, None)
    first.not_utf8 += len(first.shown([key.decode("utf-8", "replace") for key in others]))


def _result(pattern: str, first: First[None], unread: int) -> Result:
    remarks = []
    if first.more:
        remarks.append(f"only the first {FILES_LIMIT} files are listed; use a narrower pattern")
    if unread:
        remarks.append(f"{unread} directories could not be read")
    if first.not_utf8:
        remarks.append(f"{first.not_utf8} names that are not UTF-8 are left out")
    found = [path for path, _, _ in first.first()]
    if not found:
        remarks.insert(0, f"no file matches {shown(pattern)}")
    return ResultWithNote(found, "; ".join(remarks)) if remarks else found
