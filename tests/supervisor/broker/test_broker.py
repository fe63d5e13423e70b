"""What the broker grants and what it declines: real sockets, with the world's names and addresses given."""

import logging
import socket
from typing import Final

import pytest
import trio

from supervisor.broker.allowlist import NetworkAllowlist
from supervisor.broker.broker import ADDRESSES, Broker
from supervisor.broker.network import Resolver
from supervisor.categories.web import HostPort, WebConfig
from tests.supervisor.broker.conftest import OpenWorker
from tests.supervisor.broker.harness import PUBLIC, Names, Roads, Worker
from tests.web_server import WebServer
from workers.wire import frames, messages

WEB: Final = WebConfig(allow=("github.com", "hexdocs.pm", "*.example.org"), ports=(443, 8443))

UNLISTED: Final = [
    "evil.com", "api.github.com", "evilgithub.com", "github.com.evil.com", "example.org", "notexample.org", "localhost",
    "metadata.google.internal", "com",
]  # fmt: skip

JUNK: Final = [
    "", ".", ".github.com", "github.com..", "*.example.org", "github.com ", " github.com", "github.com\x00.evil.com",
    "github.com\n.evil.com", "git\thub.com", "\x1b[31mgithub.com", "github.com/", "github.com:443", "user@github.com",
    "g\u0131thub.com", "github\u3002com", "127.0.0.1", "127.1", "2130706433", "0x7f.1", "[::1]", "::1", "140.82.112.3",
    "a" * 64 + ".example.org", "a." * 127 + "example.org", "x" * 4000,
]  # fmt: skip

NO_REQUESTS: Final = {
    "a zero": b"\x00",
    "text": b"github.com:443\n",
    "above the limit": frames.datagram(messages.Connect("x" * 5000, 443)),
    "huge": b"\xff" * 60_000,
    "a message of another direction": frames.datagram(messages.Declined("timeout", "no")),
    "a frame": frames.frame(messages.Call(1, "fetch_url", b"{}")),
    "no port": b"\x82\xa4type\xa7Connect\xa4host\xaagithub.com",
    "a port of text": b"\x83\xa4type\xa7Connect\xa4host\xaagithub.com\xa4port\xa3443",
    "a port of a fraction": b"\x83\xa4type\xa7Connect\xa4host\xaagithub.com\xa4port\xca\x43\xdd\x80\x00",
    "a port of truth": b"\x83\xa4type\xa7Connect\xa4host\xaagithub.com\xa4port\xc3",
    "a host of bytes": b"\x83\xa4type\xa7Connect\xa4host\xc4\x0agithub.com\xa4port\xcd\x01\xbb",
    "a host of broken UTF-8": b"\x83\xa4type\xa7Connect\xa4host\xa3\xff\xfe\xfd\xa4port\xcd\x01\xbb",
    "one more field": b"\x84\xa4type\xa7Connect\xa4host\xaagithub.com\xa4port\xcd\x01\xbb\xa4flag\xc3",
    "one more byte": frames.datagram(messages.Connect("github.com", 443)) + b"\x00",
    "nested arrays": b"\x91" * 4000,
    "a map that never ends": b"\xdf\xff\xff\xff\xff",
}


@pytest.fixture
def names() -> Names:
    return Names()


@pytest.fixture
def roads(server: WebServer) -> Roads:
    return Roads(server.port)


@pytest.fixture
def worker(names: Names, roads: Roads, open_worker: OpenWorker) -> Worker:
    """One whose broker knows all names, and roads to them."""
    return open_worker(Broker(WEB, names, roads))


NAMED: Final = [
    ("127.0.0.1", 0, "connected"),
    ("mirror.corp", 0, "connected"),
    ("127.0.0.1", 1, "invalid_arguments"),
    ("mirror.corp", 1, "domain_not_allowed"),
    ("private.corp", 0, "address_not_allowed"),
]


@pytest.mark.parametrize(("host", "port", "kind"), NAMED)
async def test_a_mirror_that_the_operator_named_may_be_at_a_private_address(
    open_worker: OpenWorker, server: WebServer, host: str, port: int, kind: str
) -> None:
    """That very host and port, and no other one of the profile's network."""
    named = [HostPort(each, server.port) for each in ("127.0.0.1", "mirror.corp")]
    places = NetworkAllowlist("project", [HostPort("private.corp", server.port)], named)
    names = Names({each: [["127.0.0.1"]] for each in ("mirror.corp", "private.corp")})
    worker = open_worker(Broker(WEB, names, places=places))
    assert await worker.kind(host, port or server.port) == kind


