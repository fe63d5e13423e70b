"""The database of a journal as SQLite sees it: its tables, how it is prepared, and what its errors mean.

Rule: what cannot be recorded is not done, and each error says so.
"""

import sqlite3
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from supervisor.errors import JournalError
from supervisor.journal import facts
from supervisor.journal.database_files import is_empty
from supervisor.journal.facts import Fact

VERSION: Final = 1
_APPLICATION_ID: Final = 0x57524F4D
_PAUSE_S: Final = 0.002

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


def prepare(connection: sqlite3.Connection, path: Path, busy_s: float) -> None:
    """Make a connection fit for a journal, and the tables where there are none.

    Raises:
        JournalError: it is no journal, or one of a newer version.
        sqlite3.Error: it cannot be read or written.
    """
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
            if not is_busy(error) or time.monotonic() > deadline:
                raise
            time.sleep(_PAUSE_S)
        else:
            return


def is_busy(error: sqlite3.Error) -> bool:
    """Say whether somebody else has locked the journal."""
    code: int = getattr(error, "sqlite_errorcode", 0)  # not there where it is the module's own error
    return code & 0xFF == sqlite3.SQLITE_BUSY


def as_journal_error(error: sqlite3.Error, path: Path) -> JournalError:
    """Return what an error of SQLite means for the journal at `path`."""
    if isinstance(error, sqlite3.DatabaseError) and not isinstance(
        error, sqlite3.OperationalError | sqlite3.IntegrityError
    ):
        advice = "Keep the file (`sqlite3 FILE .recover` saves what is left) and start with another STRONGROOM_HOME."
        return JournalError("journal_corrupt", f"The journal {path} is damaged: {error}. {advice}")
    advice = ""
    if is_busy(error) and is_empty(path):
        advice = " It is empty, though another program has it open: it was cut short, or is being made. Stop that one."
    elif is_busy(error):
        advice = " Another program has locked it for long: close that one."
    return JournalError("journal_io", f"The journal {path} cannot be used: {error}. Nothing runs unrecorded.{advice}")


def not_unicode(error: UnicodeEncodeError) -> JournalError:
    """Return the error for text that the journal cannot hold."""
    message = f"The journal cannot hold text that is not Unicode ({error.reason}). Nothing runs unrecorded."
    return JournalError("journal_io", message)


def encoded(new: Sequence[Fact]) -> list[bytes]:
    """Return facts as the journal holds them.

    Raises:
        JournalError: one of them has text that is not Unicode.
    """
    try:
        return [facts.encode(fact) for fact in new]
    except UnicodeEncodeError as error:
        raise not_unicode(error) from error
