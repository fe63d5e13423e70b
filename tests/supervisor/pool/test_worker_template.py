"""Pools whose workers a template forks, and what becomes of them where it fails."""

import errno
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import trio

from supervisor.pool.pool import Pool
from supervisor.pool.spec import ChildSpec
from supervisor.pool.template_process import worker_command
from supervisor.pool.worker_process import WorkerProcess
from supervisor.pool.worker_template import WorkerTemplate
from supervisor.system import descendants
from supervisor.system.descendants import Orphans
from tests.supervisor.pool.harness import (
    HANG,
    Unheard,
    children,
    descriptors,
    descriptors_limited,
    gone,
    pids,
    ready,
    until,
)
from workers.wire.messages import Context, Done

NOWHERE = ("/nonexistent/worker",)


@pytest.fixture
def root(tmp_path: Path) -> Iterator[int]:
    family, opened = children(), descriptors()
    descriptor = os.open(tmp_path, os.O_PATH | os.O_DIRECTORY)
    yield descriptor
    os.close(descriptor)
    assert (children(), descriptors()) == (family, opened)


class Templates:
    """Opens pools of real workers that are forked by one template."""

    def __init__(self, nursery: trio.Nursery, root: int, path: Path) -> None:
        self.template = WorkerTemplate(worker_command(), None, HANG)
        self._nursery, self._root, self._path = nursery, root, path
        self.pools: list[Pool] = []

    async def pool(self, command: tuple[str, ...] = NOWHERE) -> Pool:
        """Open one; workers that are spawned are of `command`."""
        spec = ChildSpec("files", Context(str(self._path)), command=command, template=self.template)
        self.pools.append(Pool(spec, self._root))
        await self._nursery.start(self.pools[-1].workers.run)
        return self.pools[-1]

    @property
    def pid(self) -> int:
        assert self.template.process is not None
        return self.template.process.pid


@pytest.fixture
async def templates(nursery: trio.Nursery, root: int, tmp_path: Path) -> AsyncIterator[Templates]:
    templates = Templates(nursery, root, tmp_path)
    yield templates
    with trio.fail_after(HANG):
        for pool in templates.pools:
            await pool.workers.close()
    templates.template.close()


async def listed(pool: Pool) -> None:
    with trio.fail_after(HANG):
        assert isinstance(await pool.call("list_directory", b'{"path": "."}', effect=False), Done)


async def test_every_worker_is_forked_and_is_this_processs_own_child(templates: Templates) -> None:
    pools = [await templates.pool() for _ in range(2)]
    for pool in pools:
        await listed(pool)
    await until(lambda: all(len(ready(pool)) == 2 for pool in pools))
    assert templates.template.forked == 4
    assert {pid for pool in pools for pid in pids(pool)} < children()
    assert all("seccomp" in slot.enforced for pool in pools for slot in pool.workers.slots)
    said = [Path(f"/proc/{pid}/status").read_text() for pool in pools for pid in pids(pool)]
    assert os.geteuid() or all("CapBnd:\t0000000000000000\n" in each for each in said)  # others may not empty it


async def test_how_a_forked_worker_ended_is_told_and_another_takes_its_place(templates: Templates) -> None:
    pool = await templates.pool()
    await listed(pool)
    (slot, *_) = pool.workers.slots
    os.kill(pids(pool)[0], signal.SIGKILL)
    await until(lambda: slot.last_death == "was killed by SIGKILL")
    await until(lambda: len(ready(pool)) == 2)
    await listed(pool)


async def test_no_template_runs_before_a_worker_is_needed(templates: Templates) -> None:
    assert templates.template.process is None
    await listed(await templates.pool())
    assert templates.template.process is not None


async def test_after_a_template_has_died_one_worker_is_spawned_and_the_next_forked_by_another(
    templates: Templates,
) -> None:
    pool = await templates.pool(worker_command())
    await until(lambda: len(ready(pool)) == 2)
    first = templates.pid
    os.kill(first, signal.SIGKILL)
    await until(lambda: Path(f"/proc/{first}/stat").read_text().split()[2] == "Z")
    pool = await templates.pool(worker_command())
    await until(lambda: len(ready(pool)) == 2)
    assert templates.template.forked == 3
    assert first not in children()
    await listed(pool)


