"""Commands: what the sandbox and the rehearsal cost on top of the program itself.

The limit is the same program started by a Python process with an empty environment, and nothing around it. Both take
turns. What a rehearsal finds changed is committed, which waits for the disk.
"""

import subprocess
import time
from pathlib import Path
from typing import Final

import msgspec

from scripts.benchmarks.figures import Figure, Goal, at, figure
from scripts.benchmarks.pools import NOTE, settled, with_pool
from supervisor.config.config_keys import Config
from supervisor.config.settings import Settings
from supervisor.pool.pending_proposal import PendingProposal
from supervisor.pool.pool import Pool
from supervisor.pool.spec import ChildSpec
from workers.wire.messages import Context, Done, Limits

_COMMANDS: Final = (
    ("true", ("/bin/true",), Goal(5.0)),
    ("git --version", ("/usr/bin/git", "--version"), None),
    ("touch, committed", ("/usr/bin/touch", NOTE), Goal(8.0)),
)
"""A name, what is run, and what sandbox and rehearsal may cost in ms."""


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
        given = msgspec.structs.replace(settings.inputs("shell"), programs=("true", "git", "touch"))
        granted = Limits(**{name: getattr(limits, name) for name in Limits.__struct_fields__})
        return ChildSpec("shell", Context(root), limits=granted, call_timeout=limits.call_s, inputs=given)

    async def use(pool: Pool) -> None:
        await settled(pool, 2)
        for name, program, goal in _COMMANDS:
            found.extend(await _compared(pool, name, program, roots[0], goal, 30 if quick else 200))

    await with_pool(spec, use)
    return found


async def _compared(
    pool: Pool, name: str, program: tuple[str, ...], root: str, goal: Goal | None, times: int
) -> list[Figure]:
    arguments = msgspec.json.encode({"command": Path(program[0]).name, "args": program[1:]})
    bare: list[float] = []
    ours: list[float] = []
    for number in range(times + 1):
        seconds = _bare(program, root)
        began = time.perf_counter()
        proposal = await pool.propose("exec_shell", arguments)
        answer = await proposal.decide(commit=True) if isinstance(proposal, PendingProposal) else proposal
        if not isinstance(answer, Done):
            raise TypeError(answer)
        if number:  # the first round warms up
            bare.append(seconds * 1000)
            ours.append((time.perf_counter() - began) * 1000)
    limit, median = at(bare, 0.5), at(ours, 0.5)
    return [
        figure("command", f"{name}: bare (the limit)", limit, "ms", times),
        figure("command", f"{name}: sandboxed and rehearsed", median, "ms", times, limit=limit),
        figure("command", f"{name}: more than the limit", median - limit, "ms", times, goal=goal),
    ]
