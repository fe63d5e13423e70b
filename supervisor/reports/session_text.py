"""Text of a session for people, line by line. Pure.

Rule: its lines cannot be mistaken: only what Strongroom says itself stands at the margin.

Facts ignored: BatchStarted, BudgetChanged, BudgetReserved, FaultsAllowed, Unreadable.
"""

from collections.abc import Container, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from supervisor.agent.compaction_words import compaction_notice
from supervisor.agent.models.model import message_text
from supervisor.agent.receipts.receipt_text import receipt_lines
from supervisor.agent.story_transcript import transcript_of
from supervisor.agent.told_instructions import instructions_notice
from supervisor.display.escape import one_line, visible
from supervisor.display.fragments import ReportPage
from supervisor.journal.facts import (
    CallDecided,
    CallEnded,
    CallStarted,
    Compacted,
    ContentsRefused,
    Fact,
    InstructionsRead,
    ModeChanged,
    ModelRetried,
    ModelSwitched,
    OptionChosen,
    Replied,
    ReplyCut,
    Rewound,
    RuleRevoked,
    SessionChanged,
    SessionDeleted,
    SessionOpened,
    ToolsChanged,
    TurnEnded,
    TurnQuestioned,
    TurnResumed,
    TurnStarted,
    TurnSuspended,
)
from supervisor.journal.index import utc
from supervisor.journal.journal import JournalEntry
from supervisor.journal.lineage import turn_line
from supervisor.reports.call_lines import LINE_WIDTH, call_lines, commit_differences, decision_lines, outcome_lines
from supervisor.reports.session_parts import CallPart, SessionPart, session_parts
from supervisor.tools.content_words import described, refusal_notice
from supervisor.tools.outcomes import availability_notice

_DAMAGES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "changed": "CHANGED: what follows, row {row} of the journal, is not what was written",
        "unchecked": "the row before {row} is lost, so nobody can say whether what follows was changed",
        "unreadable": "row {row} of the journal cannot be read",
    }
)
OPEN: Final = "open: this turn has no end"
ENDLESS: Final = "no outcome: it is still running, or its end was not recorded"


def session_text(entries: Sequence[JournalEntry], page: ReportPage) -> str:
    """Return an account whose lines cannot be mistaken: only what Strongroom says itself stands at the margin."""
    lines: list[str] = []
    stand = turn_line(entries).turns
    for part in session_parts(entries):
        lines += [f"({damage})" for damage in damages(part)]
        match part:
            case CallPart():
                lines += _lines_of_call(part, page)
            case JournalEntry(fact=SessionOpened() as fact):
                lines.append(f"session {part.session}, {profile_and_model(fact)}")
                lines.append(f"root {one_line(fact.context.working_directory, 4096)}")
            case JournalEntry(fact=TurnStarted() as fact):
                lines += ["", f"({turn_words(fact, stand)})"]
                lines += _prefixed("> ", "\n".join(f"[{described(each)}]" for each in fact.contents))
                lines += _prefixed("> ", fact.text)
            case JournalEntry(fact=Replied() | ReplyCut() | ModelRetried() as fact):
                lines += _reply_lines(fact)
            case _:
                lines += [f"({note})" for note in notes(part.fact)]
    if is_open(entries):
        lines.append(f"({OPEN})")
    return "\n".join(lines)


def is_open(entries: Sequence[JournalEntry]) -> bool:
    """Say whether a turn of a session has no end."""
    return transcript_of(entries).open_turn is not None


def turn_words(fact: TurnStarted, stand: Container[int]) -> str:
    """Return which turn begins, and whether it stands no more."""
    return f"turn {fact.turn}{'' if fact.turn in stand else ', rewound'}"


def damages(part: SessionPart) -> Iterator[str]:
    """Yield what is said of rows that are not what was written."""
    for entry in part.entries if isinstance(part, CallPart) else (part,):
        if entry.damage:
            yield _DAMAGES[entry.damage].format(row=entry.seq)


def _lines_of_call(part: CallPart, page: ReportPage) -> Iterator[str]:
    if part.started is None and part.ended is not None:
        yield f"* {one_line(part.ended.tool, LINE_WIDTH)} ({one_line(part.call, LINE_WIDTH)})"
    for entry in part.entries:
        match entry.fact:
            case CallStarted() as fact:
                yield from call_lines(fact)
            case CallDecided() as fact:
                yield from (f"    {line}" for line in decision_lines(fact))
                yield from commit_differences(fact, page)
            case CallEnded() as fact:
                yield from outcome_lines(fact, page)
    if part.ended is None:
        yield f"    ({ENDLESS})"


