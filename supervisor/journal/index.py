"""An index of all sessions: a fold over the whole journal, a summary a session.

Rule: it keeps no more of the journal than a summary a session, and reads each row once: `refresh` goes on after
the last one it has seen, whoever wrote the others. Nothing here is a truth of its own; it can be made again.

It is saved beside the journal (`saved_fold`). What is saved was folded from rows whose chain holds, and names the last
one: its digest stands for all of them.

Facts ignored: BatchStarted, BudgetChanged, BudgetReserved, ContentsRefused, FaultsAllowed, InstructionsRead,
ModeChanged, ModelRetried, ModelSwitched, OptionChosen, ReplyCut, Rewound, RuleRevoked, SessionOpened, ToolsChanged,
TurnQuestioned.
"""

import time
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final

import msgspec

from supervisor.display.escape import one_line
from supervisor.errors import ConfigError
from supervisor.journal import saved_fold
from supervisor.journal.facts import (
    UNKNOWN,
    CallDecided,
    CallEnded,
    CallStarted,
    Compacted,
    Replied,
    RuleRevoked,
    SessionChanged,
    SessionDeleted,
    SessionOpened,
    TurnEnded,
    TurnResumed,
    TurnStarted,
    TurnSuspended,
    Unreadable,
)
from supervisor.journal.journal import Journal, JournalEntry, Position
from supervisor.version import VERSION

TITLE_WIDTH: Final = 100
"""Characters of a title."""
_SAVE_AFTER: Final = 5_000
"""Facts that a program may read instead of writing the file anew."""


class Summary(msgspec.Struct, array_like=True):
    """One session as a listing shows it. Times are seconds since the epoch."""

    session: str
    origin: str
    profile: str
    """As it was last chosen; so are `model` and `root`."""
    model: str
    root: str
    cwd: str
    opened_at: float
    updated_at: float
    turns: int = 0
    title: str = ""
    """The first line that was asked, cut; empty where nothing was."""
    state: str = "-"
    """"open" while a turn has no end (running, or interrupted), "suspended" where it goes no further for now, else how
    the last turn ended; "-" without any; "damaged" where the last row that tells cannot be read."""
    open_turn: bool = False
    resumed: int = 0
    """How often the open turn was taken up again since its last reply; see `Transcript.resumed`."""
    deleted: bool = False
    calls: int = 0
    tools: tuple[str, ...] = ()
    """The tools that were called, in the order of their first call."""
    commits: int = 0
    """Calls that were let change something."""
    usage: dict[str, int] = {}
    group: str = ""
    """With `technology`, what the root was found by; empty where it was named."""
    technology: str = ""
    changed_at: int = 0
    """The row of the journal in which something was last let be changed, or taken back."""
    unsettled: tuple[str, ...] = ()
    """Calls that were let make the changes that are recorded, and have no end."""


