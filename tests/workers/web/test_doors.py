"""Every way out that an attacker's Python could take from the web worker, and the locks that hold it.

What is tried in every worker stands in `tests/door_table.py`. Here, `line` is a connection that the broker has made,
`broker` the worker's socket to it.
"""

from collections.abc import Callable, Iterator

import pytest

from tests.door_table import DOORS, LS, S
from tests.doors import Door, Held, Target, attack, check, of, open_target
from tests.hostile_worker import hostile_command
from tests.workers.web.conftest import OpenWeb, Web

Hostile = Callable[..., Web]

LINE = """
from workers.web.deadline import Deadline
ours = context.engine._broker
broker = ours._socket
line = ours.connect('github.com', 443, Deadline(5))
there = socket.inet_aton('127.0.0.1')
elsewhere = bytes([2, 0]) + port.to_bytes(2, 'big') + there + bytes(8)
"""
CLOSED = "finally:\n    os.close(line)\n"


def on_line(code: str) -> str:
    """Return `code` with a connection to attack, which is closed afterwards."""
    return LINE + "try:\n" + "".join(f"    {each}\n" for each in code.split("\n")) + CLOSED


OWN = (
    Door("a timer of another kind", Held(web=S), "call('setitimer', 1, bytes(32), 0)"),
    # A connection that the broker made, turned elsewhere.
    Door("disconnect", Held(web=S), on_line("call('connect', line, bytes(16), 16)")),
    Door(
        "connect elsewhere",
        Held(web=LS),
        on_line(
            "try:\n    call('connect', line, bytes(16), 16)\nexcept PermissionError:\n    pass\n"
            "call('connect', line, elsewhere, 16)"
        ),
    ),
    Door("send elsewhere", Held(web=S), on_line("call('sendto', line, b'x', 1, 0, elsewhere, 16)")),
    Door("send fast elsewhere", Held(web=S), on_line("call('sendto', line, b'x', 1, 0x20000000, elsewhere, 16)")),
    Door("listen", Held(web=S), on_line("call('listen', line, 1)")),
    Door("accept", Held(web=S), on_line("call('accept4', line, 0, 0, 0x800)")),
    Door("bind", Held(web=LS), on_line("call('bind', line, elsewhere, 16)")),
    Door("shut down", Held(web=S), on_line("call('shutdown', line, 2)")),
    Door("set an option", Held(web=S), on_line("call('setsockopt', line, 1, 9, (1).to_bytes(4, 'little'), 4)")),
    Door(
        "ask for an option", Held(web=S), on_line("call('getsockopt', line, 1, 3, bytes(4), (4).to_bytes(4, 'little'))")
    ),
    Door("ask who is there", Held(web=S), on_line("call('getpeername', line, bytes(16), (16).to_bytes(4, 'little'))")),
    Door("flags of a connection", Held(web=S), on_line("fcntl.fcntl(line, fcntl.F_SETFL, 0)")),
    Door("owner of its signals", Held(web=S), on_line("fcntl.fcntl(line, fcntl.F_SETOWN, 0)")),
    Door("a copy of it", Held(web=S), on_line("os.close(os.dup(line))")),
    Door("pass a descriptor on", Held(web=S), on_line("socket.send_fds(broker, [b'x'], [line])")),
    Door("pipe it through", Held(web=S), on_line("call('sendfile', line, line, 0, 1)")),
)
"""Besides what is tried in every worker."""


@pytest.fixture
def hostile(open_web: OpenWeb) -> Hostile:
    """Return the shared web worker that lacks the given locks."""

    def web(*removed: str) -> Web:
        return open_web(command=hostile_command(*sorted(removed), category="web"))

    return web


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """What lies outside, and who listens there; there is no root."""
    base = tmp_path_factory.mktemp("web")
    (base / "room").mkdir()
    with open_target(base, base / "room") as target:
        yield target


@pytest.mark.parametrize("door", [*of("web", DOORS), *OWN], ids=lambda door: door.name)
def test_a_door_is_shut_by_each_of_its_locks_and_by_no_other(door: Door, hostile: Hostile, target: Target) -> None:
    if "namespaces" in hostile().worker.report.degraded:
        pytest.skip("no user namespaces on this machine")
    check(door, "web", lambda removed: attack(hostile(*removed).worker, door.code, target.ready()))


def test_a_connection_of_the_brokers_works(hostile: Hostile, target: Target) -> None:
    code = on_line("os.write(line, bytes([0x16]))\nresult = line > 2")
    assert attack(hostile().worker, code, target.ready()) == "did True"


def test_every_door_that_doctor_tries_is_shut(web: Web) -> None:
    assert [door.name for door in web.worker.probe() if not door.shut] == []


@pytest.mark.parametrize(("removed", "outcome"), [(("seccomp",), "passed EBADF"), (("seccomp", "descriptors"), "did")])
def test_the_worker_does_not_hold_the_root(removed: tuple[str, ...], outcome: str, hostile: Hostile) -> None:
    assert attack(hostile(*removed).worker, "os.fstat(context.root.fd)", {}).startswith(outcome)


def test_the_worker_has_nothing_but_its_pipes_and_the_broker(open_web: OpenWeb) -> None:
    fresh = open_web(command=hostile_command("seccomp", category="web"), fetch_s=6.0)
    code = "result = len(descriptors()), context.engine._broker._socket.fileno() in descriptors()"
    assert attack(fresh.worker, code, {}) == "did (6, True)"
