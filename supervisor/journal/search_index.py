"""A full-text index of the journal, in a file beside it: which pieces of which facts hold which words.

Rule: it is never the truth, and nobody waits for it who writes. Whoever looks for something first takes in what was
recorded since; a file that is missing, damaged, of another format or of another journal is made anew. It holds words
and no texts: what is shown comes from the journal, and is compared with the chain as all that is read there. Of a
deleted session nothing stays in the file.

One process at a time has it, by a lock that ends with the process; SQLite's own journal makes each part of the work
whole or undone, whenever that is killed.
"""

import hashlib
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

from supervisor.display.escape import one_line
from supervisor.errors import ConfigError, StrongroomError
from supervisor.journal.facts import Fact, SessionChanged, SessionDeleted, SessionOpened, TurnStarted
from supervisor.journal.index import TITLE_WIDTH
from supervisor.journal.journal import Journal, JournalEntry, Position, open_journal
from supervisor.journal.passages import PIECES, Passage, passage_at, passages_of
from supervisor.journal.rows import is_damage
from supervisor.journal.search_words import Term, parts_of, query_of
from supervisor.system.safe_files import locked_for_change, own_file

_FORMAT: Final = 1
"""Of the file, and of what pieces and words are; a file of another one is made anew."""
_AT_ONCE: Final = 5_000
"""Rows of the journal that are taken in before what was done is kept."""
_BITS: Final = PIECES.bit_length() - 1
_SCHEMA: Final = (
    "PRAGMA auto_vacuum = INCREMENTAL",
    """CREATE VIRTUAL TABLE words USING fts5(
        text, parts, place, content = '', columnsize = 0, tokenize = "unicode61 remove_diacritics 2"
    )""",
    "CREATE TABLE sessions (session TEXT PRIMARY KEY, cwd TEXT, place TEXT, title TEXT) WITHOUT ROWID",
    "CREATE TABLE seen (seq INTEGER, digest BLOB, schema INTEGER, cleared INTEGER)",
    "INSERT INTO seen VALUES (0, x'', 0, 1)",
    f"PRAGMA user_version = {_FORMAT}",
)
_DELETE: Final = "INSERT INTO words (words, rowid, text, parts, place) VALUES ('delete', ?, ?, ?, ?)"
_INSERT: Final = "INSERT INTO words (rowid, text, parts, place) VALUES (?, ?, ?, ?)"

_TITLE: Final = "UPDATE sessions SET title = ? WHERE session = ? AND place != ''"
_OLDEST: Final = "SELECT rowid FROM words WHERE words MATCH ? ORDER BY rowid"
_NEWEST: Final = f"{_OLDEST} DESC"
_SETTINGS: Final = ("locking_mode = EXCLUSIVE", "synchronous = NORMAL", "secure_delete = ON", "cache_size = -32768")

_T = TypeVar("_T")


class FoundPassage(NamedTuple):
    """A piece of a fact that holds what was looked for."""

    row: int
    """Its own in the index."""
    entry: JournalEntry
    passage: Passage
    title: str
    """Its session's."""


