"""Workers that hold a call, and what becomes of it when they end."""

import os
import signal

import pytest
import trio

from supervisor.errors import WorkerUnavailable
from supervisor.pool.pending_proposal import PendingProposal
from supervisor.pool.pool import Pool
from tests.supervisor.pool.conftest import OpenPool
from tests.supervisor.pool.harness import HANG, ask, process_of, until


async def hold(pool: Pool) -> PendingProposal:
    with trio.fail_after(HANG):
        held = await pool.propose("write_file", b"{}")
    assert isinstance(held, PendingProposal)
    return held


async def test_a_held_call_whose_worker_ends_cannot_be_decided_and_holds_nothing_any_more(open_pool: OpenPool) -> None:
    pool = await open_pool(workers=1)
    lost = await hold(pool)
    (keeper,) = pool.lending.held
    os.kill(process_of(keeper).pid, signal.SIGKILL)
    await until(lambda: keeper not in pool.lending.held)
    with pytest.raises(WorkerUnavailable, match="has ended"):
        await lost.decide(commit=True)
    assert await ask(pool, "ping") == "pong"

    holding = [await hold(pool)]
    while keeper not in pool.lending.held:
        holding.append(await hold(pool))
    lost.give_up()
    lost._decided = False  # as if it had never been decided
    lost.give_up()
    assert keeper in pool.lending.held  # what its next worker holds is another's
    for held in holding:
        assert (await held.decide(commit=False)).id == held._number


async def test_a_category_whose_free_workers_fail_still_ends_what_others_hold(open_pool: OpenPool) -> None:
    pool = await open_pool(workers=1)
    held = await hold(pool)
    pool.crew.restarts.refused(trio.current_time(), "refused to serve")
    for keeper in [each for each in pool.keepers if each not in pool.lending.held and each.process is not None]:
        os.kill(process_of(keeper).pid, signal.SIGKILL)
    await until(lambda: pool.out_of_order)
    with trio.fail_after(HANG):
        assert (await held.decide(commit=False)).id == held._number
    assert pool.out_of_order is None
    assert await ask(pool, "ping") == "pong"
