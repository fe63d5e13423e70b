"""Doors that are shut for an attacker who has taken over a command's proxy, each by every one of its locks alone.

The attacker's Python runs where the proxy would: in the process that the worker makes for it, locked in as it is.
"""

import socket
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack
from typing import Final

import pytest

from tests.door_table import LS, S
from tests.doors import PRELUDE, Door, Held, check, shared_workers
from tests.each_row import each_row
from tests.hostile_worker import hostile_command
from tests.raw_worker import RawWorker
from tests.workers.confine.test_seccomp import decided
from tests.workers.shell.conftest import Hostile, open_shell, propose
from workers.confine import landlock
from workers.confine.confinements import PROXY
from workers.confine.seccomp import ALLOW, EPERM, assemble
from workers.confine.syscalls import NUMBERS
from workers.wire import messages

TAKEN_OVER: Final = """
from tests.hostile_worker import strike
proxies = sys.modules["workers.shell.proxy.proxy_process"]
class Attacker:
    def __init__(self, listener, broker, places, tell, counts, upload):
        self.tell = tell
    def serve(self):
        self.tell(strike(attack, {}))
proxies.Proxy = Attacker
proxy = proxies.ProxyProcess(context.engine, context.engine.network)
os.wait()
result = proxy.declined()[0]
proxy.close()
"""

LACKING: Final = """
proxies, landlock = sys.modules["workers.shell.proxy.proxy_process"], sys.modules["workers.confine.landlock"]
was, landlock.abi = landlock.abi, lambda: version
try:
    proxies.ProxyProcess(context.engine, context.engine.network)
except proxies.ProxyUnavailable as error:
    result = error.feature
landlock.abi = was
os.wait()
"""
"""A kernel with an older Landlock, for a moment."""

DOORS = (
    Door("read a file", Held(proxy=LS), "open('/etc/hostname')"),
    Door("write in the root", Held(proxy=LS), "open('/.held/made', 'w')"),
    Door("list a directory", Held(proxy=LS), "os.listdir('/etc')"),
    Door("execute", Held(proxy=LS), "execute('/bin/true')"),
    Door("fork", Held(proxy=S), "in_a_child(os.getpid)"),
    Door("signal the worker", Held(proxy=LS), "os.kill(1, 0)"),
    Door("connect past the broker", Held(proxy=LS),
        "past(errno.ECONNREFUSED, socket.socket().connect, ('127.0.0.1', 9))"),
    Door("datagram", Held(proxy=S), "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).close()"),
    Door("Unix socket", Held(proxy=S), "socket.socket(socket.AF_UNIX).close()"),
    Door("user namespace", Held(proxy=S), "call('unshare', 0x10000000)"),
    Door("mount", Held(proxy=LS), "call('mount', b'x', b'/tmp', b'tmpfs', 0, 0)", as_root=True),
    Door("read the worker's memory", Held(proxy=S), "call('process_vm_readv', os.getpid(), 0, 0, 0, 0, 0)"),
    Door("executable memory", Held(proxy=S), "mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_EXEC).close()"),
)  # fmt: skip


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hostile]:
    """Return the shared worker with a network that lacks the given locks, as its proxy does."""
    root = tmp_path_factory.mktemp("proxy") / "root"
    root.mkdir()
    with ExitStack() as stack:
        _ours, theirs = (stack.enter_context(each) for each in socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET))

        def opened(*removed: str) -> AbstractContextManager[RawWorker]:
            command = hostile_command(*removed, category="shell")
            return open_shell(root, command=command, network=("a.example:443",), broker_fd=theirs.fileno())

        yield from shared_workers(opened)


def attacked(worker: RawWorker, code: str, **given: str | int) -> str:
    answer = worker.attack(code, **given)
    assert answer.startswith("did '"), answer
    return answer[len("did '") : -1]


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.name)
def test_a_door_is_shut_by_each_of_its_locks_and_by_no_other(door: Door, hostile: Hostile) -> None:
    check(door, "proxy", lambda removed: attacked(hostile(*removed), TAKEN_OVER, attack=PRELUDE + door.code))


@pytest.mark.parametrize(
    ("asked", "answer"), [("'PR_GET_DUMPABLE', 3", 0), ("'PR_GET_NO_NEW_PRIVS', 39", 1)], ids=["dumpable", "privileges"]
)
def test_nobody_traces_it_and_it_gains_nothing_by_executing(asked: str, answer: int, hostile: Hostile) -> None:
    assert attacked(hostile(), TAKEN_OVER, attack=f"result = kernel.prctl({asked})") == f"did {answer}"


@pytest.mark.parametrize(("feature", "since"), landlock.PARTS)
def test_without_a_part_of_landlock_there_is_no_proxy(feature: str, since: int, hostile: Hostile) -> None:
    assert attacked(hostile(), LACKING, version=since - 1) == feature


EXCHANGE: Final = """
landlock = sys.modules["workers.confine.landlock"]
landlock.abi, landlock.was = getattr(landlock, "was", lambda: 1), landlock.abi
result = "exchanged"
"""
"""Puts the kernel's Landlock in place of an old one, or the other way round."""


def test_a_command_that_may_use_the_network_does_not_run_without_its_proxy(hostile: Hostile) -> None:
    worker = hostile()
    assert attacked(worker, EXCHANGE) == "exchanged"
    answer = propose(worker, "true", network=True)
    assert attacked(worker, EXCHANGE) == "exchanged"
    assert isinstance(answer, messages.Failed)
    assert "the proxy cannot be locked in" in answer.message


@each_row("machine", NUMBERS)
@each_row(
    ("call", "arguments", "verdict"),
    [
        ("recvfrom", (5, 0, 1, 0, 0, 0), ALLOW),
        ("recvfrom", (5, 0, 1, 0, 1, 1), EPERM),
        ("sendto", (5, 0, 1, 0, 0, 0), ALLOW),
        ("sendto", (5, 0, 1, 0, 1, 16), EPERM),
        ("connect", (5, 1, 16), EPERM),
        ("bind", (5, 1, 16), EPERM),
        ("sendmsg", (5, 1, 0), EPERM),
    ],
)
def test_no_call_of_it_takes_an_address(machine: str, call: str, arguments: tuple[int, ...], verdict: int) -> None:
    for writable in (True, False):
        program = assemble(PROXY.calls(writable=writable), machine)
        assert decided(program, machine, call, *arguments) == verdict
