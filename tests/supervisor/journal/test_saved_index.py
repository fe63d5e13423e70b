"""The index of sessions on the disk: it saves reading, and never tells anything that the journal does not say."""

import os
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

from supervisor.journal import index as module
from supervisor.journal.facts import CallDecided, CallEnded, CallStarted, Fact, TurnResumed
from supervisor.journal.index import SessionIndex, Summary
from supervisor.journal.journal import Journal, JournalEntry, open_journal
from tests.supervisor.command import CODE
from tests.supervisor.journal.harness import execute
from tests.supervisor.journal.test_index import asked, ended, opened, replied, started

ROWS: Final = 6
COMMITTED: Final = CallDecided(1, "a", "allow", "", committed=True)
FACTS: Final[list[Fact]] = [
    *(opened(), asked(), replied(output_tokens=1), started(), COMMITTED, TurnResumed(1)),
    CallStarted(1, "a", "read_file", "{}", True, "allow", "", again=True),
    *(COMMITTED, CallEnded(1, "a", "read_file", True, ""), replied(output_tokens=1), ended(), asked("two", 2)),
]


@pytest.fixture(autouse=True)
def _each_is_saved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_SAVE_AFTER", 1)


@pytest.fixture
def saved(path: Path) -> Path:
    """A journal of three sessions and `ROWS` facts, with its index beside it; return the index."""
    fill(path)
    assert read(path)[1] == ROWS
    return path.with_suffix(".index")


def fill(path: Path, title: str = "hello") -> None:
    with open_journal(path) as journal:
        for session in "abc":
            journal.append(session, opened(), asked(title))


class CountedJournal:
    """Counts the facts that were read in order."""

    def __init__(self, journal: Journal) -> None:
        self.path, self.position = journal.path, journal.position
        self._journal = journal
        self.facts = 0

    def since(self, seq: int, digest: bytes) -> Iterator[tuple[JournalEntry, bytes]]:
        for each in self._journal.since(seq, digest):
            self.facts += 1
            yield each


def read(path: Path) -> tuple[list[Summary], int]:
    """Return the sessions as a program finds them that has just begun, and how many facts it read for that."""
    with open_journal(path) as journal:
        counted = CountedJournal(journal)
        index = SessionIndex(counted)  # type: ignore[arg-type]
        index.refresh()
        assert [each.session for each in index.listing()] == [each.session for each in fresh(journal).listing()]
        return list(index), counted.facts


def fresh(journal: Journal) -> SessionIndex:
    """Return an index that was made of the whole journal."""
    index = SessionIndex(journal)
    index._file = Path("/nonexistent/index")
    index.refresh()
    return index


def of_all(path: Path) -> list[Summary]:
    with open_journal(path) as journal:
        return list(fresh(journal))


def test_another_program_reads_only_what_is_new(path: Path, saved: Path) -> None:
    assert read(path) == (of_all(path), 0)
    with open_journal(path) as journal:
        journal.append("a", ended(), asked("two", 2))
        journal.append("d", opened())
    assert read(path) == (of_all(path), 3)
    assert stat.S_IMODE(saved.stat().st_mode) == 0o600


def test_what_was_read_from_the_disk_is_not_written_there_again(path: Path, saved: Path) -> None:
    before = saved.stat().st_ino
    read(path)
    assert saved.stat().st_ino == before


@pytest.mark.parametrize("facts", range(1, len(FACTS)))
def test_it_goes_on_from_any_fact(path: Path, facts: int) -> None:
    with open_journal(path) as journal:
        journal.append("s", *FACTS[:facts])
        read(path)
        journal.append("s", *FACTS[facts:])
    assert read(path) == (of_all(path), len(FACTS) - facts)


def test_few_facts_are_not_worth_a_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    fill(path)
    assert read(path)[1] == ROWS
    assert not path.with_suffix(".index").exists()


