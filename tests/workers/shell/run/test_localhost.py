"""A localhost of their own for commands: servers that they start are reached, and nothing else is."""

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.doors import PRELUDE, open_target
from tests.raw_worker import RawWorker
from tests.workers.shell.conftest import LIMITS, effects_of, open_shell, propose, python, shell
from tests.workers.shell.sandbox.test_locks import REHEARSED, attack
from workers.wire import messages


@pytest.fixture(scope="module")
def tester(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RawWorker]:
    """A worker whose commands have one."""
    root = tmp_path_factory.mktemp("localhost") / "project"
    root.mkdir()
    with open_shell(root, localhost=True) as opened:
        assert isinstance(opened.ready, messages.Ready), opened.ready
        yield opened


def scripted(code: str, more: str = "") -> str:
    return f"{python()} - {more} <<'END'\nimport socket\n{code}\nEND"


def served(family: str, kind: str, server: str, client: str) -> str:
    """Return a program that is a server at one address, and its client at another."""
    if kind == "SOCK_DGRAM":
        talk = "c.sendto(b'hello', there)\nprint(s.recv(9))"
    else:
        talk = "s.listen()\nc.connect(there)\nc.send(b'hello')\nprint(s.accept()[0].recv(9))"
    return scripted(
        f"s, c = (socket.socket(socket.{family}, socket.{kind}) for _ in range(2))\n"
        f"s.bind(({server!r}, 0))\nthere = ({client!r}, s.getsockname()[1])\n{talk}"
    )


SERVED = {
    "IPv4": ("AF_INET", "SOCK_STREAM", "127.0.0.1", "127.0.0.1"),
    "all addresses": ("AF_INET", "SOCK_STREAM", "0.0.0.0", "localhost"),
    "another address of it": ("AF_INET", "SOCK_STREAM", "127.1.2.3", "127.1.2.3"),
    "no address": ("AF_INET", "SOCK_STREAM", "", "0.0.0.0"),
    "IPv6": ("AF_INET6", "SOCK_STREAM", "::1", "::1"),
    "all of IPv6, by IPv4": ("AF_INET6", "SOCK_STREAM", "::", "::ffff:127.0.0.1"),
    "datagrams": ("AF_INET", "SOCK_DGRAM", "127.0.0.1", "127.0.0.1"),
}


@pytest.mark.parametrize("row", SERVED.values(), ids=SERVED)
def test_a_command_reaches_a_server_that_it_has_started(tester: RawWorker, row: tuple[str, str, str, str]) -> None:
    answer = shell(tester, f"echo > made; {served(*row)}")
    assert (answer["exit_code"], answer["stdout"]) == (0, "b'hello'\n"), answer


def test_its_names_and_addresses_are_those_of_any_machine(tester: RawWorker) -> None:
    """Runtimes try each address of a name, and servers list those that they listen on."""
    answer = shell(
        tester,
        "echo > made; "
        + scripted(
            "print(sorted({found[4][0] for found in socket.getaddrinfo('localhost', 80)}))\n"
            "print(socket.gethostbyname(socket.gethostname()), socket.if_nameindex())\n"
            "asked = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)\n"
            "asked.send(bytes((32, 0, 0, 0, 16, 0, 5, *bytes(17), 1, 0, 0, 0, 0, 0, 0, 0)))\n"
            "print(int.from_bytes(asked.recv(99)[16:20], 'little', signed=True))"
        ),
    )
    assert answer["stdout"] == "['127.0.0.1', '::1']\n127.0.0.1 [(1, 'lo')]\n-1\n", answer


ELSEWHERE = {
    "a connection": ("socket.create_connection(('192.0.2.1', 80), 5)", ["IPv4"]),
    "a connection of IPv6": ("socket.create_connection(('2001:db8::1', 80), 5)", ["IPv6"]),
    "one that is written as IPv6": ("socket.create_connection(('::ffff:192.0.2.1', 80), 5)", ["IPv6"]),
    "looking up a name": ("socket.gethostbyname('a.example')", ["IPv4"]),
    "a datagram": ("socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('192.0.2.1', 80))", []),
    "raw packets": ("socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)", []),
    "packets of an interface": ("socket.socket(socket.AF_PACKET, socket.SOCK_RAW)", ["raw packets"]),
    "a firewall's": ("socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 12)", []),
    "a way around the pair's family": ("socket.socketpair(socket.AF_INET)", []),
    "encryption by the kernel": ("socket.socket().setsockopt(6, 31, b'tls')", []),
    "packets in packets": ("socket.socket(socket.AF_INET, socket.SOCK_DGRAM).setsockopt(17, 100, 2)", []),
}


@pytest.mark.parametrize("row", ELSEWHERE.values(), ids=ELSEWHERE)
def test_nothing_else_is_reached_and_what_was_tried_is_told(tester: RawWorker, row: tuple[str, list[str]]) -> None:
    code, told = row
    refused = "grep -q -e ermitted -e unreach -e resolution -e 'not available' error"
    found = effects_of(tester, f"echo > made; {scripted(code, '2> error')}\n{refused}")
    assert (found.exit_code, [each.what for each in found.refused]) == (0, told)


