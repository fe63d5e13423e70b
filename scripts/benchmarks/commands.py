"""Commands: what the sandbox and the rehearsal cost on top of the program itself.

The limit is the same program started by a Python process with an empty environment, and nothing around it. Both take
turns. What a rehearsal finds changed is committed, which waits for the disk. `true` and git only look: on no overlay.
"""

import os
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from scripts.benchmarks.figures import Figure, Goal, at, figure
from scripts.benchmarks.pools import NOTE, settled, with_pool
from supervisor.config.config_keys import Config
from supervisor.config.settings import Settings
from supervisor.pool.pending_proposal import PendingProposal
from supervisor.pool.pool import Pool
from supervisor.pool.spec import ChildSpec
from workers.commit.staging_directory import draft
from workers.shell.copies.tree_copy import TreeCopy
from workers.tree.drafts import remove_directory
from workers.tree.root import DIRECTORY, HANDLE, closing
from workers.wire.messages import Context, Done, Limits

_FILES: Final = 20_000
"""Of the repository in which `git status` runs."""

_SUITE: Final = """
import json, os, sys
for number in range(int(sys.argv[1])):
    for folder, _, files in os.walk("0") if number % 20 == 0 else ():
        texts = [open(os.path.join(folder, name)).read() for name in files]
    with open(os.path.join(os.environ.get("TMPDIR", "/tmp"), f"strongroom-suite-{os.getpid()}"), "w") as file:
        json.dump([sorted(json.loads(json.dumps(list(range(2000)))), key=str) for _ in range(4)], file)
    os.remove(file.name)
"""
"""As a test suite: it computes, writes elsewhere, and reads 100 files in every twentieth round; 3 ms a round."""

_READER: Final = """
import os, sys
for number in range(int(sys.argv[1])):
    for folder, _, files in os.walk("0"):
        texts = [open(os.path.join(folder, name)).read() for name in files]
"""
"""What opening files costs on an overlay, at its worst: 100 files a round."""


class Program(NamedTuple):
    """A program, how often it runs, and what sandbox and rehearsal may cost."""

    name: str
    words: tuple[str, ...]
    times: int
    goal: Goal | None = None
    """In ms, beyond `share` of the bare one; or the ratio to it."""
    share: float = 1.0


def _programs(quick: bool) -> tuple[Program, ...]:
    rounds, times = (50, 3) if quick else (3000, 5)
    each = 30 if quick else 200
    return (
        Program("true", ("/bin/true",), each, Goal(7.0)),
        Program("true, on an overlay", ("/usr/bin/env", "true"), each, Goal(7.0)),
        Program("git --version", ("/usr/bin/git", "--version"), each),
        Program("touch, committed", ("/usr/bin/touch", NOTE), each, Goal(8.0)),
        Program(f"git status in {_FILES} files", ("/usr/bin/git", "status"), max(10, each // 5), Goal(8.0), 1.3),
        Program("a suite", ("/usr/bin/python3", "-I", "-c", _SUITE, str(rounds)), times, Goal(1.03, "ratio")),
        Program("100 files read, 100 times", ("/usr/bin/python3", "-I", "-c", _READER, "100"), times),
    )


def _repository(root: str) -> None:
    for number in range(_FILES):
        file = Path(root, str(number // 100), f"{number}.txt")
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"{number}\n" * 20, encoding="utf-8")
    packs_nothing = ("config", "gc.auto", "0")  # beside what is measured
    commits = ("-c", "user.name=n", "-c", "user.email=e", "commit", "-qm", "m")
    for words in (("init", "-q"), packs_nothing, ("add", "-A"), commits):
        subprocess.run(["/usr/bin/git", *words], cwd=root, check=True)


def _bare(command: tuple[str, ...], root: str) -> float:
    began = time.perf_counter()
    subprocess.run(command, cwd=root, env={}, stdin=subprocess.DEVNULL, capture_output=True, check=True)
    return time.perf_counter() - began


async def command(quick: bool) -> list[Figure]:
    """Measure each program, rehearsed in a sandbox and bare."""
    found: list[Figure] = []
    settings = Settings(Config(), Path("config.toml"), Path("/nonexistent"))
    limits = settings.limits("shell")
    roots: list[str] = []

    def spec(root: str) -> ChildSpec:
        roots.append(root)
        given = msgspec.structs.replace(
            settings.inputs("shell"),
            programs=("true", "env", "git", "touch", "python3"),
            path=(),  # the system's own, as the bare ones are
            toolchains=(),
            timeout_s=300.0,
        )
        granted = Limits(**{name: getattr(limits, name) for name in Limits.__struct_fields__})
        return ChildSpec("shell", Context(root), limits=granted, call_timeout=600.0, inputs=given)

    async def use(pool: Pool) -> None:
        await settled(pool, 2)
        _repository(roots[0])
        for program in _programs(quick):
            found.extend(await _compared(pool, program, roots[0]))
        found.extend(_copies(roots[0], 1 if quick else 5))

    await with_pool(spec, use)
    return found


def _copies(root: str, times: int) -> list[Figure]:
    """Measure the copy in which a command runs where there are no namespaces, and `cp` (the limit)."""
    ours: list[float] = []
    limits: list[float] = []
    with (
        tempfile.TemporaryDirectory(dir=Path(root).parent) as folder,
        closing(os.open(root, HANDLE)) as source,
        closing(os.open(folder, DIRECTORY)) as within,
    ):
        for number in range(times):
            limits.append(_bare(("/bin/cp", "-a", root, f"{folder}/{number}"), root) * 1000)
            began = time.perf_counter()
            copy = TreeCopy(source, 2048)
            name, top = draft(within, copy.names_in_all)
            with closing(top):
                os.mkdir("copy", dir_fd=top)
                with closing(os.open("copy", DIRECTORY, dir_fd=top)) as target:
                    copy.make(target)
            ours.append((time.perf_counter() - began) * 1000)
            remove_directory(within, name)
    limit, median = at(limits, 0.5), at(ours, 0.5)
    return [
        figure("command", f"cp -a of {_FILES} files (the limit)", limit, "ms", times),
        figure("command", f"copy of {_FILES} files for a command", median, "ms", times, limit=limit, goal=Goal(2000.0)),
    ]


async def _compared(pool: Pool, program: Program, root: str) -> list[Figure]:
    name, words, times, goal, share = program
    arguments = msgspec.json.encode({"command": Path(words[0]).name, "args": words[1:]})
    bare: list[float] = []
    ours: list[float] = []
    for number in range(times + 1):
        seconds = _bare(words, root)
        began = time.perf_counter()
        proposal = await pool.propose("exec_shell", arguments)
        answer = await proposal.decide(commit=True) if isinstance(proposal, PendingProposal) else proposal
        if not isinstance(answer, Done):
            raise TypeError(answer)
        if number:  # the first round warms up
            bare.append(seconds * 1000)
            ours.append((time.perf_counter() - began) * 1000)
    limit, median = at(bare, 0.5), at(ours, 0.5)
    more = "more than the limit" if share == 1 else f"more than {share:g} of it"
    of_ratio, of_value = (goal if goal is not None and goal.of == of else None for of in ("ratio", "value"))
    return [
        figure("command", f"{name}: bare (the limit)", limit, "ms", times),
        figure("command", f"{name}: sandboxed and rehearsed", median, "ms", times, limit=limit, goal=of_ratio),
        figure("command", f"{name}: {more}", median - share * limit, "ms", times, goal=of_value),
    ]
