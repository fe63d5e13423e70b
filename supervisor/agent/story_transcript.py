"""The transcript of a story of which not all turns stand. Pure.

Rule: a model is shown the turns that stand alone. What the others have used, sent and read stays so: calls keep their
ids, budgets what was spent, and the policy what was seen. What a session begins with was paid for by another.

Facts ignored: BatchStarted, BudgetChanged, BudgetReserved, CallDecided, Compacted, FaultsAllowed, InstructionsRead,
ModelSwitched, OptionChosen, Rewound, RuleRevoked, SessionDeleted, ToolsChanged, TurnEnded, TurnQuestioned, TurnResumed,
TurnSuspended, Unreadable.
"""

from collections.abc import Sequence

from supervisor.agent.spending import Spending
from supervisor.agent.transcript import Transcript
from supervisor.journal.facts import (
    CallEnded,
    CallStarted,
    ContentsRefused,
    Fact,
    ModeChanged,
    ModelRetried,
    Replied,
    ReplyCut,
    SessionChanged,
    SessionOpened,
    TurnStarted,
)
from supervisor.journal.journal import JournalEntry
from supervisor.journal.lineage import turn_line


def transcript_of(entries: Sequence[JournalEntry]) -> Transcript:
    """Return the conversation of a story, the last entry of which is the session's own."""
    transcript = Transcript()
    own = entries[-1].session if entries else ""
    for entry, stands in zip(entries, turn_line(entries).stands, strict=True):
        if entry.session == own and isinstance(entry.fact, SessionOpened):
            transcript.spending, transcript.usage = Spending(), {}
        if stands:
            transcript.apply(entry.fact)
        else:
            transcript.receipts.apply(entry.fact)  # files are what they are, whatever was said
            _leave_out(transcript, entry.fact)
    return transcript


def _leave_out(transcript: Transcript, fact: Fact) -> None:
    """Take into account what remains of a fact that stands no more."""
    match fact:
        case SessionOpened() | SessionChanged() | ModeChanged() | ContentsRefused():
            transcript.apply(fact)
            return
        case TurnStarted():
            transcript.turn = fact.turn
        case Replied():
            transcript.step += 1
            transcript.ids.update(block["id"] for block in fact.content if block["type"] == "tool_use")
            for name, count in fact.usage.items():
                transcript.usage[name] = transcript.usage.get(name, 0) + count
        case ModelRetried() | ReplyCut():
            transcript.cuts += 1
        case CallStarted() | CallEnded():
            transcript.ids.add(fact.call)
        case _:
            pass
    transcript.exposure.apply(fact)
    transcript.spending.apply(fact)
