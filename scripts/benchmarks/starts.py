"""Starts and deaths: a worker's first answer, and the next good one after a kill -9 in mid-call."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial

import trio

from scripts.benchmarks.figures import Figure, Goal, at, figure
from scripts.benchmarks.pools import NOTE, files_spec, settled, with_bench_pool, with_pool
from supervisor.errors import WorkerDied
from supervisor.pool.pool import Pool
from supervisor.pool.spec import ChildSpec
from supervisor.pool.template_process import worker_command
from supervisor.pool.worker_slot import WorkerState
from supervisor.pool.worker_template import WorkerTemplate
from workers.wire.messages import Done

_READ = f'{{"path": "{NOTE}"}}'.encode()
_ECHO = b'{"text": "x"}'


def _python(code: str) -> float:
    began = time.perf_counter()
    subprocess.run([sys.executable, "-I", "-S", "-c", code], check=True)
    return (time.perf_counter() - began) * 1e3


async def start(quick: bool) -> list[Figure]:
    """Measure from the opening of a pool to the first answer of its confined worker."""
    times = 10 if quick else 30
    bare: list[float] = []
    with_msgspec: list[float] = []
    spawned: list[float] = []
    forked: list[float] = []
    template = WorkerTemplate(worker_command(), None)
    libraries = os.path.dirname(os.path.dirname(sys.modules["msgspec"].__file__ or ""))

    began = 0.0

    def opened(by: WorkerTemplate | None, root: str) -> ChildSpec:
        nonlocal began
        began = time.perf_counter()
        return replace(files_spec(root), template=by)

    async def use(took: list[float], pool: Pool) -> None:
        answer = await pool.call("read_file", _READ, effect=False)
        assert isinstance(answer, Done), answer
        took.append((time.perf_counter() - began) * 1e3)
        await settled(pool, 2)  # so that the spare's start is not counted with the next one's

    for _ in range(times + 1):
        bare.append(_python("pass"))
        with_msgspec.append(_python(f"import sys; sys.path[:0] = [{libraries!r}]; import msgspec"))
        for took, by in ((spawned, None), (forked, template)):
            await with_pool(partial(opened, by), partial(use, took))
    template.close()
    name = "start of a worker"
    limit = at(with_msgspec[1:], 0.5)
    first_answer = "confined, to its first answer, p50"
    by_ratio = Goal(1.1, of="ratio")
    return [
        figure(name, "python -I -S -c pass", at(bare[1:], 0.5), "ms", times),
        figure(name, "the same with import msgspec (the limit)", limit, "ms", times),
        figure(
            name, f"strongroom, spawned, {first_answer}", at(spawned[1:], 0.5), "ms", times, limit=limit, goal=by_ratio
        ),
        figure(name, f"strongroom, forked, {first_answer}", at(forked[1:], 0.5), "ms", times, goal=Goal(4)),
    ]


async def recovery(quick: bool) -> list[Figure]:
    """Measure from kill -9 in mid-call to the next call's answer."""
    times = 10 if quick else 40
    seconds: list[float] = []
    killed = 0.0

    async def victim(pool: Pool) -> None:
        try:
            await pool.call("hang", b"{}", effect=True)
        except WorkerDied:
            await pool.call("echo", _ECHO, effect=False)
            seconds.append(time.perf_counter() - killed)

    async def use(pool: Pool) -> None:
        nonlocal killed
        for _ in range(times + 2):
            await settled(pool, 2)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(victim, pool)
                await trio.sleep(0.005)
                (pid,) = [
                    slot.process.pid for slot in pool.workers.slots if slot.state is WorkerState.BUSY and slot.process
                ]
                killed = time.perf_counter()
                os.kill(pid, signal.SIGKILL)

    await with_bench_pool(use)
    milliseconds = [each * 1e3 for each in seconds[2:]]
    return [
        figure(
            "recovery",
            f"kill -9 in mid-call to the next good answer, {label}",
            at(milliseconds, share),
            "ms",
            len(milliseconds),
            goal=Goal(2) if share == 0.5 else None,
        )
        for share, label in ((0.5, "p50"), (0.9, "p90"))
    ]
