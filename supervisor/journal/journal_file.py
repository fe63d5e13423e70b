"""The file that a journal is appended to: a commit of facts, durable, and what is done where that fails.

Rule: one that cannot be made durable is taken back, and its failure is named by the best reason there is. Each looks
first whether the journal's names still lead to its files.
"""

import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from supervisor.errors import JournalError
from supervisor.journal.database import as_journal_error, encoded, is_busy, not_unicode
from supervisor.journal.database_files import INDEX, Files
from supervisor.journal.facts import Fact
from supervisor.journal.log_space import LogSpace
from supervisor.journal.rows import ANCHOR, chain

_STILL_BUSY_S: Final = 0.25
"""Seconds that it is waited for after it was waited for in vain."""


class JournalFile:
    """The open file of a journal, to append to.

    Args:
        connection: prepared.
        path: of the file.
        files: what the connection has open.
        busy_s: seconds for which another writer is waited for, as the connection does now.
    """

    def __init__(self, connection: sqlite3.Connection, path: Path, files: Files, busy_s: float) -> None:
        self._connection = connection
        self._files = files
        self._space = LogSpace(files)
        self._busy_s = self._waits_s = busy_s
        self._writing = threading.Lock()
        """Held from `begin` to the end of `commit`."""
        self.path = path

    def append(self, session: str, *new: Fact) -> None:
        """Make facts durable, all or none.

        Raises:
            JournalError: they are not recorded (disk full, I/O error, locked, a file of the journal is gone or was
                cut short); nothing may act on them.
        """
        self.begin([(session, encoded(new))])
        self.commit()

    def begin(self, appends: Iterable[tuple[str, Sequence[bytes]]]) -> None:
        """Write encoded facts of sessions, for `commit` to make them durable, all or none.

        Whoever else writes here waits for that commit.

        Raises:
            JournalError: as `append`; there is nothing to commit.
        """
        connection = self._connection
        self._writing.acquire()
        try:
            with self._typed_failures():
                self._files.check_is_whole(INDEX)
                connection.execute("BEGIN IMMEDIATE")
                self._files.check()
                self._space.make()
                last = connection.execute("SELECT seq, digest FROM facts ORDER BY seq DESC LIMIT 1").fetchone()
                seq, digest = last or (0, ANCHOR)
                digest = digest if isinstance(digest, bytes) else b""  # which a damaged row may lack
                for session, bodies in appends:
                    for body in bodies:
                        seq, at = seq + 1, time.time()
                        digest = chain(digest, seq, session, at, body)
                        connection.execute("INSERT INTO facts VALUES (?, ?, ?, ?, ?)", (seq, session, at, body, digest))
        except BaseException:
            self._writing.release()
            raise

    def commit(self) -> None:
        """Make durable what was begun, in any thread.

        Raises:
            JournalError: as `append`.
        """
        try:
            with self._typed_failures():
                self._connection.execute("COMMIT")
            self._wait(self._busy_s)
        finally:
            self._writing.release()

    @contextmanager
    def _typed_failures(self) -> Iterator[None]:
        """Undo what was written where it fails, and say why."""
        try:
            try:
                yield
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise
        except JournalError:
            self._save_what_is_in_a_lost_log()
            raise
        except sqlite3.Error as error:
            self._files.check_is_whole()  # a better reason
            if is_busy(error):
                self._wait(min(_STILL_BUSY_S, self._busy_s))
            raise as_journal_error(error, self.path) from error
        except UnicodeEncodeError as error:
            raise not_unicode(error) from error

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
