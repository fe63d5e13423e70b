"""A worker never outlives its supervisor, whatever it is doing when that is killed."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from supervisor.pool.template_process import worker_command
from tests.hostile_worker import hostile_command
from tests.raw_worker import gone, open_worker, receive
from tests.supervisor.command import HANG_GUARD
from workers.confine.privileges import ORPHAN

SUPERVISOR = """
import sys
sys.path[:0] = sys.argv[1].split(":")
from pathlib import Path
import msgspec
from tests.raw_worker import open_worker, receive, send
from tests.hostile_worker import hostile_command
from workers.wire import frames, messages
root, code, *removed = sys.argv[2:]
with open_worker(Path(root), command=hostile_command(*removed)) as worker:
    assert isinstance(worker.ready, messages.Ready), worker.ready
    if code:
        code = "context.output('begun')\\n" + code
        send(worker.process, messages.Call(1, "attack", msgspec.json.encode({"code": code})))
        assert isinstance(receive(worker.process), messages.Output)
    print(worker.process.pid, flush=True)
    sys.stdin.read()
"""


class Activity(NamedTuple):
    name: str
    code: str
    stopped: bool = False


ACTIVITIES = [
    Activity("idle", ""),
    Activity("spinning", "while True: pass"),
    Activity("blocked", "threading.Event().wait()"),
    Activity("busy", "while True: os.listdir(context.root.fd) if 0 else os.getrandom(4096)"),
    Activity("stopped", "", stopped=True),
    Activity("stopped while spinning", "while True: pass", stopped=True),
]


@contextmanager
def supervised(root: Path, code: str, *removed: str) -> Iterator[tuple["subprocess.Popen[bytes]", int, int]]:
    """Start a process that supervises one worker; yield it, the worker's pid, and a descriptor of the worker."""
    path = ":".join(sys.path)
    command = [sys.executable, "-I", "-S", "-c", SUPERVISOR, path, str(root), code, *removed]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as supervisor:
        assert supervisor.stdout
        worker = int(supervisor.stdout.readline())
        held = os.pidfd_open(worker)
        try:
            yield supervisor, worker, held
        finally:
            supervisor.kill()
            if not gone(held, 0):
                signal.pidfd_send_signal(held, signal.SIGKILL)
            os.close(held)


@pytest.mark.parametrize("activity", ACTIVITIES, ids=[activity.name for activity in ACTIVITIES])
def test_the_worker_dies_with_its_supervisor(activity: Activity, tmp_path: Path) -> None:
    with supervised(tmp_path, activity.code) as (supervisor, worker, held):
        if activity.stopped:
            os.kill(worker, signal.SIGSTOP)
        supervisor.kill()
        supervisor.wait()
        assert gone(held)


def test_a_spinning_worker_lives_on_without_this_lock(tmp_path: Path) -> None:
    with supervised(tmp_path, "while True: pass", "die_with", "parent_death") as (supervisor, _, held):
        supervisor.kill()
        supervisor.wait()
        assert not gone(held, 100)


def test_a_worker_that_would_outlive_its_supervisor_is_refused(tmp_path: Path) -> None:
    with open_worker(tmp_path, command=hostile_command("die_with")) as worker:
        assert worker.refusal.missing == "parent_death"


UNSHARE = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child"]
ORPHANS = {
    "supervisor 0": [*worker_command()[:-1], "0"],
    "supervisor 1": [*worker_command()[:-1], "1"],
    "its supervisor's supervisor": [*worker_command()[:-1], str(os.getppid())],
    "another PID namespace, where getppid(2) is 0": [*UNSHARE, *worker_command()],
}


@pytest.mark.parametrize("command", ORPHANS.values(), ids=ORPHANS)
def test_a_worker_whose_supervisor_is_gone_or_in_another_namespace_ends_at_once(command: list[str]) -> None:
    if command[0] == "unshare" and subprocess.run([*UNSHARE, "true"], check=False, capture_output=True).returncode:
        pytest.skip("no user namespaces, or no unshare(1), on this machine")
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert receive(process) is None
        assert process.wait(HANG_GUARD) == ORPHAN
