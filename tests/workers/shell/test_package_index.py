"""What becomes of the index of pnpm's store: rows are added, none is replaced, and a hostile one adds nothing."""

import os
import sqlite3
from pathlib import Path
from typing import Final

import pytest

from workers.shell import package_index
from workers.shell.cached_files import filled
from workers.shell.package_index import merged

TABLES: Final = """
CREATE TABLE package_index (key, data, PRIMARY KEY (key)) WITHOUT ROWID;
CREATE TABLE package_index_alias (key, target, PRIMARY KEY (key)) WITHOUT ROWID;
"""


def database(file: Path, script: str = "", **rows: str) -> bytes:
    """Return a database as pnpm leaves it, with a log beside it that is empty."""
    file.unlink(missing_ok=True)
    connection = sqlite3.connect(file)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.executescript(script or TABLES)
    for key, data in rows.items():
        connection.execute("INSERT INTO package_index VALUES (?, ?)", (key, data.encode()))
    connection.commit()
    connection.close()
    return file.read_bytes()


def rows_of(data: bytes) -> dict[str, bytes]:
    return dict(package_index._opened(data).execute("SELECT * FROM package_index").fetchall())


def test_rows_are_added_and_none_is_replaced(tmp_path: Path) -> None:
    kept, new = database(tmp_path / "a", one="first"), database(tmp_path / "b", one="evil", two="second")
    assert rows_of(merged(kept, new)) == {"one": b"first", "two": b"second"}
    assert rows_of(merged(b"", new)) == {"one": b"evil", "two": b"second"}


ENDLESS: Final = (
    "CREATE VIEW package_index AS WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) "
    "SELECT count(*) AS key, 1 AS data FROM c;"
)
HOSTILE: Final[dict[str, str]] = {
    "no tables": "CREATE TABLE other (x);",
    "a view without end": ENDLESS,
    "a trigger": f"{TABLES} CREATE TRIGGER t AFTER INSERT ON package_index BEGIN SELECT 1; END;",
    "a computed column": TABLES.replace("(key, data,", "(key, data AS (zeroblob(9)),", 1),
    "a check": TABLES.replace("(key, data,", "(key, data CHECK (length(zeroblob(9))),", 1),
    "an index of an expression": f"{TABLES} CREATE INDEX i ON package_index (length(data));",
    "three columns": "CREATE TABLE package_index (key, data, more); INSERT INTO package_index VALUES (1, 2, 3);",
}


@pytest.mark.parametrize("row", [*HOSTILE, "no database", "half a database"])
def test_what_is_no_such_index_adds_nothing(row: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(package_index, "_STEPS", 10_000)
    kept = database(tmp_path / "kept", one="first")
    new = database(tmp_path / "new", HOSTILE.get(row, TABLES))
    new = {"no database": b"x" * 4096, "half a database": new[: len(new) // 2]}.get(row, new)
    assert rows_of(merged(kept, new)) == {"one": b"first"}
    assert merged(b"", new) == b""


def test_an_index_that_a_command_has_left_is_handed_on_with_what_the_cache_has(tmp_path: Path) -> None:
    at = "store/v11"
    for place in (f"shown/pnpm/{at}", f"upper/{at}"):
        (tmp_path / place).mkdir(parents=True)
    database(tmp_path / "shown/pnpm" / at / "index.db", one="first")
    database(tmp_path / "upper" / at / "index.db", two="second")
    upper = os.open(tmp_path / "upper", os.O_RDONLY)
    try:
        (found,) = filled(("pnpm",), upper, str(tmp_path / "shown"))
    finally:
        os.close(upper)
    assert (found.path, rows_of(found.content)) == (f"pnpm/{at}/index.db", {"one": b"first", "two": b"second"})
