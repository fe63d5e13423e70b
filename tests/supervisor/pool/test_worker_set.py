"""What a worker's end means for the others: no process runs here, so nothing but the clock is waited for."""

import pytest
import trio
import trio.testing

from supervisor.errors import WorkerDied, WorkerUnavailable
from supervisor.pool.spec import ChildSpec, Restart
from supervisor.pool.worker_set import WorkerSet
from supervisor.pool.worker_slot import WorkerSlot, WorkerState
from workers.wire.messages import Context

RESTART = Restart(intensity=2, period=10.0, pause=60.0, first_backoff=1.0, longest_backoff=8.0, jitter=0.0)
DEATH = WorkerDied("exited with code 1")
TIMEOUT = WorkerDied("was given up", "timeout")


class Crowd:
    """A worker set whose slots do nothing by themselves."""

    def __init__(self, restart: Restart, slots: int) -> None:
        self.workers = WorkerSet(ChildSpec("files", Context("/"), restart=restart), 0)
        self.slots = [WorkerSlot(self.workers, self.workers.spec, number) for number in range(slots)]
        self.workers.slots += self.slots
        self.starts: dict[int, float] = {}

    async def lose(self, number: int, death: WorkerDied = DEATH) -> None:
        """Return when the slot may start again."""
        slot = self.slots[number]
        self.workers.worker_ended(slot)
        await self.workers.wait_to_restart(slot, death)
        self.starts[number] = trio.current_time()

    @property
    def states(self) -> list[WorkerState]:
        return [slot.state for slot in self.slots]


@pytest.mark.parametrize(("backoff", "failed"), [(4.999, True), (5.0, True), (5.001, False)])
async def test_deaths_are_too_many_or_not_to_the_millisecond(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock, backoff: float, failed: bool
) -> None:
    restart = Restart(intensity=2, period=10.0, pause=60.0, first_backoff=backoff, longest_backoff=backoff, jitter=0.0)
    crowd = Crowd(restart, 1)
    for _ in range(2):
        await crowd.lose(0)
    nursery.start_soon(crowd.lose, 0)
    await trio.testing.wait_all_tasks_blocked()
    assert trio.current_time() == 2 * backoff
    assert (crowd.workers.restarts.failure is not None) == failed
    assert crowd.states == [WorkerState.FAILED if failed else WorkerState.BACKOFF]


async def test_two_that_die_at_once_are_two_deaths_and_start_one_after_the_other(
    autojump_clock: trio.testing.MockClock,
) -> None:
    crowd = Crowd(RESTART, 2)
    async with trio.open_nursery() as losing:
        losing.start_soon(crowd.lose, 0)
        losing.start_soon(crowd.lose, 1)
    assert sorted(crowd.starts.values()) == [1.0, 2.0]


async def test_a_death_touches_no_other_worker(autojump_clock: trio.testing.MockClock) -> None:
    crowd = Crowd(RESTART, 2)
    crowd.workers.worker_started(crowd.slots[1])
    await crowd.lose(0)
    assert crowd.slots[1].state is WorkerState.READY
    assert crowd.workers.checkout.acquire_nowait() is crowd.slots[1]


async def test_one_that_waits_to_be_restarted_waits_for_the_whole_pause_when_its_category_fails(
    autojump_clock: trio.testing.MockClock,
) -> None:
    crowd = Crowd(RESTART, 3)
    async with trio.open_nursery() as losing:
        for number in range(3):
            losing.start_soon(crowd.lose, number)
        await trio.testing.wait_all_tasks_blocked()
        assert crowd.states == [WorkerState.FAILED] * 3
        await trio.sleep(59.999)
        assert crowd.starts == {}
    assert crowd.starts == {0: 60.0, 1: 60.0, 2: 60.0}


async def test_while_a_worker_lives_its_category_serves_though_it_has_failed(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    crowd = Crowd(RESTART, 4)
    crowd.workers.worker_started(crowd.slots[3])
    for number in range(3):
        nursery.start_soon(crowd.lose, number)
    await trio.testing.wait_all_tasks_blocked()
    assert crowd.workers.restarts.failed(trio.current_time())
    assert crowd.workers.checkout.failure is None
    assert crowd.workers.checkout.acquire_nowait() is crowd.slots[3]


async def test_a_waiting_call_is_refused_when_the_last_worker_of_a_failed_category_is_ended(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    crowd = Crowd(RESTART, 4)
    checkout = crowd.workers.checkout
    crowd.workers.worker_started(crowd.slots[3])
    assert checkout.acquire_nowait() is crowd.slots[3]
    for number in range(3):
        nursery.start_soon(crowd.lose, number)
    await trio.testing.wait_all_tasks_blocked()
    refused: list[str] = []

    async def wait() -> None:
        try:
            await checkout.acquire(3600.0)
        except WorkerUnavailable as error:
            refused.append(str(error))

    nursery.start_soon(wait)
    await trio.testing.wait_all_tasks_blocked()
    assert refused == []
    nursery.start_soon(crowd.lose, 3, TIMEOUT)
    await trio.testing.wait_all_tasks_blocked()
    assert "exited with code 1; they are tried again in 60 s" in refused[0]


async def test_a_worker_that_dies_while_its_set_closes_is_not_waited_for(
    autojump_clock: trio.testing.MockClock,
) -> None:
    crowd = Crowd(RESTART, 1)
    await crowd.workers.close()
    await crowd.lose(0)
    assert trio.current_time() == 0
