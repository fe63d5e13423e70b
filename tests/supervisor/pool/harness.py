"""What tests of the pool look at from outside: this process's children, descriptors and memory, and a pool's state."""

import contextlib
import os
import resource
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import trio

from supervisor.pool.pending_proposal import PendingProposal
from supervisor.pool.pipe_watch import PipeWatch
from supervisor.pool.pool import Pool
from supervisor.pool.spec import Restart
from supervisor.pool.worker_process import WorkerProcess
from supervisor.pool.worker_slot import WorkerSlot, WorkerState
from supervisor.system import descendants
from workers.wire import messages

HANG = 60.0
"""Seconds after which a test that waits is stuck: no test measures time by it."""

QUICK = Restart(intensity=5, period=30.0, pause=0.1, first_backoff=0.005, longest_backoff=0.02)
"""Restarts as in production, only sooner."""

READ: list[dict[str, Any]] = [{"frame": {"id": "$ID", "ok": "hello"}}]


class Unheard(PipeWatch):
    """Watches nothing, for a process that is told nothing."""

    def add(self, descriptor: int, read: Callable[[], bool]) -> None:
        pass


async def until(claim: Callable[[], object]) -> None:
    """Return as soon as the claim holds."""
    with trio.fail_after(HANG):
        while not claim():  # noqa: ASYNC110 - what others' processes do sets no event here
            await trio.sleep(0.002)


async def gone(pid: int) -> None:
    """Return when process `pid` has ended, whoever's child it is."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    with trio.fail_after(HANG):
        await trio.lowlevel.wait_readable(descriptor)
    os.close(descriptor)


def ready(pool: Pool) -> list[WorkerSlot]:
    """Return the slots whose worker waits for a call, in the order of their start."""
    return [slot for slot in pool.workers.slots if slot.state is WorkerState.READY]


def next_lent(pool: Pool) -> WorkerProcess:
    """Return the worker that the next call will get."""
    return process_of(pool.checkout.ready[-1])


def busy(pool: Pool) -> list[WorkerSlot]:
    """Return the slots whose worker runs a call."""
    return [slot for slot in pool.workers.slots if slot.state is WorkerState.BUSY]


def pids(pool: Pool) -> list[int]:
    """Return the pids of the running workers, in the order of their slots' start."""
    return [slot.process.pid for slot in pool.workers.slots if slot.process is not None]


def restarts(pool: Pool) -> int:
    """Return how many workers have been lost."""
    return sum(slot.restarts for slot in pool.workers.slots)


def process_of(slot: WorkerSlot) -> WorkerProcess:
    """Return the running process of a slot."""
    assert slot.process is not None
    return slot.process


def kill(*slots: WorkerSlot, by: signal.Signals = signal.SIGKILL) -> None:
    """Send the workers of slots a signal."""
    for slot in slots:
        os.kill(process_of(slot).pid, by)


async def close(pool: Pool) -> None:
    """Close a pool, which takes less than for ever and leaves no worker."""
    with trio.fail_after(HANG):
        await pool.workers.close()
    assert pool.workers.slots == []


def begin_call(nursery: trio.Nursery, pool: Pool, tool: str = "ping") -> list[str]:
    """Begin a call of `tool`; return the list that will hold its answer."""
    answers: list[str] = []

    async def call() -> None:
        answers.append(await ask(pool, tool))

    nursery.start_soon(call)
    return answers


async def commit(pool: Pool, tool: str, args: bytes = b"{}", **options: Any) -> messages.Done | messages.Failed:
    """Call a tool that has an effect; commit what it proposes."""
    answer = await pool.propose(tool, args, **options)
    if isinstance(answer, PendingProposal):
        return await answer.decide(commit=True)
    assert not isinstance(answer, messages.Unrehearsable), answer
    return answer


async def ask(pool: Pool, tool: str, **options: Any) -> str:
    """Call a tool that cannot fail, as a call without effect; return its content."""
    with trio.fail_after(HANG):
        answer = await pool.call(tool, b"{}", effect=False, timeout=HANG, **options)
    assert isinstance(answer, messages.Done), answer
    return answer.content


def children() -> set[int]:
    """Return the children of this process, zombies included."""
    return {*descendants.children(os.getpid())}


def descriptors() -> dict[str, str]:
    """Return the open descriptors of this process and what they lead to."""
    found: dict[str, str] = {}
    for entry in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            found[entry.name] = os.readlink(entry)
    return {number: target for number, target in found.items() if not target.startswith("/proc/")}


def survivors(marker: Path, before: set[int]) -> list[str]:
    """Return what works in the root `marker`, as fake workers do, or has become a new child of this process."""
    found = [f"child {pid}" for pid in children() - before]
    for entry in Path("/proc").glob("[0-9]*/cwd"):
        with contextlib.suppress(OSError):
            found += [str(entry)] * (os.readlink(entry) == str(marker))
    return found


def memory_mb(field: str) -> float:
    """Return one value of /proc/self/status (VmRSS: now; VmHWM: the most since `forget_peak`)."""
    line = next(each for each in Path("/proc/self/status").read_text().splitlines() if each.startswith(field))
    return int(line.split()[1]) / 1024


def forget_peak() -> None:
    """Let VmHWM begin anew (proc(5), clear_refs)."""
    Path("/proc/self/clear_refs").write_text("5")


@contextlib.contextmanager
def descriptors_limited(allowed: int) -> Iterator[None]:
    """Let this process open no descriptor from a number on."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
