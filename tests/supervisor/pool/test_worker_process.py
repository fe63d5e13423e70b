"""One worker's process: who spawned it, how it is ended, what is left of it."""

import errno
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import trio

from supervisor.errors import WorkerDied
from supervisor.pool.template_process import worker_command
from supervisor.pool.worker_process import WorkerProcess
from supervisor.system import descendants
from supervisor.system.descendants import Orphans
from tests.supervisor.pool.conftest import OpenPool
from tests.supervisor.pool.harness import (
    HANG,
    Unheard,
    children,
    descriptors,
    descriptors_limited,
    gone,
    kill,
    pids,
    until,
)

SUPERVISOR = """
import os, sys, trio
from supervisor.pool.worker_slot import WorkerState
from supervisor.pool.pool import Pool
from supervisor.pool.spec import ChildSpec
from workers.wire.messages import Context

async def main(root):
    pool = Pool(ChildSpec("files", Context(root)), os.open(root, os.O_PATH))
    async with trio.open_nursery() as nursery:
        await nursery.start(pool.workers.run)
        while sum(slot.state is WorkerState.READY for slot in pool.workers.slots) < 2:
            await trio.sleep(0.01)
        print(*[slot.process.pid for slot in pool.workers.slots], flush=True)

trio.run(main, sys.argv[1])
"""


def spawn(command: tuple[str, ...]) -> WorkerProcess:
    return WorkerProcess(command, 0, None, Unheard())


async def ended(code: str) -> tuple[WorkerProcess, WorkerDied]:
    """Run Python code in a worker's place to its end."""
    process = spawn(python(code))
    await process.wait()
    return process, process.reap()


def python(code: str) -> tuple[str, ...]:
    return (sys.executable, "-I", "-S", "-c", code)


async def test_workers_are_spawned_by_the_main_thread(open_pool: OpenPool) -> None:
    """PR_SET_PDEATHSIG fires when the spawning thread ends, and the threads of trio come and go."""
    async with trio.open_nursery() as nursery:
        for _ in range(8):
            nursery.start_soon(trio.to_thread.run_sync, os.getpid)
        pool = await open_pool()
    by_the_main_thread = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    assert {str(pid) for pid in pids(pool)} <= set(by_the_main_thread)


async def test_a_worker_stands_nowhere_in_particular_and_has_an_empty_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where the daemon was started is nobody's business, and can be unmounted."""
    monkeypatch.chdir("/usr")
    process, _ = await ended("import os; os.write(2, repr((os.getcwd(), {*os.environ} - {'LC_CTYPE'})).encode())")
    assert process.last_words == "('/', set())"


STOPPED_AT_ONCE = """
import os, sys, trio
from supervisor.pool.pipe_watch import PipeWatch
from supervisor.pool.worker_process import WorkerProcess
async def main():
    code = "import os, signal; os.kill(os.getpid(), signal.SIGSTOP)"
    process = WorkerProcess((sys.executable, "-I", "-S", "-c", code), os.open("/", os.O_PATH), None, PipeWatch())
    os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
    print(process.pid, flush=True)
    await trio.sleep_forever()
trio.run(main)
"""


STOPPED_TEMPLATE = """
import os, signal, sys
from supervisor.pool.child_process import ForkedWorker
from supervisor.pool.worker_template import WorkerTemplate
code = "import os, signal; os.kill(os.getpid(), signal.SIGSTOP)"
template = WorkerTemplate((sys.executable, "-I", "-S", "-c", code), None)
template.ask(ForkedWorker(brokered=False), os.open("/", os.O_PATH))
os.waitid(os.P_PID, template.process.pid, os.WSTOPPED | os.WNOWAIT)
print(template.process.pid, flush=True)
signal.pause()
"""


@pytest.mark.parametrize(
    ("program", "count"),
    [
        pytest.param(SUPERVISOR, 2, id="once they are ready"),  # a stopped process never reads its end of file
        pytest.param(STOPPED_AT_ONCE, 1, id="before they are workers"),  # and cannot ask to be ended any more
        pytest.param(STOPPED_TEMPLATE, 1, id="before it is their template"),
    ],
)
def test_even_stopped_workers_die_with_the_supervisor(program: str, count: int, tmp_path: Path) -> None:
    environment = {"PYTHONPATH": str(Path(__file__).parents[3])}
    with subprocess.Popen(
        (sys.executable, "-c", program, str(tmp_path)), stdout=subprocess.PIPE, env=environment
    ) as supervisor:
        assert supervisor.stdout
        workers = [int(pid) for pid in supervisor.stdout.readline().split()]
        watched = [os.pidfd_open(pid) for pid in workers]
        for pid in workers:
            os.kill(pid, signal.SIGSTOP)
        supervisor.kill()
    assert len(workers) == count
    left = [each for each in watched if not select.select([each], [], [], HANG)[0]]
    for each in left:
        signal.pidfd_send_signal(each, signal.SIGKILL)
    for each in watched:
        os.close(each)
    assert left == []


@pytest.mark.parametrize(
    ("code", "reason", "ordered"),
    [
        ("raise SystemExit(3)", "exited with code 3", ""),
        ("import os; os.kill(os.getpid(), 15)", "was killed by SIGTERM", ""),
        ("import os; os.kill(os.getpid(), 40)", "was killed by signal 40", ""),
        ("import os; os.kill(os.getpid(), 24)", "was killed by SIGXCPU", "resource_limit"),
    ],
)
async def test_the_way_it_ended_is_told(code: str, reason: str, ordered: str) -> None:
    _, death = await ended(code)
    assert (death.reason, death.ordered) == (reason, ordered)


