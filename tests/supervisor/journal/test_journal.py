"""The journal on real files, in real processes: what was acknowledged stays, and what was tampered with shows."""

import os
import random
import resource
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from supervisor.errors import JournalError
from supervisor.journal import facts
from supervisor.journal.database import VERSION
from supervisor.journal.database_files import file_at, file_by_lstat
from supervisor.journal.facts import Fact, TurnEnded, TurnStarted, Unreadable
from supervisor.journal.journal import Journal, Position, open_journal
from tests.supervisor.command import CODE
from tests.supervisor.journal.harness import (
    BEGIN,
    WRITES,
    append,
    beside,
    execute,
    filled,
    line,
    refusal,
    rows,
    run,
    verdict,
)


def kept(path: Path) -> list[Fact]:
    with open_journal(path) as journal:
        return [entry.fact for entry in journal.everything()]


def writer(path: Path, name: str, count: int) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", f"{BEGIN}sys.stdin.readline(){WRITES}", str(path), name, str(count), "500"],
        cwd=CODE,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def let_go(*writers: "subprocess.Popen[str]") -> None:
    for each in writers:
        assert each.stdin
        each.stdin.write("\n")
        each.stdin.flush()


def killed_after(path: Path, acknowledged: int, of: int = 10_000) -> int:
    """Kill a writer once it has acknowledged so many appends; return how many it had, to the last line."""
    process = writer(path, "s", of)
    let_go(process)
    assert process.stdout
    for _ in range(acknowledged):
        process.stdout.readline()
    process.kill()
    with process:
        return acknowledged + process.stdout.read().count("\n")


def ended(process: "subprocess.Popen[str]") -> str:
    return process.communicate(timeout=60)[0]


# appending and reading -------------------------------------------------------------------------------------


def test_appended_facts_are_read_back_in_order(path: Path) -> None:
    with open_journal(path) as journal, open_journal(path) as other:
        journal.append("s", line(1), line(2))
        assert [entry.fact for entry in other.everything()] == [line(1), line(2)]  # at once
        journal.append("t", line(3))
        journal.append("s", TurnEnded(2, "ok", "yes"))
    with open_journal(path) as journal:
        assert [entry.fact for entry in journal.of_session("s")] == [line(1), line(2), TurnEnded(2, "ok", "yes")]
        assert [(entry.seq, entry.session) for entry in journal.everything()] == list(
            zip((1, 2, 3, 4), "ssts", strict=True)
        )
        assert [entry.fact for entry in journal.opened()] == [line(1), line(3)]
        assert journal.of_session("nobody") == []


def test_facts_after_a_row_are_read_alone(path: Path, journal: Journal) -> None:
    with open_journal(path) as other:
        journal.append("s", line(1), line(2))
        other.append("t", line(3))
        everything = list(journal.since(0, Position().digest))
        assert [entry.seq for entry, _ in everything] == [1, 2, 3]
        digests = [digest for _, digest in everything]
        assert digests[-1].hex() == journal.verify().head
        assert [(entry.session, digest) for entry, digest in journal.since(2, digests[1])] == [("t", digests[2])]
        assert list(journal.since(3, digests[2])) == []


@pytest.mark.parametrize("tampered", ["UPDATE facts SET at = 1 WHERE seq = 3", "DELETE FROM facts WHERE seq = 3"])
def test_facts_from_one_on_that_was_not_written_so_have_no_digest(path: Path, tampered: str) -> None:
    filled(path)
    execute(path, "DROP TRIGGER facts_stay", "DROP TRIGGER facts_last", tampered)
    with open_journal(path) as journal:
        digests = {entry.seq: digest != b"" for entry, digest in journal.since(0, Position().digest)}
        assert [is_chained for seq, is_chained in digests.items() if seq != 3] == [True, True, False, False]
        assert not digests.get(3)


def steps(journal: Journal, read: Callable[[Journal], object]) -> int:
    """Return how many steps SQLite takes to read something."""
    taken = 0

    def count() -> None:
        nonlocal taken
        taken += 1

    journal._connection.set_progress_handler(count, 1)
    read(journal)
    journal._connection.set_progress_handler(None, 0)
    return taken


