"""What is read of a journal that was changed or damaged: all but that, with a mark on it."""

import random
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest

from supervisor.errors import JournalError
from supervisor.journal.facts import SessionOpened, TurnStarted, Unreadable
from supervisor.journal.index import SessionIndex
from supervisor.journal.journal import JournalEntry, open_journal
from tests.supervisor.journal.harness import execute
from tests.supervisor.journal.test_index import asked, opened

FREE: Final = ("DROP TRIGGER facts_stay", "DROP TRIGGER facts_last")
ROWS: Final = 240
SWAP: Final = (
    "UPDATE facts SET seq = -7 WHERE seq = 7",
    "UPDATE facts SET seq = 7 WHERE seq = 9",
    "UPDATE facts SET seq = 9 WHERE seq = -7",
)
BYTE: Final = "UPDATE facts SET body = CAST(replace(CAST(body AS TEXT), '{}', '{}') AS BLOB) WHERE seq = {}"

TAMPERINGS: Final[dict[str, tuple[Sequence[str], dict[int, str]]]] = {
    "a byte of a text": ([BYTE.format("line 7 ", "line 8 ", 7)], {7: "changed"}),
    "a byte of the JSON": ([BYTE.format("{", "[", 7)], {7: "unreadable"}),
    "a byte that is not text": (
        ["UPDATE facts SET body = CAST(substr(body, 1, 90) || x'df' || substr(body, 92) AS BLOB) WHERE seq = 7"],
        {7: "unreadable"},
    ),
    "its time": (["UPDATE facts SET at = 1 WHERE seq = 7"], {7: "changed"}),
    "its digest": (["UPDATE facts SET digest = zeroblob(32) WHERE seq = 7"], {7: "changed", 8: "changed"}),
    "deleted": (["DELETE FROM facts WHERE seq = 7"], {8: "unchecked"}),
    "two swapped": (SWAP, {7: "changed", 8: "changed", 9: "changed", 10: "changed"}),
    "cut at the end": ([f"DELETE FROM facts WHERE seq > {ROWS - 3}"], {}),
    "not text": (["UPDATE facts SET session = CAST(x'ff' AS TEXT) WHERE seq = 7"], {7: "unreadable"}),
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A journal of two sessions whose rows take turns, on many pages, without a log beside it."""
    path = tmp_path_factory.mktemp("whole") / "journal.db"
    with open_journal(path) as journal:
        journal.append("a", opened("/a"))
        journal.append("b", opened("/b"))
        for number in range(3, ROWS + 1):
            journal.append("ab"[number % 2], asked(f"line {number} {'x' * 300}", number))
    execute(path, "PRAGMA wal_checkpoint(TRUNCATE)")
    return path.read_bytes()


def everything(path: Path) -> dict[int, JournalEntry]:
    with open_journal(path) as journal:
        found = {entry.seq: entry for entry in journal.everything()}
        sessions = {entry.seq for session in "ab" for entry in journal.of_session(session)}
        assert sessions == {seq for seq, entry in found.items() if entry.session in set("ab")}
        assert {entry.session for entry in journal.opened()} >= {"a", "b"}
        index = SessionIndex(journal)
        index.refresh()
        assert {"a", "b"} <= {each.session for each in index}
    return found


@pytest.mark.parametrize(("statements", "marks"), TAMPERINGS.values(), ids=TAMPERINGS)
def test_a_row_that_was_changed_is_marked_and_costs_no_other(
    whole: bytes, path: Path, statements: Sequence[str], marks: dict[int, str]
) -> None:
    path.write_bytes(whole)
    path.chmod(0o600)
    execute(path, *FREE, *statements)
    found = everything(path)
    assert {seq: entry.damage for seq, entry in found.items() if entry.damage} == marks
    assert all(isinstance(entry.fact, Unreadable) == (entry.damage == "unreadable") for entry in found.values())


def leaves(path: Path, name: str) -> list[int]:
    """Return the numbers of the leaf pages of a table or an index, but for the last, which is written to."""
    with closing(sqlite3.connect(path)) as connection:
        (size,) = connection.execute("PRAGMA page_size").fetchone()
        root = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (name,)).fetchone()[0]
    data = path.read_bytes()
    page = data[(root - 1) * size : root * size]
    if page[0] in (10, 13):  # it is a leaf itself
        return [root] * 4
    cells = int.from_bytes(page[3:5], "big")
    starts = [int.from_bytes(page[12 + 2 * cell : 14 + 2 * cell], "big") for cell in range(cells)]
    return [int.from_bytes(page[start : start + 4], "big") for start in starts]


PAGES: Final[dict[str, Callable[[bytes], bytes]]] = {
    "random bytes": lambda page: random.Random(7).randbytes(len(page)),
    "zeros": lambda page: bytes(len(page)),
    "a header of another kind": lambda page: b"\x05" + page[1:],
    "random cells": lambda page: page[:64] + random.Random(3).randbytes(len(page) - 64),
    "another page": lambda page: page[::-1],
}


@pytest.mark.parametrize("name", ["facts", "facts_of_session"])
@pytest.mark.parametrize("change", PAGES.values(), ids=PAGES)
def test_a_page_that_is_damaged_costs_the_rows_on_it(
    whole: bytes, path: Path, name: str, change: Callable[[bytes], bytes]
) -> None:
    path.write_bytes(whole)
    path.chmod(0o600)
    number = leaves(path, name)[3]
    data = bytearray(whole)
    page = slice((number - 1) * 4096, number * 4096)
    data[page] = change(bytes(data[page]))
    path.write_bytes(data)
    found = everything(path)
    whole_ones = [
        entry for entry in found.values() if isinstance(entry.fact, TurnStarted) and entry.damage != "changed"
    ]
    assert len(whole_ones) >= ROWS - 2 - (0 if name == "facts_of_session" else 16)
    assert all(
        str(entry.seq) == entry.fact.text.split()[1] for entry in whole_ones if isinstance(entry.fact, TurnStarted)
    )
    if name == "facts":
        with open_journal(path) as journal:
            journal.append("a", asked("it goes on"))
            assert journal.of_session("a")[-1].fact == asked("it goes on")
            assert journal.verify().problem


@pytest.mark.parametrize("value", ["NULL", "7", "'text'", "x''"])
def test_a_journal_whose_last_row_has_no_digest_goes_on(whole: bytes, path: Path, value: str) -> None:
    path.write_bytes(whole)
    path.chmod(0o600)
    loosened = "replace(replace(sql, ' NOT NULL', ''), 'STRICT', '')"
    execute(
        path, *FREE, "PRAGMA writable_schema = ON", f"UPDATE sqlite_master SET sql = {loosened} WHERE name = 'facts'"
    )
    execute(path, f"UPDATE facts SET digest = {value} WHERE seq = {ROWS}")
    with open_journal(path) as journal:
        journal.append("a", asked("it goes on"))
        assert journal.of_session("a")[-1].fact == asked("it goes on")
        assert journal.verify().broken_at == ROWS


def test_a_table_of_which_nothing_is_left_is_an_error_in_a_sentence(whole: bytes, path: Path) -> None:
    path.write_bytes(whole[:4096] + random.Random(1).randbytes(len(whole) - 4096))
    path.chmod(0o600)
    with pytest.raises(JournalError, match="is damaged"), open_journal(path) as journal:
        list(journal.everything())


@pytest.mark.parametrize("number", [1, 2])
def test_of_an_opening_that_cannot_be_decoded_the_root_is_taken(whole: bytes, path: Path, number: int) -> None:
    path.write_bytes(whole)
    path.chmod(0o600)
    execute(
        path,
        *FREE,
        f"UPDATE facts SET body = CAST(replace(body, 'context', 'con') || '?' AS BLOB) WHERE seq = {number}",
    )
    entry = everything(path)[number]
    assert entry.damage == "changed"
    assert isinstance(entry.fact, SessionOpened)
    assert (entry.fact.context.working_directory, entry.fact.profile) == (f"/{'ab'[number - 1]}", "vault")
