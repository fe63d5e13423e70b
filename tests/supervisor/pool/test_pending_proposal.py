"""Workers that hold a call, and what becomes of it when they end."""

from typing import Final

import msgspec
import pytest
import trio

from supervisor.errors import WorkerDied, WorkerUnavailable
from supervisor.pool.pending_proposal import PendingProposal
from supervisor.pool.pool import Pool
from tests.supervisor.pool.conftest import OpenPool
from tests.supervisor.pool.harness import HANG, READ, ask, gone, kill, process_of, ready, until
from workers.changes.effects import Change


async def hold(pool: Pool) -> PendingProposal:
    with trio.fail_after(HANG):
        held = await pool.propose("write_file", b"{}")
    assert isinstance(held, PendingProposal)
    return held


async def test_a_held_call_whose_worker_ends_cannot_be_decided_and_holds_nothing_any_more(open_pool: OpenPool) -> None:
    pool = await open_pool(workers=1)
    lost = await hold(pool)
    (slot,) = pool.checkout.held
    kill(slot)
    await until(lambda: slot not in pool.checkout.held)
    with pytest.raises(WorkerUnavailable, match="has ended"):
        await lost.decide(commit=True)
    assert await ask(pool, "ping") == "pong"

    holding = [await hold(pool)]
    while slot not in pool.checkout.held:
        holding.append(await hold(pool))
    lost.abandon()
    lost._decided = False  # as if it had never been decided
    lost.abandon()
    assert slot in pool.checkout.held  # what its next worker holds is another's
    for held in holding:
        assert (await held.decide(commit=False)).id == held.number


async def test_a_category_whose_free_workers_fail_still_ends_what_others_hold(open_pool: OpenPool) -> None:
    pool = await open_pool(workers=1)
    held = await hold(pool)
    pool.workers.restarts.refused(trio.current_time(), "refused to serve")
    kill(*(each for each in pool.workers.slots if each not in pool.checkout.held and each.process is not None))
    await until(lambda: pool.checkout.failure)
    with trio.fail_after(HANG):
        assert (await held.decide(commit=False)).id == held.number
    assert pool.checkout.failure is None
    assert await ask(pool, "ping") == "pong"


async def test_a_worker_that_sent_less_than_it_says_to_have_kept_is_ended_before_it_commits(
    open_pool: OpenPool,
) -> None:
    pool = await open_pool(workers=1)
    held = await hold(pool)
    (slot,) = pool.checkout.held
    pid = process_of(slot).pid
    with pytest.raises(WorkerDied, match="sent 0 names"):
        await held.keep(2**20, 2**20, lambda _part: None)
    await gone(pid)
    with pytest.raises(WorkerUnavailable):
        await held.decide(commit=True)


MANY: Final = [Change(f"{number}.txt", "added") for number in range(2_001)]
"""More than a worker frees before it serves on."""


@pytest.mark.parametrize(("changes", "replaced"), [(MANY, 1), (MANY[1:], 0)])
async def test_a_worker_that_committed_thousands_of_changes_is_replaced(
    open_pool: OpenPool, changes: list[Change], replaced: int
) -> None:
    pool = await open_pool(*READ)
    held = await hold(pool)
    (slot,) = pool.checkout.held
    pid = process_of(slot).pid
    held.effects = msgspec.structs.replace(held.effects, changes=changes)
    await held.decide(commit=True)
    assert pool.checkout.recycled == replaced
    if replaced:
        await gone(pid)
    await until(lambda: len(ready(pool)) == 2)


async def test_the_last_worker_of_a_failed_category_stays_whatever_it_committed(open_pool: OpenPool) -> None:
    pool = await open_pool(*READ)
    held = await hold(pool)
    held.effects = msgspec.structs.replace(held.effects, changes=MANY)
    pool.workers.restarts.refused(trio.current_time(), "refused to serve")
    await held.decide(commit=True)
    assert pool.checkout.recycled == 0
