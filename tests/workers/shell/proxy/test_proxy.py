"""A command with the network of its profile reaches those hosts and ports through the proxy, and nothing else.

Everything is real: the worker, the proxy beside the command, the broker, TCP and TLS. The servers stand on loopback
outside of the sandbox; `resolve` of [web] says that the names are there.
"""

import os
import queue
import select
import shutil
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec
import pytest
import trio

from supervisor.broker.allowlist import NetworkAllowlist
from supervisor.broker.broker import Broker
from supervisor.categories.web import HostPort, WebConfig
from tests.authority import Authority
from tests.raw_worker import RawWorker, receive, send
from tests.supervisor.command import children
from tests.web_server import WebServer
from tests.workers.shell.conftest import open_shell, propose, python
from workers.wire import frames, messages

ALLOWED = ("allowed.example:443", "allowed.example:80", "silent.example:443", "held.example:443", "slow.example:443")


@dataclass
class Connections:
    """A broker in a thread of its own, for one worker."""

    web: WebConfig
    asked: list[str] = field(default_factory=list)
    """Names that were looked up."""
    call: int = 1
    """The one that the worker runs."""

    def __enter__(self) -> Self:
        self._ours, self.theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._started: queue.SimpleQueue[trio.lowlevel.TrioToken] = queue.SimpleQueue()
        self._thread = threading.Thread(target=trio.run, args=(self._serve,), daemon=True)
        self._thread.start()
        self._started.get()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.theirs.close()
        self._ours.shutdown(socket.SHUT_RDWR)
        self._thread.join(60)
        self._ours.close()

    async def _serve(self) -> None:
        places = [HostPort(host, int(port)) for host, port in (each.split(":") for each in ALLOWED)]
        broker = Broker(self.web, self._resolve, places=NetworkAllowlist("project", places))
        self._started.put(trio.lowlevel.current_trio_token())
        await broker.serve(self._ours, lambda: self.call)

    async def _resolve(self, host: str, _port: int) -> list[str]:
        self.asked.append(host)
        if host == "slow.example":
            await trio.sleep_forever()
        raise OSError(f"{host} is not known")


@dataclass
class World:
    """A worker whose profile names hosts, and the servers outside."""

    worker: RawWorker
    secure: WebServer
    plain: WebServer
    stray: WebServer
    """Nobody comes here."""
    held: socket.socket
    """The test itself is this server."""
    connections: Connections

    def run(self, command: str, *, network: bool = True, **more: Any) -> tuple[dict[str, Any], str]:
        """Run a command line; return the result and the note."""
        self.connections.call += 1
        answer = propose(self.worker, command, network=network, **more)
        if isinstance(answer, messages.Proposed):
            ended = self.worker.decide(answer, commit=network)
            result = msgspec.json.decode(ended.content) if network and isinstance(ended, messages.Done) else {}
            return {**result, "effects": answer.effects}, ended.note if isinstance(ended, messages.Done) else ""
        assert isinstance(answer, messages.Done), answer
        return msgspec.json.decode(answer.content), answer.note


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    base = tmp_path_factory.mktemp("shell")
    (base / "root").mkdir()
    authority = Authority()
    with ExitStack() as stack:
        secure = stack.enter_context(WebServer(authority))
        plain = stack.enter_context(WebServer(authority, plain=True))
        stray = stack.enter_context(WebServer(authority, plain=True))
        held = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        resolve = {
            "allowed.example:443": secure.address,
            "allowed.example:80": plain.address,
            "held.example:443": f"127.0.0.1:{held.getsockname()[1]}",
        }
        connections = stack.enter_context(Connections(WebConfig(resolve=resolve)))
        given: dict[str, Any] = {"network": ALLOWED, "ca_files": (str(authority.write(base / "ca.pem")),)}
        worker = stack.enter_context(open_shell(base / "root", broker_fd=connections.theirs.fileno(), **given))
        assert worker.report
        yield World(worker, secure, plain, stray, held, connections)
        assert stray.seen() == []


def connect(place: str, then: str = "") -> str:
    """Return a line of bash that says CONNECT to the proxy and shows the first line that comes back."""
    return said(f"printf 'CONNECT {place} HTTP/1.1\\r\\n\\r\\n'", then)


def said(command: str, then: str = "") -> str:
    """Return a line of bash that sends the proxy what a command prints, and shows the first line that comes back."""
    return f"p=${{https_proxy#http://}}; exec 3<>/dev/tcp/${{p%:*}}/${{p#*:}}; {command} >&3; {then} head -1 <&3"


