"""Pages of what a person should see before they decide, in a frame.

Rule: all of it can be paged through, and what was not shown yet is known (`unread`). What is protected stands on the
first page, however long that gets. The frame stands in the first column, where nothing else ever begins with its
strokes: each line within is broken by us, and never by the terminal.
"""

from collections.abc import Callable
from typing import Final

from supervisor.acp import extensions
from supervisor.clients.console.shown import Item, ShownProposal
from supervisor.display import changes
from supervisor.display.columns import cut, width, wrapped
from supervisor.display.command_text import text_argument, text_of, title_of
from supervisor.display.differences import painted, shown
from supervisor.display.escape import name, visible
from supervisor.display.fragments import Fragments, plain, rows_within
from supervisor.rules.rule import UNCOVERED

_SENTENCES: Final = frozenset({"bold red", "bold yellow", "yellow"})
"""Tones of lines that are sentences, and are broken between words."""
_PRINTED: Final = 5
"""Lines of a rehearsed command's output that are shown before what it would change."""
_EDGES: Final = 2
"""Columns of the frame."""
_LEAST: Final = 3
_TITLE: Final = 32
"""Columns of the box that other words may take before the reason."""


class ProposalPages:
    """The pages of one request.

    Args:
        request: what is asked about.
        printed: what the rehearsed command has printed.
        columns: of the screen.
        show: shows a page.
        more: how the person gets to see the next page.
        text: what is asked about, where there is no room for all of it elsewhere.
        call: the id of the call.
    """

    def __init__(
        self,
        request: extensions.ApprovalRequest,
        printed: str,
        columns: int,
        show: Callable[[Item], None],
        more: str = "PgDn, PgUp; Ctrl-O shows all",
        text: str = "",
        call: str = "",
    ) -> None:
        self._columns = max(_EDGES + _LEAST, columns) - _EDGES
        self._show = show
        self._more = more
        self._call = call
        whole: list[Fragments] = [[("", line)] for line in visible(text).split("\n")] if text else []
        lines = [*self._explained(request), *whole]
        self._lines = self._framed(lines, printed) if lines or printed.strip() else []
        short = self._explained(request, short=True)
        self._summary = self._framed(short, printed) if short != lines else []
        edits = text_argument(request.tool, request.arguments) is not None
        about = f"{request.tool} {name(text_of(request.tool, request.arguments))}"
        asked = title_of(request.tool, request.arguments) if edits else changes.TITLES.get(request.stage, about)
        self._head = cut(f"? {asked}", self._columns)
        self._begin = self._end = 0
        """What was shown last, and up to where all was."""
        self._rows = 0

    def _explained(self, request: extensions.ApprovalRequest, *, short: bool = False) -> list[Fragments]:
        """Return what a person should see: the reason where it stands nowhere else, all effects, and their texts."""
        why = [("yellow", name(request.reason))] if self._is_cut(request) else []
        lines = [[line] for line in (*why, *changes.introduced(request, short=short))]
        told = request.effects if request.stage != "network" else None
        return [*lines, *(painted(shown(told, short)) if told is not None else ())]

    def _is_cut(self, request: extensions.ApprovalRequest) -> bool:
        """Say whether the box has no room for the reason, which stands nowhere else."""
        told = request.stage == "effects" and request.reason.endswith(UNCOVERED)  # by the changes themselves
        return request.stage in ("call", "effects") and not told and width(request.reason) > self._columns - _TITLE

    @property
    def unread(self) -> str:
        """What was not shown yet; empty where all was."""
        first, total = self._end + 1, len(self._lines)
        return f"lines {first} to {total} of what it asks about were not shown yet" if first <= total else ""

    def first(self, rows: int) -> None:
        """Show the first page of at most so many rows, or 0 for all; a summary of many changes where there is one."""
        self._rows = max(_LEAST, rows - _EDGES)
        if rows and self._summary and len(self._lines) > self._rows:
            kept = self._summary[: self._fitting(self._summary)]
            self._write(kept, f"a summary of {len(self._lines)} lines · {self._more}")
        elif self._lines:
            self._page(0, self._fitting(self._lines) if rows else len(self._lines))

    def turn(self, forward: bool) -> None:
        """Show the next page, or the one before that which was shown last."""
        if forward and self.unread:
            self._page(self._end, self._end + self._rows)
        elif not forward and self._begin:
            self._page(max(0, self._begin - self._rows), self._begin)

    def everything(self) -> None:
        if self._lines:
            self._page(0, len(self._lines))

    def _page(self, begin: int, end: int) -> None:
        end = min(end, len(self._lines))
        self._begin, self._end = begin, max(end, self._end)
        whole = end - begin == len(self._lines)
        counted = (
            f"lines {begin + 1} to {end} of {len(self._lines)}{f' · {self._more}' if self.unread else ', the end'}"
        )
        self._write(self._lines[begin:end], "" if whole else counted)

    def _write(self, lines: list[Fragments], foot: str) -> None:
        begin, end = [("bold", f"┌ {self._head}")], [("dim", f"└ {foot}".rstrip())]
        self._show(ShownProposal((begin, *lines, end), self._call))

    def _fitting(self, lines: list[Fragments]) -> int:
        """Return how many lines are shown at first, and never fewer than up to the last one in red and bold."""
        return max(self._rows, *(at + 1 for at, line in enumerate(lines) if line[0][0] == "bold red"), 0)

    def _framed(self, explained: list[Fragments], printed: str) -> list[Fragments]:
        """Return lines within the frame, none wider than the screen."""
        said = visible(printed).rstrip("\n").split("\n") if printed.strip() else []
        lines: list[Fragments] = [[("dim", "  ...")]] if len(said) > _PRINTED else []
        lines += [[("dim", f"  {line}")] for line in said[-_PRINTED:]]
        framed: list[Fragments] = []
        for line in [*lines, *explained]:
            tone = line[0][0]
            if tone in _SENTENCES:
                framed += [[(tone, f"│ {piece}")] for piece in wrapped(plain(line), self._columns, "", "  ")]
            else:
                begun, *rest = rows_within(line, self._columns)
                framed += [[(tone, "│ "), *begun], *([(tone, "│↪"), *row] for row in rest)]
        return framed
