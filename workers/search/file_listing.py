"""One listing of the files, in one run of ripgrep.

Rule: as list_files, but for what .gitignore and its like exclude. The whole tree is listed, because the first in order
may come last.
"""

from typing import Final

from workers.errors import ToolError
from workers.search import rg_arguments
from workers.search.hits import First
from workers.search.rg_process import Overdue, Run, Runs
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
    with Runs(searcher.program, deadline) as runs:
        run = runs.start(*rg_arguments.listing(pattern, searcher.jobs))
        rest = b""
        try:
            for _, chunk in runs.chunks():
                names, _, rest = (rest + chunk).rpartition(b"\0")
                _add(first, names)
        except Overdue as error:
            found = [path for path, _, _ in first.first()][:100]
            raise searcher.overdue("Use a narrower pattern.", found, first.count) from error
    assert run.status is not None
    if rg_arguments.out_of_memory(run.status):
        raise ToolError("resource_limit", "The search ran out of memory. Use a narrower pattern.")
    if run.status not in rg_arguments.ENDS_WELL:
        raise rg_arguments.failure(run.status, run.stderr)
    return _result(text, first, run)


def _add(first: First[None], names: bytes) -> None:
    """Take names as ripgrep tells them, with a NUL between two."""
    keys = names.translate(_KEYS)
    try:
        first.add_files(keys.decode().split("/"), None)
    except UnicodeDecodeError:
        for key in keys.split(b"/"):
            try:
                first.add_files([key.decode()], None)
            except UnicodeDecodeError:
                first.not_utf8 += len(first.shown([key.decode("utf-8", "replace")]))


def _result(pattern: str, first: First[None], run: Run) -> Result:
    remarks = []
    if first.more:
        remarks.append(f"only the first {FILES_LIMIT} files are listed; use a narrower pattern")
    if run.unread:
        remarks.append(f"{run.unread} directories could not be read")
    if first.not_utf8:
        remarks.append(f"{first.not_utf8} names that are not UTF-8 are left out")
    found = [path for path, _, _ in first.first()]
    if not found:
        remarks.insert(0, f"no file matches {shown(pattern)}")
    return ResultWithNote(found, "; ".join(remarks)) if remarks else found