async def test_a_listed_host_is_connected(names: Names, roads: Roads, server: WebServer, worker: Worker) -> None:
    answer, connection = await worker.ask("github.com")
    assert answer == messages.Connected(PUBLIC)
    assert connection is not None
    with connection:
        assert (connection.type, connection.family) == (socket.SOCK_STREAM, socket.AF_INET)
        assert connection.getblocking()
        connection.sendall(b"GET /a HTTP/1.1\r\nHost: github.com\r\n\r\n")
        assert connection.recv(100).startswith(b"HTTP/1.1 200")
    assert [visit.target for visit in server.seen()] == ["/a"]
    assert (names.asked, roads.taken) == (["github.com"], [PUBLIC])


async def test_a_configured_port_and_what_is_below_a_starred_name_are_connected(names: Names, worker: Worker) -> None:
    assert await worker.kind("github.com", 8443) == "connected"
    assert [await worker.kind(host) for host in ("a.example.org", "A.B.Example.ORG.")] == ["connected"] * 2
    assert names.asked == ["github.com", "a.example.org", "a.b.example.org"]


@pytest.mark.parametrize("host", UNLISTED)
async def test_an_unlisted_name_is_never_looked_up(
    host: str, names: Names, roads: Roads, server: WebServer, worker: Worker
) -> None:
    answer = await worker.refused(host)
    assert answer.kind == "domain_not_allowed"
    assert (names.asked, roads.taken, server.seen()) == ([], [], [])


async def test_a_refusal_says_what_is_allowed_and_who_decides(worker: Worker) -> None:
    answer = await worker.refused("evil.com")
    for words in ("Domain not allowed: evil.com", "github.com, hexdocs.pm, *.example.org", "[web] allow", "operator"):
        assert words in answer.message


async def test_a_refusal_with_a_long_list_fits_a_datagram(names: Names, roads: Roads, open_worker: OpenWorker) -> None:
    long = WebConfig(allow=tuple(f"{'x' * 60}{number}.example.org" for number in range(1000)))
    host = ".".join(["y" * 60] * 4)
    answer = await open_worker(Broker(long, names, roads)).refused(host)
    assert answer.kind == "domain_not_allowed"
    assert len(frames.datagram(answer)) < messages.BROKER_LIMIT


@pytest.mark.parametrize("host", JUNK, ids=ascii)
async def test_junk_is_no_host(host: str, names: Names, roads: Roads, worker: Worker) -> None:
    answer = await worker.refused(host)
    assert answer.kind in {"invalid_arguments", "domain_not_allowed"}
    assert (answer.message.isprintable(), answer.message.isascii()) == (True, True)
    assert (names.asked, roads.taken) == ([], [])
    assert await worker.kind("github.com") == "connected"


@pytest.mark.parametrize("port", [0, 80, 22, 444, 65536, -1, 2**63 - 1])
async def test_another_port_is_refused(port: int, names: Names, roads: Roads, worker: Worker) -> None:
    answer = await worker.refused("github.com", port)
    assert answer.kind == "domain_not_allowed"
    assert "443, 8443" in answer.message
    assert (names.asked, roads.taken) == ([], [])


@pytest.mark.parametrize("junk", NO_REQUESTS.values(), ids=NO_REQUESTS)
async def test_a_datagram_that_is_no_request_is_declined_and_the_next_one_served(
    junk: bytes, names: Names, roads: Roads, worker: Worker
) -> None:
    answer = await worker.hear_refusal(junk)
    assert (answer.kind, answer.message.isprintable()) == ("invalid_arguments", True)
    assert (names.asked, roads.taken) == ([], [])
    assert await worker.kind("github.com") == "connected"


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1", "10.1.2.3", "169.254.169.254", "::1", "::ffff:140.82.112.3", "64:ff9b::8c52:7003", "fe80::1%lo", "x"],
)
async def test_an_address_that_is_not_public_is_refused(
    address: str, roads: Roads, server: WebServer, open_worker: OpenWorker
) -> None:
    answer = await open_worker(Broker(WEB, Names({"github.com": [[address]]}), roads)).refused("github.com")
    assert answer.kind == "address_not_allowed"
    assert f"github.com is at {address}, which is" in answer.message
    assert (roads.taken, server.seen()) == ([], [])


@pytest.mark.parametrize(
    "answers", [[PUBLIC, "127.0.0.1"], ["127.0.0.1", PUBLIC], [PUBLIC, "fd00::1"], [PUBLIC, "8.8.8.8", "::1"]], ids=str
)
async def test_one_private_address_refuses_them_all(answers: list[str], roads: Roads, open_worker: OpenWorker) -> None:
    worker = open_worker(Broker(WEB, Names({"github.com": [answers]}), roads))
    assert await worker.kind("github.com") == "address_not_allowed"
    assert roads.taken == []


async def test_each_connection_is_judged_by_one_look_up_of_its_own(roads: Roads, open_worker: OpenWorker) -> None:
    names = Names({"github.com": [[PUBLIC], ["127.0.0.1"], ["8.8.8.8"]]})
    worker = open_worker(Broker(WEB, names, roads))
    assert await worker.kind("github.com") == "connected"
    assert (names.asked, roads.taken) == (["github.com"], [PUBLIC])
    assert [await worker.kind("github.com") for _ in range(2)] == ["address_not_allowed", "connected"]
    assert roads.taken == [PUBLIC, "8.8.8.8"]


