"""Roots that grow: listing, searching and rehearsing where there are many files, and many roots open at once."""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import msgspec
import trio

from scripts.benchmarks.figures import Figure, Goal, at, figure
from scripts.benchmarks.growth.bare_changes import exchanged
from scripts.benchmarks.growth.curves import Point, curve
from scripts.benchmarks.programs import proportional_memory
from scripts.benchmarks.steps import opened_session, with_resources
from supervisor.config.profiles import Profile, resolve
from supervisor.config.settings import Settings, load
from supervisor.pool.pending_proposal import PendingProposal
from supervisor.pool.pool import Pool
from supervisor.pool.pools import Pools
from supervisor.session.resources import SessionResources
from supervisor.session.taking_back import undoing
from supervisor.tools.approval import ApprovalDecision, ApprovalQuestion
from supervisor.undo.undo_plan import undo_plan
from workers.wire.messages import Done

_A_FOLDER: Final = 100
"""Files of one directory."""
_PROGRAMS: Final = ("true", "cat", "git", "touch", "rm", "sh")
_ROUNDS: Final = 3
"""Of changes, each with its undo: the disk is busy with what the one before has freed, now more and now less."""
_EXCHANGED: Final = "files exchanged by bare calls"
_BARE: Final = f"{_EXCHANGED}, a hundred files"
_TIMES_BARE: Final = Goal(2, of="ratio")
"""A second of ten thousand files, where the disk takes half a second for the bare calls."""
_NAP: Final = 0.002
_STALL: Final = "longest stall of others while files are changed and restored"
_LONGEST: Final = Goal(50)
"""Milliseconds."""
_ALL_ROOTS: Final = 300.0
"""MiB that all workers of fifty roots may hold."""


async def growth_roots(quick: bool) -> list[Figure]:
    """Measure roots of a thousand to three hundred thousand files."""
    sizes = (1_000, 10_000) if quick else (1_000, 30_000, 300_000)
    costs: dict[tuple[str, str], list[Point]] = {}
    ratios: list[Figure] = []
    for size in sizes:
        with tempfile.TemporaryDirectory() as home, tempfile.TemporaryDirectory() as root:
            fill(root, size)
            settings = with_programs(home)

            async def use(core: SessionResources) -> None:
                profile = resolve(core.settings, "project", root)
                measured = await _measured(core.pools(profile), size)  # noqa: B023
                changed = await _changed(core, profile, size)  # noqa: B023
                for name, (value, n) in (measured | changed).items():
                    costs.setdefault(name, []).append(Point(size, value, n))  # noqa: B023
                ratios.extend(_to_bare(changed, size))  # noqa: B023

            await with_resources(settings, use)
    stalls = costs.pop(("root", _STALL))
    bares = costs.pop(("root", _BARE))
    return [
        *(
            each
            for (benchmark, name), points in costs.items()
            for each in curve(benchmark, name, "files", "ms", points)
        ),
        *(figure("root", f"{_BARE}, {each.size:,} files", each.value, "ms", each.n) for each in bares),
        *ratios,
        *(figure("root", f"{_STALL}, {each.size:,} files", each.value, "ms", each.n, goal=_LONGEST) for each in stalls),
    ]


def _to_bare(changed: Mapping[tuple[str, str], tuple[float, int]], files: int) -> Iterator[Figure]:
    """Yield how many times what bare calls take each change and each undo takes."""
    limit = changed["root", _BARE][0]
    for (benchmark, name), (value, n) in changed.items():
        if name not in {_BARE, _STALL}:
            what = f"{name}, to bare calls, of {files:,}"
            yield figure(benchmark, what, value, "ms", n, limit=limit, goal=_TIMES_BARE)


def with_programs(home: str) -> Settings:
    """Return the settings of a home whose commands may run what the benchmarks run."""
    Path(home, "config.toml").write_text(f"[shell]\nprograms = {list(_PROGRAMS)}\n", encoding="utf-8")
    return load({"STRONGROOM_HOME": home})


