"""The index of pnpm's store, a database: that of a cache, with the rows that a command's own has besides.

Rule: both are taken for hostile, are opened in memory, and may take so many steps of the database's machine; where
that is not enough, or something is wrong, nothing is added. What the cache has stays. Source: pnpm 12's own files.
"""

import re
import sqlite3
from contextlib import closing
from typing import Final

_TABLES: Final = ("package_index", "package_index_alias")
"""Each of two columns: a key, and what it stands for."""
_PLAIN: Final = re.compile(
    r"CREATE TABLE (?:IF NOT EXISTS )?[\w\"`]+\s*\((?:(?!\b(?:CHECK|AS|GENERATED|DEFAULT|COLLATE|REFERENCES)\b)"
    r"[\w\s,()\"`])*\)[\w\s,]*",
    re.IGNORECASE,
)
"""A table of columns and keys alone, whose reading and writing computes nothing."""
_STEPS: Final = 50_000_000
_JOURNAL: Final = slice(18, 20)
"""Bytes of the header that say whether there is a log beside the file, which memory has not (fileformat2)."""
_NO_LOG: Final = b"\x01\x01"


def merged(kept: bytes, new: bytes) -> bytes:
    """Return what a cache has, with what a command has left besides."""
    try:
        with closing(_opened(kept or new)) as all_rows, closing(_opened(new)) as more:
            for table in sorted(_plain_tables(all_rows) & _plain_tables(more)):
                rows = more.execute(f"SELECT * FROM {table} LIMIT 1000000").fetchall()  # noqa: S608 - ours
                all_rows.executemany(f"INSERT OR IGNORE INTO {table} VALUES (?, ?)", rows)  # noqa: S608
            all_rows.commit()
            return all_rows.serialize()
    except (sqlite3.Error, MemoryError, OverflowError, ValueError):
        return kept


def _opened(data: bytes) -> sqlite3.Connection:
    database = sqlite3.connect(":memory:")
    database.deserialize(data[: _JOURNAL.start] + _NO_LOG + data[_JOURNAL.stop :])
    database.execute("PRAGMA trusted_schema = OFF")
    database.set_progress_handler(lambda: 1, _STEPS)
    return database


def _plain_tables(database: sqlite3.Connection) -> set[str]:
    """Return which of those tables a database has.

    Raises:
        ValueError: it has anything besides, or what runs as they are read or written.
    """
    rows = database.execute("SELECT type, name, sql FROM sqlite_master LIMIT 10").fetchall()
    tables = {name for kind, name, sql in rows if kind == "table" and _PLAIN.fullmatch(sql)}
    own = [name for kind, name, sql in rows if kind == "index" and sql is None]
    if not {_TABLES[0]} <= tables <= {*_TABLES} or len(tables) + len(own) < len(rows):
        raise ValueError("no index of packages")
    return tables