async def test_the_first_reason_of_a_kill_is_the_one_told() -> None:
    process = spawn(python("input()"))
    process.kill("timeout")
    process.kill("cancelled")
    await process.wait()
    death = process.reap()
    assert death.reason == "was killed by SIGKILL (timeout)"
    assert death.ordered == "timeout"


async def test_a_kill_after_the_end_does_nothing_and_reaping_closes_every_descriptor() -> None:
    before = descriptors()
    process = spawn(python("pass"))
    await process.wait()
    process.kill("timeout")
    assert process.reap().reason == "exited with code 0"
    assert descriptors() == before


async def test_a_kill_after_the_end_does_nothing_where_no_descriptor_is_to_be_had() -> None:
    process = spawn(python("pass"))
    await process.wait()
    with descriptors_limited(0):
        process.kill("timeout")
    assert process.reap().reason == "exited with code 0"


async def test_reaping_ends_a_process_that_still_runs() -> None:
    process = spawn(python("input()"))
    assert process.reap().reason == "was killed by SIGKILL"
    assert process.pid not in children()


SETTING_UP = [("pidfd_open", 1), ("dup", 1), ("dup", 2), ("dup", 3), ("set_blocking", 1), ("set_blocking", 2)]
"""What is done for each process, and the how many-th time: its handle, its stderr, both ends of its channel."""


@pytest.mark.parametrize(("call", "time"), SETTING_UP)
async def test_a_process_that_cannot_be_set_up_is_ended(call: str, time: int, monkeypatch: pytest.MonkeyPatch) -> None:
    before, family = descriptors(), children()
    act, left = getattr(os, call), time

    def scarce(*arguments: int) -> int | None:
        nonlocal left
        left -= 1
        if not left:
            raise OSError(errno.EMFILE, "Too many open files")
        done: int | None = act(*arguments)
        return done

    with monkeypatch.context() as without:
        without.setattr(os, call, scarce)
        with pytest.raises(OSError, match="Too many open files"):
            spawn(python("input()"))
    assert (descriptors(), children()) == (before, family)


async def test_reaping_ends_the_whole_group() -> None:
    process = spawn(python("import os, time\nif os.fork(): print(flush=True); os._exit(0)\ntime.sleep(3600)"))
    await process.wait()
    members = [pid for pid in _running() if _group(pid) == process.pid and pid != process.pid]
    assert len(members) == 1
    process.reap()
    await gone(members[0])


async def test_a_worker_has_the_root_its_pipes_and_no_other_descriptor(tmp_path: Path) -> None:
    mine = os.open(tmp_path, os.O_PATH)
    os.set_inheritable(mine, True)
    code = "import os; os.write(2, ' '.join(sorted(os.listdir('/proc/self/fd'))).encode())"
    process = WorkerProcess(python(code), 1, None, Unheard())
    await process.wait()
    process.reap()
    os.close(mine)
    assert len(process.last_words.split()) == 4  # 0, 1, 2 and the listing itself


async def test_the_last_words_are_the_end_of_what_was_said() -> None:
    process, _ = await ended("import os; os.write(2, b'x' * 5000 + b'the end')")
    assert process.last_words.endswith("xthe end")
    assert len(process.last_words) == 2000


async def test_the_last_words_hold_no_control_characters() -> None:
    process, _ = await ended(r"import os; os.write(2, b'\x1b[2J\xff\r\n\xe2\x80\xaeok')")
    assert process.last_words == r"\x1b[2J\xff\r\n\u202eok"


async def test_a_process_that_cannot_be_killed_stays_our_own() -> None:
    """If it were taken for an orphan, this process would wait for its end, and everything with it."""
    known: set[int] = set()

    class Known(Orphans):
        def __init__(self) -> None:
            self._ours, self._stuck = known, set()

        def sweep(self) -> int:
            return 0

    process = WorkerProcess(python("input()"), 0, Known(), Unheard())
    wait = process._popen.wait
    vars(process)["_popen"] = _Stuck()
    death = process.reap()
    assert "cannot be killed" in death.reason
    assert process.pid in known
    wait()


class _Stuck:
    def wait(self, timeout: float) -> int:
        raise subprocess.TimeoutExpired("", timeout)


def test_a_worker_runs_without_the_users_python_set_up() -> None:
    command = worker_command()
    assert {"-I", "-S"} <= set(command)
    assert command[-1] == str(os.getpid())


def _group(pid: int) -> int:
    try:
        return os.getpgid(pid)
    except ProcessLookupError:  # somebody else's, which has ended since it was listed
        return 0


def _running() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").glob("[0-9]*")]


async def test_an_orphan_that_ends_late_is_collected_by_the_task_of_its_worker(
    orphans: Orphans, open_pool: OpenPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(descendants, "_AT_ONCE", -1.0)
    pool = await open_pool(orphans=orphans)
    command = ("/bin/sh", "-c", "sleep 60 >/dev/null & echo $!")
    orphan = int(subprocess.check_output(command))  # noqa: ASYNC221
    await until(lambda: orphan in children())
    kill(pool.workers.slots[0])
    await until(lambda: orphan not in children())
