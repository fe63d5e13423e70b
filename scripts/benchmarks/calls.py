"""Calls: the round trip of a small one and of a large reply, and how many fit into a second.

The limit is two Python processes that pass bytes through two pipes with os.read and os.write: no codec, no
event loop, no deadline. Peers are what the standard library offers. All take turns, so that what else the machine
does hits all alike.
"""

import multiprocessing
import os
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ProcessPoolExecutor
from fcntl import F_SETPIPE_SZ, fcntl
from multiprocessing.connection import Connection
from typing import Any, Final

import trio

from scripts.benchmarks.figures import Figure, Goal, at, figure
from scripts.benchmarks.pools import ALL_CPUS, pin, settled, with_bench_pool
from supervisor.pool.pool import Pool
from workers import kernel

_MEGABYTE: Final = 2**20
_SMALL: Final = b"x" * 64
_SMALL_ARGS: Final = b'{"text": "' + b"x" * 40 + b'"}'
_LARGE_ARGS: Final = b'{"size": 1048576}'
_WORKERS: Final = 4
_IN_FLIGHT: Final = 64

_ECHO: Final = "import os\nwhile data := os.read(0, 65536): os.write(1, data)"
_LARGE: Final = f"import os\ndata = b'x' * {_MEGABYTE}\nwhile os.read(0, 65536): os.write(1, data)"


class BarePipe:
    """A Python process at the other end of two pipes of `_MEGABYTE`; it answers with `size` bytes."""

    def __init__(self, code: str, size: int) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
        )
        assert self._process.stdin
        assert self._process.stdout
        self.pid = self._process.pid
        self._out, self._in = self._process.stdin.fileno(), self._process.stdout.fileno()
        for descriptor in (self._out, self._in):
            fcntl(descriptor, F_SETPIPE_SZ, _MEGABYTE)
        self._size = size

    def call(self) -> None:
        """Send a little, and read the whole answer."""
        os.write(self._out, _SMALL)
        left = self._size
        while left:
            left -= len(os.read(self._in, _MEGABYTE))

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        with self._process:
            pass


def _serve(connection: Connection, reply: bytes) -> None:
    while connection.recv_bytes():
        connection.send_bytes(reply)


class Peers:
    """What the standard library offers: a process behind a multiprocessing.Pipe, and an executor's."""

    def __init__(self, size: int) -> None:
        spawn = multiprocessing.get_context("spawn")
        self._ours, theirs = spawn.Pipe()
        self._process = spawn.Process(target=_serve, args=(theirs, b"x" * size), daemon=True)
        self._process.start()
        theirs.close()
        self._executor = ProcessPoolExecutor(1, mp_context=spawn)
        self._size = size
        self.pids = (self._process.pid or 0, self._executor.submit(os.getpid).result())

    def pipe(self) -> None:
        """Make one call through the pipe."""
        self._ours.send_bytes(_SMALL)
        self._ours.recv_bytes()

    def executor(self) -> None:
        """Make one call through the executor."""
        self._executor.submit(str.__mul__, "x", self._size).result()

    def close(self) -> None:
        """End the processes."""
        self._process.kill()
        self._process.join()
        self._executor.shutdown()


def _timed(call: Callable[[], object], samples: list[float], times: int) -> None:
    for _ in range(times):
        began = time.perf_counter()
        call()
        samples.append(time.perf_counter() - began)


async def _timed_pool(pool: Pool, tool: str, args: bytes, samples: list[float], times: int) -> None:
    for _ in range(times):
        began = time.perf_counter()
        await pool.call(tool, args, effect=False)
        samples.append(time.perf_counter() - began)


