"""The append-only record of everything that happened: SQLite, one row a fact, each chained to the one before.

Rule: `append` returns when the facts are on the disk (WAL, synchronous FULL: one fsync a commit), and raises when
they are not; nothing may then be acted on or shown. What is written to a file that no longer stands at its name, or
that was cut short, would be lost, so each append looks at the files first. Rows are never changed or deleted: triggers
stop mistakes, the chain shows malice. A row's digest is SHA-256 over the previous digest and the row itself, so
`verify` names the first row that was changed, lost from the middle, doubled or slipped in; rows cut off at the end show
only to who has kept the head. Several processes may append: each commit reads the chain's end under the write lock.

It runs in its caller's thread; tasks of an event loop go through `JournalWriter` (see ARCHITECTURE.md, Decisions).
"""

import sqlite3
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Final

import msgspec

from supervisor.errors import ConfigError, StrongroomError
from supervisor.journal import facts
from supervisor.journal.chain_check import ChainCheck, followed
from supervisor.journal.database import as_journal_error, prepare
from supervisor.journal.database_files import Files, check_file, check_log, not_the_last
from supervisor.journal.facts import CallDecided, Fact, SessionChanged, SessionOpened, Unreadable
from supervisor.journal.journal_file import JournalFile
from supervisor.journal.rows import ANCHOR, Damage, Row, rows

_BUSY_S: Final = 5.0
"""Seconds that whoever writes is waited for: a commit of another process is done by then on the slowest disk, and what
holds the lock for longer is no commit. All sessions stand still meanwhile."""

_COMMITS: Final = (b'{"fact":"CallD', b'{"fact":"Sessi')
"""How the facts begin that say what was decided about effects, and on which roots."""
_SPENDING: Final = tuple(b'{"fact":"' + each for each in (b"TurnS", b"TurnE", b"Budge", b"Repli", b"CallE", b"Compa"))
"""How those begin that say what was used."""
_OPENINGS: Final = """WHERE f.seq IN (
        WITH RECURSIVE sessions(id) AS (
            SELECT min(session) FROM facts
            UNION ALL SELECT (SELECT min(session) FROM facts WHERE session > id) FROM sessions WHERE id IS NOT NULL
        ) SELECT (SELECT min(seq) FROM facts WHERE session = id) FROM sessions
        WHERE substr(id, length(id) - length(?1) + 1) = ?1
    ) ORDER BY f.seq"""
"""Goes from one session to the next in the index, and not over all rows."""


class JournalEntry(msgspec.Struct, frozen=True, omit_defaults=True):
    """One row: when (seconds since the epoch), in which session, what."""

    seq: int
    session: str
    at: float
    fact: Fact
    damage: Damage = ""
    """What is wrong with it, compared with the chain."""


class Position(msgspec.Struct, frozen=True, array_like=True):
    """A row with what is another where other rows led to it: whoever changes rows with SQL drops the triggers first."""

    seq: int = 0
    digest: bytes = ANCHOR
    schema: int = 0


