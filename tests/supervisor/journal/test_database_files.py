"""The journal's files when they are cut short: in use, between two starts, and by programs that may do so."""

import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from supervisor.errors import JournalError
from supervisor.journal.journal import open_journal
from tests.supervisor.journal.harness import append, beside, execute, filled, refusal, rows, run

CUT: Final = """
suffix, size, deed = sys.argv[2], int(sys.argv[3]), sys.argv[4]
deeds = {
    "append": lambda journal: journal.append("s", TurnStarted(9, "lost")),
    "read": lambda journal: list(journal.everything()),
    "verify": lambda journal: journal.verify(),
    "close": lambda journal: None,
}
with open_journal(path) as journal:
    for number in range(1, 6):
        journal.append("s", TurnStarted(number, "x"))
    if size >= 0:
        os.truncate(f"{path}{suffix}", size)
    for _ in "first", "second":
        try:
            deeds[deed](journal)
            print("done")
        except JournalError as error:
            print(error.kind, error)
    if sys.argv[5:] == ["killed"]:
        os.kill(os.getpid(), signal.SIGKILL)
"""
"""Appends five facts, cuts a file of its journal (not to less than nothing), and goes on. Its own process: SIGBUS would
end it."""

OPENED: Final = """
try:
    with open_journal(path, busy_s=0.05) as journal:
        print(journal.verify())
except JournalError as error:
    print(error.kind, error)
"""

NAMES: Final = ("", "-wal", "-shm")
ADVICE: Final = {
    "": "Stop the daemon, keep all three files, and put a backup in their place",
    "-wal": "What was recorded last may be lost with it: stop the daemon and move it away",
    "-shm": "Nothing that was recorded is lost: restart the daemon.",
}


def corrupt(path: Path) -> str:
    error = refusal(path)
    assert error.kind == "journal_corrupt"
    return str(error)


def left_behind(path: Path) -> None:
    """Leave a journal of seven facts of which a killed process had five in the log."""
    filled(path, 2)
    run(CUT, path, "-wal", -1, "close", "killed", status=-signal.SIGKILL)


# in use ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("deed", ["append", "read", "verify"])
@pytest.mark.parametrize("suffix", NAMES)
def test_a_file_that_was_cut_short_is_an_error_each_time(path: Path, suffix: str, deed: str) -> None:
    words = f"journal_io The journal cannot be used: {beside(path, suffix)} has been cut short. Nothing was done. "
    found = run(CUT, path, suffix, 0, deed)
    assert len(found) == 2
    assert all(line.startswith(words + ADVICE[suffix]) for line in found)


def test_a_log_that_was_cut_in_the_middle_is_an_error_and_stays(path: Path) -> None:
    assert "journal.db-wal has been cut short" in run(CUT, path, "-wal", 5000, "append")[0]
    assert beside(path, "-wal").stat().st_size == 5000


@pytest.mark.parametrize("suffix", ["-wal", "-shm"])
def test_closing_it_leaves_what_the_database_held(path: Path, suffix: str) -> None:
    filled(path, 2)
    before = path.read_bytes()
    run(CUT, path, suffix, 0, "append")
    assert path.read_bytes() == before
    assert rows(path) == {"-wal": 2, "-shm": 7}[suffix]


def test_a_log_that_was_cut_and_then_removed_is_not_copied_to_the_database(path: Path) -> None:
    with open_journal(path) as journal:
        append(journal, 1, 2)
        before = path.read_bytes()
        os.truncate(beside(path, "-wal"), 5000)
        beside(path, "-wal").unlink()
        with pytest.raises(JournalError):
            append(journal, 3)
    assert path.read_bytes() == before


def test_closing_it_leaves_the_log_of_a_database_that_was_cut(path: Path) -> None:
    with open_journal(path) as journal:
        append(journal, 1, 2)
        whole = path.read_bytes()
        append(journal, 3, 4)
        log = beside(path, "-wal").read_bytes()
        os.truncate(path, 0)
    assert (path.read_bytes(), beside(path, "-wal").read_bytes()) == (b"", log)
    path.write_bytes(whole)
    assert rows(path) == 4


