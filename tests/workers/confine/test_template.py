"""What the template forks: a process like one that was spawned, and nothing of another worker in it."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from supervisor.pool.child_process import ForkedWorker, spawn
from supervisor.pool.template_process import worker_command
from supervisor.pool.worker_template import WorkerTemplate
from tests.raw_worker import Forked, gone, open_worker
from tests.supervisor.command import LOOKS_IN
from workers import kernel

TELLS = """
import ctypes, os, random, resource, signal, stat, sys
from workers import kernel
from workers.confine import die_with
from workers.confine.privileges import PR_GET_DUMPABLE
from workers.confine.template import fork_workers

def number(option):
    found = ctypes.c_int()
    kernel.prctl("PR_GET", option, ctypes.addressof(found))
    return found.value

before = []

def bind():
    before.append(kernel.prctl("PR_GET_DUMPABLE", PR_GET_DUMPABLE))
    die_with(int(sys.argv[-1]))

if stat.S_ISSOCK(os.fstat(0).st_mode):
    fork_workers(bind, {})

def leads(descriptor):
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}")
    except OSError:
        return ""

like = {
    "argv": sys.argv, "environment": dict(os.environ), "directory": os.getcwd(), "umask": os.umask(0),
    "name": open("/proc/self/comm").read(), "command line": open("/proc/self/cmdline").read(),
    "leads": [os.getsid(0) == os.getpid(), os.getpgid(0) == os.getpid()], "parent": os.getppid(),
    "limits": [resource.getrlimit(each) for each in range(16)],
    "signals": [str(signal.getsignal(each)).partition(" at ")[0] for each in range(1, 32)],
    "blocked": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, ())),
    "nice": os.getpriority(os.PRIO_PROCESS, 0), "memory": open("/proc/self/oom_score_adj").read(),
    "dumpable": kernel.prctl("PR_GET_DUMPABLE", PR_GET_DUMPABLE), "dies by": number(2) or 9,
    "threads": len(os.listdir("/proc/self/task")),
    "descriptors": len([each for each in os.listdir("/proc/self/fd") if leads(each)]),
    "reaps": number(37), "children": open("/proc/thread-self/children").read(),
}
own = {"pipes": [leads(each) for each in range(3)], "chance": random.random(), "before": before}
os.write(1, repr((like, own)).encode())
"""


@contextmanager
def templates(main: str = TELLS) -> Iterator[WorkerTemplate]:
    template = WorkerTemplate(worker_command(main), None)
    yield template
    template.close()
    assert template.process is None


def told(process: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    like, own = eval(process.stdout.read())
    process.wait()
    for each in (process.stdin, process.stdout, process.stderr):
        each.close()
    return like, own


@pytest.fixture
def root(tmp_path: Path) -> Iterator[int]:
    descriptor = os.open(tmp_path, os.O_PATH | os.O_DIRECTORY)
    yield descriptor
    os.close(descriptor)


def test_a_forked_worker_is_where_a_spawned_one_is(root: int) -> None:
    with templates() as template:
        forked, _ = told(Forked(template, root))
    spawned, _ = told(spawn(worker_command(TELLS), [root]))
    assert forked == spawned


def test_two_workers_share_neither_descriptors_nor_chance(root: int) -> None:
    with templates() as template:
        (_, first), (_, second) = (told(Forked(template, root)) for _ in range(2))
    assert not {*first["pipes"]} & {*second["pipes"]} - {"/dev/null"}
    assert first["chance"] != second["chance"]


def test_nobody_of_the_same_user_looks_into_the_template(root: int) -> None:
    with templates() as template:
        _, own = told(Forked(template, root))
    assert own["before"] == [0]


@LOOKS_IN
def test_the_template_knows_nothing_of_the_roots(tmp_path: Path) -> None:
    """What it passes on it has closed, and it has opened nothing."""
    with templates("from workers.__main__ import main; main()") as template:
        for number in range(3):
            (tmp_path / str(number)).mkdir()
            with open_worker(tmp_path / str(number), template=template) as worker:
                assert worker.done("list_directory", {"path": "."})
        assert template.process is not None
        descriptors = Path(f"/proc/{template.process.pid}/fd")
        leads = sorted(os.readlink(each).partition(":")[0] for each in descriptors.iterdir())
        assert leads == ["/dev/null", "/dev/null", "socket"]
        assert Path(f"/proc/{template.process.pid}/task/{template.process.pid}/children").read_text() == ""
        assert len(list(Path(f"/proc/{template.process.pid}/task").iterdir())) == 1


def test_a_template_ends_where_its_supervisor_says_no_more(root: int) -> None:
    with templates() as template:
        told(Forked(template, root))
        assert template.process is not None
        held = os.pidfd_open(template.process.pid)
        vars(template)["_socket"].close()
        assert gone(held)
        os.close(held)
        assert template.process.wait() == 0


def test_a_template_that_has_something_open_forks_nobody(root: int) -> None:
    """Its workers would have it too, and the numbers of their own would be others."""
    worker = ForkedWorker(brokered=False)
    with templates(f"import os; os.open('/', os.O_RDONLY)\n{TELLS}") as template:
        template.ask(worker, root)
        with pytest.raises(ValueError, match="invalid literal"):
            template.answer()
    worker.close()


PROGRAM = """
import os, sys
from supervisor.pool.worker_template import WorkerTemplate
from tests.raw_worker import Forked
from supervisor.pool.template_process import worker_command
template = WorkerTemplate(worker_command(), None)
worker = Forked(template, os.open("/", os.O_PATH))
print(template.process.pid, worker.pid, flush=True)
sys.stdin.read()
"""


def test_even_a_stopped_template_and_its_workers_die_with_the_supervisor() -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    with subprocess.Popen(
        (sys.executable, "-c", PROGRAM), stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
    ) as supervisor:
        assert supervisor.stdout
        pids = [int(each) for each in supervisor.stdout.readline().split()]
        held = [os.pidfd_open(each) for each in pids]
        for each in pids:
            os.kill(each, signal.SIGSTOP)
        supervisor.kill()
        assert len(held) == 2
        assert all(gone(each) for each in held)
        for each in held:
            os.close(each)


def test_a_fork_that_the_kernel_refuses_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "CLONE", -1)
    with pytest.raises(OSError, match="not implemented"):
        kernel.sibling_fork()()
