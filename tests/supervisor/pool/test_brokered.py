"""What a pool gives a broker: each worker's socket, which call it runs, and an end with its process."""

import socket
from collections.abc import Callable

import pytest
import trio

from supervisor.errors import WorkerDied
from tests.supervisor.pool.conftest import OpenPool
from tests.supervisor.pool.harness import HANG, READ, ask, pids, until


class Listener:
    """A broker that says nothing and remembers whom it serves."""

    def __init__(self) -> None:
        self.served: list[tuple[socket.socket, Callable[[], int]]] = []
        self.ended = 0

    async def serve(self, worker: socket.socket, running: Callable[[], int]) -> None:
        self.served.append((worker, running))
        try:
            await trio.sleep_forever()
        finally:
            self.ended += 1

    def running(self) -> list[int]:
        """Return the calls that run, each by its id."""
        return [call for _, running in self.served if (call := running())]


async def test_each_worker_has_a_socket_of_its_own_that_keeps_messages_apart(open_pool: OpenPool) -> None:
    listener = Listener()
    await open_pool(*READ, broker=listener.serve)
    assert len({worker.fileno() for worker, _ in listener.served}) == 2
    assert {(worker.family, worker.type) for worker, _ in listener.served} == {(socket.AF_UNIX, socket.SOCK_SEQPACKET)}


async def test_a_broker_sees_a_call_while_it_runs_and_another_one_later(open_pool: OpenPool) -> None:
    listener = Listener()
    pool = await open_pool({"hang": True}, broker=listener.serve)
    assert listener.running() == []
    seen = []
    for _ in range(2):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask, pool, "read_file")
            await until(listener.running)
            seen += listener.running()
            nursery.cancel_scope.cancel()
        await until(lambda: not listener.running())
    assert len(set(seen)) == 2


async def test_no_call_runs_after_its_answer(open_pool: OpenPool) -> None:
    listener = Listener()
    pool = await open_pool(*READ, broker=listener.serve)
    assert await ask(pool, "read_file") == "hello"
    assert listener.running() == []


async def test_a_worker_s_death_ends_its_broker_and_closes_the_socket(open_pool: OpenPool) -> None:
    listener = Listener()
    pool = await open_pool({"exit": 3}, broker=listener.serve)
    first = [worker for worker, _ in listener.served]
    with trio.fail_after(HANG), pytest.raises(WorkerDied):
        await pool.call("read_file", b"{}", effect=True)
    await until(lambda: listener.ended >= 1)
    await until(lambda: any(worker.fileno() < 0 for worker in first))


async def test_a_worker_whom_its_broker_gives_up_is_replaced(open_pool: OpenPool) -> None:
    listener, enough = Listener(), trio.Event()

    async def serve(worker: socket.socket, running: Callable[[], int]) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(listener.serve, worker, running)
            await enough.wait()
            nursery.cancel_scope.cancel()

    pool = await open_pool(*READ, broker=serve)
    before = set(pids(pool))
    enough.set()
    await until(lambda: before.isdisjoint(pids(pool)))
    assert any("has no broker any more" in each.last_death for each in pool.workers.slots)


async def test_a_worker_without_a_broker_has_no_socket(open_pool: OpenPool) -> None:
    pool = await open_pool(*READ)
    assert [each.process.broker for each in pool.workers.slots if each.process] == [None] * 2
