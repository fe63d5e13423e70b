"""Pools that share a cap, with real processes: who is ended for whom, and who never is."""

import os
from dataclasses import replace
from functools import partial
from pathlib import Path

import trio

from supervisor.pool.pending_proposal import PendingProposal
from supervisor.pool.pool import Pool
from supervisor.pool.spec import ChildSpec
from supervisor.pool.worker_cap import WorkerCap
from tests.fake_worker import fake
from tests.supervisor.pool.conftest import OpenPool
from tests.supervisor.pool.harness import HANG, QUICK, ask, busy, pids, ready, until
from workers.wire.messages import Context


async def idle(pool: Pool) -> None:
    """Return when one worker has nothing to do, and none starts or leaves."""
    await until(lambda: len(pool.workers.slots) == len(ready(pool)) == 1)


async def test_the_worker_used_longest_ago_is_ended_for_a_call_and_started_anew_for_its_own(
    open_pool: OpenPool,
) -> None:
    cap = WorkerCap(2)
    first, second, third = [await open_pool(warm=False, cap=cap, workers=1, stop_timeout=HANG) for _ in range(3)]
    for pool in (first, second):
        assert await ask(pool, "ping") == "pong"
    await idle(second)
    (old,) = first.workers.slots
    assert await ask(third, "ping") == "pong"
    await until(old.stopped.is_set)
    assert old.last_death == "exited with code 0"
    assert [len(pids(pool)) for pool in (first, second, third)] == [0, 1, 1]

    assert await ask(first, "ping") == "pong"
    await until(lambda: second.workers.slots == [])
    assert [len(pids(pool)) for pool in (first, third)] == [1, 1]


async def test_whose_worker_is_used_again_does_not_lose_it_next(open_pool: OpenPool) -> None:
    cap = WorkerCap(2, spares=False)
    first, second, third = [await open_pool(warm=False, cap=cap) for _ in range(3)]
    for pool in (first, second, first):
        assert await ask(pool, "ping") == "pong"
    kept = pids(first)
    assert await ask(third, "ping") == "pong"
    await until(lambda: second.workers.slots == [])
    assert pids(first) == kept


async def test_where_the_cap_is_lowered_all_that_are_too_many_leave_after_the_next_call(open_pool: OpenPool) -> None:
    cap = WorkerCap(4, spares=False)
    pools = [await open_pool(warm=False, cap=cap) for _ in range(4)]
    for pool in pools:
        assert await ask(pool, "ping") == "pong"
    cap.most = 1
    assert await ask(pools[0], "ping") == "pong"
    await until(lambda: sum(len(pool.workers.slots) for pool in pools) == 1)
    assert len(ready(pools[0])) == 1


async def test_the_workers_of_a_pool_that_was_cancelled_take_no_room(tmp_path: Path) -> None:
    cap, root = WorkerCap(1), os.open(tmp_path, os.O_PATH)
    pool = Pool(ChildSpec("files", Context(str(tmp_path)), cap=cap, **fake([])), root)
    async with trio.open_nursery() as nursery:
        await nursery.start(pool.workers.run)
        await until(lambda: cap.reached)
        nursery.cancel_scope.cancel()
    assert not cap.reached
    os.close(root)


async def test_no_spare_is_started_beyond_the_cap(open_pool: OpenPool) -> None:
    pool = await open_pool(warm=False, cap=WorkerCap(1))
    for _ in range(3):
        assert await ask(pool, "ping") == "pong"
        await until(lambda: not pool.workers._spare_due)
        assert pool.workers._started == 1


async def test_without_spares_a_worker_is_started_for_a_call_alone(open_pool: OpenPool) -> None:
    pool = await open_pool({"hang": True}, warm=False, cap=WorkerCap(spares=False), workers=2)
    for _ in range(3):
        assert await ask(pool, "ping") == "pong"
        await until(lambda: not pool.workers._spare_due)
        assert pool.workers._started == 1
    async with trio.open_nursery() as calls:
        calls.start_soon(partial(pool.call, "hang", b"{}", effect=True))
        await until(lambda: len(busy(pool)) == 1)
        assert await ask(pool, "ping") == "pong"
        assert pool.workers._started == 2
        calls.cancel_scope.cancel()


async def test_many_pools_have_no_more_workers_than_the_cap(open_pool: OpenPool) -> None:
    cap = WorkerCap(3)
    pools = [await open_pool(warm=False, cap=cap) for _ in range(8)]
    for pool in pools:
        assert await ask(pool, "ping") == "pong"
    await until(lambda: sum(len(pool.workers.slots) for pool in pools) == 3)
    assert [len(ready(pool)) for pool in pools] == [0] * 5 + [1] * 3


async def test_calls_have_their_workers_where_all_are_busy_and_none_is_kept_for_it(open_pool: OpenPool) -> None:
    cap = WorkerCap(1)
    first, second = [await open_pool({"hang": True}, warm=False, cap=cap, workers=2) for _ in range(2)]
    async with trio.open_nursery() as calls:
        for pool in (first, second):
            calls.start_soon(partial(pool.call, "hang", b"{}", effect=True))
        await until(lambda: len(busy(first)) == len(busy(second)) == 1)
        assert await ask(first, "ping") == "pong"
        assert len(busy(first)) == len(busy(second)) == 1
        calls.cancel_scope.cancel()
    await until(lambda: len(first.workers.slots) + len(second.workers.slots) == 1)
    for pool in (first, second):
        assert await ask(pool, "ping") == "pong"


async def test_what_a_worker_holds_is_not_lost_for_a_call(open_pool: OpenPool) -> None:
    cap = WorkerCap(1)
    first, second = [await open_pool(warm=False, cap=cap) for _ in range(2)]
    with trio.fail_after(HANG):
        held = await first.propose("write_file", b"{}")
        assert isinstance(held, PendingProposal)
        assert await ask(second, "ping") == "pong"
        assert await ask(first, "ping") == "pong"
        await held.decide(commit=True)
    await until(lambda: len(first.workers.slots) + len(second.workers.slots) == 1)


async def test_the_last_worker_of_a_failed_category_stays(open_pool: OpenPool) -> None:
    cap = WorkerCap(1)
    failed, other = [await open_pool(warm=False, cap=cap) for _ in range(2)]
    assert await ask(failed, "ping") == "pong"
    failed.workers.restarts.refused(trio.current_time(), "refused")
    before = pids(failed)
    assert await ask(other, "ping") == "pong"
    assert pids(failed) == before
    assert await ask(failed, "ping") == "pong"


async def test_what_cannot_be_started_takes_no_workers_room(open_pool: OpenPool) -> None:
    cap = WorkerCap(1)
    never = replace(QUICK, intensity=0, pause=3600.0)
    broken = await open_pool(warm=False, cap=cap, command=("/nonexistent/program",), restart=never)
    await until(lambda: broken.workers.failed_because)
    healthy = await open_pool(warm=False, cap=cap)
    for _ in range(3):
        assert await ask(healthy, "ping") == "pong"
    assert healthy.workers._started == 1
