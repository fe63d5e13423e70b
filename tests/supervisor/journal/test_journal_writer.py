"""Many tasks write one journal: one commit for all that wait, in place for one that is alone."""

import random
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Final, cast

import pytest
import trio
import trio.testing

from supervisor.errors import JournalError
from supervisor.journal.facts import TurnStarted
from supervisor.journal.journal import Journal, open_journal
from supervisor.journal.journal_writer import JournalWriter
from tests.supervisor.command import CODE
from tests.supervisor.journal.harness import BEGIN, line, verdict

CROWD: Final = """
import trio
from supervisor.journal.journal_writer import JournalWriter

async def write(writer, session):
    for number in range(1, 1000):
        await writer.append(session, TurnStarted(number, "x"), TurnStarted(number, "y"))
        print(session, number, flush=True)

async def main():
    with open_journal(path) as journal:
        writer = JournalWriter(journal)
        async with trio.open_nursery() as nursery:
            for number in range(int(sys.argv[2])):
                nursery.start_soon(write, writer, f"s{number}")

trio.run(main)
"""
"""So many tasks append two facts at a time, each in a session of its own, and say what is durable."""


class Watched:
    """A journal that notes the thread of each commit, waits with one until it may, and fails as it is told."""

    def __init__(self, journal: Journal) -> None:
        self.threads: list[int] = []
        self.may_commit = threading.Event()
        self.may_commit.set()
        self.failing = 0
        self._journal = journal

    def append(self, session: str, *new: TurnStarted) -> None:
        self._journal.append(session, *new)
        self.threads.append(threading.get_ident())

    def begin(self, rows: list[tuple[str, list[bytes]]]) -> None:
        self._journal.begin(rows)

    def commit(self) -> None:
        self.may_commit.wait()
        self._journal.commit()
        self.threads.append(threading.get_ident())
        if self.failing:
            self.failing -= 1
            raise JournalError("journal_io", "the disk is full")


class Place:
    """A journal, its writer, and what was told of its facts."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self.watched = Watched(journal)
        self.seconds = 0.0
        """What every look at the clock adds."""
        self.now = 0.0
        self.writer = JournalWriter(cast("Journal", self.watched), self.clock)
        self.told: list[int] = []
        self.failed: list[int] = []

    def clock(self) -> float:
        self.now += self.seconds
        return self.now

    async def write(self, number: int, text: str = "x") -> None:
        try:
            await self.writer.append("s", TurnStarted(number, text), then=lambda: self.told.append(number))
        except JournalError:
            self.failed.append(number)

    async def write_all(self, *numbers: int) -> None:
        async with trio.open_nursery() as nursery:
            for number in numbers:
                nursery.start_soon(self.write, number)

    @property
    def recorded(self) -> list[int]:
        return [entry.fact.turn for entry in self.journal.of_session("s") if isinstance(entry.fact, TurnStarted)]


@pytest.fixture
def place(path: Path) -> Iterator[Place]:
    with open_journal(path) as journal:
        yield Place(journal)


async def test_tasks_that_wait_at_the_same_time_share_one_commit(place: Place) -> None:
    await place.write_all(*range(64))
    assert len(place.watched.threads) == 1
    assert sorted(place.recorded) == list(range(64))


async def test_much_to_write_is_written_in_a_thread_and_little_in_place(place: Place) -> None:
    await place.write(1)
    await place.write(2, "x" * 2**20)
    await place.write(3)
    own, other, last = (each == threading.get_ident() for each in place.watched.threads)
    assert (own, other, last) == (True, False, True)
    assert place.recorded == [1, 2, 3]


async def test_tasks_that_come_during_a_commit_share_the_next(place: Place) -> None:
    place.watched.may_commit.clear()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(place.write_all, 1, 2)
        await trio.testing.wait_all_tasks_blocked()
        for number in range(3, 20):
            nursery.start_soon(place.write, number)
        await trio.testing.wait_all_tasks_blocked()
        assert place.told == []
        place.watched.may_commit.set()
    assert len(place.watched.threads) == 2
    assert sorted(place.recorded) == list(range(1, 20))


@pytest.mark.parametrize("_attempt", range(8))  # trio shuffles tasks that are ready
async def test_who_comes_between_two_commits_waits_for_the_second(place: Place, _attempt: int) -> None:
    place.watched.may_commit.clear()
    async with trio.open_nursery() as nursery:

        def more_come() -> None:
            for number in range(10, 20):
                nursery.start_soon(place.write, number)

        nursery.start_soon(lambda: place.writer.append("s", line(1), then=more_come))
        nursery.start_soon(place.write, 2)
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(place.write, 3)
        await trio.testing.wait_all_tasks_blocked()
        place.watched.may_commit.set()
    assert sorted(place.recorded) == [1, 2, 3, *range(10, 20)]
    assert len(place.watched.threads) == 2


async def test_one_that_is_alone_is_committed_for_in_place(place: Place) -> None:
    await place.write(1)
    await place.write(2)
    assert place.watched.threads == [threading.get_ident()] * 2


async def test_little_is_written_in_a_thread_while_the_disk_is_slow(place: Place) -> None:
    for seconds in (0.0, 0.005, 0.005, 0.0, 0.0):
        place.seconds = seconds
        await place.write(1)
    here = [each == threading.get_ident() for each in place.watched.threads]
    assert here == [True, True, False, False, True]


async def test_several_are_committed_for_in_a_thread(place: Place) -> None:
    await place.write_all(1, 2)
    assert threading.get_ident() not in place.watched.threads


@pytest.mark.parametrize("why", [RuntimeError("can't start new thread"), MemoryError()])
async def test_where_no_thread_can_be_started_several_are_committed_for_in_place(
    place: Place, monkeypatch: pytest.MonkeyPatch, why: Exception
) -> None:
    def refused(*_: object) -> None:
        raise why

    monkeypatch.setattr(trio.lowlevel, "start_thread_soon", refused)
    await place.write_all(1, 2)
    assert place.watched.threads == [threading.get_ident()]
    assert sorted(place.told) == [1, 2]


async def test_facts_are_told_in_the_order_of_the_journal(place: Place) -> None:
    for _ in range(20):  # trio shuffles tasks that are ready
        await place.write_all(*range(8))
    assert place.told == place.recorded


async def test_a_task_that_is_cancelled_meanwhile_learns_first_what_is_durable(place: Place) -> None:
    place.watched.may_commit.clear()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(place.write_all, 1, 2, 3)
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
        place.watched.may_commit.set()
    assert sorted(place.told) == sorted(place.recorded) == [1, 2, 3]


async def test_a_failure_is_everybodys_and_the_next_commit_goes_on(place: Place) -> None:
    place.watched.failing = 1
    await place.write_all(1, 2, 3)
    assert (sorted(place.failed), place.told) == ([1, 2, 3], [])
    await place.write_all(4, 5)
    assert sorted(place.told) == [4, 5]


async def test_each_of_those_that_fail_together_has_an_error_of_its_own(place: Place) -> None:
    """What one adds to it, as its traceback, is not the others'."""
    place.watched.failing = 1
    errors: list[JournalError] = []

    async def write(number: int) -> None:
        with pytest.raises(JournalError, match="the disk is full") as caught:
            await place.writer.append("s", line(number))
        errors.append(caught.value)

    async with trio.open_nursery() as nursery:
        for number in range(3):
            nursery.start_soon(write, number)
    assert len({id(each) for each in errors}) == 3
    assert {each.kind for each in errors} == {"journal_io"}