async def test_a_template_that_does_not_answer_is_ended_and_a_worker_spawned(templates: Templates) -> None:
    pool = await templates.pool(worker_command())
    await until(lambda: len(ready(pool)) == 2)
    first = templates.pid
    os.kill(first, signal.SIGSTOP)
    vars(templates.template)["_patience"] = 0.01
    pool = await templates.pool(worker_command())
    await gone(first)
    vars(templates.template)["_patience"] = HANG
    await until(lambda: ready(pool))
    await listed(pool)


async def test_a_template_that_ends_once_it_is_asked_has_failed(templates: Templates, root: int) -> None:
    vars(templates.template)["_command"] = (sys.executable, "-I", "-S", "-c", "import os; os.read(0, 1)")
    assert await templates.template.fork(root, brokered=False) is None
    assert templates.template.process is None


async def test_the_number_of_a_template_that_has_ended_may_be_an_orphans(orphans: Orphans, root: int) -> None:
    template = WorkerTemplate((sys.executable, "-c", "pass"), orphans, HANG)
    before = set(vars(orphans)["_ours"])
    assert await template.fork(root, brokered=False) is None
    assert vars(orphans)["_ours"] == before


async def test_an_orphan_that_comes_while_a_worker_is_forked_is_ended_afterwards(orphans: Orphans, root: int) -> None:
    with orphans.expecting():
        orphan = int(subprocess.check_output(("/bin/sh", "-c", "sleep 60 >/dev/null & echo $!")))  # noqa: ASYNC221
        await until(lambda: orphan in children())
        assert orphans.sweep() == 0
        assert orphan in children()
    assert orphan not in children()


