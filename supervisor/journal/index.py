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


class Summary(msgspec.Struct, frozen=True):
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
        found = [fold for fold in self._folds.values() if fold.is_listed(cwd) and origin(fold.origin)]
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
        self.origin = opened.origin
        self.updated = (entry.at, entry.seq)
        """A clock may stand still or be set back; rows never are."""
        self._session = entry.session
        self._opened = opened
        self._opened_at = entry.at
        self._using: SessionOpened | SessionChanged = opened
        self._turns = 0
        self._title = ""
        self._state = "-"
        self._resumed = 0
        self._deleted = False
        self._calls = 0
        self._tools: dict[str, None] = {}
        self._commits: set[str] = set()
        self._usage: dict[str, int] = {}

    def add(self, entry: JournalEntry) -> None:
        self.updated = (entry.at, entry.seq)
        match entry.fact:
            case TurnStarted() as fact:
                self._turns += 1
                self._title = self._title or one_line(fact.text, TITLE_WIDTH)
                self._state, self._resumed = "open", 0
            case TurnResumed():
                self._resumed += 1
            case Replied() as fact:
                self._resumed = 0
                for name, count in fact.usage.items():
                    self._usage[name] = self._usage.get(name, 0) + count
            case CallStarted() as fact:
                self._calls += not fact.again
                self._commits.discard(fact.call)  # what was decided before was lost with its worker
                self._tools[fact.tool] = None
            case CallDecided() as fact if fact.committed:
                self._commits.add(fact.call)
            case TurnEnded() as fact:
                self._state, self._resumed = fact.status, 0
            case SessionChanged() as fact:
                self._using = fact
            case SessionDeleted():
                self._deleted = True
            case _:
                return

    def is_listed(self, cwd: str | None) -> bool:
        return not self._deleted and cwd in (None, self._opened.cwd)

    def summary(self) -> Summary:
        return Summary(
            session=self._session,
            origin=self.origin,
            profile=self._using.profile,
            model=self._using.model,
            root=self._using.context.working_directory,
            cwd=self._opened.cwd,
            opened_at=self._opened_at,
            updated_at=self.updated[0],
            turns=self._turns,
            title=self._title,
            state=self._state,
            open_turn=self._state == "open",
            resumed=self._resumed,
            deleted=self._deleted,
            calls=self._calls,
            tools=tuple(self._tools),
            commits=len(self._commits),
            usage=dict(self._usage),
            group=self._using.context.group or "",
            technology=self._using.context.technology or "",
        )
