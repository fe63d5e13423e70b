"""One search of the text files, in one or two runs of ripgrep.

Rule: the same question on the same tree has the same answer, the first lines by path. Few matches are collected in
whatever order they come, all of them, and sorted. Once there are many, a second run goes through the tree in order and
needs no more than its beginning; whichever of the two ends first has the answer.
"""

import time
from typing import Any, Final

import msgspec

from workers.errors import ToolError
from workers.search import rg_arguments
from workers.search.hits import First
from workers.search.rg_process import Overdue, Run, Runs
from workers.search.rg_records import Finished, Match, Records
from workers.search.searcher import Searcher
from workers.tool import Result, ResultWithNote
from workers.tree.glob import Pattern
from workers.tree.root import shown

MATCHES_LIMIT: Final = 100
"""Matching lines that one answer holds."""

MANY: Final = 300
"""So many matches are collected before a run in order is started beside."""

_TOO_MANY: Final = 900
"""With so many, the run that is not in order is given up: the other one has not far to go."""

_DENSE: Final = (64, 0.01)
"""Where so many files match within so many seconds of the beginning, neither is waited for."""


def search(searcher: Searcher, query: str, glob: str | None, *, literal: bool, deadline: float) -> Result:
    """Return the lines that match, as search_files says; `deadline` is of time.monotonic().

    Raises:
        ToolError: the query or the glob is none that can be used, or the time or the memory did not suffice.
    """
    pattern = None if glob is None else _pattern(glob)
    jobs, most = searcher.jobs, MATCHES_LIMIT + 1
    arguments = rg_arguments.searching(query, pattern, literal=literal, jobs=jobs, most=most)
    try:
        answer = _Search(searcher, arguments, pattern, deadline).run()
    except _OutOfMemory:
        try:
            answer = _Search(searcher, (*rg_arguments.SMALL_FILES, *arguments), pattern, deadline).run()
        except _OutOfMemory as error:
            raise ToolError("resource_limit", _NO_MEMORY) from error
        answer.remarks.append("files of more than 8 MiB are left out: with them, the search ran out of memory")
    return answer.result(glob)


_NO_MEMORY: Final = "The search ran out of memory. Use a simpler query, or a glob that leaves the largest files out."


def _pattern(glob: str) -> Pattern:
    """Compile a glob as people write them for a search: without a slash, it is of names at any depth."""
    pattern = Pattern(glob)
    return pattern if "/" in glob else Pattern(f"**/{glob}")


class _OutOfMemory(Exception):
    """ripgrep was ended by a signal that was not ours."""


class _TextAnswer(msgspec.Struct):
    found: list[dict[str, Any]]
    remarks: list[str]

    def result(self, glob: str | None) -> Result:
        if not self.found:
            where = "" if glob is None else f" in files that match {shown(glob)}"
            self.remarks.insert(0, f"no line matches{where}")
        return ResultWithNote(self.found, "; ".join(self.remarks)) if self.remarks else self.found


class _Search:
    """One search, in one or two runs."""

    def __init__(
        self, searcher: Searcher, arguments: tuple[str, ...], pattern: Pattern | None, deadline: float
    ) -> None:
        self._searcher = searcher
        self._arguments = arguments
        self._pattern = pattern
        self._deadline = deadline
        self._too_many = _TOO_MANY
        self._began = time.monotonic()

    def run(self) -> _TextAnswer:
        """Search, and say what was found.

        Raises:
            ToolError: ripgrep does not take the query, or the time is over.
            _OutOfMemory: see there.
        """
        with Runs(self._searcher.program, self._deadline) as runs:
            everywhere = _RunMatches(runs.start(*self._arguments), self._pattern)
            in_order: _RunMatches | None = None
            out = False
            try:
                for run, chunk in runs.chunks():
                    part = everywhere if run is everywhere.run else in_order
                    assert part is not None
                    try:
                        if part.is_complete(chunk) or (part is in_order and part.first.more):
                            return part.answer()
                    except _OutOfMemory:
                        if part is in_order:
                            raise
                        out = True  # the other one may end before it comes to what is too large
                    if in_order is None and (out or everywhere.first.count > self._many(everywhere)):
                        in_order = _RunMatches(runs.start(*rg_arguments.IN_ORDER, *self._arguments), self._pattern)
                    if everywhere.first.count > self._too_many:
                        runs.end(everywhere.run)
            except Overdue as error:
                raise self._overdue(everywhere, in_order) from error
        raise AssertionError("a run that ends is complete, or raises")

    def _many(self, part: "_RunMatches") -> int:
        """Return how many matches are too many to wait for all of them."""
        files, within = _DENSE
        if part.first.files < files or time.monotonic() > self._began + within:
            return MANY
        self._too_many = MATCHES_LIMIT
        return 0

    def _overdue(self, everywhere: "_RunMatches", in_order: "_RunMatches | None") -> ToolError:
        part = everywhere if in_order is None or not in_order.first.count else in_order
        found = part.answer().found
        return self._searcher.overdue("Use a simpler query, or a glob, such as src/**/*.py.", found, len(found))


class _RunMatches:
    """What one run has found."""

    def __init__(self, run: Run, pattern: Pattern | None) -> None:
        self.run = run
        self.first: First[str] = First(MATCHES_LIMIT, pattern)
        self._records = Records()
        self._finished = False

    def is_complete(self, chunk: bytes) -> bool:
        """Take some output, none at the end; say whether the run has ended with all that there is.

        Raises:
            ToolError: ripgrep does not take the query.
            _OutOfMemory: see there.
        """
        for record in self._records.feed(chunk):
            match record:
                case Finished():
                    self._finished = True
                case Match(path=None):
                    self.first.not_utf8 += 1
                case Match(path=str() as path, line=line, text=text):
                    self.first.add(path, line, text)
        if chunk or self._finished:
            return not chunk
        assert self.run.status is not None
        if rg_arguments.out_of_memory(self.run.status):
            raise _OutOfMemory
        raise rg_arguments.failure(self.run.status, self.run.stderr)

    def answer(self) -> _TextAnswer:
        """Return the first matches, with what is to be said about them."""
        remarks = []
        if self.first.more:  # and of the rest nothing is said: how much of it was looked at differs from time to time
            remarks.append(f"only the first {MATCHES_LIMIT} matches; narrow the query, or use a glob")
        elif self.run.unread:
            remarks.append(f"{self.run.unread} files or directories could not be read")
        if self.first.not_utf8 and not self.first.more:
            remarks.append(f"{self.first.not_utf8} matches in files whose names are not UTF-8 are left out")
        found = [{"path": path, "line": line, "text": text} for path, line, text in self.first.first()]
        return _TextAnswer(found, remarks)
