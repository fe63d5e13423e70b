"""The append-only record of everything that happened: SQLite, one row a fact, each chained to the one before.

Rule: `append` returns when the facts are on the disk (WAL, synchronous FULL: one fsync a commit), and raises when
they are not; nothing may then be acted on or shown. What is written to a file that no longer stands at its name, or
that was cut short, would be lost, so each append looks at the files first. Rows are never changed or deleted: triggers
stop mistakes, the chain shows malice. A row's digest is SHA-256 over the previous digest and the row itself, so
`verify` names the first row that was changed, lost from the middle, doubled or slipped in; rows cut off at the end show
only to who has kept the head. Several processes may append: each commit reads the chain's end under the write lock.

It runs in the event loop's thread: a commit takes a quarter of a millisecond, a thread would cost as much again
(see ARCHITECTURE.md, Decisions).
"""

import hashlib
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from supervisor.errors import JournalError
from supervisor.journal import facts
from supervisor.journal.database_files import INDEX, Files, check_file, check_log, is_empty, not_the_last
from supervisor.journal.facts import Fact

VERSION: Final = 1
_APPLICATION_ID: Final = 0x57524F4D
_ANCHOR: Final = bytes(32)
_BUSY_S: Final = 5.0
"""Seconds that whoever writes is waited for: a commit of another process is done by then on the slowest disk, and what
holds the lock for longer is no commit. All sessions stand still meanwhile."""
_STILL_BUSY_S: Final = 0.25
"""Seconds that it is waited for after it was waited for in vain."""
_PAUSE_S: Final = 0.002

_EVERY_ROW: Final = "SELECT seq, session, at, body, digest FROM facts ORDER BY seq"
_SCHEMA: Final = (
    """CREATE TABLE facts (
        seq     INTEGER PRIMARY KEY,
        session TEXT NOT NULL,
        at      REAL NOT NULL,
        body    BLOB NOT NULL,
        digest  BLOB NOT NULL
    ) STRICT""",
    "CREATE INDEX facts_of_session ON facts (session, seq)",
    """CREATE TRIGGER facts_stay BEFORE UPDATE ON facts
        BEGIN SELECT RAISE(ABORT, 'the journal is append-only'); END""",
    """CREATE TRIGGER facts_last BEFORE DELETE ON facts
        BEGIN SELECT RAISE(ABORT, 'the journal is append-only'); END""",
    f"PRAGMA application_id = {_APPLICATION_ID}",
    f"PRAGMA user_version = {VERSION}",
)


@dataclass(frozen=True)
class JournalEntry:
    """One row: when (seconds since the epoch), in which session, what."""

    seq: int
    session: str
    at: float
    fact: Fact


@dataclass(frozen=True)
class ChainCheck:
    """The result of `verify`. `broken_at` is the first row that does not fit, 0 when all do."""

    rows: int
    sessions: int
    head: str
    broken_at: int = 0
    problem: str = ""


