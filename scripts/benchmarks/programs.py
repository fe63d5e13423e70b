"""Whole programs: what they hold in memory, and how soon the command line answers."""

import os
import subprocess
import sys
import tempfile
import time
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Final

import trio

from scripts.benchmarks.figures import Figure, Goal, at, figure
from scripts.benchmarks.pools import NOTE, files_spec, settled, with_pool
from supervisor.pool.pool import Pool

_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_MIB: Final = 2**20


def _memory(pid: int | str, name: str) -> list[Figure]:
    """Return PSS (where the kernel lets us see it) and RSS of a process."""
    found: list[Figure] = []
    with suppress(OSError):  # a worker shows its map to root alone
        found.append(figure("memory", f"{name}, PSS", proportional_memory(pid), "MiB", 1))
    resident = int(Path(f"/proc/{pid}/statm").read_text("ascii").split()[1])
    return [*found, figure("memory", f"{name}, RSS", resident * _PAGE / _MIB, "MiB", 1)]


def proportional_memory(pid: int | str) -> float:
    """Return the MiB that a process holds, pages that are shared divided by all who share them.

    Raises:
        OSError: it does not show its map to us, or is gone.
    """
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text("ascii")
    return next(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:")) / 1024


def processor_seconds(pid: int) -> float:
    """Return the seconds of a processor that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text("ascii", errors="replace").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def memory(quick: bool) -> list[Figure]:  # noqa: ARG001 - one size
    """Measure an idle worker, and the supervisor without and with the SDK."""
    found: list[Figure] = []

    async def use(pool: Pool) -> None:
        (pid, *_) = await settled(pool, 2)
        await pool.call("read_file", f'{{"path": "{NOTE}"}}'.encode(), effect=False)
        found.extend(_memory(pid, "an idle worker"))
        found.extend(_memory("self", "the supervisor"))
        from supervisor.agent.models.messages_api import messages_model

        async with aclosing(messages_model("claude-haiku-5-5", "none", "http://127.0.0.1:1")) as model:
            await model.warm()
            found.extend(_memory("self", "the supervisor with anthropic"))

    import supervisor.session.session  # what a program with a conversation has imported

    assert supervisor.session.session
    await with_pool(files_spec, use)
    return found


async def command_line(quick: bool) -> list[Figure]:
    """Measure `strongroom --help`, and the import behind it."""
    times = 5 if quick else 15
    program = Path(sys.executable).with_name("strongroom")
    importing = "import time; a = time.perf_counter(); import supervisor.cli.main; print(time.perf_counter() - a)"
    bare: list[float] = []
    whole: list[float] = []
    imported: list[float] = []
    with tempfile.TemporaryDirectory() as home:
        for _ in range(times + 1):
            bare.append(await _wall([sys.executable, "-c", "pass"], home))
            whole.append(await _wall([str(program), "--help"], home))
            done = subprocess.run([sys.executable, "-c", importing], check=True, capture_output=True)  # noqa: ASYNC221
            imported.append(float(done.stdout) * 1e3)
    name = "command line"
    limit = at(bare[1:], 0.5)
    return [
        figure(name, "python -c pass (the limit)", limit, "ms", times),
        figure(name, "strongroom --help", at(whole[1:], 0.5), "ms", times, limit=limit, goal=Goal(60)),
        figure(name, "import supervisor.cli.main", at(imported[1:], 0.5), "ms", times),
    ]


async def _wall(command: list[str], home: str) -> float:
    began = time.perf_counter()
    await trio.run_process(command, capture_stdout=True, env={"STRONGROOM_HOME": home})
    return (time.perf_counter() - began) * 1e3