class _Race:
    """The limit, the peers and ours, taking turns at one kind of call."""

    def __init__(self, code: str, size: int, tool: str, args: bytes) -> None:
        self.bare = BarePipe(code, size)
        self.peers = Peers(size)
        self.tool, self.args = tool, args

    async def run(self, pool: Pool, rounds: int, times: int) -> dict[str, list[float]]:
        """Return seconds a call of each."""
        seconds: dict[str, list[float]] = {"bare": [], "pool": [], "pipe": [], "executor": []}
        for number in range(rounds + 1):
            if number == 1:  # the first round warms up
                for samples in seconds.values():
                    samples.clear()
            _timed(self.bare.call, seconds["bare"], times)
            await _timed_pool(pool, self.tool, self.args, seconds["pool"], times)
            _timed(self.peers.pipe, seconds["pipe"], times)
            _timed(self.peers.executor, seconds["executor"], times // 4)
        return seconds

    def pids(self) -> tuple[int, ...]:
        return (self.bare.pid, *self.peers.pids)

    def close(self) -> None:
        self.bare.close()
        self.peers.close()


async def _racing(race: _Race, use: Callable[[Pool], Awaitable[None]]) -> None:
    kernel.keep_heap()  # as the program does when it starts
    try:
        await with_bench_pool(use)
    finally:
        race.close()


async def round_trip(quick: bool) -> list[Figure]:
    """Measure a small call, both ends on one CPU and on two."""
    found: list[Figure] = []
    race = _Race(_ECHO, len(_SMALL), "echo", _SMALL_ARGS)
    first, *others = sorted(ALL_CPUS)

    async def use(pool: Pool) -> None:
        placements = [("one CPU", first, Goal(25))]
        if others:
            placements.insert(0, ("two CPUs", others[0], Goal(1.4, of="ratio")))
        for where, cpu, goal in placements:
            pin([0], first)
            pin([*await settled(pool, 2), *race.pids()], cpu)
            seconds = await race.run(pool, 4 if quick else 10, 200 if quick else 500)
            found.extend(_compared(f"tool-call round trip, {where}", seconds, "us", 1e6, goal, 99))

    await _racing(race, use)
    return found


async def large_reply(quick: bool) -> list[Figure]:
    """Measure a reply of 1 MiB."""
    found: list[Figure] = []
    race = _Race(_LARGE, _MEGABYTE, "large", _LARGE_ARGS)

    async def use(pool: Pool) -> None:
        seconds = await race.run(pool, 3 if quick else 6, 20 if quick else 50)
        found.extend(_compared("1 MiB reply", seconds, "ms", 1e3, Goal(0.45), 90))

    await _racing(race, use)
    return found


def _compared(
    benchmark: str, seconds: dict[str, list[float]], unit: Any, scale: float, goal: Goal, worst: int
) -> list[Figure]:
    bare = {share: at(seconds["bare"], share) * scale for share in (0.5, worst / 100)}
    found: list[Figure] = []
    for key, name in (
        ("bare", "bare pipe, no codec (the limit)"),
        ("pool", "strongroom"),
        ("pipe", "multiprocessing.Pipe"),
        ("executor", "ProcessPoolExecutor"),
    ):
        samples = seconds[key]
        for share, label in ((0.5, "p50"), (worst / 100, f"p{worst}")):
            if key in ("bare", "pool") or share == 0.5:
                found.append(
                    figure(
                        benchmark,
                        f"{name}, {label}",
                        at(samples, share) * scale,
                        unit,
                        len(samples),
                        limit=None if key == "bare" else bare[share],
                        goal=goal if key == "pool" and share == 0.5 else None,
                    )
                )
    return found


async def throughput(quick: bool) -> list[Figure]:
    """Measure calls a second with many in flight over all workers of a category."""
    rates: list[float] = []
    calls = 5_000 if quick else 20_000

    async def some(pool: Pool, times: int) -> None:
        for _ in range(times):
            await pool.call("echo", _SMALL_ARGS, effect=False)

    async def burst(pool: Pool, times: int) -> None:
        async with trio.open_nursery() as nursery:
            for _ in range(_IN_FLIGHT):
                nursery.start_soon(some, pool, times // _IN_FLIGHT)

    async def use(pool: Pool) -> None:
        while len(pool.workers.slots) < _WORKERS:  # a category starts workers only while there is work for them
            await burst(pool, 2_000)
        await settled(pool, _WORKERS)
        for _ in range(5):
            began = time.perf_counter()
            await burst(pool, calls)
            rates.append(calls // _IN_FLIGHT * _IN_FLIGHT / (time.perf_counter() - began))

    kernel.keep_heap()
    await with_bench_pool(use)
    name = f"strongroom, {_IN_FLIGHT} in flight over {_WORKERS} workers"
    return [figure("throughput", name, at(rates, 0.5), "calls/s", len(rates), goal=Goal(35_000, at_least=True))]