async def test_words_of_a_resolver_are_safe_to_print(roads: Roads, open_worker: OpenWorker) -> None:
    names = Names({"github.com": [["\x1b[31m" + "127.0.0.1" * 1000]]})
    answer = await open_worker(Broker(WEB, names, roads)).refused("github.com")
    assert (answer.kind, answer.message.isprintable()) == ("address_not_allowed", True)


async def test_no_address_is_no_page(roads: Roads, open_worker: OpenWorker) -> None:
    assert await open_worker(Broker(WEB, Names({"github.com": [[]]}), roads)).kind("github.com") == "fetch_failed"


@pytest.mark.parametrize("error", [socket.gaierror(-2, "not known"), OSError("broken"), UnicodeError("odd")])
async def test_a_resolver_that_fails_is_no_page(error: Exception, roads: Roads, open_worker: OpenWorker) -> None:
    async def failing(_host: str, _port: int) -> list[str]:
        await trio.lowlevel.checkpoint()
        raise error

    worker = open_worker(Broker(WEB, failing, roads))
    assert [await worker.kind("github.com"), await worker.kind("github.com")] == ["fetch_failed"] * 2


async def test_a_look_up_without_a_thread_is_refused_and_says_so(roads: Roads, open_worker: OpenWorker) -> None:
    def no_thread(_host: str, _port: int) -> list[str]:
        raise RuntimeError("can't start new thread")

    answer = await open_worker(Broker(WEB, Resolver(no_thread), roads)).refused("github.com")
    assert answer.kind == "fetch_failed"
    assert "no thread can be started" in answer.message


async def test_the_next_address_is_tried_where_one_refuses(server: WebServer, open_worker: OpenWorker) -> None:
    roads = Roads(server.port, refusing=[PUBLIC])
    worker = open_worker(Broker(WEB, Names({"github.com": [[PUBLIC, "8.8.8.8", "9.9.9.9"]]}), roads))
    answer, connection = await worker.ask("github.com")
    assert answer == messages.Connected("8.8.8.8")
    assert roads.taken == [PUBLIC, "8.8.8.8"]
    assert connection is not None
    connection.close()


async def test_a_name_whose_addresses_all_refuse_fails_after_a_few(server: WebServer, open_worker: OpenWorker) -> None:
    addresses = [f"8.8.8.{number}" for number in range(100)]
    roads = Roads(server.port, refusing=addresses)
    answer = await open_worker(Broker(WEB, Names({"github.com": [addresses]}), roads)).refused("github.com")
    assert (answer.kind, "Connection refused" in answer.message) == ("fetch_failed", True)
    assert roads.taken == addresses[:ADDRESSES]


async def test_resolve_leads_to_a_private_address_without_a_look_up(
    names: Names, server: WebServer, open_worker: OpenWorker
) -> None:
    web = WebConfig(allow=("github.com",), resolve={"GitHub.com.:443": server.address})
    worker = open_worker(Broker(web, names))
    answer, connection = await worker.ask("github.com")
    assert answer == messages.Connected("127.0.0.1")
    assert connection is not None
    assert connection.getpeername() == ("127.0.0.1", server.port)
    connection.close()
    assert names.asked == []
    assert len(server.seen()) == 1


@pytest.mark.parametrize(("host", "port"), [("evil.com", 443), ("github.com", 8443)])
async def test_resolve_allows_nothing_that_is_not_listed(
    host: str, port: int, names: Names, server: WebServer, open_worker: OpenWorker
) -> None:
    web = WebConfig(allow=("github.com",), resolve={f"{host}:{port}": server.address})
    assert await open_worker(Broker(web, names)).kind(host, port) == "domain_not_allowed"
    assert (names.asked, server.seen()) == ([], [])


async def test_resolve_is_for_one_port(roads: Roads, names: Names, server: WebServer, open_worker: OpenWorker) -> None:
    web = WebConfig(allow=("github.com",), ports=(443, 8443), resolve={"github.com:443": server.address})
    await open_worker(Broker(web, names, roads)).kind("github.com", 8443)
    assert (names.asked, roads.taken) == (["github.com"], [PUBLIC])


async def test_connections_and_refusals_are_logged_and_safe_to_print(
    worker: Worker, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "strongroom.broker")
    for host in ("github.com", "evil.com", "\x1b]0;owned\x07\n.com"):
        await worker.kind(host)
    lines = [record.getMessage() for record in caplog.records]
    assert lines[0] == f"connected github.com:443 at {PUBLIC}"
    assert "evil.com" in lines[1]
    assert "owned" in lines[2]
    assert len(lines) == 3
    assert all(line.isprintable() for line in lines)
