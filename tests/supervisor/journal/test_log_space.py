"""Space in the log of a journal: when it is made, and that nothing of the log is written over."""

import shutil
from pathlib import Path
from typing import Final

from supervisor.journal.facts import TurnStarted
from supervisor.journal.journal import open_journal
from supervisor.journal.log_space import LogSpace
from tests.supervisor.journal.harness import rows

SHORT: Final = 2**18
LARGE: Final = TurnStarted(1, "x" * 2**15)


def log(path: Path) -> int:
    return Path(f"{path}-wal").stat().st_size


def test_a_journal_of_a_few_facts_has_a_short_log(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    with open_journal(path) as journal:
        for _ in range(5):
            journal.append("s", TurnStarted(1, "short"))
        assert log(path) < SHORT / 2


def test_facts_are_written_into_space_that_is_made_at_times(tmp_path: Path) -> None:
    path, sizes = tmp_path / "journal.db", []
    with open_journal(path) as journal:
        for _ in range(20):
            journal.append("s", LARGE)
            sizes.append(log(path))
    assert sizes[0] < SHORT
    assert sizes[-1] > 2 * SHORT
    assert len(set(sizes[10:])) < 5


def test_two_who_append_in_turns_leave_each_others_facts(tmp_path: Path) -> None:
    path, copy = tmp_path / "journal.db", tmp_path / "copy.db"
    with open_journal(path) as one, open_journal(path) as other:
        for _ in range(40):
            one.append("s", LARGE)
            other.append("t", LARGE)
        for suffix in ("", "-wal"):  # as both leave them that are killed now
            shutil.copy(f"{path}{suffix}", f"{copy}{suffix}")
    assert rows(path) == rows(copy) == 80


class FullDisk:
    """Files of a journal on a disk that takes no more."""

    log_size = SHORT + 1

    def write_to_log(self, data: bytes, at: int) -> None:
        raise OSError(28, f"no room for {len(data)} bytes at {at}")


def test_a_full_disk_is_met_by_what_has_to_be_written() -> None:
    LogSpace(FullDisk()).make()
