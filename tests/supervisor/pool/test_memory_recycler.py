"""A worker that holds too much memory between two calls is replaced gracefully."""

from typing import Any

import pytest
import trio

from supervisor.pool.memory_recycler import MemoryRecycler
from supervisor.pool.pending_proposal import PendingProposal
from supervisor.pool.worker_cap import WorkerCap
from tests.supervisor.pool.conftest import OpenPool
from tests.supervisor.pool.harness import HANG, READ, ask, commit, gone, next_lent, process_of, ready, restarts, until
from workers.wire import messages

EVERY: dict[str, Any] = {"soft_memory_mb": 1}
"""Every Python holds more."""


async def test_without_spares_a_worker_over_its_soft_limit_is_replaced_all_the_same(open_pool: OpenPool) -> None:
    pool = await open_pool(**EVERY, warm=False, cap=WorkerCap(spares=False))
    old = int(await ask(pool, "who"))
    assert pool.checkout.recycled == 1
    await gone(old)
    assert int(await ask(pool, "who")) != old


async def test_the_last_worker_of_a_failed_category_stays_whatever_it_holds(open_pool: OpenPool) -> None:
    pool = await open_pool(**EVERY, warm=False, cap=WorkerCap(spares=False))
    await until(lambda: ready(pool))
    pool.workers.restarts.refused(trio.current_time(), "refused to serve")
    who = await ask(pool, "who")
    assert await ask(pool, "who") == who
    assert pool.checkout.recycled == 0


@pytest.mark.parametrize("workers", [1, 4])
async def test_a_worker_over_its_soft_limit_is_replaced_after_its_call_and_the_spare_takes_over(
    workers: int, open_pool: OpenPool
) -> None:
    pool = await open_pool(**EVERY, workers=workers)
    spare = process_of(pool.checkout.ready[0]).pid
    old = int(await ask(pool, "who"))
    assert pool.checkout.recycled == 1
    assert next_lent(pool).pid == spare
    await gone(old)
    await until(lambda: len(ready(pool)) == 2)


async def test_a_worker_that_is_replaced_so_is_no_failure(open_pool: OpenPool) -> None:
    pool = await open_pool(**EVERY, idle_timeout=HANG)
    for count in range(1, 8):
        await ask(pool, "ping")
        assert pool.checkout.recycled == count
        await until(lambda: len(ready(pool)) == 2)
    assert (restarts(pool), pool.workers.failed_because) == (0, "")


async def test_a_worker_below_its_soft_limit_stays(open_pool: OpenPool) -> None:
    pool = await open_pool(soft_memory_mb=1024)
    who = await ask(pool, "who")
    assert await ask(pool, "who") == who
    assert pool.checkout.recycled == 0


async def test_a_worker_that_holds_a_proposal_stays_until_it_is_decided(open_pool: OpenPool) -> None:
    pool = await open_pool(*READ, **EVERY)
    held = await pool.propose("write_file", b"{}")
    assert isinstance(held, PendingProposal)
    pool.checkout._sweep(trio.current_time() + 1)
    assert pool.checkout.recycled == 0
    await held.decide(commit=True)
    assert pool.checkout.recycled == 1


async def test_a_worker_stays_until_another_one_is_ready(open_pool: OpenPool) -> None:
    pool = await open_pool(**EVERY)
    spare = pool.checkout.ready.pop(0)
    who = await ask(pool, "who")
    assert pool.checkout.recycled == 0
    pool.checkout.add(spare)
    await until(lambda: pool.checkout.recycled == 1)
    assert await ask(pool, "who") != who


SPENT: dict[str, Any] = {"frame": {"id": "$ID", "error": {"kind": "resource_limit", "message": "no more"}}}


@pytest.mark.parametrize("proposed", [False, True])
async def test_a_worker_that_ran_out_of_something_is_replaced_and_the_spare_takes_over(
    proposed: bool, open_pool: OpenPool
) -> None:
    pool = await open_pool(SPENT)
    spare = process_of(pool.checkout.ready[0]).pid
    old = next_lent(pool).pid
    answer = await (commit(pool, "write_file") if proposed else pool.call("fail", b"{}", effect=False))
    assert isinstance(answer, messages.Failed)
    assert (pool.checkout.recycled, restarts(pool), next_lent(pool).pid) == (1, 0, spare)
    await gone(old)
    await until(lambda: len(ready(pool)) == 2)


async def test_a_worker_that_could_not_keep_what_it_replaces_holds_its_proposal_still(open_pool: OpenPool) -> None:
    pool = await open_pool(SPENT)
    held = await pool.propose("write_file", b"{}")
    assert isinstance(held, PendingProposal)
    assert (pool.checkout.recycled, len(pool.checkout.held)) == (0, 1)
    await held.decide(commit=True)
    assert (pool.checkout.recycled, len(pool.checkout.held)) == (1, 0)


async def test_a_look_comes_not_before_its_pause_is_over(open_pool: OpenPool) -> None:
    (slot, _) = (await open_pool()).workers.slots
    recycler = MemoryRecycler(1)
    recycler.note_call(slot)
    assert recycler.is_over_limit(slot, 10.0)
    assert not recycler.is_over_limit(slot, 20.0)  # nothing has happened since
    recycler.note_call(slot)
    assert recycler.due(slot) == 10.25
    assert not recycler.is_over_limit(slot, 10.1)
    assert recycler.is_over_limit(slot, 10.25)
