"""An index of all sessions: a fold over the whole journal, a summary a session.

Rule: it keeps no more of the journal than a summary a session, and reads each row once: `refresh` goes on after
the last one it has seen, whoever wrote the others. Nothing here is a truth of its own; it can be made again.

Facts ignored: BatchStarted, CallEnded, FaultsAllowed, ModelRetried, SessionOpened, ToolsChanged.
"""

import time
from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from supervisor.display.escape import one_line
from supervisor.errors import ConfigError
from supervisor.journal.facts import (
    CallDecided,
    CallStarted,
    Replied,
    SessionChanged,
    SessionDeleted,
    SessionOpened,
    TurnEnded,
    TurnResumed,
    TurnStarted,
)
from supervisor.journal.journal import Journal, JournalEntry

TITLE_WIDTH: Final = 100
"""Characters of a title."""


class Summary(msgspec.Struct):
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
    """"open" while a turn has no end (running, or interrupted), else how the last turn ended; "-" without any."""
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


class SessionIndex:
    """The sessions of a journal, as of the last `refresh`. A new one is empty."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._folds: dict[str, _Fold] = {}
        self.seen = 0
        """The last row that was taken into account."""

    def refresh(self) -> None:
        """Take into account what was recorded since the last time.

        Raises:
            JournalError: a row cannot be read; everything before it counts.
        """
        for entry in self._journal.since(self.seen):
            fold = self._folds.get(entry.session)
            if fold is not None:
                fold.add(entry)
            elif isinstance(entry.fact, SessionOpened):
                self._folds[entry.session] = _Fold(entry, entry.fact)
            self.seen = entry.seq

    def __iter__(self) -> Iterator[Summary]:
        """Yield every session in the order of their opening, deleted ones too."""
        return (fold.summary() for fold in self._folds.values())

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
        origin: Callable[[str], bool] = lambda _origin: True,
    ) -> list[Summary]:
        """Return the sessions that were not deleted, the last updated first.

        Args:
            cwd: only those that a client opened in exactly this directory; None for all.
            offset: how many of them to leave out at the beginning.
            limit: how many to return; None for all the rest.
            origin: only those whose origin it says yes to.
        """
        found = [fold for fold in self._folds.values() if fold.is_listed(cwd) and origin(fold.known.origin)]
        found.sort(key=lambda fold: fold.updated, reverse=True)
        return [fold.summary() for fold in found[offset : None if limit is None else offset + limit]]


def session_named(journal: Journal, wanted: str) -> list[JournalEntry]:
    """Return the entries of a session by its id, or the end of it where that is unique.

    Raises:
        ConfigError: no such session, or several.
    """
    entries = journal.of_session(wanted)
    if entries:
        return entries
    ids = [entry.session for entry in journal.opened() if entry.session.endswith(wanted)]
    if len(ids) != 1:
        problem = f"{len(ids)} sessions end in" if ids else "No session"
        raise ConfigError(f"{problem} {wanted!r}. `strongroom sessions` lists them.")
    return journal.of_session(ids[0])


def utc(at: float) -> str:
    """Return a time, in seconds since the epoch, as people read it."""
    return time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime(at))


class _Fold:
    """The summary of one session, fact by fact."""

    def __init__(self, entry: JournalEntry, opened: SessionOpened) -> None:
        self.updated = (entry.at, entry.seq)
        """A clock may stand still or be set back; rows never are."""
        self.known = Summary(entry.session, opened.origin, "", "", "", opened.cwd, entry.at, entry.at)
        self._committed: set[str] = set()
        self._use(opened)

    def add(self, entry: JournalEntry) -> None:
        known = self.known
        self.updated = (entry.at, entry.seq)
        known.updated_at = entry.at
        match entry.fact:
            case TurnStarted() as fact:
                known.turns += 1
                known.title = known.title or one_line(fact.text, TITLE_WIDTH)
                known.state, known.open_turn, known.resumed = "open", True, 0
            case TurnResumed():
                known.resumed += 1
            case Replied() as fact:
                known.resumed = 0
                for name, count in fact.usage.items():
                    known.usage[name] = known.usage.get(name, 0) + count
            case CallStarted() as fact:
                known.calls += not fact.again
                self._committed.discard(fact.call)  # what was decided before was lost with its worker
                known.tools = tuple(dict.fromkeys((*known.tools, fact.tool)))
            case CallDecided() as fact if fact.committed:
                self._committed.add(fact.call)
            case TurnEnded() as fact:
                known.state, known.open_turn, known.resumed = fact.status, False, 0
            case SessionChanged() as fact:
                self._use(fact)
            case SessionDeleted():
                known.deleted = True
            case _:
                return

    def _use(self, chosen: SessionOpened | SessionChanged) -> None:
        self.known.profile, self.known.model = chosen.profile, chosen.model
        self.known.root = chosen.context.working_directory
        self.known.group, self.known.technology = chosen.context.group or "", chosen.context.technology or ""

    def is_listed(self, cwd: str | None) -> bool:
        return not self.known.deleted and cwd in (None, self.known.cwd)

    def summary(self) -> Summary:
        """Return a copy, which stays as it is."""
        return msgspec.structs.replace(self.known, commits=len(self._committed), usage=dict(self.known.usage))
