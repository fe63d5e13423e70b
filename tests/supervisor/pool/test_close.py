"""How a pool ends, whatever goes on in it."""

import os
import signal
from pathlib import Path

import pytest
import trio
import trio.testing

from supervisor.errors import WorkerDied, WorkerError, WorkerUnavailable
from supervisor.pool.pool import Pool
from supervisor.pool.spec import ChildSpec, Restart
from supervisor.pool.worker_slot import WorkerState
from tests.fake_worker import Step, fake
from tests.supervisor.pool.conftest import OpenPool
from tests.supervisor.pool.harness import (
    HANG,
    READ,
    begin_call,
    busy,
    close,
    kill,
    next_lent,
    pids,
    process_of,
    ready,
    until,
)
from workers.wire.messages import Context


async def test_workers_stop_in_the_reverse_order_of_their_start(open_pool: OpenPool, nursery: trio.Nursery) -> None:
    pool = await open_pool({"hang": True}, workers=4)
    async with trio.open_nursery() as calls:
        for _ in range(3):
            calls.start_soon(lambda: pool.call("hang", b"{}", effect=True))
        await until(lambda: len(busy(pool)) == 3)
        calls.cancel_scope.cancel()
    await until(lambda: len(ready(pool)) == len(pool.workers.slots))
    stopped: list[int] = []

    async def watch(number: int, event: trio.Event) -> None:
        await event.wait()
        stopped.append(number)

    for slot in pool.workers.slots:
        nursery.start_soon(watch, slot.number, slot.stopped)
    await close(pool)
    await trio.testing.wait_all_tasks_blocked()
    assert stopped == sorted(stopped, reverse=True)
    assert len(stopped) >= 3


async def test_an_idle_worker_leaves_by_itself_and_a_closed_pool_refuses_calls(open_pool: OpenPool) -> None:
    pool = await open_pool(stop_timeout=HANG)
    leaving = list(pool.workers.slots)
    await close(pool)
    with pytest.raises(WorkerUnavailable, match="shutting down"):
        await pool.call("ping", b"{}", effect=False)
    assert {slot.last_death for slot in leaving} == {"exited with code 0"}


@pytest.mark.parametrize(
    ("ignored", "ended_by"), [([], "SIGTERM"), (["SIGTERM", "SIGINT", "SIGHUP"], "SIGKILL")], ids=str
)
async def test_a_worker_that_ignores_the_end_of_file_is_ended_by_a_signal_that_it_cannot_ignore(
    open_pool: OpenPool, nursery: trio.Nursery, ignored: list[str], ended_by: str
) -> None:
    pool = await open_pool({"ignore": ignored}, {"hang": True}, stop_timeout=0.05, terminate_timeout=0.05)
    nursery.start_soon(_ended, pool)
    await until(lambda: busy(pool) and pids(pool))
    (stuck,) = busy(pool)
    await until((Path(pool.spec.context.working_directory) / "calls").exists)
    await close(pool)
    assert stuck.last_death == f"was killed by {ended_by} (did not leave)"


@pytest.fixture
def jumping_clock() -> trio.testing.MockClock:
    """A clock that goes as time does, and jumps where a test says so."""
    return trio.testing.MockClock(rate=1.0)


async def test_one_that_stays_does_not_keep_the_others_from_being_told(
    jumping_clock: trio.testing.MockClock, open_pool: OpenPool, nursery: trio.Nursery
) -> None:
    pool = await open_pool(stop_timeout=4 * HANG)
    first, last = pool.workers.slots
    kill(last, by=signal.SIGSTOP)
    await until(lambda: "stopped" in Path(f"/proc/{process_of(last).pid}/status").read_text())
    nursery.start_soon(pool.workers.close)
    await until(lambda: last.state is WorkerState.STOPPED)
    jumping_clock.jump(2 * HANG)  # its share of the time
    await until(first.stopped.is_set)
    jumping_clock.jump(2 * HANG)
    await until(last.stopped.is_set)
    assert (first.last_death, last.last_death) == ("exited with code 0", "was killed by SIGKILL (did not leave)")


async def test_nothing_is_started_in_place_of_a_worker_that_dies_while_its_pool_closes(
    open_pool: OpenPool, nursery: trio.Nursery, tmp_path: Path
) -> None:
    starts = tmp_path / "starts"
    pool = await open_pool(**fake([], starts, calls=tmp_path / "calls"), stop_timeout=HANG)
    first, last = pool.workers.slots
    stuck = process_of(last).pid
    os.kill(stuck, signal.SIGSTOP)  # the others wait until it has left
    nursery.start_soon(pool.workers.close)
    await until(lambda: last.state is WorkerState.STOPPED)
    kill(first)
    await until(first.stopped.is_set)
    assert "SIGKILL" in first.last_death
    assert not last.stopped.is_set()
    os.kill(stuck, signal.SIGKILL)
    await until(lambda: pool.workers.slots == [])
    assert starts.stat().st_size == 2


