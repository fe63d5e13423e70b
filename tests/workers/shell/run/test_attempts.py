"""Sockets that a command tries to open are told with its effects; telling changes nothing of what it may do."""

import socket
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest

from supervisor.pool.template_process import worker_command
from tests.raw_worker import RawWorker
from tests.workers.shell.conftest import LIMITS, effects_of, open_shell, propose, python
from workers.changes.effects import ATTEMPTS, Effects
from workers.wire import messages

MADE = "made"
"""A file that each command leaves, so that there is something to be decided about."""


def effects(worker: RawWorker, command: str) -> Effects:
    """Return what a command would do and tried to; nothing of it is kept."""
    return effects_of(worker, f"echo > {MADE}; {command}")


def scripted(code: str) -> str:
    return f"{python()} - <<'END'\n{code}\nEND"


def each_socket(*families: int) -> str:
    return scripted(f"""
import socket
for family in {families}:
    try:
        socket.socket(family)
    except PermissionError:
        continue
    open('a socket', 'w') if family != 1 else None
""")


class Row(NamedTuple):
    command: str
    refused: list[tuple[str, int]]


SOCKETS = {
    "nothing": Row("true", []),
    "a connection by the shell": Row("exec 3<>/dev/tcp/127.0.0.1/80", [("IPv4", 1)]),
    "several kinds, in the order of the first try": Row(
        each_socket(10, 2, 16, 17, 10), [("IPv6", 2), ("IPv4", 1), ("raw packets", 1)]
    ),
    "one that is no network of people": Row(each_socket(38), [("address family 38", 1)]),
    "one of this machine, and one to the kernel": Row(each_socket(1, 16), []),
    "looking up a name": Row(
        scripted("import socket\ntry: socket.gethostbyname('a.example')\nexcept OSError: pass"), [("IPv4", 1)]
    ),
}


def as_tuples(found: Effects) -> list[tuple[str, int]]:
    return [(each.what, each.count) for each in found.refused]


@pytest.mark.parametrize("row", SOCKETS.values(), ids=SOCKETS)
def test_a_socket_is_refused_and_told(worker: RawWorker, row: Row) -> None:
    found = effects(worker, row.command)
    assert (as_tuples(found), found.totals) == (row.refused, {"added": 1})


def test_a_command_that_changes_nothing_ends_at_once_with_a_remark(worker: RawWorker) -> None:
    answer = propose(worker, "exec 3<>/dev/tcp/127.0.0.1/80")
    assert isinstance(answer, messages.Done)
    assert answer.note == "blocked: network (IPv4)"


def test_the_list_is_bounded(worker: RawWorker) -> None:
    found = effects(worker, each_socket(*range(100, 200)))
    assert (len(found.refused), found.refused_left_out) == (ATTEMPTS, 100 - ATTEMPTS)


THREADS = """
import signal, socket, threading
signal.signal(signal.SIGALRM, lambda *_: None)
signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
def work(number):
    for count in range(200):
        open(f'{number}-{count}', 'w').close()
        try: socket.socket()
        except OSError: pass
threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
for each in threads: each.start()
for each in threads: each.join()
"""


def test_signals_and_threads_lose_nothing(worker: RawWorker) -> None:
    found = effects(worker, scripted(THREADS))
    assert ([each.what for each in found.refused], found.totals) == (["IPv4"], {"added": 801})


CONNECTS = ": 3<> /dev/tcp/127.0.0.1/1"
ENDS = {
    "by its exit": (f"(while :; do {CONNECTS}; done) 2> /dev/null & :", ("",)),
    "by its time": (f"while :; do {CONNECTS}; done 2> /dev/null", ("timeout",)),
    "by its numbers": (
        f"f() {{ {CONNECTS}; f & f & }}; f 2> /dev/null; while :; do :; done", ("resource_limit", "timeout"),
    ),
}  # fmt: skip
"""A command, and of which kind its failure is."""


def test_whoever_asks_without_end_ends_like_anybody_else(tmp_path: Path) -> None:
    with open_shell(tmp_path, timeout_s=2.0) as flooded:
        for command, kinds in ENDS.values():
            answer = propose(flooded, f"echo > {MADE}; {command}")
            assert getattr(answer, "kind", "") in kinds, answer
            if isinstance(answer, messages.Proposed):
                flooded.decide(answer, commit=False)
        assert as_tuples(effects(flooded, "true")) == []


ASKED_ALREADY = """
import os, signal
from workers import kernel
from workers.__main__ import main
from workers.confine import denylist, privileges, seccomp
privileges.no_new_privs()
listener = seccomp.install_with_listener(denylist.assemble((), kernel.MACHINE))
if os.fork() == 0:
    privileges.die_with(os.getppid())
    privileges.keep_only((listener,))
    signal.pause()
main()
"""
"""As in a container whose own manager is asked: a process has one listener at most."""


def test_with_nobody_to_ask_a_command_is_held_all_the_same(tmp_path: Path) -> None:
    with open_shell(tmp_path, command=worker_command(ASKED_ALREADY), forked=False) as alone:
        found = effects(alone, each_socket(2, 10, 16))
    assert (found.refused, found.totals) == ((), {"added": 1})


def test_without_a_listener_to_send_a_command_is_held_all_the_same(tmp_path: Path) -> None:
    few = msgspec.structs.replace(LIMITS, open_files=64)
    one, other = socket.socketpair()
    with one, other, Path("/dev/null").open("rb") as file, open_shell(tmp_path, few) as worker:
        socket.send_fds(one, [b"x"], [file.fileno()] * (few.open_files + 1))  # on the way as long as nobody takes them
        found = effects(worker, each_socket(2, 10, 16))
    assert (found.refused, found.totals) == ((), {"added": 1})
