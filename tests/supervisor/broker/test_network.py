"""Real look-ups and real connections, and what is left of those that hang."""

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio
import trio.testing

from supervisor.broker.network import Resolver, connect, look_up, verify
from tests.supervisor.broker.harness import HANG, descriptors
from tests.web_server import WebServer


@pytest.fixture
def no_new_threads() -> Iterator[None]:
    """No memory has room for such a stack: every start of a thread fails, as it does at a limit of processes."""
    before = threading.stack_size(2**62)
    yield
    threading.stack_size(before)


@pytest.fixture
def released() -> Iterator[threading.Event]:
    """What hanging threads wait for; at the end they may go."""
    event = threading.Event()
    yield event
    event.set()


async def test_a_connection_leads_to_the_address_and_blocks(server: WebServer) -> None:
    with await connect("127.0.0.1", server.port) as connection:
        assert connection.getpeername() == ("127.0.0.1", server.port)
        assert connection.getsockopt(socket.SOL_SOCKET, socket.SO_TYPE) == socket.SOCK_STREAM
        assert connection.getblocking()


@pytest.mark.parametrize(("address", "aside"), [("127.0.0.2", 0), ("::1", 0), ("127.0.0.1", 1)])
def test_a_connection_to_somewhere_else_is_none(address: str, aside: int, server: WebServer) -> None:
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        verify(connection, "127.0.0.1", server.port)
        with pytest.raises(OSError, match=r"leads to 127\.0\.0\.1 instead"):
            verify(connection, address, server.port + aside)


async def test_a_connection_goes_over_ipv6(server: WebServer) -> None:
    with socket.create_server(("::1", 0), family=socket.AF_INET6) as listener:
        port = listener.getsockname()[1]
        with await connect("::1", port) as connection:
            assert connection.getpeername()[:2] == ("::1", port)


async def test_a_refused_connection_is_an_error_and_leaves_nothing() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        before = descriptors()
        with pytest.raises(ConnectionRefusedError):
            await connect("127.0.0.1", bound.getsockname()[1])
        assert descriptors() == before


async def test_a_connection_that_is_given_up_leaves_nothing() -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full, socket.socket() as first:
        first.connect(full.getsockname())
        before = descriptors()
        async with trio.open_nursery() as nursery:
            for _ in range(8):  # a full backlog answers nobody
                nursery.start_soon(connect, *full.getsockname())
            await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
        assert descriptors() == before


def test_a_name_in_the_hosts_file_is_found() -> None:
    assert "127.0.0.1" in look_up("localhost", 443)


def test_other_names_are_asked_for_without_the_search_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def record(host: str, *_: object, **__: object) -> list[object]:
        asked.append(host)
        return []

    monkeypatch.setattr(socket, "getaddrinfo", record)
    hosts = tmp_path / "hosts"
    hosts.write_text("# 1.1.1.1 commented.example\n1.1.1.1 a.example Listed.Example # behind.example\n")
    for name in ("listed.example", "a.example", "behind.example", "commented.example", "1.1.1.1", "other.example"):
        look_up(name, 443, hosts)
    look_up("a.example", 443, tmp_path / "missing")
    assert asked == [
        "listed.example",
        "a.example",
        "behind.example.",
        "commented.example.",
        "1.1.1.1.",
        "other.example.",
        "a.example.",
    ]


async def test_addresses_come_once_each_and_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [(socket.AF_INET, 1, 6, "", (address, 443)) for address in ("9.9.9.9", "1.1.1.1", "9.9.9.9")]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
    assert await Resolver()("github.com", 443) == ["9.9.9.9", "1.1.1.1"]


async def test_a_name_that_nobody_knows_is_an_error() -> None:
    def unknown(host: str, port: int) -> list[str]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    with pytest.raises(OSError, match="not known"):
        await Resolver(unknown)("github.com", 443)


@pytest.mark.usefixtures("no_new_threads")
async def test_a_look_up_without_a_thread_is_an_error(released: threading.Event) -> None:
    failed = trio.Event()

    def hanging(host: str, port: int) -> list[str]:
        released.wait(HANG)
        return []

    resolver = Resolver(hanging, threads=1000)

    async def one_more() -> None:
        with pytest.raises(OSError, match="can't start new thread"):
            await resolver("github.com", 443)
        failed.set()

    with trio.fail_after(HANG):
        async with trio.open_nursery() as nursery:
            for _ in range(100):  # more than there are idle threads, which are used first
                nursery.start_soon(one_more)
            await failed.wait()
            nursery.cancel_scope.cancel()


async def test_a_thousand_hanging_look_ups_take_a_bounded_number_of_threads(released: threading.Event) -> None:
    began: list[str] = []
    begun = threading.Semaphore(0)

    def hanging(host: str, port: int) -> list[str]:
        began.append(host)
        begun.release()
        released.wait(HANG)
        return []

    resolver, before = Resolver(hanging, threads=4), threading.active_count()
    with trio.fail_after(HANG):
        for turn in range(4):
            async with trio.open_nursery() as nursery:
                for number in range(250):
                    nursery.start_soon(resolver, f"{number}.example.org", 443)
                await trio.testing.wait_all_tasks_blocked()
                for _ in range(4 if turn == 0 else 0):
                    await trio.to_thread.run_sync(begun.acquire)
                nursery.cancel_scope.cancel()
    assert len(began) == 4
    assert threading.active_count() <= before + 4 + 1  # and the one that waited for them


async def test_look_ups_go_on_when_hanging_ones_have_ended(released: threading.Event) -> None:
    def hanging(host: str, port: int) -> list[str]:
        released.wait(HANG)
        return [host]

    resolver = Resolver(hanging, threads=1)
    with trio.fail_after(HANG):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(resolver, "slow.example.org", 443)
            await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
        released.set()
        assert await resolver("quick.example.org", 443) == ["quick.example.org"]
