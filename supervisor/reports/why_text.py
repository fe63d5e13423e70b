"""A report on one tool call, as text on one screen.

Rule: only what Strongroom says itself stands at the margin.
"""

from collections.abc import Sequence
from typing import Final

from supervisor.display.differences import painted
from supervisor.display.escape import one_line, visible
from supervisor.display.fragments import ReportPage
from supervisor.reports.call_record import Judged, Why
from supervisor.tools.exfiltration.origins import told

_WIDTH: Final = 400
"""Characters of anything but the outcome and differences on the screen."""
_SCREEN: Final = 24
"""Lines that the whole has, where it can."""
_WITHIN: Final = "  "
"""What lines of differences begin with."""
_PLAIN: Final = ReportPage()
_FEW: Final = 3
"""Lines of the outcome that are told in any case."""


def as_text(known: Why, page: ReportPage = _PLAIN) -> str:
    """Return the account for one screen, and below it the differences of what was judged last, all of them.

    Only what Strongroom says itself stands at the margin.
    """
    using = f"profile {known.profile}, root {known.root}"
    rows = [("call", f"{known.call} {known.tool}, turn {known.turn} of the session {known.session}"), ("in", using)]
    if known.turn:
        rows += [("line", known.line), ("asked", f"{known.asked} by the model {known.model}")]
    rows += [("typed", f"by a person, {known.typed_by}")] if known.typed_by else []
    rows += [("cache", known.cache)] if known.cache else []
    rows += [("after", f"reading {told(known.after)}")] if known.after else []
    rows.append(("with", known.arguments))
    rows.append(("policy", f"{known.decision}: {known.reason}" if known.decision else "it was not judged"))
    if known.flow is not None:
        rows.append(("says", f"about {known.flow.bits:.1f} bits to its site ({known.flow.way})"))
    rows += _person_rows(known)
    if known.edited is not None and not any(each.edited is not None for each in known.judged):
        rows.append(("edited", known.edited))
    if known.remark and not any(each.remark for each in known.judged):
        rows.append(("remark", known.remark))
    for number, each in enumerate(known.judged, 1):
        rows += _decision_rows(each, last=number == len(known.judged))
    rows += [("undo", known.undo)] if known.undo else []
    rows.append(("outcome", _outcome_text(known)))
    rows += [("turn", f"suspended: {known.suspended}")] if known.suspended else []
    if known.changed:
        rows.append(("CHANGED", f"not what was written: {_rows(known.changed)}; do not believe the above"))
    if known.unreadable:
        rows.append(("lost", f"{_rows(known.unreadable)} of this session cannot be read, perhaps about this call"))
    lines = [f"{name:8} {one_line(text, _WIDTH)}" for name, text in rows]
    content = [f"         {line}" for line in visible(known.content).split("\n") if line]
    found = painted(known.judged[-1].differences, colour=page.toned) if known.judged else ()
    return "\n".join([*lines, *content[: max(_FEW, _SCREEN - len(lines))], *page.rows(found, _WITHIN)])


def _rows(numbers: Sequence[int]) -> str:
    shown = ", ".join(map(str, numbers[:_FEW]))
    return (
        f"{'row' if len(numbers) == 1 else 'rows'} {shown}{' and more' if len(numbers) > _FEW else ''} of the journal"
    )


def _decision_rows(judged: Judged, *, last: bool) -> list[tuple[str, str]]:
    """Return what was decided about one rehearsal; of one that was made anew only how it ended."""
    rows = []
    if last:
        if judged.unrehearsed:
            rows.append(("changes", f"not known: {judged.unrehearsed}"))
        if judged.changes:
            rows.append(("changes", ": ".join((judged.changes, ", ".join(judged.names)))))
        if judged.refused:
            rows.append(("blocked", ", ".join(judged.refused)))
        if judged.traffic:
            rows.append(("network", judged.traffic))
    covered = f" (rule: {judged.covered_by})" if judged.covered_by else ""
    fate = "committed" if judged.committed else "not committed"
    ways = ["with the network"] * judged.network + ["outside of the sandbox"] * judged.unconfined
    rows.append(("judged", f"{judged.decision}: {judged.reason}{covered}; {', '.join([fate, *ways])} {judged.at}"))
    if judged.approved is not None:
        rows.append(("person", _answer(judged)))
    elif judged.decision == "ask":
        rows.append(("person", "no client was there to ask"))
    rows += [("edited", judged.edited)] if judged.edited is not None else []
    rows += [("remark", judged.remark)] if judged.remark else []
    return rows + ([("rule", f"made for {judged.scope}: {judged.made}")] if judged.made else [])


def _answer(judged: Judged) -> str:
    answer = "yes" if judged.approved else "no"
    if judged.approved and judged.edited is not None:
        answer = "yes, to other arguments"
    longer = {"session": ", for this session", "always": ", for always"}.get(judged.scope, "")
    return f"{answer}{longer}" + (f", by {judged.decided_by}" if judged.decided_by else "")


def _person_rows(known: Why) -> list[tuple[str, str]]:
    """Return what the person said of the call as a text."""
    if known.approved is None:
        return []
    answer = "yes" if known.approved else "no"
    if known.approved and known.edited is not None and not any(each.edited is not None for each in known.judged):
        answer = "yes, to other arguments"
    if not known.approved and not known.decided_by:
        answer = "no client said yes"
    by = f" by {known.decided_by}" if known.decided_by else ""
    return [("person", f"{answer}{by}, {known.started}")]


def _outcome_text(known: Why) -> str:
    if not known.ended:
        return "none: it is waiting or running, or its end was not recorded"
    return f"{known.outcome}, {known.ended}" + (f", after {known.seconds:.3f} s" if known.seconds else "")
