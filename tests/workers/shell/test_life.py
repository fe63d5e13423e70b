"""The end of a shell worker: whatever ends it, nothing of it or of its commands is left."""

import os
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.forked import Forked
from tests.hostile_worker import hostile_command
from tests.raw_worker import receive, send
from tests.supervisor.command import HANG_GUARD, LOOKS_IN, Family, children
from tests.workers.shell.conftest import open_shell, propose, shell
from workers.wire import messages

SUPERVISOR = """
import sys
from pathlib import Path
import msgspec
from tests.raw_worker import receive, send
from tests.workers.shell.conftest import open_shell
from workers.wire import frames, messages
with open_shell(Path(sys.argv[1])) as worker:
    assert isinstance(worker.ready, messages.Ready), worker.ready
    send(worker.process, messages.Call(1, "run_cmd", msgspec.json.encode({"command": sys.argv[2]})))
    while not isinstance(receive(worker.process), messages.Output):
        pass
    print(worker.process.pid, flush=True)
    sys.stdin.read()
"""

COMMANDS = {
    "a plain one": "echo begun; sleep 1000",
    "one that hides": "(setsid bash -c 'trap \"\" TERM HUP INT; (sleep 1001 &); sleep 1002' &); echo begun; sleep 1000",
    "a deaf and busy one": "trap '' TERM HUP INT; echo begun; while :; do :; done",
    "a stopped one": "echo begun; kill -STOP $$",
    "a chain": "f(){ (sleep 0.01; f) & }; f; echo begun; sleep 1000",
}


class Victims(NamedTuple):
    """The processes of one worker."""

    supervisor: "subprocess.Popen[bytes]"
    stub: int
    first: int
    """PID 1 of the worker's namespace."""
    family: Family


@contextmanager
def running(root: Path, command: str) -> Iterator[Victims]:
    """Run a command in a worker of a supervisor of its own."""
    arguments, pipe = [str(root), command], subprocess.PIPE
    with ExitStack() as stack:
        supervisor = stack.enter_context(Forked(SUPERVISOR, arguments, stdin=pipe, stdout=pipe, env={}, cwd="/"))
        stack.callback(supervisor.kill)
        assert supervisor.stdout
        stub = int(supervisor.stdout.readline())
        yield Victims(supervisor, stub, children(stub)[0], Family((stub, *children(stub))))


ENDS: dict[str, Callable[[Victims], None]] = {
    "the supervisor is killed": lambda of: of.supervisor.kill(),
    "the worker is cancelled": lambda of: os.killpg(of.stub, signal.SIGKILL),
    "the stub is killed": lambda of: os.kill(of.stub, signal.SIGKILL),
    "the stub is asked to end": lambda of: os.kill(of.stub, signal.SIGTERM),
    "the worker itself is killed": lambda of: os.kill(of.first, signal.SIGKILL),
}


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("command", COMMANDS)
def test_nothing_is_left(command: str, end: str, tmp_path: Path) -> None:
    with running(tmp_path, COMMANDS[command]) as victims:
        assert len(victims.family.handles) >= 3
        ENDS[end](victims)
        assert victims.family.is_gone()


def test_the_worker_dies_with_a_stopped_supervisor(tmp_path: Path) -> None:
    with running(tmp_path, COMMANDS["a plain one"]) as victims:
        os.killpg(victims.stub, signal.SIGSTOP)
        victims.supervisor.kill()
        assert victims.family.is_gone()


def test_the_stub_ends_as_the_worker_does(tmp_path: Path) -> None:
    with open_shell(tmp_path) as worker:
        os.kill(children(worker.process.pid)[0], signal.SIGKILL)
        assert worker.process.wait(HANG_GUARD) == -signal.SIGKILL
    with open_shell(tmp_path) as worker:
        assert worker.process.stdin
        worker.process.stdin.close()
        assert worker.process.wait(HANG_GUARD) == 0


@LOOKS_IN
def test_the_stub_holds_nothing(tmp_path: Path) -> None:
    with open_shell(tmp_path) as worker:
        stub = worker.process.pid
        assert os.listdir(f"/proc/{stub}/fd") == []
        status = Path(f"/proc/{stub}/status").read_text()
        assert re.findall(r"^Cap(?:Eff|Prm):\s+(\w+)$", status, re.MULTILINE) == ["0" * 16] * 2


STATE = """
held = sorted(os.readlink(f'/proc/self/fd/{each}') for each in descriptors())
result = [held, open('/proc/self/mounts').read()]
"""


def test_a_worker_is_as_good_after_a_command_as_before(tmp_path: Path) -> None:
    with open_shell(tmp_path, command=hostile_command(category="shell")) as worker:
        before = worker.attack(STATE)
        for command in (":", "exit 1", "kill -9 $$", "(sleep 1000 &)", "nonsense", "sleep 1000 & disown", "sleep 0.2"):
            shell(worker, command)
        for commit in (True, False):
            proposed = propose(worker, f"sleep 0.2; mkdir {commit}")
            assert isinstance(worker.decide(proposed, commit=commit), messages.Done)
        after = worker.attack(STATE)
        assert children(children(worker.process.pid)[0]) == []
    assert after == before


CALLS = [
    ("run_cmd", {"command": "printf 'a\\377\\303\\244'; exit 3"}),
    ("run_cmd", {"command": "kill -SEGV $$"}),
    ("run_cmd", {"command": "yes | head -c 200000; sleep 1000"}),
    ("run_cmd", {"command": "\ud7ff\0"}),
    ("run_cmd", {"command": " "}),
    ("exec_shell", {"command": "no such thing"}),
    ("exec_shell", {"command": "bun"}),
    ("exec_shell", {"command": "ls", "args": ["x" * 1000] * 3000}),
    ("exec_shell", {"command": "ls", "args": [5]}),
]


def test_nothing_is_imported_late(tmp_path: Path) -> None:
    """It could not be: the library is not there any more."""
    modules = "result = len(sys.modules)"
    with open_shell(tmp_path, command=hostile_command(category="shell"), timeout_s=1.0) as worker:
        before = worker.attack(modules)
        for tool, arguments in CALLS:
            worker.call(tool, arguments)
        after = worker.attack(modules)
    assert after == before


def test_the_dead_that_nobody_collects_take_no_numbers(tmp_path: Path) -> None:
    with open_shell(tmp_path) as worker:
        result = shell(worker, "for i in $(seq 400); do (true &); done; sleep 0.3; (true &) && echo still")
    assert "still" in result["stdout"]


def test_cancelling_is_killing(tmp_path: Path) -> None:
    """What the pool does to the worker of a cancelled call; the answer never comes."""
    with open_shell(tmp_path) as worker:
        send(worker.process, messages.Call(1, "run_cmd", b'{"command": "echo begun; sleep 1000"}'))
        assert isinstance(receive(worker.process), messages.Output)
        family = Family(children(worker.process.pid))
        os.killpg(worker.process.pid, signal.SIGKILL)
        assert family.is_gone()
        assert receive(worker.process) is None