@pytest.mark.parametrize(
    ("suffix", "words"),
    [("-wal", "journal.db-wal has been cut short"), ("", "is empty or gone, but its log")],
    ids=["its log", "its database"],
)
def test_opening_while_a_file_is_cut_says_why_and_leaves_the_rest(path: Path, suffix: str, words: str) -> None:
    with open_journal(path) as journal:
        append(journal, 1, 2)
        os.truncate(beside(path, suffix), 0)
        (found,) = run(OPENED, path)
        assert words in found
        assert "Another program has locked it" not in found
        assert suffix or beside(path, "-wal").stat().st_size > 0


def test_a_database_that_is_empty_is_not_called_locked(path: Path) -> None:
    with open_journal(path):
        execute(path, "PRAGMA wal_checkpoint(TRUNCATE)")
        os.truncate(path, 0)
        (found,) = run(OPENED, path)
        assert "It is empty, though another program has it open: it was cut short" in found
        assert "has locked it" not in found


def test_other_programs_may_pack_it(path: Path) -> None:
    with open_journal(path) as journal:
        append(journal, *range(1, 11))
        execute(path, "CREATE TABLE more AS SELECT zeroblob(100000)", "PRAGMA wal_checkpoint(TRUNCATE)")
        append(journal, 11)
        before = path.stat().st_size
        execute(path, "DROP TABLE more", "VACUUM", "PRAGMA wal_checkpoint(TRUNCATE)")
        assert path.stat().st_size < before
        append(journal, 12)
    assert rows(path) == 12


# between two starts ----------------------------------------------------------------------------------------


def without_its_header(log: Path) -> None:
    log.write_bytes(bytes(4096) + log.read_bytes()[4096:])


def overwritten(log: Path) -> None:
    log.write_bytes(b"lorem ipsum " * 1000)


@pytest.mark.parametrize("spoil", [without_its_header, overwritten], ids=lambda each: each.__name__)
def test_a_log_without_its_beginning_is_refused_until_it_is_moved_away(
    path: Path, spoil: Callable[[Path], None]
) -> None:
    left_behind(path)
    log = beside(path, "-wal")
    spoil(log)
    spoilt = log.read_bytes()
    said = corrupt(path)
    assert f"The log {log} of the journal has been cut short or overwritten" in said
    assert f"Move it away to go on with what {path} holds." in said
    assert log.read_bytes() == spoilt
    log.rename(path.with_name("elsewhere"))
    assert rows(path) == 2


@pytest.mark.parametrize("left", [b"", b"\x37\x7f\x06", bytes(31), bytes(3 << 20)], ids=len)
def test_the_rest_of_a_log_after_a_loss_of_power_is_no_fault(path: Path, left: bytes) -> None:
    filled(path, 2)
    beside(path, "-wal").write_bytes(left)
    assert rows(path) == 2


@pytest.mark.parametrize("spoil", [Path.unlink, lambda path: os.truncate(path, 0)], ids=["gone", "empty"])
def test_a_log_beside_no_database_is_refused_and_kept(path: Path, spoil: Callable[[Path], None]) -> None:
    left_behind(path)
    log = beside(path, "-wal").read_bytes()
    backup = shutil.copy(path, path.with_name("backup"))
    spoil(path)
    said = corrupt(path)
    assert f"The journal {path} is empty or gone, but its log {beside(path, '-wal')} is not" in said
    assert beside(path, "-wal").read_bytes() == log
    Path(backup).replace(path)
    assert rows(path) == 7


def test_a_log_outlives_the_refusal_of_a_database_that_lost_its_end(path: Path) -> None:
    left_behind(path)
    whole, log = path.read_bytes(), beside(path, "-wal").read_bytes()
    os.truncate(path, 1000)
    assert "is damaged" in corrupt(path)
    assert beside(path, "-wal").read_bytes() == log
    path.write_bytes(whole)
    assert rows(path) == 7


def test_a_log_that_is_no_file_is_left_to_sqlite(path: Path) -> None:
    filled(path, 2)
    beside(path, "-wal").mkdir()
    assert refusal(path).kind == "journal_io"