class Journal:
    """An open journal; use `open_journal`.

    Args:
        connection: prepared.
        path: of the file.
        files: what the connection has open.
        busy_s: seconds for which another writer is waited for, as the connection does now.
    """

    def __init__(self, connection: sqlite3.Connection, path: Path, files: Files, busy_s: float) -> None:
        self._connection = connection
        self._files = files
        self._busy_s = self._waits_s = busy_s
        self.path = path

    def append(self, session: str, *new: Fact) -> None:
        """Make facts durable, all or none.

        Raises:
            JournalError: they are not recorded (disk full, I/O error, locked, a file of the journal is gone or was
                cut short); nothing may act on them.
        """
        connection = self._connection
        try:
            self._files.check_is_whole(INDEX)
            connection.execute("BEGIN IMMEDIATE")
            try:
                self._files.check()
                last = connection.execute("SELECT seq, digest FROM facts ORDER BY seq DESC LIMIT 1").fetchone()
                seq, digest = last or (0, _ANCHOR)
                for fact in new:
                    seq, at, body = seq + 1, time.time(), facts.encode(fact)
                    digest = _chain(digest, seq, session, at, body)
                    connection.execute("INSERT INTO facts VALUES (?, ?, ?, ?, ?)", (seq, session, at, body, digest))
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
        except JournalError:
            self._save_what_is_in_a_lost_log()
            raise
        except sqlite3.Error as error:
            self._files.check_is_whole()  # a better reason
            if _is_busy(error):
                self._wait(min(_STILL_BUSY_S, self._busy_s))
            raise _as_journal_error(error, self.path) from error
        except UnicodeEncodeError as error:
            message = f"The journal cannot hold text that is not Unicode ({error.reason}). Nothing runs unrecorded."
            raise JournalError("journal_io", message) from error
        self._wait(self._busy_s)

    def _wait(self, seconds: float) -> None:
        """Wait so long for other writers from now on."""
        if seconds != self._waits_s:
            self._connection.execute(f"PRAGMA busy_timeout = {seconds * 1000:.0f}")
            self._waits_s = seconds

    def _save_what_is_in_a_lost_log(self) -> None:
        """Copy to the database what was acknowledged and stands in a log that has no name, but is open here still."""
        if self._files.have_lost_only_the_log():
            with suppress(sqlite3.Error):
                self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()

    def of_session(self, session: str, after: int = 0) -> list[JournalEntry]:
        """Return a session's entries after row `after` in order; empty when there is no such session."""
        return list(self._entries("WHERE session = ? AND seq > ? ORDER BY seq", (session, after)))

    def everything(self) -> Iterator[JournalEntry]:
        """Yield all entries in order."""
        return self._entries("ORDER BY seq", ())

    def since(self, seq: int) -> Iterator[JournalEntry]:
        """Yield the entries after row `seq` in order, whoever wrote them."""
        return self._entries("WHERE seq > ? ORDER BY seq", (seq,))

    def mentioning(self, text: str) -> Iterator[JournalEntry]:
        """Yield the entries that hold `text` as a whole JSON string, in order."""
        return self._entries("WHERE instr(body, ?) ORDER BY seq", (msgspec.json.encode(text),))

    def opened(self) -> list[JournalEntry]:
        """Return the first entry of each session, in order."""
        return list(self._entries("WHERE seq IN (SELECT min(seq) FROM facts GROUP BY session) ORDER BY seq", ()))

    def verify(self) -> ChainCheck:
        """Read the whole chain and say whether every row is the one that was written.

        Raises:
            JournalError: a file of it was cut short since it was opened.
        """
        self._files.check_is_whole()
        previous, expected, sessions = _ANCHOR, 1, set[str]()
        try:
            for seq, session, at, body, digest in self._connection.execute(_EVERY_ROW):
                problem = ""
                if seq != expected:
                    problem = f"row {expected} is missing"
                elif not isinstance(body, bytes) or digest != _chain(previous, seq, session, at, body):
                    problem = f"row {seq} is not what was written"
                if problem:
                    return ChainCheck(expected - 1, len(sessions), previous.hex(), expected, problem)
                previous, expected = digest, expected + 1
                sessions.add(session)
        except sqlite3.Error as error:
            self._files.check_is_whole()
            return ChainCheck(expected - 1, len(sessions), previous.hex(), expected, f"the file is damaged: {error}")
        return ChainCheck(expected - 1, len(sessions), previous.hex())

    def _entries(self, where: str, values: Sequence[str | int | bytes]) -> Iterator[JournalEntry]:
        self._files.check_is_whole()
        query = f"SELECT seq, session, at, body FROM facts {where}"  # noqa: S608 - constants of this module
        try:
            for seq, session, at, body in self._connection.execute(query, values):
                yield JournalEntry(seq, session, at, facts.decode(body))
        except sqlite3.Error as error:
            self._files.check_is_whole()  # a better reason
            raise _as_journal_error(error, self.path) from error
        except msgspec.DecodeError as error:
            message = f"The journal {self.path} holds a row that this version cannot read: {error}."
            raise JournalError("journal_corrupt", message) from error


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
        raise _as_journal_error(error, path) from error
    files, is_damaged = None, False
    try:
        try:
            _prepare(connection, path, busy_s)
        except sqlite3.Error as error:
            Files(path).check_is_whole()  # a better reason
            refused = _as_journal_error(error, path)
            is_damaged = refused.kind == "journal_corrupt"  # a log may be whole still: SQLite would remove it
            raise refused from error
        files = Files(path)
        files.check()
        yield Journal(connection, path, files, busy_s)
    finally:
        with not_the_last(path) if is_damaged or (files is not None and files.belong_to_others()) else nullcontext():
            connection.close()


def _prepare(connection: sqlite3.Connection, path: Path, busy_s: float) -> None:
    _write_ahead(connection, busy_s)
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("BEGIN IMMEDIATE")
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version == 0 and not connection.execute("SELECT 1 FROM sqlite_master").fetchone():
        for statement in _SCHEMA:
            connection.execute(statement)
        connection.execute("COMMIT")
    else:
        connection.execute("ROLLBACK")
        if connection.execute("PRAGMA application_id").fetchone()[0] != _APPLICATION_ID:
            raise JournalError("journal_corrupt", f"{path} is a database, but not a journal of Strongroom.")
        if version > VERSION:
            message = f"The journal {path} was written by a newer version ({version}). Upgrade to read it."
            raise JournalError("journal_corrupt", message)


def _write_ahead(connection: sqlite3.Connection, busy_s: float) -> None:
    """Switch to the write-ahead log. When several make the journal at once, SQLite does not wait here by itself."""
    deadline = time.monotonic() + busy_s
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if not _is_busy(error) or time.monotonic() > deadline:
                raise
            time.sleep(_PAUSE_S)
        else:
            return


def _chain(previous: bytes, seq: int, session: str, at: float, body: bytes) -> bytes:
    head = msgspec.json.encode((seq, session, at))
    return hashlib.sha256(previous + head + body).digest()


def _is_busy(error: sqlite3.Error) -> bool:
    code: int = getattr(error, "sqlite_errorcode", 0)  # not there where it is the module's own error
    return code & 0xFF == sqlite3.SQLITE_BUSY


def _as_journal_error(error: sqlite3.Error, path: Path) -> JournalError:
    if isinstance(error, sqlite3.DatabaseError) and not isinstance(
        error, sqlite3.OperationalError | sqlite3.IntegrityError
    ):
        advice = "Keep the file (`sqlite3 FILE .recover` saves what is left) and start with another STRONGROOM_HOME."
        return JournalError("journal_corrupt", f"The journal {path} is damaged: {error}. {advice}")
    advice = ""
    if _is_busy(error) and is_empty(path):
        advice = " It is empty, though another program has it open: it was cut short, or is being made. Stop that one."
    elif _is_busy(error):
        advice = " Another program has locked it for long: close that one."
    return JournalError("journal_io", f"The journal {path} cannot be used: {error}. Nothing runs unrecorded.{advice}")
