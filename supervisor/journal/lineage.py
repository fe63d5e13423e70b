"""The lineage of a conversation: what a session begins with, and which of its turns stand. Pure but for the reading.

Rule: facts are never copied. A session that was forked from another begins with that one's entries up to a row of the
journal, which forgets nothing, whatever becomes of the other session. A turn stands if the conversation leads through
it: each goes on from the one before, and after a rewinding from the turn that was rewound to, which may itself have
stood no more. What is between two turns belongs to the one before.

Facts ignored: BatchStarted, BudgetChanged, BudgetReserved, Compacted, ContentsRefused, FaultsAllowed, InstructionsRead,
ModeChanged, ModelRetried, ModelSwitched, OptionChosen, Replied, ReplyCut, RuleRevoked, SessionChanged, SessionDeleted,
ToolsChanged, TurnQuestioned, TurnResumed, TurnSuspended, Unreadable.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from supervisor.errors import ConfigError
from supervisor.journal.facts import CallDecided, CallEnded, CallStarted, Rewound, SessionOpened, TurnEnded, TurnStarted
from supervisor.journal.journal import Journal, JournalEntry

_FORKS: Final = 1000
"""Sessions that one may stem from, one from the other."""
_NOWHERE: Final = -1
"""What belongs to no stretch."""


def inherited(journal: Journal, own: Sequence[JournalEntry]) -> list[JournalEntry]:
    """Return what a session with these entries begins with: those of the sessions that it was forked from, in order.

    Raises:
        JournalError: the journal cannot be read.
    """
    before = list[JournalEntry]()
    for _ in range(_FORKS):
        opened = next((entry.fact for entry in own if isinstance(entry.fact, SessionOpened)), None)
        if opened is None or (fork := opened.fork) is None:
            break
        own = [entry for entry in journal.of_session(fork.session) if entry.seq <= fork.row]
        before[:0] = own
    return before


def story(journal: Journal, session: str, own: Sequence[JournalEntry] | None = None) -> list[JournalEntry]:
    """Return the entries of a session after those that it begins with; its `own` are read if they are not given.

    Raises:
        JournalError: the journal cannot be read.
    """
    own = journal.of_session(session) if own is None else own
    return [*inherited(journal, own), *own]


@dataclass(frozen=True)
class TurnLine:
    """The turns of a story, and which of them stand at its end."""

    ends: dict[int, int]
    """The row of the journal in which a turn has ended, by its number; of 0, the one that opened the session."""
    stands: list[bool]
    """Whether an entry belongs to what stands; one for each."""
    turns: tuple[int, ...] = ()
    """Those that stand, in their order; also one that has no end."""

    def end_of(self, turn: int, session: str) -> int:
        """Return the row in which a turn has ended.

        Raises:
            ConfigError: there is no such turn, or it has not ended.
        """
        if turn in self.ends:
            return self.ends[turn]
        ended = max(self.ends, default=0)
        there = f"the last one that has is {ended}" if ended else "none has, so far"
        raise ConfigError(f"No turn {turn} of the session {session} has ended; {there}.")

    @property
    def last(self) -> int:
        """The last turn that stands and has ended; 0 for none."""
        return next((turn for turn in reversed(self.turns) if turn in self.ends), 0)


@dataclass
class _Lines:
    """The fold: to each stretch of entries, a turn with what follows it, the turn that it goes on from."""

    head: int = 0
    """The stretch that the next entry belongs to: 0 before the first turn, else an index of `before`."""
    before: list[int] = field(default_factory=lambda: [0])
    turn: list[int] = field(default_factory=lambda: [0])
    """The number of the turn that a stretch is of, or goes on from."""
    ended: dict[int, int] = field(default_factory=lambda: {0: 0})
    """The stretch that ends with a turn's end, by the turn."""
    waiting: dict[str, Rewound] = field(default_factory=dict)
    """Rewindings whose call has not ended, by that."""
    undone: dict[str, tuple[int, int]] = field(default_factory=dict)
    """What stood before a rewinding, and what it made stand, by its call."""
    undoes: dict[str, str] = field(default_factory=dict)
    calls: set[str] = field(default_factory=set)
    """The calls of rewindings, which are no part of the conversation."""

    def begin(self, turn: int, before: int) -> None:
        """Begin a stretch that goes on from another."""
        self.before.append(before)
        self.turn.append(turn)
        self.head = len(self.before) - 1

    def rewind(self, fact: Rewound) -> None:
        """Go on from the end of another turn."""
        before = self.head
        self.begin(fact.turn, self.ended.get(fact.turn, 0))
        if fact.call:
            self.undone[fact.call] = before, self.head

    def take(self, fact: Rewound) -> None:
        """Go on from the end of another turn, at once or when a call has ended."""
        if fact.call:
            self.waiting[fact.call] = fact
            self.calls.add(fact.call)
        else:
            self.rewind(fact)

    def follow(self, fact: CallStarted | CallDecided | CallEnded) -> None:
        """Take back or let stand what hangs on a call."""
        if isinstance(fact, CallDecided):
            self.undoes[fact.call] = fact.undoes
        if not isinstance(fact, CallEnded):
            return
        rewound, undoes = self.waiting.pop(fact.call, None), self.undoes.pop(fact.call, "")
        if fact.ok and rewound is not None:
            self.rewind(rewound)
        elif fact.ok and undoes in self.undone:
            before, made = self.undone.pop(undoes)
            if made == self.head:  # nothing was said since
                self.begin(self.turn[before], before)
                self.undone[fact.call] = made, self.head

    def kept(self) -> set[int]:
        """Return the stretches that stand."""
        found, at = {0}, self.head
        while at:
            found.add(at)
            at = self.before[at]
        return found


def turn_line(entries: Sequence[JournalEntry]) -> TurnLine:
    """Return the turns of a story."""
    lines, of_entry, ends = _Lines(), list[int](), dict[int, int]()
    for entry in entries:
        fact, at = entry.fact, lines.head
        match fact:
            case SessionOpened():
                ends.setdefault(0, entry.seq)
            case TurnStarted():
                lines.begin(fact.turn, lines.head)
                at = lines.head
            case TurnEnded():
                ends[fact.turn] = entry.seq
                lines.ended[fact.turn] = lines.head
                lines.begin(fact.turn, lines.head)
            case Rewound():
                lines.take(fact)
            case CallStarted() | CallDecided() | CallEnded():
                at = _NOWHERE if fact.call in lines.calls else at
                lines.follow(fact)
            case _:
                pass
        of_entry.append(at)
    standing = lines.kept()
    stands = [each in standing for each in of_entry]
    for number, entry in enumerate(entries if lines.waiting else ()):
        if isinstance(entry.fact, CallStarted | CallDecided) and entry.fact.call in lines.waiting:
            stands[number] = True  # it was cut off: what became of it is to be found out
    begun = (entry.fact for entry, holds in zip(entries, stands, strict=True) if holds)
    return TurnLine(ends, stands, tuple(fact.turn for fact in begun if isinstance(fact, TurnStarted)))
