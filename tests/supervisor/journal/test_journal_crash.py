"""The journal when the process, or the whole machine, stops just before any of its writes.

Rows F180 and F181 of tests/corpus/frames.json: a process that is killed leaves all its writes to the kernel; a machine
that loses power keeps what was synced, and of the rest any sectors. Space is made in the log as it is in a longer one.
"""

import os
import platform
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from supervisor.journal import log_space
from supervisor.journal.facts import TurnStarted
from supervisor.journal.journal import open_journal
from tests.supervisor.tracing import Traced, Write

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="reads this machine's registers")

APPENDS: Final = 3
SECTOR: Final = 512
AHEAD: Final = 2**14


@pytest.fixture(autouse=True)
def early_space(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the log have space from its first append on, and little of it."""
    monkeypatch.setattr(log_space, "_SHORT", 0)
    monkeypatch.setattr(log_space, "_AHEAD", AHEAD)


def traced(path: Path) -> Traced:
    """A process that appends two facts at a time and says so."""

    def appends() -> None:
        with open_journal(path) as journal:
            for number in range(1, APPENDS + 1):
                journal.append("s", TurnStarted(number, "x" * 3000), TurnStarted(number, "y"))
                os.write(1, b"%d\n" % number)

    return Traced(appends)


def assert_nothing_acknowledged_is_lost(path: Path, acknowledged: int) -> None:
    """The journal holds what was acknowledged, perhaps the next append as well, and is whole and usable."""
    with open_journal(path) as journal:
        verdict = journal.verify()
        turns = [entry.fact.turn for entry in journal.everything() if isinstance(entry.fact, TurnStarted)]
        journal.append("t", TurnStarted(1, "on"))
    assert verdict.problem == ""
    assert turns in ([n for n in range(1, last + 1) for _ in "xy"] for last in (acknowledged, acknowledged + 1))


def test_kill_9_before_every_write_loses_nothing(tmp_path: Path) -> None:
    number = 0
    while True:
        path = tmp_path / f"{number}.db"
        process = traced(path)
        for seen, _ in enumerate(process.writes()):
            if seen == number:
                process.kill()
                break
        else:
            break
        assert_nothing_acknowledged_is_lost(path, process.output().count("\n"))
        number += 1
    assert number > 5 * APPENDS
    assert process.output().count("\n") == APPENDS


# power ---------------------------------------------------------------------------------------------------------


@dataclass
class File:
    """What the disk holds for sure, and what it has been asked since."""

    synced: bytes = b""
    asked: list[Write] = field(default_factory=list)


class Moment(NamedTuple):
    """The disk just before a write."""

    files: dict[str, File]
    acknowledged: int


def made(content: bytes, write: Write) -> bytes:
    if write.call == "ftruncate":
        return content[: write.at].ljust(write.at, b"\0")
    return content[: write.at].ljust(write.at, b"\0") + write.data + content[write.at + len(write.data) :]


def moments(path: Path) -> Iterator[Moment]:
    """Yield the disk before each write of one undisturbed process."""
    files: dict[str, File] = {}
    unlinked: list[str] = []
    acknowledged = spaces = 0
    process = traced(path)
    for write in process.writes():
        copies = {name: File(file.synced, list(file.asked)) for name, file in files.items()}
        yield Moment(copies, acknowledged)
        name = Path(write.path).name
        if write.path.startswith("pipe:"):
            acknowledged += write.data.count(b"\n")
        elif write.call == "unlink":
            unlinked.append(name)
        elif write.path == str(path.parent):
            for gone in unlinked:
                files.pop(gone, None)
            unlinked.clear()
        elif write.path.endswith("-shm"):
            continue  # shared memory: made anew by whoever opens the journal first
        elif write.call in {"fsync", "fdatasync"}:
            file = files.setdefault(name, File())
            for each in file.asked:
                file.synced = made(file.synced, each)
            file.asked.clear()
        else:
            files.setdefault(name, File()).asked.append(write)
            spaces += write.data == bytes(AHEAD)
    assert spaces > 1
    assert process.output().count("\n") == acknowledged == APPENDS
    yield Moment(files, acknowledged)


def survives(file: File, dice: random.Random) -> bytes:
    """Return the file after the power was lost: of what was not synced, any sectors."""
    content = file.synced
    for write in file.asked:
        if write.call == "ftruncate":
            content = made(content, write) if dice.random() < 0.5 else content
            continue
        for start in range(0, len(write.data), SECTOR):
            if dice.random() < 0.5:
                piece = write.data[start : start + SECTOR]
                content = made(content, Write("pwrite64", write.path, write.at + start, piece))
    return content


def test_a_loss_of_power_before_any_write_loses_nothing(tmp_path: Path) -> None:
    lived = tmp_path / "lived"
    lived.mkdir()
    tried = 0
    for number, moment in enumerate(list(moments(lived / "journal.db"))):
        for seed in range(6):
            folder = tmp_path / f"{number}-{seed}"
            folder.mkdir()
            dice = random.Random(seed)
            for name, file in moment.files.items():
                (folder / name).write_bytes(survives(file, dice))
            assert_nothing_acknowledged_is_lost(folder / "journal.db", moment.acknowledged)
            tried += 1
    assert tried > 6 * 5 * APPENDS
