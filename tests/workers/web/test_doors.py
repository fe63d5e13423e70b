"""Every way out that an attacker's Python could take from the web worker, and the locks that hold it.

A row's door must be refused by the whole confinement, by each of its locks alone (all its other locks taken out of
the worker), and must open when all of its locks are out: so each lock has a test that fails without it. `line` is
a connection that the broker has made, `broker` the worker's socket to it.
"""

import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.hostile_worker import hostile_command
from tests.workers.web.conftest import OpenWeb, Web
from workers import wire

Hostile = Callable[..., Web]
Given = dict[str, str | int]

LANDLOCK = ("landlock",)
SECCOMP = ("seccomp",)
BOTH = ("landlock", "seccomp")
WALLS = ("landlock", "seccomp", "namespaces")

LINE = """
from workers.web.deadline import Deadline
ours = room.engine._client._broker
broker = ours._socket
line = ours.connect('github.com', 443, Deadline(5))
there = socket.inet_aton('127.0.0.1')
elsewhere = bytes([2, 0]) + port.to_bytes(2, 'big') + there + bytes(8)
"""
CLOSED = "finally:\n    os.close(line)\n"

NOWHERE = "passed ENETUNREACH"
"""How the network namespace says no: there is no way from it to anywhere."""


class Door(NamedTuple):
    name: str
    locks: tuple[str, ...]
    code: str


def on_line(code: str) -> str:
    """Return `code` with a connection to attack, which is closed afterwards."""
    return LINE + "try:\n" + "".join(f"    {each}\n" for each in code.split("\n")) + CLOSED


DOORS = [
    # Files: there are none.
    Door("read a file", BOTH, "result = open(outside + '/secret').read()"),
    Door("read a file by openat2", BOTH, "call('openat2', -100, (outside + '/secret').encode(), bytes(24), 24)"),
    Door("create a file", BOTH, "open(outside + '/new', 'x').close()"),
    Door("list a directory", BOTH, "result = os.listdir(outside)"),
    Door("list the root", BOTH, "result = os.listdir('/')"),
    Door("a device", BOTH, "os.close(os.open('/dev/null', os.O_RDWR))"),
    Door("its own memory", BOTH, "os.close(os.open('/proc/self/mem', os.O_RDWR))"),
    Door("ask about a file", SECCOMP, "os.stat(outside + '/secret')"),
    Door("change a mode", SECCOMP, "os.chmod(outside + '/secret', 0o600)"),
    Door("remove a file", BOTH, "os.unlink(outside + '/secret')"),
    Door("file in memory", SECCOMP, "os.close(os.memfd_create('x'))"),
    Door("watch files", SECCOMP, "call('inotify_init1', 0)"),
    # Programs, processes and memory.
    Door("execute", BOTH, "os.waitpid(os.posix_spawn('/bin/true', ['true'], {}), 0)"),
    Door("fork", SECCOMP, "child = os.fork()\nif child == 0:\n    os._exit(0)\nos.waitpid(child, 0)"),
    Door(
        "thread",
        SECCOMP,
        "child = threading.Thread(target=int)\ntry:\n    child.start()\n"
        "except RuntimeError:\n    raise PermissionError(errno.EPERM, 'no thread')\nchild.join()",
    ),
    Door("executable memory", SECCOMP, "mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_EXEC)"),
    Door("signal its parent", BOTH, "os.kill(os.getppid(), 0)"),
    Door("hold its parent", SECCOMP, "os.close(os.pidfd_open(os.getppid()))"),
    Door("a timer of another kind", SECCOMP, "call('setitimer', 1, bytes(32), 0)"),
    # Sockets of its own.
    Door("IPv4 socket", SECCOMP, "socket.socket(socket.AF_INET).close()"),
    Door("IPv6 socket", SECCOMP, "socket.socket(socket.AF_INET6).close()"),
    Door("Unix socket", SECCOMP, "socket.socket(socket.AF_UNIX).close()"),
    Door("netlink socket", SECCOMP, "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW).close()"),
    Door("pair of sockets", SECCOMP, "[each.close() for each in socket.socketpair()]"),
    Door("io_uring", SECCOMP, "call('io_uring_setup', 0, 0)"),
    Door("TCP of its own", WALLS, "socket.socket().connect(('127.0.0.1', port))"),
    Door(
        "UDP of its own",
        ("seccomp", "namespaces"),
        "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', port))",
    ),
    Door("Unix socket with a path", SECCOMP, "socket.socket(socket.AF_UNIX).connect(path)"),
    # A connection that the broker made, turned elsewhere.
    Door("disconnect", SECCOMP, on_line("call('connect', line, bytes(16), 16)")),
    Door(
        "connect elsewhere",
        BOTH,
        on_line(
            "try:\n    call('connect', line, bytes(16), 16)\nexcept PermissionError:\n    pass\n"
            "call('connect', line, elsewhere, 16)"
        ),
    ),
    Door("send elsewhere", SECCOMP, on_line("call('sendto', line, b'x', 1, 0, elsewhere, 16)")),
    Door("send fast elsewhere", SECCOMP, on_line("call('sendto', line, b'x', 1, 0x20000000, elsewhere, 16)")),
    Door("listen", SECCOMP, on_line("call('listen', line, 1)")),
    Door("accept", SECCOMP, on_line("call('accept4', line, 0, 0, 0x800)")),
    Door("bind", BOTH, on_line("call('bind', line, elsewhere, 16)")),
    Door("shut down", SECCOMP, on_line("call('shutdown', line, 2)")),
    Door("set an option", SECCOMP, on_line("call('setsockopt', line, 1, 9, (1).to_bytes(4, 'little'), 4)")),
    Door("ask for an option", SECCOMP, on_line("call('getsockopt', line, 1, 3, bytes(4), (4).to_bytes(4, 'little'))")),
    Door("ask who is there", SECCOMP, on_line("call('getpeername', line, bytes(16), (16).to_bytes(4, 'little'))")),
    Door("flags of a connection", SECCOMP, on_line("fcntl.fcntl(line, fcntl.F_SETFL, 0)")),
    Door("owner of its signals", SECCOMP, on_line("fcntl.fcntl(line, fcntl.F_SETOWN, 0)")),
    Door("a copy of it", SECCOMP, on_line("os.close(os.dup(line))")),
    Door("pass a descriptor on", SECCOMP, on_line("socket.send_fds(broker, [b'x'], [line])")),
    Door("pipe it through", SECCOMP, on_line("call('sendfile', line, line, 0, 1)")),
]