def fill(root: str, files: int) -> None:
    """Fill a root with small files, in directories of a hundred, and let git know them."""
    for number in range(files):
        if number % _A_FOLDER == 0:
            folder = Path(root, f"d{number // _A_FOLDER // 100:03}", f"d{number // _A_FOLDER:05}")
            folder.mkdir(parents=True)
        folder.joinpath(f"f{number:06}.txt").write_text(f"The line of file {number}.\n", encoding="utf-8")
    git = shutil.which("git")
    if git:
        bare = {"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
        for command in (["init", "-q"], ["add", "."]):
            subprocess.run([git, "-C", root, *command], env=bare, check=True)
    os.sync()  # else the first commands share the disk with all that was just written


async def _measured(pools: Pools, files: int) -> dict[tuple[str, str], tuple[float, int]]:
    found: dict[tuple[str, str], tuple[float, int]] = {}

    async def timed(key: tuple[str, str], times: int, run: Callable[[], Awaitable[object]], units: float = 1) -> None:
        samples = []
        for _ in range(times):
            began = time.perf_counter()
            await run()
            samples.append((time.perf_counter() - began) * 1e3 / units)
        found[key] = at(samples, 0.5), times

    def call(category: str, tool: str, **arguments: str) -> Callable[[], Awaitable[object]]:
        return lambda: pools.pool(category).call(tool, msgspec.json.encode(arguments), effect=False)

    def command(*words: str) -> Callable[[], Awaitable[object]]:
        return lambda: _committed(pools.pool("shell"), words)

    thousands = files / 1000
    for category, first in (
        ("files", call("files", "list_directory", path=".")),
        ("search", call("search", "search_files", query="nothing-here", path="d000")),
        ("shell", command("true")),
    ):
        await timed(("root", f"first answer of {category}"), 1, first)
    await timed(
        ("root", "list_files without a match, a thousand files"),
        3,
        call("files", "list_files", pattern="**/*.none"),
        thousands,
    )
    await timed(
        ("root", "search without a match, a thousand files"),
        3,
        call("search", "search_files", query="absent"),
        thousands,
    )
    await timed(
        ("root", "find_files without a match, a thousand files"),
        3,
        call("search", "find_files", pattern="**/*.none"),
        thousands,
    )
    await timed(("root", "rehearsed true"), 30, command("true"))
    await timed(("root", "rehearsed git status, a thousand files"), 3, command("git", "status", "--short"), thousands)
    await timed(("root", "one changed file, committed"), 5, command("touch", "one.txt"))
    return found


async def _changed(core: SessionResources, profile: Profile, files: int) -> dict[tuple[str, str], tuple[float, int]]:
    """Measure changes of up to ten thousand files, each with its undo; and for how long nothing else could run."""

    async def approve(_question: ApprovalQuestion) -> ApprovalDecision:
        return ApprovalDecision(approved=True)

    hundreds = min(files, 10_000) / 100
    session = await opened_session(core, profile, None, approve)
    samples: dict[str, list[float]] = {}
    stalls = [0.0]
    changes = (
        ("a line appended to files", ("sh", "-c", "for each in d000/*/*; do echo more >> $each; done")),
        ("removal of files", ("rm", "-r", "d000")),
    )
    for what, command in changes * _ROUNDS:
        if what == changes[0][0]:
            samples.setdefault(_EXCHANGED, []).append(exchanged(Path(profile.root, "d000")) / hundreds)
        arguments = msgspec.json.encode({"command": command[0], "args": command[1:]}).decode()
        async with _noting(stalls):
            began = time.perf_counter()
            ended = await session.call("exec_shell", arguments)
            samples.setdefault(f"{what}, committed", []).append((time.perf_counter() - began) * 1e3 / hundreds)
        (step,) = undo_plan(core.writer.journal.of_session(session.id), (), "last", core.packs.holds)
        async with _noting(stalls):
            began = time.perf_counter()
            undone, _ = await session.undo(undoing(step, force=False), by="bench")
            samples.setdefault(f"{what}, undone", []).append((time.perf_counter() - began) * 1e3 / hundreds)
        if not (ended.ok and undone.ok):
            raise TypeError(ended, undone)
    found = {("root", f"{what}, a hundred files"): (at(each, 0.5), len(each)) for what, each in samples.items()}
    found["root", _STALL] = max(stalls), len(stalls)
    return found


@asynccontextmanager
async def _noting(stalls: list[float]) -> AsyncIterator[None]:
    """Note the milliseconds by which a task that sleeps is woken up late during the body."""

    async def sleep() -> None:
        while True:
            began = time.perf_counter()
            await trio.sleep(_NAP)
            stalls.append((time.perf_counter() - began - _NAP) * 1e3)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(sleep)
        yield
        nursery.cancel_scope.cancel()


async def _committed(pool: Pool, words: tuple[str, ...]) -> None:
    proposal = await pool.propose("exec_shell", msgspec.json.encode({"command": words[0], "args": words[1:]}))
    answer = await proposal.decide(commit=True) if isinstance(proposal, PendingProposal) else proposal
    if not isinstance(answer, Done):
        raise TypeError(answer)


async def growth_open_roots(quick: bool) -> list[Figure]:
    """Measure what the workers of one to fifty open roots hold."""
    found: list[Figure] = []
    counts = (1, 5) if quick else (1, 10, 50)
    with tempfile.TemporaryDirectory() as home, tempfile.TemporaryDirectory() as place:
        settings = with_programs(home)

        async def use(core: SessionResources) -> None:
            opened = 0
            for count in counts:
                for number in range(opened, count):
                    root = Path(place, f"root{number:03}")
                    root.mkdir()
                    await _all_workers(core.pools(resolve(core.settings, "project", str(root))))
                opened = count
                await trio.sleep(1)  # spares have started then
                name, pids = f"{count} open roots", _children(os.getpid())
                memory = sum(map(proportional_memory, pids))
                descriptors = len(os.listdir("/proc/self/fd"))
                goal = Goal(_ALL_ROOTS) if count == counts[-1] else None
                found.append(figure("open roots", f"{name}: memory of all workers, PSS", memory, "MiB", 1, goal=goal))
                found.append(figure("open roots", f"{name}: processes", len(pids), "", 1))
                found.append(figure("open roots", f"{name}: descriptors of the supervisor", descriptors, "", 1))

        await with_resources(settings, use)
    return found


async def _all_workers(pools: Pools) -> None:
    """Use a worker of each category of the profile `project`."""
    await pools.pool("files").call("list_directory", b'{"path": "."}', effect=False)
    await pools.pool("search").call("search_files", b'{"query": "absent"}', effect=False)
    await _committed(pools.pool("shell"), ("true",))


def _children(pid: int) -> list[int]:
    """Return the processes beneath one."""
    found: list[int] = []
    for task in os.listdir(f"/proc/{pid}/task"):
        below = [int(each) for each in Path(f"/proc/{pid}/task/{task}/children").read_text("ascii").split()]
        found += [each for child in below for each in (child, *_children(child))]
    return found
