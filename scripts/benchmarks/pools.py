"""Real pools on a directory of their own, for the benchmarks."""

import os
import tempfile
from collections.abc import Awaitable, Callable, Collection
from pathlib import Path
from typing import Final

import trio

from scripts.benchmarks.worker import MAIN
from supervisor.pool.pool import Pool
from supervisor.pool.spec import ChildSpec, Restart
from supervisor.pool.template_process import worker_command
from supervisor.pool.worker_slot import WorkerState
from supervisor.pool.worker_template import WorkerTemplate
from workers.wire.messages import Context

NOTE: Final = "note.md"
"""A small file in the root of every pool."""


def files_spec(root: str) -> ChildSpec:
    """Return the spec of the workers that people get."""
    return ChildSpec("files", Context(root))


async def with_pool(make: Callable[[str], ChildSpec], use: Callable[[Pool], Awaitable[None]]) -> None:
    """Run `use` on a pool; no worker and no file is left."""
    with tempfile.TemporaryDirectory() as root:
        Path(root, NOTE).write_text("A note.\n" * 20, encoding="utf-8")
        root_fd = os.open(root, os.O_PATH | os.O_DIRECTORY)
        try:
            pool = Pool(make(root), root_fd)
            async with trio.open_nursery() as nursery:
                await nursery.start(pool.workers.run)
                try:
                    await use(pool)
                finally:
                    await pool.workers.close()
        finally:
            os.close(root_fd)


async def with_bench_pool(use: Callable[[Pool], Awaitable[None]]) -> None:
    """Run `use` on a pool of workers that do nothing, and may die as often as it likes; forked, as the daemon's are."""
    command = worker_command(MAIN)
    template = WorkerTemplate(command, None)
    restart = Restart(intensity=10**6, first_backoff=0.001, longest_backoff=0.001)
    try:
        await with_pool(
            lambda root: ChildSpec("bench", Context(root), restart=restart, command=command, template=template), use
        )
    finally:
        template.close()


async def settled(pool: Pool, workers: int) -> list[int]:
    """Return the workers' pids once so many are ready."""
    while True:
        ready = [slot for slot in pool.workers.slots if slot.state is WorkerState.READY and slot.process]
        if len(ready) >= workers:
            return [slot.process.pid for slot in ready if slot.process]
        await trio.sleep(0.002)


def pin(pids: Collection[int], cpu: int | None) -> None:
    """Bind processes (0 is this thread) to one CPU, or with None to all that there are."""
    for pid in pids:
        os.sched_setaffinity(pid, ALL_CPUS if cpu is None else {cpu})


ALL_CPUS: Final = frozenset(os.sched_getaffinity(0))
