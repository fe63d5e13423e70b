"""Workers that do not start, die too often, or are not needed any more."""

import logging
import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest
import trio
import trio.testing

from supervisor.errors import WorkerUnavailable
from supervisor.pool.pool import Pool
from supervisor.pool.spec import ChildSpec, Restart
from supervisor.pool.worker_process import WorkerProcess
from supervisor.pool.worker_slot import WorkerState
from tests.fake_worker import fake
from tests.supervisor.pool.conftest import OpenPool
from tests.supervisor.pool.harness import (
    HANG,
    QUICK,
    ask,
    busy,
    descriptors,
    descriptors_limited,
    gone,
    kill,
    pids,
    process_of,
    ready,
    restarts,
    until,
)
from workers.wire.messages import Context

FOR_EVER = replace(QUICK, pause=3600.0)
NOWHERE = ("/nonexistent/program",)


async def test_a_category_that_dies_too_often_is_failed_and_refuses_who_waits_and_who_comes(
    open_pool: OpenPool,
) -> None:
    pool = await open_pool({"at_start": {"exit": 1}}, warm=False, restart=FOR_EVER)
    with trio.fail_after(HANG), pytest.raises(WorkerUnavailable, match="died too often"):
        await pool.call("ping", b"{}", effect=False, timeout=3600)
    assert "died too often" in pool.workers.failed_because
    assert "exited with code 1" in pool.workers.failed_because
    assert any(slot.state is WorkerState.FAILED for slot in pool.workers.slots)
    assert restarts(pool) == FOR_EVER.intensity + 1
    with trio.fail_after(HANG), pytest.raises(WorkerUnavailable, match=r"out of order.*tried again in 3\d\d\d s"):
        await pool.call("ping", b"{}", effect=False, timeout=3600)


async def test_after_the_pause_a_failed_category_works_again_by_itself(open_pool: OpenPool, tmp_path: Path) -> None:
    given = fake([{"at_start": {"exit_times": QUICK.intensity + 1}}], tmp_path / "memory")
    pool = await open_pool(warm=False, restart=QUICK, **given)
    await until(lambda: pool.workers.failed_because)
    await until(lambda: not pool.workers.failed_because)
    assert await ask(pool, "ping") == "pong"


async def test_a_worker_that_refuses_to_serve_fails_the_category_at_once(open_pool: OpenPool) -> None:
    pool = await open_pool({"at_start": {"confine_fails": True}}, warm=False, restart=FOR_EVER)
    await until(lambda: pool.workers.failed_because)
    assert "landlock" in pool.workers.failed_because
    assert restarts(pool) == 1


@pytest.mark.parametrize(
    ("how", "told"),
    [
        ({"hang": True}, "was not ready in time"),
        ({"garbage": True}, "broke the protocol"),
        ({"ready_version": 999}, "wrong greeting"),
        ({"ready_category": "shell"}, "wrong greeting"),
        ({"probed": True}, "wrong greeting"),
        ({"close": "stdout"}, "closed its output"),
        ({"exit": 1}, "exited with code 1"),
        ({"ready_tools": ["read", "rm_rf"]}, "wrong greeting"),
    ],
    ids=str,
)
async def test_a_bad_start_counts_as_a_death(open_pool: OpenPool, how: dict[str, object], told: str) -> None:
    patience = 0.5 if "hang" in how else HANG
    once = replace(FOR_EVER, intensity=1)
    tools = ("read",) if "ready_tools" in how else ()
    pool = await open_pool({"at_start": how}, warm=False, start_timeout=patience, restart=once, tools=tools)
    await until(lambda: pool.workers.failed_because)
    assert told in pool.workers.failed_because


async def test_tools_may_be_named_in_any_order(open_pool: OpenPool) -> None:
    pool = await open_pool({"at_start": {"ready_tools": ["b", "a"]}}, warm=False, tools=("a", "b"))
    await until(lambda: len(ready(pool)) == 2)
    assert restarts(pool) == 0


async def test_restarts_wait_twice_as_long_each_time_whoever_waits_for_them(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock, tmp_path: Path
) -> None:
    """No process ever starts, so nothing but the clock is waited for."""
    restart = Restart(intensity=5, period=30.0, pause=60.0, first_backoff=1.0, longest_backoff=4.0, jitter=0.0)
    pool = await _pool_of_nothing(nursery, tmp_path, restart)
    nursery.start_soon(_refused, pool)
    await trio.testing.wait_all_tasks_blocked()
    assert trio.current_time() == 0
    for seconds, lost in ((1, 2), (3, 3), (7, 4), (11, 5), (15, 6)):
        await trio.sleep_until(seconds - 0.5)
        assert restarts(pool) == lost - 1
        await trio.sleep_until(seconds + 0.5)
        assert restarts(pool) == lost
    assert len(pool.workers.slots) == 1
    await pool.workers.close()


async def test_a_program_that_does_not_exist_is_told(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock, tmp_path: Path
) -> None:
    pool = await _pool_of_nothing(nursery, tmp_path, Restart(first_backoff=1.0))
    await trio.testing.wait_all_tasks_blocked()
    (slot,) = pool.workers.slots
    assert slot.state is WorkerState.BACKOFF
    assert "/nonexistent/program" in slot.last_death
    await pool.workers.close()