def test_tls_goes_through(world: World) -> None:
    """From one end to the other: the proxy sees no more of it than the place."""
    if shutil.which("curl") is None:
        pytest.skip("no curl")
    result, note = world.run("curl -sS -w '%{http_code}' https://allowed.example/x")
    assert (result["stdout"], result["stderr"], note) == ("OK200", "", "")
    assert world.secure.seen()[-1].server_name == "allowed.example"


def test_a_plain_request_goes_through_as_one_of_one_connection(world: World) -> None:
    code = "import urllib.request as u; print(u.urlopen('http://allowed.example/y?z').read().decode())"
    result, _ = world.run(f'{python()} -c "{code}"')
    assert result["stdout"] == "OK\n", result
    lines = world.plain.seen()[-1].lines
    assert (lines[0], "connection: close" in lines) == ("GET /y?z HTTP/1.1", True)


DECLINED = {
    "stray.example:443": "403",
    "allowed.example:444": "403",
    "sub.allowed.example:443": "403",
    "127.0.0.1:443": "403",
    "[::1]:443": "400",
    "allowed.example": "400",
    "silent.example:443": "502",
}


def test_no_other_host_or_port_is_reached(world: World) -> None:
    """And the command is told so, and whoever reads its result."""
    command = "; ".join(f"({connect(place)})" for place in DECLINED)
    result, note = world.run(command)
    lines = result["stdout"].splitlines()
    assert [line.split()[1] for line in lines] == list(DECLINED.values()), result
    assert lines[0].endswith("Not allowed: stray.example:443. Allowed: " + ", ".join(ALLOWED) + ".")
    assert "blocked: network (stray.example:443, allowed.example:444" in note
    assert "; not reached: silent.example:443 (" in note
    assert world.connections.asked[-1:] == ["silent.example"]


def test_nothing_is_there_but_the_proxy(world: World) -> None:
    code = f"""
import socket
def tried(act, *given):
    try:
        act(*given)
        print('did')
    except OSError as error:
        print(type(error).__name__)
for family, host, port in ((2, '127.0.0.1', {world.stray.port}), (2, '127.0.0.1', 22), (2, '192.0.2.1', 80),
                           (10, '::1', {world.stray.port})):
    tried(lambda: socket.socket(family).connect((host, port)))
for kind in ((2, 1, 262), (2, 1, 132), (2, 3, 0), (16, 3, 0), (17, 3, 0), (2, 5, 0)):
    tried(socket.socket, *kind)
datagram = socket.socket(2, 2)
tried(datagram.sendto, b'x', ('192.0.2.1', 53))
tried(socket.socket().bind, ('127.0.0.1', 0))
"""
    result, _ = world.run(f"{python()} - <<'END'\n{code}\nEND")
    locked = "landlock_network" in world.worker.report.enforced
    assert locked is (result["stdout"].split()[:2] == ["PermissionError"] * 2), result
    assert len(result["stdout"].split()) == 12, result
    assert "did" not in result["stdout"].split()


def test_an_answer_for_an_earlier_command_is_dropped(world: World) -> None:
    """Whether it came before this one has asked, or after."""
    world.connections.call += 1
    world.connections.theirs.send(frames.datagram(messages.Connect("allowed.example", 80)))
    answered = select.poll()
    answered.register(world.connections.theirs, select.POLLIN)
    assert answered.poll(60_000)
    world.connections.theirs.send(frames.datagram(messages.Connect("slow.example", 443)))
    result, _ = world.run(connect("allowed.example:443", "printf 'no TLS' >&3;"))
    assert result["stdout"].split()[1] == "200", result
    assert world.secure.seen()[-1].plaintext == b"no TLS"


def test_the_proxy_is_gone_with_its_command(world: World) -> None:
    """Also where the command leaves a connection open, and somebody who waits on it."""
    result, _ = world.run(connect("allowed.example:443", "(sleep 1000 <&3 &);"))
    assert result["stdout"].split()[1] == "200", result
    assert children(children(world.worker.process.pid)[0]) == []
    assert world.secure.seen()  # which waits for the end of every connection