class SearchIndex:
    """The index of a journal, as of the last `catch_up`; see `in_index`."""

    def __init__(self, connection: sqlite3.Connection, journal: Journal) -> None:
        self._connection = connection
        self._journal = journal
        self._seen = 0
        """The last row that was taken in."""

    def prepare(self) -> bool:
        """Make the tables where there are none; say whether the file is of this format and this journal."""
        if not self._connection.execute("SELECT 1 FROM sqlite_master").fetchone():
            for statement in _SCHEMA:
                self._connection.execute(statement)
        if self._connection.execute("PRAGMA user_version").fetchone()[0] != _FORMAT:
            return False
        *seen, _cleared = self._connection.execute("SELECT * FROM seen").fetchone()
        self._seen = seen[0]
        return not self._seen or self._journal.position(self._seen) == Position(*seen)

    def catch_up(self, stopped: Callable[[], bool] = lambda: False) -> None:
        """Take in what was recorded since the last time, part by part, until nobody waits for it any more."""
        last = self._journal.last()
        while self._seen < last and not stopped():
            self._connection.execute("BEGIN")
            taken = self._seen
            for entry, _digest in islice(self._journal.since(self._seen, b""), _AT_ONCE):
                self._take(entry)
                taken = entry.seq
            position = self._journal.position(taken) or Position()
            self._connection.execute(
                "UPDATE seen SET seq = ?, digest = ?, schema = ?", (position.seq, position.digest, position.schema)
            )
            self._connection.execute("COMMIT")
            if taken == self._seen:
                return
            self._seen = taken
        if not self._connection.execute("SELECT cleared FROM seen").fetchone()[0]:
            self._connection.execute("INSERT INTO words (words) VALUES ('optimize')")
            self._connection.execute("PRAGMA incremental_vacuum").fetchall()
            self._connection.execute("UPDATE seen SET cleared = 1")

    def _take(self, entry: JournalEntry) -> None:
        """Take in one row; of a session that is deleted only that."""
        fact = entry.fact
        if isinstance(fact, SessionDeleted):
            self._forget(entry)
        elif isinstance(fact, SessionOpened | SessionChanged):
            self._use(entry.session, fact)
        elif isinstance(fact, TurnStarted) and fact.turn == 1:
            self._connection.execute(_TITLE, (one_line(fact.text, TITLE_WIDTH), entry.session))
        rows = self._rows(entry.seq, fact, self._place(entry.session))
        self._connection.executemany(_INSERT, rows)

    def _use(self, session: str, fact: SessionOpened | SessionChanged) -> None:
        """Note where a session works from here on."""
        row = self._connection.execute("SELECT cwd, place FROM sessions WHERE session = ?", (session,)).fetchone()
        cwd, known = row or (fact.cwd if isinstance(fact, SessionOpened) else "", " ")
        if known:
            place = _places(session, cwd, fact.context.working_directory)
            told = "INSERT INTO sessions VALUES (?1, ?2, ?3, '') ON CONFLICT DO UPDATE SET place = ?3"
            self._connection.execute(told, (session, cwd, place))

    def _place(self, session: str) -> str:
        """Return the words that stand for where a session works; "" where it was deleted."""
        row = self._connection.execute("SELECT place FROM sessions WHERE session = ?", (session,)).fetchone()
        return row[0] if row else _places(session)

    def _rows(self, seq: int, fact: Fact, place: str) -> Iterator[tuple[int, str, str, str]]:
        if place:
            for number, passage in enumerate(passages_of(fact)):
                yield seq << _BITS | number, passage.text, parts_of(passage.text), place

    def _forget(self, deleted: JournalEntry) -> None:
        """Take out the rows of a session, each as it was taken in: FTS5 keeps no texts that would say which words."""
        session = deleted.session
        if not self._place(session):
            return
        self._connection.execute("DELETE FROM sessions WHERE session = ?", (session,))
        for entry in self._journal.of_session(session):
            if entry.seq >= deleted.seq:
                break
            if isinstance(entry.fact, SessionOpened | SessionChanged):
                self._use(session, entry.fact)
            self._connection.executemany(_DELETE, self._rows(entry.seq, entry.fact, self._place(session)))
        self._connection.execute("INSERT OR REPLACE INTO sessions VALUES (?, '', '', '')", (session,))
        self._connection.execute("UPDATE seen SET cleared = 0")

    def session_named(self, wanted: str) -> str:
        """Return the id of a session by it, or by the end of it where that is unique.

        Raises:
            ConfigError: no such session, or several.
        """
        query = "SELECT session FROM sessions WHERE place != '' AND substr(session, -length(?1)) = ?1"
        found = [row[0] for row in self._connection.execute(query, (wanted,))] if wanted else []
        if len(found) != 1 and wanted not in found:
            problem = f"{len(found)} sessions end in" if found else "No session"
            raise ConfigError(f"{problem} {wanted[:80]!r}. `strongroom sessions` lists them.")
        return wanted if wanted in found else found[0]

    def newest(self, terms: Sequence[Term], *, session: str = "", directory: str = "", most: int) -> list[FoundPassage]:
        """Return passages that hold all terms, of so many facts at most, the newest first.

        Args:
            terms: looked for.
            session: of it alone; its whole id.
            directory: of sessions that work on it, or were opened in it, alone; absolute and without links.
            most: facts.
        """
        places = [*([_of_session(session)] if session else []), *([_of_directory(directory)] if directory else [])]
        found: dict[int, int] = {}
        for row in self._matching(query_of(terms, places), _NEWEST):
            if fact_of(row) not in found and len(found) == most:
                break
            found[fact_of(row)] = row  # the first piece of those that hold them
        return list(self.passages(found.values()))

    def matching(self, session: str, term: Term | None = None) -> Iterator[int]:
        """Yield the rows of a session's passages, those that hold a term or all."""
        place = _of_session(session)
        return self._matching(query_of([term], [place]) if term is not None else f'place : "{place}"', _OLDEST)

    def _matching(self, words: str, order: str) -> Iterator[int]:
        return (row[0] for row in self._connection.execute(order, (words,)))

    def passages(self, rows: Iterable[int]) -> Iterator[FoundPassage]:
        """Yield passages by their rows, as the journal has them; what it cannot tell any more is left out."""
        for row in rows:
            seq = fact_of(row)
            entry, _digest = next(self._journal.since(seq - 1, b""), (None, b""))
            if entry is None or entry.seq != seq or (passage := passage_in(entry, row)) is None:
                continue
            title = self._connection.execute(
                "SELECT title FROM sessions WHERE session = ?", (entry.session,)
            ).fetchone()
            yield FoundPassage(row, entry, passage, title[0] if title else "")