async def test_an_orphan_that_the_kernel_does_not_let_go_is_not_waited_for(
    orphans: Orphans, root: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ("/bin/sh", "-c", "sleep 60 >/dev/null & echo $!")
    orphan = int(subprocess.check_output(command))  # noqa: ASYNC221
    await until(lambda: orphan in children())
    with monkeypatch.context() as stuck:
        stuck.setattr(descendants, "_killed", lambda _pid: True)
        assert [orphans.sweep(), orphans.sweep()] == [1, 0]
    assert orphan in children()
    os.kill(orphan, signal.SIGKILL)
    await gone(orphan)
    assert orphans.sweep() == 0
    assert orphan not in children()


async def test_a_forked_worker_that_cannot_be_watched_is_ended(
    orphans: Orphans, root: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_pid: int) -> int:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    template = WorkerTemplate(worker_command(), orphans, HANG)
    worker = await template.fork(root, brokered=True)
    assert worker is not None
    os.kill(worker.pid, signal.SIGSTOP)  # it does not see the end of its input
    monkeypatch.setattr(os, "pidfd_open", refused)
    with pytest.raises(OSError, match="Too many open files"):
        WorkerProcess(worker, root, orphans, Unheard(), brokered=True)
    assert worker.pid not in children() | vars(orphans)["_ours"]
    template.close()


@pytest.mark.parametrize("collected", [False, True], ids=["by nobody else", "by Python as well"])
async def test_a_worker_that_the_kernel_lets_go_late_is_collected_then(
    orphans: Orphans, root: int, monkeypatch: pytest.MonkeyPatch, collected: bool
) -> None:
    def late(timeout: float) -> int:
        raise subprocess.TimeoutExpired("worker", timeout)

    template = WorkerTemplate(worker_command(), orphans, HANG)
    worker = await template.fork(root, brokered=False)
    assert worker is not None
    process = WorkerProcess(worker, root, orphans, Unheard())
    monkeypatch.setattr(worker, "wait", late)
    monkeypatch.setattr(os, "killpg", lambda *_: None)
    os.kill(worker.pid, signal.SIGSTOP)
    assert process.reap().reason == "cannot be killed: it is stuck in the kernel"
    assert orphans.sweep() == 0
    worker.kill()
    await gone(worker.pid)
    if collected:
        os.waitpid(worker.pid, 0)  # noqa: ASYNC222 - it has ended
    assert orphans.sweep() == 0
    assert worker.pid not in children() | vars(orphans)["_ours"]
    template.close()


async def test_a_worker_is_collected_where_the_kernel_keeps_nothing_of_children(
    templates: Templates, root: int
) -> None:
    worker = await templates.template.fork(root, brokered=False)
    assert worker is not None
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    worker.kill()
    assert worker.wait(HANG) == 0
    worker.kill()
    signal.signal(signal.SIGCHLD, before)
    worker.close()


async def test_a_template_that_never_works_is_not_tried_for_ever(templates: Templates) -> None:
    vars(templates.template)["_command"] = ("/bin/true",)
    for _ in range(3):
        await listed(await templates.pool(worker_command()))
    assert templates.template.process is None
    assert await templates.template.fork(0, brokered=False) is None


async def test_a_template_is_tried_again_after_a_while(templates: Templates) -> None:
    fields = vars(templates.template)
    fields["_command"] = ("/bin/true",)
    for _ in range(3):
        pool = await templates.pool(worker_command())
        await until(lambda: len(ready(pool)) == 2)  # noqa: B023
    fields["_command"] = worker_command()
    fields["_off_until"] = trio.current_time()
    pool = await templates.pool()
    await until(lambda: len(ready(pool)) == 2)
    assert templates.template.forked == 2


async def test_a_template_that_cannot_be_killed_is_not_waited_for(templates: Templates) -> None:
    class Stuck:
        """A process that the kernel does not let go."""

        def kill(self) -> None:
            """Nothing happens."""

        def wait(self, timeout: float) -> int:
            raise subprocess.TimeoutExpired("template", timeout)

    pool = await templates.pool(worker_command())
    await until(lambda: len(ready(pool)) == 2)
    real = templates.template.process
    assert real is not None
    vars(templates.template)["process"] = Stuck()
    templates.template.close()
    real.wait(HANG)  # its socket is closed
    pool = await templates.pool()
    await until(lambda: len(ready(pool)) == 2)


async def test_a_cancelled_start_leaves_nothing(templates: Templates, nursery: trio.Nursery, root: int) -> None:
    found = []

    async def fork() -> None:
        found.append(await templates.template.fork(root, brokered=False))

    with trio.CancelScope() as scope:
        async with trio.open_nursery() as forking:
            forking.start_soon(fork)
            await trio.testing.wait_all_tasks_blocked()
            scope.cancel()
    (worker,) = found
    assert worker is not None
    worker.kill()
    assert worker.wait(HANG) in (0, -signal.SIGKILL)
    worker.close()


async def test_a_template_is_not_at_fault_where_no_descriptor_is_to_be_had(templates: Templates, root: int) -> None:
    worker = await templates.template.fork(root, brokered=True)
    assert worker is not None
    first = templates.pid
    with descriptors_limited(0), pytest.raises(OSError, match="Too many open files"):
        await templates.template.fork(root, brokered=True)
    assert templates.pid == first
    worker.kill()
    worker.wait()
    worker.close()


async def test_a_worker_that_is_being_forked_is_no_orphan(
    orphans: Orphans, root: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    template = WorkerTemplate(worker_command(), orphans, HANG)
    answer, swept = template.answer, []

    def looked_for() -> int:
        pid = answer()
        swept.append(orphans.sweep())
        return pid

    monkeypatch.setattr(template, "answer", looked_for)
    with trio.fail_after(HANG):
        worker = await template.fork(root, brokered=False)
    assert swept == [0]
    assert worker is not None
    assert orphans.sweep() == 0
    with pytest.raises(subprocess.TimeoutExpired):
        worker.wait(0)
    orphans.release(worker.pid)
    assert orphans.sweep() == 1
    worker.close()
    template.close()
