"""Workers that misbehave, calls that end, things that hang: each hurts itself alone, and nothing stays open."""

import gc
import os
import select
import socket
from typing import Final

import pytest
import trio
import trio.testing

from supervisor.broker.broker import CONNECT_S, LOOKUP_S, Broker
from supervisor.broker.dialog import CONNECTIONS, PATIENCE, UNREAD
from supervisor.categories.web import WebConfig
from tests.supervisor.broker.conftest import OpenWorker
from tests.supervisor.broker.harness import HANG, Names, Roads, Worker, descriptors
from tests.web_server import WebServer
from workers.wire import frames, messages

WEB: Final = WebConfig(allow=("github.com", "slow.example.org"))
ASK: Final = frames.datagram(messages.Connect("github.com", 443))
SILENT: Final = "8.8.8.8"


@pytest.fixture
def roads(server: WebServer) -> Roads:
    return Roads(server.port, silent=[SILENT])


@pytest.fixture
def broker(roads: Roads) -> Broker:
    return Broker(WEB, Names({"slow.example.org": [[SILENT]]}), roads)


async def test_an_idle_worker_gets_no_connection(broker: Broker, roads: Roads, open_worker: OpenWorker) -> None:
    assert await open_worker(broker, lambda: 0).kind("github.com") == "fetch_failed"
    assert roads.taken == []


async def test_a_call_has_so_many_connections_and_the_next_one_as_many(broker: Broker, open_worker: OpenWorker) -> None:
    call = 1
    worker = open_worker(broker, lambda: call)
    for call in (1, 2):  # noqa: B007 - read by the broker
        kinds = [await worker.kind("github.com") for _ in range(CONNECTIONS + 1)]
        assert kinds == ["connected"] * CONNECTIONS + ["fetch_failed"]


async def test_a_worker_that_asks_without_end_is_no_longer_heard(broker: Broker, open_worker: OpenWorker) -> None:
    worker = open_worker(broker)
    for _ in range(PATIENCE * CONNECTIONS):
        await worker.kind("evil.com")
    assert await worker.ask("evil.com") == (None, None)
    with pytest.raises(BrokenPipeError):
        await worker.say(ASK)


@pytest.mark.parametrize("datagram", [ASK, b"junk"])
async def test_a_worker_that_reads_nothing_is_no_longer_heard(
    datagram: bytes, broker: Broker, roads: Roads, open_worker: OpenWorker
) -> None:
    worker = open_worker(broker)
    for _ in range(UNREAD + 2):
        await worker.say(datagram)
        await trio.testing.wait_all_tasks_blocked()
    with pytest.raises(BrokenPipeError):
        await worker.say(datagram)
    assert len(roads.taken) <= UNREAD + 1


async def test_an_empty_datagram_is_the_end(broker: Broker, open_worker: OpenWorker) -> None:
    worker = open_worker(broker)
    await worker.say(b"")
    assert await worker.hear() == (None, None)


async def test_a_full_socket_hurts_nobody_else_and_loses_nothing(roads: Roads, open_worker: OpenWorker) -> None:
    broker = Broker(WebConfig(allow=("github.com", *(f"{'x' * 60}{each}.org" for each in range(50)))), Names(), roads)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)  # the least that the kernel grants
        late = Worker(theirs)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(broker.serve, ours, lambda: 1)
            for number in range(UNREAD):
                await late.say(frames.datagram(messages.Connect(f"evil{number}.com", 443)))
                await trio.testing.wait_all_tasks_blocked()
            assert select.select([], [ours], [], 0) == ([], [], [])
            assert [await open_worker(broker).kind("github.com") for _ in range(3)] == ["connected"] * 3
            for number in range(UNREAD):
                assert f"evil{number}.com" in (await late.hear_refusal()).message
            nursery.cancel_scope.cancel()


async def test_another_worker_is_served_while_one_waits(broker: Broker, open_worker: OpenWorker) -> None:
    waiting = open_worker(broker)
    await waiting.say(frames.datagram(messages.Connect("slow.example.org", 443)))
    assert await open_worker(broker).kind("github.com") == "connected"


async def test_every_request_gets_one_answer_in_order(broker: Broker, open_worker: OpenWorker) -> None:
    worker = open_worker(broker)
    await worker.say(frames.datagram(messages.Connect("slow.example.org", 443)))
    await trio.testing.wait_all_tasks_blocked()
    await worker.say(ASK)
    assert (await worker.hear_refusal()).kind == "cancelled"
    answer, connection = await worker.hear()
    assert isinstance(answer, messages.Connected)
    assert connection is not None
    connection.close()


async def test_a_connection_for_a_call_that_has_ended_is_not_handed_over(
    server: WebServer, open_worker: OpenWorker
) -> None:
    call, arrived, go_on = 1, trio.Event(), trio.Event()

    async def late(_address: str, _port: int) -> socket.socket:
        arrived.set()
        await go_on.wait()
        return socket.create_connection(("127.0.0.1", server.port))

    worker = open_worker(Broker(WEB, Names(), late), lambda: call)
    await worker.say(ASK)
    with trio.fail_after(HANG):
        await arrived.wait()
    call = 2
    go_on.set()
    assert (await worker.hear_refusal()).kind == "cancelled"
    assert len(server.seen()) == 1  # and it has been closed


