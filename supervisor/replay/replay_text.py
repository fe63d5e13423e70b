"""The report of a replay, for people."""

from typing import Final

from supervisor.display.escape import one_line, visible
from supervisor.replay.divergence import Divergence
from supervisor.replay.session_replay import ReplayReport

_WIDTH: Final = 300
_LINES: Final = 20
"""Lines of one side that are shown; `--json` has them all."""


def replay_text(report: ReplayReport) -> str:
    """Return what a replay came to, the divergence last."""
    lines = [f"  {one_line(each, _WIDTH)}" for each in report.remarks]
    lines += [f"  not as it was: {one_line(each, _WIDTH)}" for each in report.not_as_it_was]
    if report.given:
        lines.append(f"  {len(report.given)} outcomes came from outside or were cut off, and were given as recorded")
    told = f"{report.turns} turns, {report.calls} calls"
    if report.divergence is None:
        return "\n".join((f"equal: {told}", *lines))
    return "\n".join((f"diverged after {told}", *lines, *_told(report.divergence)))


def _told(found: Divergence) -> list[str]:
    where = f"turn {found.turn}"
    if found.tool:
        where += f", call {one_line(found.call, _WIDTH)}: {found.tool} {one_line(found.arguments, _WIDTH)}"
    return [where, f"  {found.what}, then:", *_side(found.then), "  now:", *_side(found.now)]


def _side(said: str) -> list[str]:
    every = visible(said, prose=True).splitlines()
    return [f"    {line[:_WIDTH]}" for line in every[:_LINES]] + (["    ..."] if len(every) > _LINES else [])