async def test_what_cannot_be_written_fails_alone(place: Place) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(place.write, 1)
        nursery.start_soon(place.write, 2, "\ud800")
        nursery.start_soon(place.write, 3)
    assert (place.failed, sorted(place.told)) == ([2], [1, 3])
    assert sorted(place.recorded) == [1, 3]


async def test_what_fails_in_telling_is_raised_where_it_was_recorded(place: Place) -> None:
    def fail() -> None:
        raise ZeroDivisionError

    with pytest.RaisesGroup(ZeroDivisionError):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(lambda: place.writer.append("s", line(1), then=fail))
            nursery.start_soon(place.write, 2)
    assert (sorted(place.recorded), place.told) == ([1, 2], [2])


async def test_nothing_durable_is_untold_once_that_was_waited_for(place: Place) -> None:
    told_by_then: list[list[int]] = []

    async def wait() -> None:
        await place.writer.told()
        told_by_then.append(list(place.told))

    place.watched.may_commit.clear()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(place.write_all, 1, 2)
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(wait)
        await trio.testing.wait_all_tasks_blocked()
        assert told_by_then == []
        place.watched.may_commit.set()
    assert [sorted(told) for told in told_by_then] == [[1, 2]]


async def test_whoever_writes_at_once_waits_for_the_commit_in_a_thread(place: Place) -> None:
    place.watched.may_commit.clear()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(place.write_all, 1, 2)
        await trio.testing.wait_all_tasks_blocked()
        threading.Timer(0.01, place.watched.may_commit.set).start()
        place.journal.append("s", line(3))
    assert sorted(place.recorded[:2]) == [1, 2]
    assert place.recorded[2] == 3


@pytest.mark.parametrize("seed", range(4))
def test_a_kill_leaves_of_each_session_what_was_said_to_be_durable(path: Path, seed: int) -> None:
    sessions, said = 16, dict[str, int]()
    command = [sys.executable, "-u", "-c", BEGIN + CROWD, str(path), str(sessions)]
    with subprocess.Popen(command, cwd=CODE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        for _ in range(random.Random(seed).randrange(100, 1000)):
            session, number = process.stdout.readline().split()
            said[session] = int(number)
        process.send_signal(signal.SIGKILL)
    assert verdict(path).problem == ""
    with open_journal(path) as journal:
        for session, last in said.items():
            turns = [entry.fact.turn for entry in journal.of_session(session) if isinstance(entry.fact, TurnStarted)]
            assert turns == [turn for turn in range(1, len(turns) // 2 + 1) for _ in "xy"]
            assert len(turns) >= 2 * last