def test_the_proxy_holds_its_sockets_and_nothing_else(world: World) -> None:
    world.connections.call += 1
    command = connect("held.example:443", "cat <&3;")
    send(world.worker.process, messages.Call(77, "run_cmd", msgspec.json.encode({"command": command}), network=True))
    connection, _ = world.held.accept()
    connection.sendall(b"through\n")
    assert isinstance(receive(world.worker.process), messages.Output)
    proxy = children(children(world.worker.process.pid)[0])[0]  # it was started before the command
    status = dict(line.split(":\t", 1) for line in Path(f"/proc/{proxy}/status").read_text().splitlines())
    descriptors = Path(f"/proc/{proxy}/fd")  # which only root can look through: it is undumpable
    opened = {each.name: os.readlink(each) for each in descriptors.iterdir()} if os.geteuid() == 0 else {}
    connection.close()
    proposed = world.worker.answer(77)
    assert isinstance(world.worker.decide(proposed, commit=True), messages.Done)
    assert [status[name].strip() for name in ("Seccomp", "NoNewPrivs", "CapEff")] == ["2", "1", "0" * 16]
    kinds = sorted(what.partition(":")[0] for number, what in opened.items() if number not in "012")
    assert kinds == (["pipe", *["socket"] * 4] if opened else [])


def test_what_goes_up_and_down_is_counted_for_each_place(world: World) -> None:
    get = "printf 'GET http://allowed.example/%s HTTP/1.1\\r\\nHost: allowed.example\\r\\n\\r\\n'"
    result, note = world.run(
        said(get % ("a" * 1000), "cat <&3 >/dev/null;") + "; " + connect("allowed.example:443", "printf 'no TLS' >&3;")
    )
    plain, secure = sorted(result["effects"].traffic, key=lambda each: -each.up)
    assert (plain.place, secure.place, secure.up) == ("allowed.example:80", "allowed.example:443", 6)
    assert 1000 < plain.up < 1100
    assert 0 < plain.down < 1000
    assert not plain.cut
    assert note == ""


@pytest.mark.parametrize(("upload", "sent"), [(2**18, 300_000), (70_000, 100_000), (2**18, 200_000)])
def test_a_command_that_sends_more_than_it_may_is_cut(upload: int, sent: int, world: World) -> None:
    line = connect("held.example:443", f"(head -c {sent} /dev/zero >&3; cat <&3 >/dev/null) & wait;")
    world.held.settimeout(60)
    got: list[int] = []

    def take() -> None:
        connection, _ = world.held.accept()
        with connection:
            connection.settimeout(60)
            while sum(got) < min(upload, sent) and (data := connection.recv(2**16)):
                got.append(len(data))

    server = threading.Thread(target=take)
    server.start()
    result, note = world.run(line, upload=upload)
    server.join(60)
    (told,) = result["effects"].traffic
    assert (told.place, told.up, told.cut) == ("held.example:443", min(upload, sent), sent > upload)
    assert sum(got) == told.up
    assert ("held.example:443: cut, as it wanted to send more than" in note) is (sent > upload)


def test_without_a_persons_word_there_is_none(world: World) -> None:
    """What it tried is then what a person is to be asked about."""
    result, _ = world.run("env", network=False)
    assert "proxy" not in result["stdout"].lower()
    result, _ = world.run("exec 3<>/dev/tcp/127.0.0.1/80", network=False)
    assert [each.kind for each in result["effects"].refused] == ["network"]


HOSTILE = {
    "a line without end": "head -c 100000 /dev/zero | tr '\\0' a",
    "a head without end": "(echo 'CONNECT allowed.example:443 HTTP/1.1'; yes 'a: b' | head -20000)",
    "two lines in one": "printf 'GET http://allowed.example/ HTTP/1.1\\r\\nA: b\\nc: d\\r\\n\\r\\n'",
    "no request": "printf '\\0\\1\\2\\r\\n\\r\\n'",
    "the wrong scheme": "printf 'GET https://allowed.example/ HTTP/1.1\\r\\n\\r\\n'",
    "a file": "printf 'GET file:///etc/passwd HTTP/1.1\\r\\n\\r\\n'",
}


FLOOD = """
import collections, os, socket
port = int(os.environ['https_proxy'].rpartition(':')[2])
held = collections.deque(maxlen=500)
for _ in range(10_000):
    held.append(socket.socket())
    held[-1].setblocking(False)
    held[-1].connect_ex(('127.0.0.1', port))
print('still here')
"""


def test_the_harm_of_a_hostile_client_ends_at_its_command(world: World) -> None:
    """The next command finds the network as it was."""
    result, _ = world.run("; ".join(f"({said(attack)})" for attack in HOSTILE.values()))
    assert all(line.split()[1] in ("400", "431") for line in result["stdout"].splitlines()), result
    after = connect("allowed.example:443")
    result, _ = world.run(f"{python()} - <<'END'\n{FLOOD}\nEND\n{after}")
    assert [line.split()[1] for line in result["stdout"].splitlines()] == ["here", "200"], result
    result, _ = world.run(after)
    assert result["stdout"].split()[1] == "200", result