class SessionIndex:
    """The sessions of a journal, as of the last `refresh`. A new one is empty."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._file = journal.path.with_suffix(".index")
        self._folds: dict[str, _Fold] = {}
        """The last updated at the end. Not by the clock, which may stand still or be set back."""
        self._seen = Position()
        """The last row that was taken into account; its digest is empty where the chain is broken."""
        self._saved = 0

    def refresh(self) -> None:
        """Take into account what was recorded since the last time.

        Raises:
            JournalError: a row cannot be read; everything before it counts.
        """
        if not self._seen.seq:
            self._load()
        folds, seen = self._folds, (self._seen.seq, self._seen.digest)
        try:
            for entry, digest in self._journal.since(*seen):
                fold = folds.pop(entry.session, None)
                if fold is not None:
                    fold.add(entry)
                elif isinstance(entry.fact, SessionOpened):
                    fold = _Fold.of(entry, entry.fact)
                elif isinstance(entry.fact, Unreadable) and entry.session:
                    fold = _Fold.of(entry, UNKNOWN)  # its opening, perhaps
                if fold is not None:
                    folds[entry.session] = fold
                seen = entry.seq, digest
        finally:
            self._seen = Position(*seen)
        if self._seen.seq >= self._saved + _SAVE_AFTER:
            self._save()

    def _load(self) -> None:
        """Begin with what was saved."""
        saved = saved_fold.load(self._file, self._journal, _SAVED_BY, _decoder.decode)
        if saved is not None:
            self._folds = {fold.known.session: fold for fold in saved.folds}
            self._seen, self._saved = saved.seen, saved.seen.seq

    def _save(self) -> None:
        seen, self._saved = self._journal.position(self._seen.seq), self._seen.seq
        if seen is not None and seen.digest == self._seen.digest:
            saved_fold.save(self._file, _SavedIndex(_SAVED_BY, seen, list(self._folds.values())))

    def __iter__(self) -> Iterator[Summary]:
        """Yield every session in the order of their opening, deleted ones too."""
        return (fold.summary() for fold in sorted(self._folds.values(), key=lambda fold: fold.first))

    def get(self, session: str) -> Summary | None:
        """Return one session, deleted or not; None when the journal has none of that id."""
        fold = self._folds.get(session)
        return None if fold is None else fold.summary()

    def listing(
        self,
        cwd: str | None = None,
        *,
        offset: int = 0,
        limit: int | None = None,
        where: Callable[[Summary], bool] = lambda _summary: True,
    ) -> list[Summary]:
        """Return the sessions that were not deleted, the last updated first.

        Args:
            cwd: only those that a client opened in exactly this directory; None for all.
            offset: how many of them to leave out at the beginning.
            limit: how many to return; None for all the rest.
            where: only those that it says yes to.
        """
        found = (fold for fold in reversed(self._folds.values()) if fold.is_listed(cwd) and where(fold.known))
        return [fold.summary() for fold in islice(found, offset, None if limit is None else offset + limit)]


def session_named(journal: Journal, wanted: str) -> list[JournalEntry]:
    """Return the entries of a session by its id, or the end of it where that is unique.

    Raises:
        ConfigError: no such session, or several.
    """
    entries = journal.of_session(wanted)
    if entries:
        return entries
    ids = [entry.session for entry in journal.opened(wanted)]
    if len(ids) != 1:
        problem = f"{len(ids)} sessions end in" if ids else "No session"
        raise ConfigError(f"{problem} {wanted!r}. `strongroom sessions` lists them.")
    return journal.of_session(ids[0])


def utc(at: float) -> str:
    """Return a time, in seconds since the epoch, as people read it."""
    return time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime(at))


class _Fold(msgspec.Struct, array_like=True):
    """The summary of one session, fact by fact."""

    known: Summary
    first: int
    """The row that opened it."""
    committed: tuple[str, ...] = ()
    """Calls that were let change something and have no end yet."""

    @classmethod
    def of(cls, entry: JournalEntry, opened: SessionOpened) -> "_Fold":
        fold = cls(Summary(entry.session, opened.origin, "", "", "", opened.cwd, entry.at, entry.at), entry.seq)
        fold._use(opened)
        if opened.fork is not None:
            fold.known.title = one_line(f"fork at turn {opened.fork.turn}: {opened.fork.title}", TITLE_WIDTH)
        return fold

    def add(self, entry: JournalEntry) -> None:
        known = self.known
        known.updated_at = _used_at(entry) or known.updated_at
        match entry.fact:
            case TurnStarted() | TurnResumed() | TurnSuspended() as fact:
                self._add_turn(fact)
            case Replied() | Compacted() as fact:
                known.resumed = 0 if isinstance(fact, Replied) else known.resumed
                for name, count in fact.usage.items():
                    known.usage[name] = known.usage.get(name, 0) + count
            case CallStarted() | CallDecided() | CallEnded() as fact:
                if isinstance(fact, CallDecided) and (fact.committed or fact.undoes):
                    known.changed_at = entry.seq
                self._add_call(fact)
            case TurnEnded() | Unreadable() as fact:
                state = fact.status if isinstance(fact, TurnEnded) else "damaged"
                known.state, known.open_turn, known.resumed = state, False, 0
            case SessionChanged() as fact:
                self._use(fact)
            case SessionDeleted():
                known.deleted = True
            case _:
                return

    def _add_turn(self, fact: TurnStarted | TurnResumed | TurnSuspended) -> None:
        known = self.known
        match fact:
            case TurnStarted():
                known.turns += 1
                known.title = known.title or one_line(fact.text, TITLE_WIDTH)
                known.state, known.open_turn, known.resumed = "open", True, 0
            case TurnResumed():
                known.state, known.resumed = "open", known.resumed + 1
            case TurnSuspended():
                known.state, known.resumed = "suspended", 0

    def _add_call(self, fact: CallStarted | CallDecided | CallEnded) -> None:
        known, was_committed = self.known, fact.call in self.committed
        known.unsettled = tuple(each for each in known.unsettled if each != fact.call)
        if isinstance(fact, CallDecided) and fact.committed and fact.effects is not None:
            known.unsettled += (fact.call,)
        if isinstance(fact, CallDecided):
            if fact.committed and not was_committed:
                self.committed += (fact.call,)
                known.commits += 1
            return
        if was_committed:
            self.committed = tuple(each for each in self.committed if each != fact.call)
        if isinstance(fact, CallStarted):
            known.calls += not fact.again
            known.commits -= was_committed  # what was decided before was lost with its worker
            known.tools += (fact.tool,) if fact.tool not in known.tools else ()

    def _use(self, chosen: SessionOpened | SessionChanged) -> None:
        self.known.profile, self.known.model = chosen.profile, chosen.model
        self.known.root = chosen.context.working_directory
        self.known.group, self.known.technology = chosen.context.group or "", chosen.context.technology or ""

    def is_listed(self, cwd: str | None) -> bool:
        return not self.known.deleted and cwd in (None, self.known.cwd)

    def summary(self) -> Summary:
        """Return a copy, which stays as it is."""
        return msgspec.structs.replace(self.known, usage=dict(self.known.usage))


def _used_at(entry: JournalEntry) -> float:
    """Return when somebody was in the session for this fact; 0 where nobody was, or where that is not known."""
    return 0 if isinstance(entry.fact, RuleRevoked) else entry.at


class _SavedIndex(msgspec.Struct, frozen=True, array_like=True):
    """What is in the file, behind its digest."""

    by: tuple[str, ...]
    seen: Position
    folds: list[_Fold]


_SAVED_BY: Final = (VERSION, *_Fold.__struct_fields__, *Summary.__struct_fields__)
_decoder: Final = msgspec.msgpack.Decoder(_SavedIndex)