def test_a_server_of_the_machine_is_not_reached(tester: RawWorker) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0)
        port = server.getsockname()[1]
        for tried in (
            f"exec 3<>/dev/tcp/127.0.0.1/{port}",
            'touch x; rm x; echo "curl: (7) Couldn\'t connect to server"; exit 7',
        ):
            answer = propose(tester, tried)
            assert isinstance(answer, messages.Done)
            assert answer.note.startswith("localhost is the command's own")
        with pytest.raises(BlockingIOError):
            server.accept()


def test_a_port_that_the_machine_has_taken_is_free(tester: RawWorker) -> None:
    """So nobody outside comes to what a command serves there."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0)
        own = served(*SERVED["IPv4"]).replace("('127.0.0.1', 0)", str(server.getsockname()))
        answer = shell(tester, f"echo > made; {own}")
        assert answer["stdout"] == "b'hello'\n", answer
        with pytest.raises(BlockingIOError):
            server.accept()


OPENED = {
    "TCP": "passed ECONNREFUSED",
    **dict.fromkeys(("IPv4 socket", "IPv6 socket", "datagram socket", "netlink socket"), "did"),
    **dict.fromkeys(("IPv4 socket, and more in the high half", "UDP", "listen on TCP"), "did"),
}


def test_no_other_door_is_open_for_it(tester: RawWorker, worker: RawWorker, tmp_path: Path) -> None:
    found = []
    for each in (tester, worker):
        with open_target(tmp_path, tmp_path) as target:
            given = "".join(f"{name} = {value!r}\n" for name, value in target.ready().items()) + PRELUDE
            found.append(attack(each, [door.code for door in REHEARSED], given))
    ends = [[line.replace("did None", "did") for line in each] for each in found]
    assert {door.name: own for door, own, usual in zip(REHEARSED, *ends, strict=True) if own != usual} == OPENED


def test_what_waits_in_sockets_counts_as_memory(tmp_path: Path) -> None:
    fill = (
        "import signal\nheld = []\n"
        "for _ in range(480):\n"
        "    s = socket.create_server(('127.0.0.1', 0))\n"
        "    held += [socket.create_connection(s.getsockname()), s.accept()[0]]\n"
        "    for end in held[-2:]:\n        end.setblocking(False)\n        try:\n"
        "            while end.send(bytes(65536)): pass\n        except BlockingIOError: pass\n"
        "signal.pause()"
    )
    with open_shell(tmp_path, msgspec.structs.replace(LIMITS, memory_mb=96), localhost=True) as own:
        answer = propose(own, f"echo > made; {scripted(fill)}")
    assert isinstance(answer, messages.Failed)
    assert (answer.kind, answer.message[:40]) == ("resource_limit", "The command used more than 96 MB of memo")


def test_a_server_ends_with_its_command(tester: RawWorker) -> None:
    serve = scripted(
        "import os, time\ns = socket.create_server(('127.0.0.1', 4321))\nos.fork() and os._exit(0)\ntime.sleep(600)"
    )
    shell(tester, f"echo > made; {serve}")
    assert shell(tester, "echo > again; exec 3<>/dev/tcp/127.0.0.1/4321")["exit_code"] == 1


def test_a_registry_on_localhost_is_asked_for_by_the_proxy(tmp_path: Path) -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    given: dict[str, Any] = {"network": ("127.0.0.1:4873",), "broker_fd": theirs.fileno()}
    with ours, theirs, open_shell(tmp_path, localhost=True, **given) as own:
        assert shell(own, "echo > made; echo [$no_proxy$NO_PROXY]", network=True)["stdout"] == "[]\n"
        tried = effects_of(own, "echo > again; exec 3<>/dev/tcp/127.0.0.1/4873")
        assert [each.what for each in tried.refused] == ["IPv4"]


def test_with_a_network_there_are_both_and_nothing_else(tmp_path: Path) -> None:
    """Connections outside are the proxy's alone, and what talks to localhost goes past it."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    tried = served(*SERVED["IPv4"]).replace(
        "\nEND",
        "\nimport os, urllib.request as u\nnames = socket.gethostname(), 'localhost', '0.0.0.0'\n"
        "print(os.environ['http_proxy'], all(map(u.proxy_bypass, names)), socket.if_nameindex()[0][1])\n"
        "for place in ('192.0.2.1', '2001:db8::1'):\n    try: socket.create_connection((place, 80), 5)\n"
        "    except OSError as error: print(type(error).__name__)\nEND",
    )
    with (
        ours,
        theirs,
        open_shell(tmp_path, localhost=True, network=("a.example:443",), broker_fd=theirs.fileno()) as own,
    ):
        answer = shell(own, f"echo > made; {tried}", network=True)
    said = answer["stdout"].split()
    assert (said[0], said[1][:17], said[2:]) == (
        "b'hello'",
        "http://127.0.0.1:",
        ["True", "lo", "OSError", "OSError"],
    ), answer