async def test_a_running_call_may_end_within_the_stop_timeout(open_pool: OpenPool) -> None:
    pool = await open_pool({"dribble": [READ[0], 1]}, stop_timeout=HANG)
    async with trio.open_nursery() as nursery:
        answers = begin_call(nursery, pool, "read")
        await until(lambda: busy(pool))
        await close(pool)
    assert answers == ["hello"]


async def test_closing_answers_every_call(open_pool: OpenPool) -> None:
    pool = await open_pool({"hang": True}, workers=2, stop_timeout=0.05)
    ended: list[str] = []

    async def call(tool: str, effect: bool) -> None:
        try:
            await pool.call(tool, b"{}", effect=effect)
        except WorkerError as error:
            ended.append(type(error).__name__)
        else:
            ended.append("Done")

    with trio.fail_after(HANG):
        async with trio.open_nursery() as nursery:
            for number in range(20):
                nursery.start_soon(call, "ping" if number % 5 else "hang", bool(number % 2))
            await until(lambda: len(busy(pool)) == 2)
            nursery.start_soon(pool.workers.close)
            nursery.start_soon(pool.workers.close)
            nursery.start_soon(call, "ping", False)
    assert len(ended) == 21


async def test_closing_frees_a_caller_whose_worker_does_not_read(open_pool: OpenPool) -> None:
    pool = await open_pool(stop_timeout=0.05)
    os.kill(next_lent(pool).pid, signal.SIGSTOP)
    with trio.fail_after(HANG), pytest.RaisesGroup(WorkerUnavailable):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(lambda: pool.call("echo", bytes(4 * 2**20), effect=True))
            await until(lambda: busy(pool))
            await pool.workers.close()


@pytest.mark.parametrize(("start", "stop_timeout"), [({"hang": True}, 0.05), ({"exit": 1}, HANG)], ids=str)
async def test_a_pool_that_closes_while_it_starts_or_backs_off_leaves_nothing(
    start: Step, stop_timeout: float, open_pool: OpenPool
) -> None:
    pool = await open_pool({"at_start": start}, warm=False, stop_timeout=stop_timeout)
    await until(lambda: pids(pool) if "hang" in start else pool.workers.failed_because)
    await close(pool)


async def test_what_waits_for_its_next_start_is_not_waited_for(open_pool: OpenPool) -> None:
    never = Restart(intensity=0, pause=3600.0)
    pool = await open_pool(warm=False, command=("/nonexistent",), restart=never, stop_timeout=3 * HANG)
    await until(lambda: pool.workers.failed_because)
    await close(pool)


async def test_a_worker_that_gets_ready_while_the_pool_closes_stays_stopped(open_pool: OpenPool) -> None:
    pool = await open_pool(warm=False, stop_timeout=HANG)
    (slot,) = pool.workers.slots
    await until(lambda: slot.process is not None)
    pool.workers.closing = True
    slot.retire()
    with trio.fail_after(HANG):
        await slot.stopped.wait()
    assert slot.state is WorkerState.STOPPED
    assert ready(pool) == []


async def test_a_pool_that_was_closed_before_it_ran_starts_nothing(tmp_path: Path, nursery: trio.Nursery) -> None:
    pool = Pool(ChildSpec("files", Context(str(tmp_path)), **fake([])), 0)
    await pool.workers.close()
    await nursery.start(pool.workers.run)
    assert pool.workers.slots == []


async def test_a_pool_that_is_cancelled_answers_the_calls_that_wait(tmp_path: Path, nursery: trio.Nursery) -> None:
    spec = ChildSpec("files", Context(str(tmp_path)), **fake([{"at_start": {"hang": True}}]))
    pool = Pool(spec, 0)
    async with trio.open_nursery() as owner:
        await owner.start(pool.workers.run)
        answered = trio.Event()

        async def call() -> None:
            with pytest.raises(WorkerUnavailable):
                await pool.call("ping", b"{}", effect=False, timeout=3600)
            answered.set()

        nursery.start_soon(call)
        await trio.testing.wait_all_tasks_blocked()
        owner.cancel_scope.cancel()
    with trio.fail_after(HANG):
        await answered.wait()


async def test_a_cancelled_caller_of_close_still_closes(open_pool: OpenPool) -> None:
    pool = await open_pool()
    with trio.move_on_after(0):
        await pool.workers.close()
    assert pool.workers.slots == []


async def _ended(pool: Pool) -> None:
    with pytest.raises(WorkerDied, match="did not leave"):
        await pool.call("hang", b"{}", effect=True)
