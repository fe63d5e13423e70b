"""The index of pnpm's store, a database: that of a cache, with the rows that a command's own has besides.

Rule: both are taken for hostile, are opened in memory, and may take so many steps of the database's machine; where
that is not enough, or something is wrong, nothing is added. What the cache has stays. Source: pnpm 12's own files.
"""

import sqlite3
from contextlib import closing
from typing import Final

_TABLES: Final = ("package_index", "package_index_alias")
"""Each of two columns: a key, and what it stands for."""
_STEPS: Final = 50_000_000
_JOURNAL: Final = slice(18, 20)
"""Bytes of the header that say whether there is a log beside the file, which memory has not (fileformat2)."""
_NO_LOG: Final = b"\x01\x01"


def merged(kept: bytes, new: bytes) -> bytes:
    """Return what a cache has, with what a command has left besides."""
    if not kept:
        return new
    try:
        with closing(_opened(kept)) as all_rows, closing(_opened(new)) as more:
            for table in _TABLES:
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