def of_another_version(file: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_SAVED_BY", ("0.0.0", *module._SAVED_BY[1:]))
        file.unlink()
        read(file.with_suffix(".db"))


def of_another_journal(file: Path) -> None:
    other = file.with_name("other.db")
    fill(other, "other")
    read(other)
    os.replace(other.with_suffix(".index"), file)


UNFIT: Final[dict[str, Callable[[Path], object]]] = {
    "missing": Path.unlink,
    "empty": lambda file: os.truncate(file, 0),
    "cut": lambda file: os.truncate(file, file.stat().st_size - 1),
    "longer": lambda file: file.write_bytes(file.read_bytes() + b"\0"),
    "a bit flipped": lambda file: file.write_bytes(file.read_bytes().replace(b"hello", b"iello", 1)),
    "something else": lambda file: file.write_bytes(os.urandom(1000)),
    "writable by others": lambda file: file.chmod(0o666),
    "a link": lambda file: file.symlink_to(shutil.move(file, file.with_name("elsewhere"))),
    "of another version": of_another_version,
    "of another journal with as many facts": of_another_journal,
}


@pytest.mark.parametrize("make", UNFIT.values(), ids=UNFIT)
def test_what_is_no_index_of_this_journal_is_made_anew(path: Path, saved: Path, make: Callable[[Path], object]) -> None:
    make(saved)
    assert read(path) == (of_all(path), ROWS)
    assert read(path) == (of_all(path), 0)
    assert stat.S_IMODE(saved.lstat().st_mode) == 0o600


def test_an_older_journal_that_was_restored_has_no_index(path: Path, saved: Path, tmp_path: Path) -> None:
    old = tmp_path / "old.db"
    shutil.copy(path, old)
    with open_journal(path) as journal:
        journal.append("a", ended())
    read(path)
    os.replace(old, path)
    assert read(path) == (of_all(path), ROWS)
    with open_journal(path) as journal:
        journal.append("a", ended("error"))
    assert read(path) == (of_all(path), 1)


def test_of_a_journal_whose_rows_were_changed_none_is_kept(path: Path, saved: Path) -> None:
    change = "UPDATE facts SET body = CAST(replace(body, 'hello', 'bye') AS BLOB) WHERE seq = 2"
    execute(path, "DROP TRIGGER facts_stay", change)
    for _ in range(2):
        sessions, facts = read(path)
        assert (sessions[0].title, facts) == ("bye", ROWS)
        assert not saved.exists()


def test_of_a_journal_that_was_deleted_none_is_left(path: Path, saved: Path) -> None:
    path.unlink()
    assert read(path) == ([], 0)
    assert not saved.exists()


def test_an_index_that_another_program_is_just_writing_is_left_to_it(path: Path, saved: Path) -> None:
    before = saved.read_bytes()
    hold = "import fcntl,sys; f=open(sys.argv[1],'w'); fcntl.lockf(f, fcntl.LOCK_EX); print(flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", hold, saved.with_suffix(".new")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        other.stdout.readline()
        with open_journal(path) as journal:
            journal.append("a", ended())
        assert read(path) == (of_all(path), 1)
        assert saved.read_bytes() == before
        other.communicate(b"\n")
    assert read(path) == (of_all(path), 1)
    assert read(path) == (of_all(path), 0)


SAVES: Final = """
import os, resource, signal, sys
from pathlib import Path
from supervisor.journal import index
from supervisor.journal.journal import open_journal
index._SAVE_AFTER = 1
def die(event, arguments):
    if event == sys.argv[2] and "journal.new" in str(arguments[0]):
        os.kill(os.getpid(), signal.SIGKILL)
with open_journal(Path(sys.argv[1])) as journal:
    sys.addaudithook(die)
    if sys.argv[2] == "write":
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    if sys.argv[2] in ("write", "full"):
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
    found = index.SessionIndex(journal)
    found.refresh()
    print(len(list(found)))
"""
"""Saves an index, and dies before it is begun, within it or before it has its name; or has room for 100 bytes alone."""


@pytest.mark.parametrize(
    ("when", "status"),
    [("open", signal.SIGKILL), ("write", signal.SIGXFSZ), ("os.rename", signal.SIGKILL), ("full", 0)],
)
def test_a_program_that_dies_while_it_saves_leaves_the_index_as_it_was(
    path: Path, saved: Path, when: str, status: int
) -> None:
    before = saved.read_bytes()
    with open_journal(path) as journal:
        journal.append("d", opened())
    done = subprocess.run(
        [sys.executable, "-c", SAVES, path, when], cwd=CODE, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (-status, "" if status else "4\n", "")
    assert saved.read_bytes() == before
    assert read(path) == (of_all(path), 1)
    assert read(path) == (of_all(path), 0)
    assert {each.name for each in path.parent.iterdir()} <= {"journal.db", "journal.index", "journal.new"}