LOCKS = [(door, lock) for door in DOORS for lock in door.locks]


@pytest.fixture
def hostile(open_web: OpenWeb) -> Hostile:
    """Return the shared web worker that lacks the given locks."""

    def web(*removed: str) -> Web:
        return open_web(command=hostile_command(*sorted(removed), category="web"))

    return web


@pytest.fixture
def target(tmp_path: Path) -> Iterator[Given]:
    """What lies outside, and who listens there."""
    (tmp_path / "secret").write_text("swordfish")
    path = str(tmp_path / "socket")
    with socket.create_server(("127.0.0.1", 0)) as tcp, socket.socket(socket.AF_UNIX) as by_path:
        by_path.bind(path)
        by_path.listen()
        yield {"outside": str(tmp_path), "path": path, "port": tcp.getsockname()[1]}


def attacked(web: Web, code: str, target: Given) -> str:
    answer = web.worker.call("attack", {"code": code, "given": target})
    assert isinstance(answer, wire.Done), answer
    return answer.content


def is_shut(outcome: str) -> bool:
    return outcome.startswith("refused ") or outcome == NOWHERE


@pytest.mark.parametrize("door", DOORS, ids=[door.name for door in DOORS])
def test_the_confined_worker_finds_the_door_shut(door: Door, hostile: Hostile, target: Given) -> None:
    assert attacked(hostile(), door.code, target).startswith("refused ")


@pytest.mark.parametrize(("door", "lock"), LOCKS, ids=[f"{door.name}, {lock}" for door, lock in LOCKS])
def test_each_lock_holds_the_door_alone(door: Door, lock: str, hostile: Hostile, target: Given) -> None:
    others = [other for other in door.locks if other != lock]
    outcome = attacked(hostile(*others), door.code, target)
    if lock == "namespaces" and "namespaces" in degraded(hostile(*others)):
        pytest.skip("no user namespaces on this machine")
    assert is_shut(outcome)


@pytest.mark.parametrize("door", DOORS, ids=[door.name for door in DOORS])
def test_the_door_opens_without_its_locks(door: Door, hostile: Hostile, target: Given) -> None:
    assert not is_shut(attacked(hostile(*door.locks), door.code, target))


def degraded(web: Web) -> tuple[str, ...]:
    assert isinstance(web.worker.ready, wire.Ready)
    return web.worker.ready.degraded


def test_a_connection_of_the_brokers_works(hostile: Hostile, target: Given) -> None:
    code = on_line("os.write(line, bytes([0x16]))\nresult = line > 2")
    assert attacked(hostile(), code, target) == "did True"


def test_every_door_that_doctor_tries_is_shut(web: Web) -> None:
    assert [door.name for door in web.worker.probe() if not door.shut] == []


@pytest.mark.parametrize(("removed", "outcome"), [(("seccomp",), "passed EBADF"), (("seccomp", "descriptors"), "did")])
def test_the_worker_does_not_hold_the_root(removed: tuple[str, ...], outcome: str, hostile: Hostile) -> None:
    assert attacked(hostile(*removed), "os.fstat(room.root.fd)", {}).startswith(outcome)


def test_the_worker_has_nothing_but_its_pipes_and_the_broker(open_web: OpenWeb) -> None:
    fresh = open_web(command=hostile_command("seccomp", category="web"), fetch_s="6")
    code = "result = len(descriptors()), room.engine._client._broker._socket.fileno() in descriptors()"
    assert attacked(fresh, code, {}) == "did (6, True)"