class Journal(JournalFile):
    """An open journal, to append to and to read; use `open_journal`."""

    def of_session(self, session: str, after: int = 0) -> list[JournalEntry]:
        """Return a session's entries after row `after` in order; empty when there is no such session."""
        where = "WHERE f.session = ? AND f.seq > ? ORDER BY f.seq"
        return list(self._entries(where, (session, after), lambda row: row.session == session and row.seq > after))

    def everything(self) -> Iterator[JournalEntry]:
        """Yield all entries in order."""
        return self._entries("ORDER BY f.seq", (), lambda _row: True)

    def position(self, seq: int) -> Position | None:
        """Return what row `seq` stands for; None where there is none."""
        with self._mapping_errors():
            query = "SELECT seq, digest, schema_version FROM facts, pragma_schema_version WHERE seq = ?"
            found = self._connection.execute(query, (seq,)).fetchone()
        return Position(*found) if found else None

    def since(self, seq: int, digest: bytes) -> Generator[tuple[JournalEntry, bytes], None, None]:
        """Yield the entries after row `seq`, which has this digest, in order, whoever wrote them; each with its own.

        From the first one on that is not what was written the digests are empty.
        """
        with self._mapping_errors():
            for row in rows(self._connection, "WHERE f.seq > ? ORDER BY f.seq", (seq,), lambda _row: True):
                is_next = digest and row.seq == seq + 1 and not row.damage and row.previous == digest
                seq, digest = row.seq, row.digest if is_next else b""
                yield _entry(row), digest

    def mentioning(self, text: str) -> Iterator[JournalEntry]:
        """Yield the entries that hold `text` as a whole JSON string, in order."""
        encoded_text = msgspec.json.encode(text)
        where = "WHERE instr(f.body, ?) ORDER BY f.seq"
        return self._entries(where, (encoded_text,), lambda row: encoded_text in row.body)

    def last(self) -> int:
        """Return the number of the last row."""
        with self._mapping_errors():
            found = self._connection.execute("SELECT max(seq) FROM facts").fetchone()
        return found[0] or 0

    def commits(self, after: int, last: int) -> Iterator[tuple[int, str, CallDecided | SessionOpened | SessionChanged]]:
        """Yield what was decided about effects, and on which roots, after one row up to another: number, session, fact.

        One that cannot be read is left out.
        """
        where = "WHERE f.seq > ? AND f.seq <= ? AND substr(f.body, 1, 14) IN (?, ?) ORDER BY f.seq"
        for entry in self._entries(
            where, (after, last, *_COMMITS), lambda row: after < row.seq <= last and row.body[:14] in _COMMITS
        ):
            if isinstance(entry.fact, CallDecided | SessionOpened | SessionChanged):
                yield entry.seq, entry.session, entry.fact

    def spending(self, since: float, last: int, after: int = 0) -> Iterator[JournalEntry]:
        """Yield the facts after a row up to another that say what was used from a time on, in order.

        Args:
            since: the time, in seconds since the epoch.
            last: the last row.
            after: the row before the first.
        """
        where = "WHERE f.seq > ? AND f.seq <= ? AND f.at >= ? AND substr(f.body, 1, 14) IN (?, ?, ?, ?, ?, ?)"
        return self._entries(
            where + " ORDER BY f.seq",
            (after, last, since, *_SPENDING),
            lambda row: after < row.seq <= last and row.at >= since and row.body[:14] in _SPENDING,
        )

    def opened(self, ending: str = "") -> list[JournalEntry]:
        """Return the first entry of each session whose id ends so, in order."""
        seen = set[str]()

        def is_first(row: Row) -> bool:
            known = row.session in seen
            seen.add(row.session)
            return not known and bool(row.session) and row.session.endswith(ending)

        return list(self._entries(_OPENINGS, (ending,), is_first))

    def verify(self) -> ChainCheck:
        """Read the whole chain and say whether every row is the one that was written.

        Raises:
            JournalError: a file of it was cut short since it was opened.
        """
        sessions = set[str]()
        checked = self.verify_part(ChainCheck(0, 0, ANCHOR.hex()), -1, sessions)
        return replace(checked, sessions=len(sessions))

    def verify_part(self, before: ChainCheck, limit: int, sessions: set[str]) -> ChainCheck:
        """Go on from an earlier part, over so many rows, and add their sessions.

        Raises:
            JournalError: as `verify`.
        """
        self._files.check_is_whole()
        checked = followed(self._connection, before, limit, sessions)
        if checked.problem:
            self._files.check_is_whole()
        return checked

    def rows_of(self, session: str, last: int) -> Iterator[Row]:
        """Yield a session's rows up to a row, as they were written."""
        with self._mapping_errors():
            where = "WHERE f.session = ? AND f.seq <= ? ORDER BY f.seq"
            yield from rows(self._connection, where, (session, last), lambda row: row.session == session)

    def _entries(
        self, where: str, values: Sequence[str | float | bytes], keep: Callable[[Row], bool]
    ) -> Iterator[JournalEntry]:
        with self._mapping_errors():
            for row in rows(self._connection, where, values, keep):
                yield _entry(row)

    @contextmanager
    def _mapping_errors(self) -> Iterator[None]:
        """Say why rows cannot be read."""
        self._files.check_is_whole()
        try:
            yield
        except sqlite3.Error as error:
            self._files.check_is_whole()  # a better reason
            raise as_journal_error(error, self.path) from error


@contextmanager
def open_journal(path: Path, busy_s: float = _BUSY_S) -> Iterator[Journal]:
    """Open or make the journal at `path`, readable by its owner alone.

    Args:
        path: of the file.
        busy_s: seconds for which an append waits for another writer; after it has waited in vain, the next ones wait
            only shortly, until one succeeds.

    Raises:
        JournalError: not a regular file, damaged, cut short, written by a newer version, or not to be opened.
    """
    check_log(path)
    check_file(path)
    try:
        connection = sqlite3.connect(path, timeout=busy_s, isolation_level=None, check_same_thread=False)
    except sqlite3.Error as error:
        raise as_journal_error(error, path) from error
    files, is_damaged = None, False
    try:
        try:
            prepare(connection, path, busy_s)
        except sqlite3.Error as error:
            Files(path).check_is_whole()  # a better reason
            refused = as_journal_error(error, path)
            is_damaged = refused.kind == "journal_corrupt"  # a log may be whole still: SQLite would remove it
            raise refused from error
        files = Files(path)
        files.check()
        yield Journal(connection, path, files, busy_s)
    finally:
        with not_the_last(path) if is_damaged or (files is not None and files.belong_to_others()) else nullcontext():
            connection.close()


@contextmanager
def open_recorded(path: Path, missing: StrongroomError | None = None) -> Iterator[Journal]:
    """Open the journal at `path`, which is not made.

    Raises:
        ConfigError: there is none; another error, where that is what is `missing`.
        JournalError: as `open_journal`.
    """
    if not path.exists():
        raise missing or ConfigError(f"There is no journal yet at {path}.")
    with open_journal(path) as journal:
        yield journal


def _entry(row: Row) -> JournalEntry:
    """Return a row with its fact; one that cannot be read has a fact that says so."""
    if row.damage == "unreadable":
        return JournalEntry(row.seq, row.session, row.at, Unreadable("its page of the file is damaged"), row.damage)
    try:
        return JournalEntry(row.seq, row.session, row.at, facts.decode(row.body), row.damage)
    except msgspec.DecodeError:
        if (opened := facts.opening_in(row.body)) is not None:
            return JournalEntry(row.seq, row.session, row.at, opened, "changed")
        why = "it was changed since" if row.damage else "it is of a kind that this version does not know"
        return JournalEntry(row.seq, row.session, row.at, Unreadable(why), "unreadable")
