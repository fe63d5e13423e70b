"""One listing of the files, in one run of ripgrep.

Rule: as list_files, but for what .gitignore and its like exclude. The whole tree is listed, because the first in order
may come last.
"""

from typing import Final

import msgspec

from workers.errors import ToolError
from workers.search import rg_arguments
from workers.search.hits import BEGINNING, First
from workers.search.rg_process import Overdue, Run, Runs
from workers.search.searcher import Searcher
from workers.tool import Result, ResultWithNote
from workers.tree.glob import Pattern
from workers.tree.root import shown

FILES_LIMIT: Final = 2000
"""Paths that one answer holds."""


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
                *names, rest = (rest + chunk).split(b"\0")
                for name in names:
                    _add(first, name)
        except Overdue as error:
            raise _overdue(searcher, first) from error
    assert run.status is not None
    if rg_arguments.out_of_memory(run.status):
        raise ToolError("resource_limit", "The search ran out of memory. Use a narrower pattern.")
    if run.status not in rg_arguments.ENDS_WELL:
        raise rg_arguments.failure(run.status, run.stderr)
    return _result(text, first, run)


def _add(first: First[None], name: bytes) -> None:
    try:
        path = name.decode()
    except UnicodeDecodeError:
        first.not_utf8 += first.shows(name.decode("utf-8", "replace").removeprefix(BEGINNING))
    else:
        first.add(path, 0, None)


def _overdue(searcher: Searcher, first: First[None]) -> ToolError:
    found = [path for path, _, _ in first.first()][:100]
    text = msgspec.json.encode(found).decode() if found else "nothing"
    message = (
        f"The search was stopped after {searcher.budget_s:g} s. Use a narrower pattern. "
        f"Found so far, incomplete and in no order: {text}"
    )
    return ToolError("timeout", message, found=first.count)


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