def test_finding_sessions_costs_by_their_number_and_not_by_their_facts(tmp_path: Path) -> None:
    taken = []
    for many in (1, 300):
        with open_journal(tmp_path / f"{many}.db") as journal:
            for session in "abc":
                journal.append(session, *map(line, range(many)))
            assert [entry.session for entry in journal.opened("b")] == ["b"]
            assert [entry.session for entry in journal.opened("a b")] == []
            taken.append(steps(journal, Journal.opened))
    assert taken[0] == taken[1]


def test_reading_a_session_costs_by_its_facts_and_not_by_those_of_others(path: Path, journal: Journal) -> None:
    for session in "abbc":
        journal.append(session, line(1))
    alone = steps(journal, lambda journal: journal.of_session("b"))
    for session in "acdef":
        journal.append(session, *map(line, range(300)))
    assert steps(journal, lambda journal: journal.of_session("b")) == alone


def test_rows_that_hold_a_string_are_found(journal: Journal) -> None:
    journal.append("s", TurnStarted(1, 'a "b" \u00fc'), TurnStarted(2, "a"), TurnStarted(3, "aa"))
    assert [entry.seq for entry in journal.mentioning('a "b" \u00fc')] == [1]
    assert [entry.seq for entry in journal.mentioning("a")] == [2]


def test_facts_of_one_append_are_recorded_all_or_none(journal: Journal) -> None:
    bad = TurnStarted(2, "\ud800")
    with pytest.raises(JournalError, match="not Unicode"):
        journal.append("s", line(1), bad, line(3))
    assert list(journal.everything()) == []
    journal.append("s", line(4))
    assert [entry.fact for entry in journal.everything()] == [line(4)]
    assert journal.verify().problem == ""


@pytest.mark.parametrize(
    "text", ["", "\0", "\n\u2028\x1b[31m", "é😀", "x" * 2**20], ids=["empty", "NUL", "controls", "wide", "large"]
)
def test_any_text_comes_back_as_it_was(path: Path, text: str) -> None:
    with open_journal(path) as journal:
        journal.append("s", TurnStarted(1, text))
    assert kept(path) == [TurnStarted(1, text)]