def _reply_lines(fact: Replied | ReplyCut | ModelRetried) -> list[str]:
    """Return what was shown of a reply, whole or not."""
    if isinstance(fact, Replied):
        return _prefixed("  ", message_text(fact.content).strip())
    cut = [*_prefixed("  ", fact.text.strip()), "(the reply was cut here)"] if fact.text else []
    return [*cut, *(f"({note})" for note in notes(fact))]


def notes(fact: Fact) -> list[str]:
    """Return what is said of a fact that is neither a line, a reply nor a call."""
    match fact:
        case SessionChanged():
            root = one_line(fact.context.working_directory, 4096)
            return [f"from here on {profile_and_model(fact)}", f"and the root {root}"]
        case SessionDeleted():
            return ["deleted: no listing shows this session"]
        case TurnResumed():
            return [f"resumed by {one_line(fact.by, LINE_WIDTH)}" if fact.by else "interrupted, and resumed"]
        case (
            ToolsChanged()
            | Compacted()
            | ContentsRefused()
            | InstructionsRead()
            | ModeChanged()
            | OptionChosen()
            | ModelRetried()
            | RuleRevoked()
            | TurnQuestioned()
            | TurnSuspended()
            | ModelSwitched()
            | Rewound()
        ):
            return [_besides(fact)]
        case TurnEnded():
            why = f", {fact.kind}: {one_line(fact.message, LINE_WIDTH)}" if fact.message else ""
            ended = [f"turn ended: {fact.status}{why}"] if fact.status != "ok" else []
            return [*ended, *receipt_lines(fact.receipt)]
        case _:
            return []


def _without_reply(fact: TurnSuspended | ModelSwitched) -> str:
    if isinstance(fact, ModelSwitched):
        asked = "was not asked" if fact.approved is False else "is asked"
        return one_line(f"{fact.before} gave no reply, {fact.model} {asked}: {fact.because}", LINE_WIDTH * 4)
    until = f" until {utc(fact.until)}" if fact.until else ""
    return f"suspended{until}: {one_line(fact.why, LINE_WIDTH * 4)}"


def _besides(
    fact: ToolsChanged
    | Compacted
    | ContentsRefused
    | InstructionsRead
    | ModeChanged
    | OptionChosen
    | ModelRetried
    | RuleRevoked
    | TurnQuestioned
    | TurnSuspended
    | ModelSwitched
    | Rewound,
) -> str:
    if isinstance(fact, TurnSuspended | ModelSwitched):
        return _without_reply(fact)
    if isinstance(fact, TurnQuestioned):
        chose = "let the turn go on" if fact.approved else "stopped the turn"
        return one_line(f"{fact.decided_by or 'the person'} {chose}, after {fact.rejected} rejections", LINE_WIDTH * 2)
    if isinstance(fact, RuleRevoked):
        return one_line(f"the rule {fact.rule}, made in {fact.call}, was revoked by {fact.by}", LINE_WIDTH * 2)
    if isinstance(fact, ModeChanged | OptionChosen | Rewound):
        return one_line(_from_here_on(fact), LINE_WIDTH)
    if isinstance(fact, ToolsChanged | ContentsRefused | InstructionsRead | Compacted):
        return _told_besides(fact)
    return f"asked the model again after {fact.kind}: {one_line(fact.message, LINE_WIDTH)}"


def _told_besides(fact: ToolsChanged | ContentsRefused | InstructionsRead | Compacted) -> str:
    if isinstance(fact, InstructionsRead):
        return instructions_notice(fact)
    if isinstance(fact, Compacted):
        summary = f" It says: {one_line(fact.summary, len(fact.summary))}" if fact.summary else ""
        return compaction_notice(fact) + summary
    return one_line(
        availability_notice(fact) if isinstance(fact, ToolsChanged) else refusal_notice(fact), LINE_WIDTH * 8
    )


def _from_here_on(fact: ModeChanged | OptionChosen | Rewound) -> str:
    if isinstance(fact, Rewound):
        by, call = f" by {fact.by}" if fact.by else "", f", if {fact.call} ends well" if fact.call else ""
        return f"rewound{by} to the end of turn {fact.turn}{call}"
    name, value = ("mode", fact.mode) if isinstance(fact, ModeChanged) else (fact.option, fact.value or "default")
    return f"from here on the {name} {value}"


def profile_and_model(fact: SessionOpened | SessionChanged) -> str:
    """Return what a session works with from here on."""
    forked = fact.fork if isinstance(fact, SessionOpened) else None
    since = "" if forked is None else f", forked from {forked.session} at the end of turn {forked.turn}"
    return one_line(f"profile {fact.profile}, model {fact.model or 'none'}{since}", LINE_WIDTH * 2)


def _prefixed(mark: str, text: str) -> list[str]:
    return [mark + line for line in visible(text).split("\n")] if text else []