def fact_of(row: int) -> int:
    """Return the row of the journal that a row of the index is of."""
    return row >> _BITS


def passage_in(entry: JournalEntry, row: int) -> Passage | None:
    """Return the passage of a fact that a row of the index is of; None where it has no such."""
    return passage_at(entry.fact, row & PIECES - 1)


def _places(session: str, *directories: str) -> str:
    return " ".join([_of_session(session), *(_of_directory(each) for each in directories if each)])


def _of_session(session: str) -> str:
    return f"s{_mark(session)}"


def _of_directory(directory: str) -> str:
    return f"d{_mark(directory)}"


def _mark(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def in_index(journal: Journal, find: Callable[[SearchIndex], _T], stopped: Callable[[], bool] = lambda: False) -> _T:
    """Return what `find` finds in the index of a journal, brought up to date; may take long, so call it in a thread.

    Args:
        journal: open.
        find: is given the index, for as long as it runs.
        stopped: says whether nobody waits any more; then what was taken in so far is kept.

    Raises:
        JournalError: the journal cannot be read.
        StrongroomError: the index cannot be written.
    """
    path = file_of(journal.path)
    try:
        with locked_for_change(path):
            try:
                return _found(path, journal, find, stopped)
            except sqlite3.Error as error:
                if not (is_damage(error) or isinstance(error, _OfAnother)):
                    raise
                for suffix in ("", "-journal"):
                    Path(f"{path}{suffix}").unlink(missing_ok=True)
                return _found(path, journal, find, stopped)
    except (sqlite3.Error, OSError) as error:
        message = f"The search index {path} cannot be used: {error}. Make room, or remove it: it is made again."
        raise StrongroomError(message) from error


class _OfAnother(sqlite3.Error):
    """The file is of another journal, or of another format."""


def _found(path: Path, journal: Journal, find: Callable[[SearchIndex], _T], stopped: Callable[[], bool]) -> _T:
    os.close(own_file(path, os.O_RDWR))  # which drops no lock of SQLite's: nobody has it open
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for setting in _SETTINGS:
            connection.execute(f"PRAGMA {setting}").fetchall()
        index = SearchIndex(connection, journal)
        if not index.prepare():
            raise _OfAnother
        index.catch_up(stopped)
        return find(index)


def file_of(journal: Path) -> Path:
    """Return where the index of the journal at a path is."""
    return journal.with_suffix(".search")


def clear_deleted(path: Path) -> None:
    """Take deleted sessions out of the index of the journal at `path`, if there is one, as far as that goes now."""
    with suppress(StrongroomError):
        if file_of(path).exists():
            with open_journal(path) as journal:
                in_index(journal, lambda _index: None)