async def test_without_descriptors_a_call_is_refused_and_later_ones_are_answered(open_pool: OpenPool) -> None:
    pool = await open_pool(restart=replace(QUICK, intensity=3))
    with descriptors_limited(3):
        kill(*ready(pool))
        await until(lambda: pool.workers.failed_because)
        assert "Too many open files" in pool.workers.failed_because
        with pytest.raises(WorkerUnavailable):
            await pool.call("ping", b"{}", effect=False)
    await until(lambda: not pool.workers.failed_because)
    assert await ask(pool, "ping") == "pong"


@pytest.mark.parametrize("error", [OSError(24, "Too many open files"), MemoryError()], ids=repr)
async def test_a_spawn_that_fails_half_way_leaves_nothing(
    open_pool: OpenPool, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    before = descriptors()

    def fail(_pid: int) -> int:
        raise error

    with monkeypatch.context() as patched:
        patched.setattr(os, "pidfd_open", fail)
        pool = await open_pool(warm=False, restart=QUICK)
        await until(lambda: pool.workers.failed_because)
        assert pids(pool) == []
        assert len(descriptors()) <= len(before) + 3  # trio's own
    await until(lambda: len(ready(pool)) == 2)


@pytest.mark.parametrize("task", ["drain_stderr", "wait"])
@pytest.mark.parametrize("error", [MemoryError(), OSError(28, "No space left on device"), RuntimeError("no thread")])
async def test_a_failure_in_keeping_a_worker_is_its_end_and_no_others(
    task: str, error: Exception, open_pool: OpenPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = descriptors()

    async def fail(_process: WorkerProcess) -> None:
        raise error

    with monkeypatch.context() as patched:
        patched.setattr(WorkerProcess, task, fail)
        pool = await open_pool(warm=False, restart=QUICK)
        await until(lambda: type(error).__name__ in pool.workers.failed_because)
        await until(
            lambda: len(descriptors()) == len(before) + 1
        )  # the pool's own; after the pause the next one is tried, and fails
    await until(lambda: len(ready(pool)) == 2)


async def hang(pool: Pool) -> None:
    await pool.call("hang", b"{}", effect=True)


async def test_surplus_workers_are_retired(open_pool: OpenPool) -> None:
    pool = await open_pool({"hang": True}, workers=4, idle_timeout=0.05)
    async with trio.open_nursery() as calls:
        for _ in range(4):
            calls.start_soon(hang, pool)
        await until(lambda: len(busy(pool)) == 4)
        calls.cancel_scope.cancel()
    await until(lambda: len(pool.workers.slots) == 2)
    await until(lambda: len(ready(pool)) == 2)
    assert await ask(pool, "ping") == "pong"


async def test_a_retired_worker_that_stays_is_killed_and_its_place_is_taken(open_pool: OpenPool) -> None:
    pool = await open_pool({"hang": True}, workers=2, stop_timeout=0.05)
    async with trio.open_nursery() as calls:
        calls.start_soon(hang, pool)
        await until(lambda: len(busy(pool)) == 1 and len(ready(pool)) == 1)
        (spare,) = ready(pool)
        stuck = process_of(spare).pid
        os.kill(stuck, signal.SIGSTOP)
        spare.retire()  # as the clock does with one that is not needed
        await gone(stuck)
        await until(lambda: spare not in pool.workers.slots)
        calls.start_soon(hang, pool)
        await until(lambda: len(busy(pool)) == 2 and len(ready(pool)) == 1)  # that is all that the spec allows
        calls.cancel_scope.cancel()


async def test_one_worker_and_its_spare_are_never_retired(open_pool: OpenPool) -> None:
    pool = await open_pool(idle_timeout=0.01)
    before = set(pids(pool))
    checked = trio.current_time() + 0.05  # several rounds of the retiring clock
    await until(lambda: trio.current_time() > checked)
    assert set(pids(pool)) == before


async def test_the_last_words_of_a_worker_are_logged_and_cannot_move_the_terminal(
    open_pool: OpenPool, caplog: pytest.LogCaptureFixture
) -> None:
    pool = await open_pool({"stderr_text": "\x1b[2JZeroDivisionError\r\n"}, {"exit": 1})
    with caplog.at_level(logging.WARNING), pytest.raises(Exception, match="exited"):
        await pool.call("write", b"{}", effect=True)
    await until(lambda: "ZeroDivisionError" in caplog.text)
    assert "\x1b" not in caplog.text


async def _pool_of_nothing(nursery: trio.Nursery, folder: Path, restart: Restart) -> Pool:
    pool = Pool(ChildSpec("files", Context(str(folder)), command=NOWHERE, restart=restart), 0)
    await nursery.start(pool.workers.run)
    return pool


async def _refused(pool: Pool) -> None:
    with pytest.raises(WorkerUnavailable, match="died too often"):
        await pool.call("ping", b"{}", effect=False, timeout=3600.0)
