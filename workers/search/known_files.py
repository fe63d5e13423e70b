"""The listing of files that a search worker remembers for a person who types a path, letter by letter.

Rule: one listing, of what ripgrep lists, and for a moment alone: what is added later is found a few seconds later. It
is cut at a count, and at a time, so that a tree of any size costs no more.
"""

import time
from typing import Final, NamedTuple

from workers.search import rg_arguments
from workers.search.file_order import OrderedFiles
from workers.search.listed_names import decoded, listed_names
from workers.search.rg_process import Overdue
from workers.tool import Result, ResultWithNote
from workers.tree.drafts import DRAFT, is_draft

FILES: Final = 300_000
"""Files that are looked at, at most; each takes about 200 bytes while they are remembered."""
_LISTING_S: Final = 3.0
"""Seconds that a listing may take."""
_FRESH_S: Final = 5.0
"""Seconds for which it is remembered."""


class _Known(NamedTuple):
    hidden: bool
    until: float
    files: OrderedFiles
    is_cut: bool


class KnownFiles:
    """The files of one worker's root."""

    def __init__(self) -> None:
        self._known: _Known | None = None

    def first(self, program: str, jobs: int, typed: str, most: int, deadline: float) -> Result:
        """Return the files that fit best what was typed.

        Args:
            program: ripgrep, which lists them where they are not known.
            jobs: its threads.
            typed: letters of a path.
            most: so many files at most.
            deadline: of time.monotonic().

        Raises:
            ToolError: ripgrep failed.
        """
        hidden = any(part.startswith(".") for part in typed.split("/"))
        known, now = self._known, time.monotonic()
        if known is None or known.hidden != hidden or now > known.until:
            self._known = None  # which has to be gone before there is another
            arguments = rg_arguments.everything(jobs, hidden=hidden)
            files, is_cut = _listed(program, arguments, min(deadline, now + _LISTING_S))
            known = self._known = _Known(hidden, time.monotonic() + _FRESH_S, files, is_cut)
        found = known.files.first(typed, most)
        return ResultWithNote(found, f"only {len(known.files)} files were looked at") if known.is_cut else found


def _listed(program: str, arguments: tuple[str, ...], deadline: float) -> tuple[OrderedFiles, bool]:
    """Return the files, and whether there may be more."""
    found: list[str] = []
    is_cut = False
    try:
        for _, names in listed_names(program, arguments, deadline):
            found += decoded(names, b"\0")[0]
            if is_cut := len(found) > FILES:
                break
    except Overdue:
        is_cut = True
    shown = (path for path in found[:FILES] if not (DRAFT in path and is_draft(path.rpartition("/")[2])))
    return OrderedFiles(shown), is_cut