def test_a_fact_that_this_version_does_not_know_is_named_as_such(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_journal(path) as journal:
        monkeypatch.setattr(facts, "encode", lambda _fact: b'{"fact": "FromTheFuture"}')
        journal.append("s", line(1))
        assert journal.verify().problem == ""
        journal.append("s", line(2))
        found = [entry.fact for entry in journal.everything()]
    assert [isinstance(fact, Unreadable) and "this version does not know" in fact.why for fact in found] == [True, True]


# the chain -------------------------------------------------------------------------------------------------


def test_a_whole_journal_is_whole_and_its_head_names_the_last_row(path: Path) -> None:
    filled(path)
    found = verdict(path)
    assert (found.rows, found.sessions, found.broken_at, found.problem) == (5, 1, 0, "")
    with open_journal(path) as journal:
        append(journal, 6)
        assert journal.verify().head != found.head


FREE: Final = ("DROP TRIGGER facts_stay", "DROP TRIGGER facts_last")
CHANGED: Final = "row 3 is not what was written"
TAMPERINGS: Final[dict[str, tuple[tuple[str, ...], int, str]]] = {
    "changed text": (
        ("UPDATE facts SET body = CAST(replace(body, 'line', 'lies') AS BLOB) WHERE seq = 3",),
        3,
        CHANGED,
    ),
    "changed time": (("UPDATE facts SET at = at + 1 WHERE seq = 3",), 3, CHANGED),
    "changed session": (("UPDATE facts SET session = 't' WHERE seq = 3",), 3, CHANGED),
    "changed digest": (("UPDATE facts SET digest = zeroblob(32) WHERE seq = 3",), 3, CHANGED),
    "session that is no text": (("UPDATE facts SET session = CAST(x'ff' AS TEXT) WHERE seq = 3",), 3, "damaged"),
    "deleted": (("DELETE FROM facts WHERE seq = 3",), 3, "row 3 is missing"),
    "first deleted": (("DELETE FROM facts WHERE seq = 1",), 1, "row 1 is missing"),
    "deleted, the rest moved up": (
        ("DELETE FROM facts WHERE seq = 3", "UPDATE facts SET seq = seq - 1 WHERE seq > 3"),
        3,
        CHANGED,
    ),
    "doubled at the end": (
        ("INSERT INTO facts SELECT 6, session, at, body, digest FROM facts WHERE seq = 5",),
        6,
        "row 6 is not what was written",
    ),
    "inserted": (
        (
            "UPDATE facts SET seq = -seq - 1 WHERE seq >= 3",
            "UPDATE facts SET seq = -seq WHERE seq < 0",
            "INSERT INTO facts SELECT 3, session, at, body, digest FROM facts WHERE seq = 2",
        ),
        3,
        CHANGED,
    ),
    "inserted before all": (("INSERT INTO facts VALUES (0, 's', 0.0, x'00', zeroblob(32))",), 1, "row 1 is missing"),
    "reordered": (
        (
            "UPDATE facts SET seq = 99 WHERE seq = 3",
            "UPDATE facts SET seq = 3 WHERE seq = 4",
            "UPDATE facts SET seq = 4 WHERE seq = 99",
        ),
        3,
        CHANGED,
    ),
    "a table of other types": (
        (
            "ALTER TABLE facts RENAME TO old",
            "CREATE TABLE facts (seq, session, at, body, digest)",
            "INSERT INTO facts SELECT seq, session, at, CAST(body AS TEXT), digest FROM old",
        ),
        1,
        "row 1 is not what was written",
    ),
    "no table": (("DROP TABLE facts",), 1, "damaged"),
}


@pytest.mark.parametrize(("statements", "broken_at", "problem"), TAMPERINGS.values(), ids=TAMPERINGS)
def test_verify_finds_what_was_tampered_with(
    path: Path, statements: tuple[str, ...], broken_at: int, problem: str
) -> None:
    filled(path)
    execute(path, *FREE, *statements)
    found = verdict(path)
    assert (found.rows, found.broken_at) == (broken_at - 1, broken_at)
    assert problem in found.problem


@pytest.mark.parametrize(
    "statement",
    ["UPDATE facts SET at = 0", "DELETE FROM facts", "INSERT OR REPLACE INTO facts VALUES (1, 's', 0.0, x'', x'')"],
    ids=["update", "delete", "replace"],
)
def test_the_database_refuses_to_change_a_row(path: Path, statement: str) -> None:
    filled(path)
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        execute(path, "PRAGMA recursive_triggers = ON", statement)  # so that REPLACE asks the delete trigger too
    assert rows(path) == 5


# damaged files ---------------------------------------------------------------------------------------------


def flipped_bit(data: bytes) -> bytes:
    at = data.index(b"line 120")
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


def garbage(size: int) -> bytes:
    return random.Random(1).randbytes(size)


DAMAGES: Final[dict[str, Callable[[bytes], bytes]]] = {
    "cut in half": lambda data: data[: len(data) // 2],
    "without a byte": lambda data: data.rstrip(b"\0")[:-1],
    "zeros at the end": lambda data: data[:-4096] + bytes(4096),
    "garbage in the middle": lambda data: data[: len(data) // 2] + garbage(8192) + data[len(data) // 2 + 8192 :],
    "a flipped bit": flipped_bit,
    "garbage at the start": lambda data: garbage(512) + data[512:],
    "only garbage": lambda _data: garbage(20_000),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_file_is_refused_or_found_out(path: Path, damage: Callable[[bytes], bytes]) -> None:
    filled(path, 200)
    path.write_bytes(damage(path.read_bytes()))
    try:
        found = verdict(path)
    except JournalError as error:
        found_out = error.kind == "journal_corrupt"
    else:
        found_out = found.problem != ""
    assert found_out


def test_garbage_after_the_last_page_is_no_part_of_the_journal(path: Path) -> None:
    filled(path, 200)
    path.write_bytes(path.read_bytes() + garbage(5000))
    assert rows(path) == 200


def test_a_damaged_log_beside_the_file_costs_no_more_than_its_own_rows(path: Path) -> None:
    killed_after(path, 40, of=50)
    log = path.with_name(path.name + "-wal")
    data = log.read_bytes().rstrip(b"\0")  # without the space behind it
    log.write_bytes(data[: len(data) * 2 // 3] + garbage(len(data) // 3))
    found = verdict(path)
    assert found.problem == ""
    assert 0 < found.rows < 80


# what stands at the path -----------------------------------------------------------------------------------


def another_database(path: Path) -> None:
    execute(path, "CREATE TABLE notes (text)")


def a_newer_version(path: Path) -> None:
    filled(path)
    execute(path, f"PRAGMA user_version = {VERSION + 1}")


def a_link(path: Path) -> None:
    filled(path.with_name("elsewhere.db"))
    path.symlink_to("elsewhere.db")


REFUSED: Final[dict[str, tuple[Callable[[Path], object], str]]] = {
    "a directory": (Path.mkdir, "journal_io"),
    "a fifo": (os.mkfifo, "journal_io"),
    "a link": (a_link, "journal_io"),
    "a dangling link": (lambda path: path.symlink_to("elsewhere.db"), "journal_io"),
    "a device": (lambda path: path.symlink_to("/dev/null"), "journal_io"),
    "another database": (another_database, "journal_corrupt"),
    "a text": (lambda path: path.write_text("This is no database.\n" * 100), "journal_corrupt"),
    "a newer version": (a_newer_version, "journal_corrupt"),
    "in a directory that is missing": (lambda path: path.parent.rename(path.parent.with_name("gone")), "journal_io"),
}


@pytest.mark.parametrize(("make", "kind"), REFUSED.values(), ids=REFUSED)
def test_a_file_that_is_no_journal_is_refused(tmp_path: Path, make: Callable[[Path], object], kind: str) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    path = folder / "journal.db"
    make(path)
    error = refusal(path)
    assert error.kind == kind
    assert str(path) in str(error)
    if make is not a_link:  # which leads to a journal: no other has led to a new file
        assert not path.with_name("elsewhere.db").exists()


def test_another_database_is_left_as_it_was(path: Path) -> None:
    another_database(path)
    refusal(path)
    assert execute(path, "SELECT name FROM sqlite_master") == [("notes",)]


def test_an_empty_file_becomes_a_journal_and_a_deleted_one_begins_anew(path: Path) -> None:
    path.touch()
    filled(path)
    assert rows(path) == 5
    path.unlink()
    filled(path, 2)
    assert rows(path) == 2


def test_only_the_owner_may_read_it(path: Path, umask_000: None) -> None:
    with open_journal(path) as journal:
        journal.append("s", line(1))
        modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
    assert modes == {"journal.db": 0o600, "journal.db-wal": 0o600, "journal.db-shm": 0o600}


def test_opening_it_twice_in_one_process_drops_no_lock(path: Path) -> None:
    def locks() -> list[str]:
        inode = f":{path.stat().st_ino} "
        every = [each.partition(": ")[2] for each in Path("/proc/locks").read_text().splitlines()]  # without its number
        return [each for each in every if inode in each]

    with open_journal(path) as journal:
        journal.append("s", line(1))
        before = locks()
        with open_journal(path):
            pass
        assert before != []
        assert locks() == before


# a file that is gone ---------------------------------------------------------------------------------------


def replaced_by_a_copy(path: Path) -> None:
    shutil.copy(path, path.with_name("backup"))
    path.with_name("backup").replace(path)


def behind_a_link(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


def in_a_directory_that_was_moved(path: Path) -> None:
    path.parent.rename(path.parent.with_name("moved"))


def in_another_directory(path: Path) -> None:
    in_a_directory_that_was_moved(path)
    path.parent.mkdir()
    filled(path)


GONE: Final[list[tuple[str, Callable[[Path], object], str, str]]] = [
    *(("removed", Path.unlink, suffix, "removed or moved away") for suffix in ("", "-wal", "-shm")),
    ("moved", lambda path: path.rename(path.with_name("elsewhere")), "", "removed or moved away"),
    *(("replaced by a copy", replaced_by_a_copy, suffix, "replaced by another file") for suffix in ("", "-wal")),
    ("behind a link", behind_a_link, "", "replaced by another file"),
    ("in a directory that was removed", lambda path: shutil.rmtree(path.parent), "", "removed or moved away"),
    ("in a directory that was moved", in_a_directory_that_was_moved, "", "removed or moved away"),
    ("in another directory", in_another_directory, "", "replaced by another file"),
]


@pytest.mark.parametrize(("go", "suffix", "words"), [row[1:] for row in GONE], ids=["".join(row[:3:2]) for row in GONE])
def test_nothing_is_recorded_where_nobody_will_find_it(
    tmp_path: Path, go: Callable[[Path], object], suffix: str, words: str
) -> None:
    path = tmp_path / "home" / "journal.db"
    path.parent.mkdir()
    with open_journal(path) as journal:
        journal.append("s", line(1))
        go(beside(path, suffix))
        for number in (2, 3):
            with pytest.raises(JournalError) as caught:
                journal.append("s", line(number))
            assert caught.value.kind == "journal_io"
            assert f"{beside(path, suffix)} has been {words}" in str(caught.value)
        assert [entry.fact for entry in journal.everything()] == [line(1)]


@pytest.mark.parametrize("name", ["journal.db", "journal.db-wal", "journal.db-shm", ""])
def test_it_goes_on_when_a_file_that_was_moved_is_put_back(tmp_path: Path, name: str) -> None:
    home = tmp_path / "home"
    home.mkdir()
    with open_journal(home / "journal.db") as journal:
        journal.append("s", line(1))
        (home / name).rename(tmp_path / "elsewhere")
        with pytest.raises(JournalError):
            journal.append("s", line(2))
        (tmp_path / "elsewhere").rename(home / name)
        journal.append("s", line(3))
    assert kept(home / "journal.db") == [line(1), line(3)]


def test_a_file_is_known_alike_by_both_ways_to_look_at_it(path: Path) -> None:
    path.touch()
    assert file_at(str(path)) == file_by_lstat(str(path)) is not None


KILLED: Final = """
with open_journal(path) as journal:
    for number in range(1, 6):
        journal.append("s", TurnStarted(number, "x"))
    for each in sys.argv[2:]:
        path.with_name(path.name + each).unlink()
        try:
            journal.append("s", TurnStarted(6, "y"))
        except JournalError:
            print("refused")
    os.kill(os.getpid(), signal.SIGKILL)
"""
"""Appends five facts, loses files beside its journal, appends in vain, and is killed."""


def killed(path: Path, *lost: str) -> list[str]:
    return run(KILLED, path, *lost, status=-signal.SIGKILL)


def test_acknowledged_facts_outlive_a_log_that_was_removed(path: Path) -> None:
    assert killed(path, "-wal") == ["refused"]
    assert rows(path) == 5


@pytest.mark.parametrize(("lost", "count"), [(("-wal",), 55), (("-shm",), 55), (("", "-wal", "-shm"), 5)])
def test_a_journal_that_lost_its_files_leaves_those_of_others_alone(
    path: Path, lost: tuple[str, ...], count: int
) -> None:
    with open_journal(path) as journal:
        append(journal, *range(1, 51))
        for suffix in lost:
            beside(path, suffix).unlink()
        with pytest.raises(JournalError):
            journal.append("s", line(51))
        killed(path)
    assert rows(path) == count


CHECKPOINT: Final = """
connection = sqlite3.connect(path)
assert connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone() == (0, 0, 0)
connection.close()
"""


def test_other_programs_may_checkpoint_and_close_it(path: Path) -> None:
    with open_journal(path) as journal:
        journal.append("s", line(1))
        run(CHECKPOINT, path)
        journal.append("s", line(2))
    assert kept(path) == [line(1), line(2)]


# a full disk -----------------------------------------------------------------------------------------------


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[None]:
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(folder)], check=False, capture_output=True
    )
    if done.returncode:
        pytest.skip("needs to mount a small file system")
    try:
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def fill_up(journal: Journal) -> tuple[JournalError, int]:
    """Append until it fails; return how, and how many were recorded."""
    for number in range(1, 10_000):
        try:
            journal.append("s", TurnStarted(number, "x" * 1000))
        except JournalError as error:
            return error, number - 1
    raise AssertionError("the disk is endless")


def test_a_full_disk_records_nothing_and_says_so_until_there_is_space_again(tmp_path: Path) -> None:
    with small_disk(tmp_path, "400k"), open_journal(tmp_path / "journal.db") as journal:
        ballast = tmp_path / "ballast"
        ballast.write_bytes(bytes(100_000))
        error, recorded = fill_up(journal)
        assert error.kind == "journal_io"
        assert "Nothing runs unrecorded" in str(error)
        found = journal.verify()
        assert (found.rows, found.problem) == (recorded, "")
        ballast.unlink()
        append(journal, 1)
        found = journal.verify()
        assert (found.rows, found.problem) == (recorded + 1, "")


def test_a_read_only_disk_is_a_typed_error(tmp_path: Path) -> None:
    with small_disk(tmp_path, "1m"):
        filled(tmp_path / "journal.db")
        subprocess.run(["mount", "-o", "remount,ro", str(tmp_path)], check=True)
        assert refusal(tmp_path / "journal.db").kind == "journal_io"


LIMITED: Final = """
with open_journal(path) as journal:
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    number = 0
    try:
        while True:
            journal.append("s", TurnStarted(number + 1, "x" * 1000))
            number += 1
    except JournalError as error:
        print(error.kind, number)
    resource.setrlimit(resource.RLIMIT_FSIZE, resource.getrlimit(resource.RLIMIT_FSIZE)[1:] * 2)
    journal.append("s", TurnStarted(number + 1, "again"))
"""


def test_a_file_that_may_not_grow_is_a_typed_error_and_not_the_end(path: Path) -> None:
    if resource.getrlimit(resource.RLIMIT_FSIZE)[1] != resource.RLIM_INFINITY:
        pytest.skip("files are limited already")
    (said,) = run(LIMITED, path)
    kind, recorded = said.split()
    assert kind == "journal_io"
    assert rows(path) == int(recorded) + 1


# several processes -----------------------------------------------------------------------------------------


def test_two_processes_keep_one_chain_and_the_facts_of_one_append_together(path: Path) -> None:
    writers = [writer(path, name, 100) for name in "ab"]
    let_go(*writers)
    assert [ended(each).split()[-1] for each in writers] == ["100", "100"]
    found = verdict(path)
    assert (found.rows, found.sessions, found.problem) == (400, 2, "")
    with open_journal(path) as journal:
        sessions = [entry.session for entry in journal.everything()]
    assert sessions[::2] == sessions[1::2]


CROWD: Final = """
ready, go = os.pipe()
for number in range(8):
    if os.fork() == 0:
        os.close(go)
        os.read(ready, 1)  # end of file for all at once
        with open_journal(path) as journal:
            journal.append(str(number), TurnStarted(1, "x"))
        os._exit(0)
os.close(ready)
os.close(go)
print(sorted(os.wait()[1] for _ in range(8)))
"""
"""Eight processes that open the same journal at the same moment."""


def test_many_processes_may_open_it_for_the_first_time_at_once(tmp_path: Path) -> None:
    for attempt in range(12):
        path = tmp_path / f"{attempt}.db"
        assert run(CROWD, path) == [str([0] * 8)]
        assert rows(path) == 8


# kill -9 ---------------------------------------------------------------------------------------------------


def assert_nothing_acknowledged_is_lost(path: Path, acknowledged: int) -> None:
    found = verdict(path)
    assert found.problem == ""
    assert found.rows % 2 == 0
    assert acknowledged <= found.rows // 2 <= acknowledged + 1
    assert [fact.turn for fact in kept(path)[::2] if isinstance(fact, TurnStarted)] == list(
        range(1, found.rows // 2 + 1)
    )


def test_kill_9_after_any_append_or_at_any_time_loses_nothing(tmp_path: Path) -> None:
    for count in (*range(1, 13), *(random.Random(seed).randint(20, 900) for seed in range(6))):
        path = tmp_path / f"{count}.db"
        assert_nothing_acknowledged_is_lost(path, killed_after(path, count))


def test_it_goes_on_after_many_kills(path: Path) -> None:
    for _ in range(5):
        killed_after(path, 1)
    before = verdict(path).rows
    filled(path)
    assert rows(path) == before + 5


def patience(journal: Journal) -> int:
    """Return the milliseconds for which SQLite waits for another writer."""
    found: int = journal._connection.execute("PRAGMA busy_timeout").fetchone()[0]
    return found


def test_whoever_has_waited_in_vain_waits_shortly_until_it_succeeds(path: Path) -> None:
    with open_journal(path, busy_s=0.5) as journal:
        holder = sqlite3.connect(path, isolation_level=None)
        holder.execute("BEGIN IMMEDIATE")
        for _ in "first", "second":
            with pytest.raises(JournalError, match="Another program has locked it") as caught:
                journal.append("s", line(1))
            assert caught.value.kind == "journal_io"
            assert patience(journal) == 250
        holder.close()
        journal.append("s", line(2))
        assert patience(journal) == 500
        assert [entry.fact for entry in journal.everything()] == [line(2)]
