"""Lines of a call in the text of a session: what was asked, decided and done. Pure."""

from collections.abc import Iterator
from typing import Final

from supervisor.agent.blocks import result_text
from supervisor.display.changes import detailed
from supervisor.display.command_output import output_text
from supervisor.display.differences import FOLDED, folded, shown
from supervisor.display.escape import name, one_line, visible
from supervisor.display.fragments import ReportPage
from supervisor.display.proposed_effects import presented
from supervisor.journal.facts import CallDecided, CallEnded, CallStarted, effective

LINE_WIDTH: Final = 100
"""Characters of a text that stands in a line."""
_WITHIN: Final = "      "
"""What lines begin with that belong to a line of a call."""
_NARROWEST: Final = 8
"""Columns that they have at least."""
_HEAD: Final = 3
_TAIL: Final = 9
"""Lines of a command's output that are shown: of its beginning, and of its end, where results stand."""
_NAMED: Final = 3
"""Names that are told of what a call has changed."""


def call_lines(fact: CallStarted) -> list[str]:
    """Return what is shown of a call before its outcome: what was asked, and a person's part in it."""
    if fact.again:
        return [f"    again, with {one_line(effective(fact), LINE_WIDTH)}"]
    asked = f"{one_line(fact.tool, LINE_WIDTH)} {one_line(fact.arguments, LINE_WIDTH)}"
    return [f"* {asked} ({caption(fact)})", *(f"    {line}" for line in person_lines(fact))]


def caption(fact: CallStarted) -> str:
    """Return a call's id, and who typed it if somebody did."""
    typed = f", typed by {one_line(fact.typed_by, LINE_WIDTH)}" if fact.typed_by else ""
    return f"{one_line(fact.call, LINE_WIDTH)}{typed}"


def person_lines(fact: CallStarted) -> list[str]:
    """Return what a person has done to a call before it started."""
    who = one_line(fact.decided_by, LINE_WIDTH) or "the person"
    lines = [f"{who} changed it to: {one_line(fact.edited, LINE_WIDTH)}"] if fact.edited is not None else []
    return [*lines, f"{who} said: {one_line(fact.remark, LINE_WIDTH)}"] if fact.remark else lines


def decision_lines(fact: CallDecided) -> list[str]:
    """Return what is shown of a rehearsal, and of what was decided about it."""
    who = one_line(fact.decided_by, LINE_WIDTH)
    by = f" by {who}" if who else ""
    parts = [("committed" if fact.committed else "not committed") + by if fact.committed or not fact.undoes else ""]
    parts += [_changes(fact), one_line(fact.cannot_undo, LINE_WIDTH) if fact.committed else ""]
    if fact.network and not fact.committed and (fact.approved or fact.effects is None):
        parts = [f"allowed to use the network{by}"]
    lines = [", ".join(filter(None, parts))]
    return [*lines, f"{who or 'the person'} said: {one_line(fact.remark, LINE_WIDTH)}"] if fact.remark else lines


def commit_differences(fact: CallDecided, page: ReportPage) -> Iterator[str]:
    """Yield the beginning of what a commit has changed in texts."""
    if fact.committed and fact.effects is not None:
        more = f"; `strongroom why {one_line(fact.call, LINE_WIDTH)}` shows all"
        columns = max(_NARROWEST, page.columns - len(_WITHIN)) if page.columns else 0
        found = folded(shown(presented(fact.effects)), columns, FOLDED, more, colour=page.toned)
        yield from page.rows(found, _WITHIN)


def outcome_lines(fact: CallEnded, page: ReportPage) -> list[str]:
    """Return how a call ended; of a command the two ends of what it printed."""
    mark = f"    {'ok' if fact.ok else fact.kind}"
    result = result_text(fact) if fact.ok else fact.content
    said = output_text(fact.tool, result)
    if said == result or "\n" not in said.strip():
        return [f"{mark}: {one_line(said, LINE_WIDTH)}"]
    lines = visible(said).strip("\n").split("\n")
    left = len(lines) - _HEAD - _TAIL
    if left > 1:
        lines[_HEAD:-_TAIL] = [f"... {left} more lines; `--format json` has all"]
    return [mark, *page.rows(([("", one_line(line, LINE_WIDTH))] for line in lines), _WITHIN)]


def _changes(fact: CallDecided) -> str:
    back = f"takes back {one_line(fact.undoes, LINE_WIDTH)}; " if fact.undoes else ""
    if fact.effects is None:
        return f"{back}{'without a rehearsal' if fact.committed or not back else 'nothing was to be changed'}"
    names = ", ".join(name(each.path) for each in fact.effects.changes[:_NAMED])
    return one_line(f"{back}{detailed(presented(fact.effects))}: {names}", LINE_WIDTH)
