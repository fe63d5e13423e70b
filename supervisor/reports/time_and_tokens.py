"""Time and tokens that each turn of a session took, and for what: a fold over its facts. Pure.

Rule: all of a turn's time is somewhere: what passed between two facts counts for what the second one is the end of.

Facts ignored: BatchStarted, BudgetChanged, BudgetReserved, ContentsRefused, FaultsAllowed, InstructionsRead,
ModeChanged, ModelSwitched, OptionChosen, Rewound, RuleRevoked, SessionChanged, SessionDeleted, SessionOpened,
ToolsChanged, TurnSuspended, Unreadable.
"""

from collections.abc import Iterable
from typing import Final, Literal

import msgspec

from supervisor.journal.facts import (
    CallDecided,
    CallEnded,
    CallStarted,
    Compacted,
    Fact,
    ModelRetried,
    Replied,
    ReplyCut,
    TurnEnded,
    TurnQuestioned,
    TurnResumed,
    TurnStarted,
)
from supervisor.journal.journal import JournalEntry

TimeUse = Literal["model", "tools", "person", "pause", "other"]
TokenUse = Literal["cached", "read", "written"]

_READ: Final[dict[str, TokenUse]] = {
    "cache_read_input_tokens": "cached",
    "cache_creation_input_tokens": "read",
    "input_tokens": "read",
    "output_tokens": "written",
}


class TimePiece(msgspec.Struct):
    """Time of a turn, in seconds, that went into one thing."""

    use: TimeUse
    seconds: float
    what: str = ""


class TurnUse(msgspec.Struct):
    """What a turn took. `at` is in seconds since the epoch."""

    turn: int
    at: float
    pieces: list[TimePiece] = []
    tokens: dict[TokenUse, int] = {}

    @property
    def seconds(self) -> float:
        return sum(each.seconds for each in self.pieces)


def turn_uses(entries: Iterable[JournalEntry]) -> list[TurnUse]:
    """Return what each turn of a session took; of one without an end, as far as it got."""
    found: list[TurnUse] = []
    last, delay, runs = 0.0, 0.0, False
    for entry in entries:
        fact = entry.fact
        if isinstance(fact, TurnStarted):
            found.append(TurnUse(fact.turn, entry.at))
            last, delay, runs = entry.at, 0.0, True
            continue
        if not runs:
            continue
        passed = max(0.0, entry.at - last)
        last = max(last, entry.at)
        waited = min(delay, passed)
        _add(found[-1].pieces, "pause", waited, "")
        _add(found[-1].pieces, *_use(fact, passed - waited))
        delay = fact.delay if isinstance(fact, ModelRetried) else 0.0
        runs = not isinstance(fact, TurnEnded)
        if isinstance(fact, Replied | Compacted):
            for name, count in fact.usage.items():
                if (use := _READ.get(name)) is not None:
                    found[-1].tokens[use] = found[-1].tokens.get(use, 0) + count
    return found


def _add(pieces: list[TimePiece], use: TimeUse, seconds: float, what: str) -> None:
    """Add time; what goes on in the same thing is one piece."""
    if not seconds:
        return
    if pieces and (pieces[-1].use, pieces[-1].what) == (use, what):
        pieces[-1].seconds += seconds
    else:
        pieces.append(TimePiece(use, seconds, what))


def _use(fact: Fact, passed: float) -> tuple[TimeUse, float, str]:
    """Return what the time before a fact went into."""
    use: TimeUse = "other"
    match fact:
        case Replied() | Compacted() | ReplyCut() | ModelRetried():
            use = "model"
        case CallStarted() | CallDecided():
            use = "person" if fact.approved is not None else "tools"
        case TurnQuestioned():
            use = "person"
        case CallEnded():
            use = "tools"
        case TurnResumed():
            use = "pause"
        case TurnStarted() | TurnEnded() | _:
            use = "other"
    return use, passed, fact.tool if isinstance(fact, CallStarted | CallEnded) else ""