async def test_a_resolver_that_hangs_is_a_timeout(
    roads: Roads, open_worker: OpenWorker, autojump_clock: trio.testing.MockClock
) -> None:
    async def hanging(_host: str, _port: int) -> list[str]:
        await trio.sleep_forever()
        raise AssertionError

    autojump_clock.autojump_threshold = 0.05
    answer, _ = await _ask_patiently(open_worker(Broker(WEB, hanging, roads)), "github.com")
    assert isinstance(answer, messages.Declined)
    assert (answer.kind, roads.taken) == ("timeout", [])
    assert trio.current_time() == LOOKUP_S


async def test_an_address_that_is_silent_is_a_timeout_and_the_next_one_is_tried(
    roads: Roads, open_worker: OpenWorker, autojump_clock: trio.testing.MockClock
) -> None:
    autojump_clock.autojump_threshold = 0.05
    names = Names({"github.com": [[SILENT, SILENT, "9.9.9.9"], [SILENT]]})
    worker = open_worker(Broker(WEB, names, roads))
    answer, connection = await _ask_patiently(worker, "github.com")
    assert answer == messages.Connected("9.9.9.9")
    assert trio.current_time() == 2 * CONNECT_S
    assert connection is not None
    connection.close()
    answer, _ = await _ask_patiently(worker, "github.com")
    assert isinstance(answer, messages.Declined)
    assert (answer.kind, SILENT in answer.message) == ("timeout", True)


async def _ask_patiently(worker: Worker, host: str) -> tuple[messages.Brokered | None, socket.socket | None]:
    """Ask without a deadline: the clock jumps, and would jump over it."""
    worker.end.send(frames.datagram(messages.Connect(host, 443)))
    await trio.lowlevel.wait_readable(worker.end)
    return await worker.hear()


@pytest.mark.parametrize("end", ["goes", "is cancelled"])
@pytest.mark.parametrize("host", ["github.com", "slow.example.org"])
async def test_serving_ends_with_its_worker_whatever_it_does(
    host: str, end: str, broker: Broker, server: WebServer
) -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs, trio.fail_after(HANG):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(broker.serve, ours, lambda: 1)
            await Worker(theirs).say(frames.datagram(messages.Connect(host, 443)))
            await trio.testing.wait_all_tasks_blocked()
            if end == "goes":
                theirs.close()
            else:
                nursery.cancel_scope.cancel()
    theirs.close()
    server.seen()  # every connection that there was has ended


async def test_descriptors_that_a_worker_sends_are_dropped(
    broker: Broker, server: WebServer, open_worker: OpenWorker
) -> None:
    worker = open_worker(broker)
    await worker.kind("github.com")
    server.seen()
    before = descriptors()
    reading, writing = os.pipe()
    await worker.say(ASK, writing)
    _, connection = await worker.hear()
    assert connection is not None
    connection.close()
    os.close(writing)
    assert os.read(reading, 1) == b""  # nobody else has the other end
    os.close(reading)
    server.seen()
    assert descriptors() == before


async def test_a_thousand_connections_leave_nothing_open(server: WebServer, broker: Broker) -> None:
    await _one_life(broker, 4)
    gc.collect()
    server.seen()
    before = descriptors()
    for _ in range(50):
        await _one_life(broker, 20)
    assert len(server.seen()) >= 1000
    assert descriptors() == before


async def _one_life(broker: Broker, connections: int) -> None:
    """A worker's life: connections, a refusal, one that was given up, and its death while one is made."""
    call = 0
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, trio.fail_after(2 * HANG):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(broker.serve, ours, lambda: call)
            with theirs:
                worker = Worker(theirs)
                for call in range(1, connections + 1):  # noqa: B007 - read by the broker
                    assert await worker.kind("github.com") == "connected"
                assert await worker.kind("evil.com") == "domain_not_allowed"
                slow = frames.datagram(messages.Connect("slow.example.org", 443))
                await worker.say(slow)
                await trio.testing.wait_all_tasks_blocked()
                await worker.say(slow)
                await worker.hear()


async def test_several_workers_are_connected_at_the_same_time(server: WebServer, open_worker: OpenWorker) -> None:
    waiting, all_here = 0, trio.Event()

    async def meeting(_address: str, _port: int) -> socket.socket:
        nonlocal waiting
        waiting += 1
        if waiting == 8:
            all_here.set()
        await all_here.wait()
        return socket.create_connection(("127.0.0.1", server.port))

    broker = Broker(WEB, Names(), meeting)
    kinds: list[str] = []

    async def ask() -> None:
        kinds.append(await open_worker(broker).kind("github.com"))

    async with trio.open_nursery() as nursery:
        for _ in range(8):
            nursery.start_soon(ask)
    assert kinds == ["connected"] * 8
