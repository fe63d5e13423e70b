"""The full-text index beside the journal: what it finds, and that it is never the truth."""

import os
import signal
import sqlite3
import stat
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from supervisor.errors import ConfigError, StrongroomError
from supervisor.journal import search_index as module
from supervisor.journal.facts import (
    CallDecided,
    CallEnded,
    CallStarted,
    Fact,
    Replied,
    ReplyCut,
    SessionDeleted,
    TurnEnded,
)
from supervisor.journal.journal import Journal, JournalEntry, open_journal
from supervisor.journal.search_index import FoundPassage, SearchIndex, clear_deleted, file_of, in_index
from supervisor.journal.search_words import spans_of, terms_of
from tests.each_row import each_row
from tests.supervisor.histories import opening_fact
from tests.supervisor.journal.test_index import asked
from workers.changes.effects import Change, Effects

MANY: Final = 300


def said(text: str, call: str = "c1") -> CallEnded:
    return CallEnded(1, call, "read_file", True, text)


FACTS: Final[dict[str, Fact]] = {
    "person": asked("where is the marzipan"),
    "answer": Replied(1, 0, [{"type": "text", "text": "It lies in the larder."}], "end_turn", {}),
    "cut": ReplyCut(1, 0, "Half a sentence about quinces"),
    "call": CallStarted(1, "c0", "read_file", '{"path": "notes/kitchenShelf.md", "limit": 4711}', False, "allow", ""),
    "remark": CallStarted(1, "c2", "exec_shell", "{}", True, "ask", "", approved=False, remark="never on a tuesday"),
    "change": CallDecided(
        1, "c1", "allow", "", True, Effects((Change("src/bakeOven.py", "added"),), {"added": 1}, b"")
    ),
    "result": said("Crème brûlée\n" * 300 + "needs 抹茶蛋糕 too"),
    "rows": CallEnded(1, "c3", "search_files", True, '[{"path":"a\\nb.md","text":"saffron\\nthreads"}]', form="json"),
    "printed": CallEnded(1, "c4", "exec_shell", False, "It failed.", kind="timeout", details={"stdout": "cinnamon"}),
    "end": TurnEnded(1, "error", "", kind="overloaded", message="The server is napping."),
}
FINDS: Final = {
    "marzipan": "person",
    "MARZIPAN": "person",
    "larder lies": "answer",
    "quinces": "cut",
    "kitchen": "call",
    "kitchenshelf.md": "call",
    "4711": "call",
    '"never on a"': "remark",
    "oven": "change",
    "src/bakeOven.py": "change",
    "brulee": "result",
    "蛋糕": "result",
    "抹茶蛋糕": "result",
    "saffron threads": "rows",
    "threads": "rows",
    "saff*": "rows",
    "cinnamon": "printed",
    "napping": "end",
    "server -quinces": "end",
}
FINDS_NOT: Final = ('"lies larder"', "saff", "蛋抹", "larder -lies", "marzipan larder", "nothing", "-larder marzipa")
HOSTILE: Final = {
    "operators": "a AND OR NOT NEAR(b c, 2) ^d text:e {text parts}: f",
    "quotes": '""" "" " \' "unclosed phrase',
    "stars": '* ** a* *a "b"* -*',
    "nul": "a\x00b \x00 marz\x00ipan",
    "controls": "\x01\x02\x7f\x1b[2J a",
    "bidi": "\u202emarzipan\u202c \u2066a\u2069",
    "surrogates": "a \ud800 \udfff b\ud83d",
    "a megabyte": "x" * 2**20,
    "many words": "w " * 2**16,
    "marks alone": "\u0301\u0301 a",
    "signs": "!§$%&/()=?`; DROP TABLE words; --",
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.db"


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("searched") / "journal.db"
    with open_journal(path) as journal:
        journal.append("one-abc", opening_fact(Path("/r")), *FACTS.values())
    return path


def found(path: Path, typed: str, session: str = "", directory: str = "") -> list[FoundPassage]:
    with open_journal(path) as journal:
        return in_index(
            journal, lambda index: index.newest(terms_of(typed), session=session, directory=directory, most=50)
        )


def fill(journal: Journal, count: int = MANY) -> None:
    for session in range(3):
        facts = (said(f"walnut w{number}", f"c{number}") for number in range(session, count, 3))
        journal.append(f"s{session}", *facts)


def count(path: Path) -> int:
    with open_journal(path) as journal:
        return in_index(journal, lambda index: len(index.newest(terms_of("walnut"), most=1_000)))


@each_row("typed", FINDS)
def test_what_people_can_see_is_found(filled: Path, typed: str) -> None:
    assert [each.entry.fact for each in found(filled, typed)] == [FACTS[FINDS[typed]]]


def test_nothing_else_is_found(filled: Path) -> None:
    assert [typed for typed in FINDS_NOT if found(filled, typed)] == []


@each_row("typed", HOSTILE.values(), ids=HOSTILE)
def test_no_words_are_a_query_of_the_database(filled: Path, typed: str) -> None:
    terms = terms_of(typed)
    assert all(each.excluded for each in terms) or len(found(filled, typed)) <= len(FACTS)
    assert spans_of(f"so {typed[:5000]}", terms) is not None


def test_words_are_marked_as_they_were_found() -> None:
    text = "Crème brûlée, kitchenShelf and notes/a_b.md"
    marked = [text[at:end] for at, end in spans_of(text, terms_of('creme "brulee kitchen" a/b -notes'))]
    assert marked == ["Crème", "brûlée, kitchen", "a_b"]


def test_a_session_and_a_directory_narrow_what_is_found(path: Path) -> None:
    with open_journal(path) as journal:
        journal.append("one-abc", opening_fact(Path("/a")), asked("walnut"))
        journal.append("two-abc", opening_fact(Path("/b")), asked("walnut"))
    assert [each.entry.session for each in found(path, "walnut")] == ["two-abc", "one-abc"]
    assert [each.entry.session for each in found(path, "walnut", session="one-abc")] == ["one-abc"]
    assert [each.entry.session for each in found(path, "walnut", directory="/b")] == ["two-abc"]
    with open_journal(path) as journal:
        assert in_index(journal, lambda index: index.session_named("e-abc")) == "one-abc"
        for wrong in ("abc", "three", ""):
            with pytest.raises(ConfigError):
                in_index(journal, partial(SearchIndex.session_named, wanted=wrong))


def test_what_is_recorded_later_is_found(path: Path) -> None:
    with open_journal(path) as journal:
        fill(journal, 3)
    assert count(path) == 3
    with open_journal(path) as journal:
        fill(journal, 2)
    assert count(path) == 5
    assert stat.S_IMODE(file_of(path).stat().st_mode) == 0o600


def _overwrite(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[4096:] = os.urandom(len(data) - 4096)
    file.write_bytes(data)


def _of_the_future(file: Path) -> None:
    with closing(sqlite3.connect(file)) as connection:
        connection.executescript("PRAGMA user_version = 99; DROP TABLE seen")


def _of_another(file: Path) -> None:
    other = file.with_name("other.db")
    with open_journal(other) as journal:
        fill(journal, 7)
    assert count(other) == 7
    os.replace(file_of(other), file)


def _half_made(file: Path) -> None:
    file.unlink()
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TABLE seen (seq)")


SPOILT: Final[dict[str, Callable[[Path], object]]] = {
    "missing": Path.unlink,
    "empty": lambda file: file.write_bytes(b""),
    "cut": lambda file: os.truncate(file, 5_000),
    "no database": lambda file: file.write_bytes(b"hello" * 1_000),
    "overwritten": _overwrite,
    "of a newer version": _of_the_future,
    "of another journal": _of_another,
    "half made": _half_made,
}


@each_row("spoil", SPOILT.values(), ids=SPOILT)
def test_an_index_that_is_not_right_is_made_anew(path: Path, spoil: Callable[[Path], object]) -> None:
    with open_journal(path) as journal:
        fill(journal, MANY - journal.last())
    assert count(path) == MANY
    spoil(file_of(path))
    assert count(path) == MANY


def test_a_link_in_its_place_is_not_followed(path: Path, tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("mine")
    file_of(path).symlink_to(tmp_path / "precious")
    with open_journal(path), pytest.raises(StrongroomError, match="symbolic link"):
        count(path)
    assert (tmp_path / "precious").read_text() == "mine"


def test_nothing_of_a_deleted_session_stays_in_the_file(path: Path) -> None:
    with open_journal(path) as journal:
        journal.append("a", opening_fact(Path("/a")), asked("a zebrafinch sings"))
        journal.append("b", opening_fact(Path("/b")), asked("a walnut falls"))
        fill(journal, 50)
        assert len(found(path, "zebrafinch")) == 1
        assert b"zebrafinch" in file_of(path).read_bytes()
        journal.append("a", SessionDeleted(), asked("zebrafinch, again"))
    clear_deleted(path)
    assert b"zebrafinch" not in file_of(path).read_bytes()
    assert found(path, "zebrafinch") == []
    assert count(path) == 51
    file_of(path).unlink()
    assert found(path, "zebrafinch") == []


def forked(run: Callable[[], object]) -> int:
    if (pid := os.fork()) == 0:
        try:
            run()
        finally:
            os._exit(0)
    return pid


def test_processes_that_catch_up_at_once_take_in_each_row_once(path: Path) -> None:
    with open_journal(path) as journal:
        fill(journal)
    others = [forked(lambda: count(path)) for _ in range(3)]
    assert count(path) == MANY
    for pid in others:
        assert os.waitpid(pid, 0)[1] == 0
    with closing(sqlite3.connect(file_of(path))) as connection:
        connection.execute("INSERT INTO words (words) VALUES ('integrity-check')")
        assert connection.execute("SELECT count(*) FROM words WHERE words MATCH 'walnut'").fetchone() == (MANY,)


def test_a_kill_while_it_is_made_costs_no_more_than_the_part_under_way(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_AT_ONCE", 20)
    with open_journal(path) as journal:
        fill(journal)
    taken = SearchIndex._take
    for rows in range(30, MANY, 60):
        read, write = os.pipe()

        def take(index: SearchIndex, entry: JournalEntry, rows: int = rows, write: int = write) -> None:
            taken(index, entry)
            if entry.seq == rows:
                os.write(write, b"x")
                signal.pause()

        with monkeypatch.context() as meanwhile:
            meanwhile.setattr(SearchIndex, "_take", take)
            pid = forked(lambda: count(path))
            assert os.read(read, 1) == b"x"
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        os.close(read)
        os.close(write)
    assert count(path) == MANY
