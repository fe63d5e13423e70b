"""Batches: one to sixty-four conversations at a time, each with a tool call, on this disk and on one that is slow.

A slow disk is this one, and some milliseconds in each sync of the daemon and of the batch; where no C compiler makes
that library, its figures are left out.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

import msgspec

from scripts.benchmarks.figures import Figure, Goal, figure
from scripts.benchmarks.growth.model_program import unhurried_model
from scripts.benchmarks.pools import NOTE
from scripts.benchmarks.programs import processor_seconds
from supervisor.config.config_keys import Config
from supervisor.config.settings import Settings
from supervisor.daemon.process import lock
from supervisor.journal.facts import SessionOpened, TurnEnded
from supervisor.journal.journal import open_journal
from workers.kernel import prctl

_ANSWER_S: Final = 0.05
"""Seconds that the model takes for each of an item's two answers."""
_SYNC_MS: Final = 5
_SET_PDEATHSIG: Final = 1
_PROGRAM: Final = (sys.executable, "-c", "from supervisor.__main__ import main; main()")
"""The command line without its launcher, which would drop the library that makes syncs slow."""
_SLOW: Final = """
#include <sys/syscall.h>
#include <unistd.h>
static int slowly(long call, int descriptor) { int end = syscall(call, descriptor); usleep(1000 * %d); return end; }
int fsync(int descriptor) { return slowly(SYS_fsync, descriptor); }
int fdatasync(int descriptor) { return slowly(SYS_fdatasync, descriptor); }
"""
_GOALS: Final = {False: Goal(200, at_least=True), True: Goal(150, at_least=True)}


async def growth_batch(quick: bool) -> list[Figure]:
    """Measure items a second of whole batches; the ratio is to what the model alone allows."""
    sizes = (1, 16) if quick else (1, 8, 64)
    found: list[Figure] = []
    with tempfile.TemporaryDirectory() as folder, unhurried_model(_ANSWER_S) as url:
        slow = _slow_syncs(folder)
        for library in (None, slow) if slow else (None,):
            disk = f", {_SYNC_MS} ms a sync" if library else ""
            for size in sizes:
                items = size * (4 if quick else 10)
                rate, spent = _batch(url, size, items, library)
                goal = _GOALS[bool(library)] if size == 64 else None
                limit = size / (2 * _ANSWER_S)
                name = f"items of a batch{disk}, {size} at a time"
                found.append(figure("batch", name, rate, "items/s", items, limit=limit, goal=goal))
                found.append(figure("batch", f"{name}: the daemon's processor", spent, "ms", items))
    return found


def _slow_syncs(folder: str) -> str | None:
    """Make the library of a slow disk; None where there is no compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        return None
    source, library = Path(folder, "slow.c"), str(Path(folder, "slow.so"))
    source.write_text(_SLOW % _SYNC_MS, encoding="ascii")
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, str(source)], check=True)
    return library


def _batch(url: str, at_a_time: int, items: int, library: str | None) -> tuple[float, float]:
    """Run one batch; return its items a second from its first session to its last end, and processor ms of an item."""
    with tempfile.TemporaryDirectory() as home, tempfile.TemporaryDirectory() as root:
        Path(root, NOTE).write_text("A note.\n" * 20, encoding="utf-8")
        environment = {
            "PATH": os.environ["PATH"],
            "STRONGROOM_HOME": home,
            "ANTHROPIC_API_KEY": "none",
            "ANTHROPIC_BASE_URL": url,
            **({"LD_PRELOAD": library} if library else {}),
        }

        def run(name: str, items: int) -> None:
            prompts, output = Path(home, f"{name}.txt"), Path(home, f"{name}.jsonl")
            prompts.write_text("Read the note.\n" * items, encoding="utf-8")
            options = ["--output", str(output), "--root", root, "--model", "claude-haiku-5-5"]
            command = [*_PROGRAM, "batch", str(prompts), *options, "--concurrency", str(at_a_time)]
            subprocess.run(command, env=environment, check=True, capture_output=True)
            lines = output.read_bytes().splitlines()
            if len(lines) != items or any(msgspec.json.decode(line)["status"] != "ok" for line in lines):
                raise RuntimeError(f"{len(lines)} of {items} items: {lines[:1]!r}")

        command = [*_PROGRAM, "daemon"]
        with subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL, preexec_fn=_dies_with_us) as daemon:  # noqa: PLW1509 - one thread
            try:
                _wait_until_it_listens(home)
                run("first", at_a_time)  # what is imported and started but once is there then
                before = processor_seconds(daemon.pid)
                run("measured", items)
                spent = processor_seconds(daemon.pid) - before
            finally:
                daemon.terminate()
        return items / _seconds(Path(home), items), spent * 1e3 / items


def _dies_with_us() -> None:
    prctl("the death of a daemon", _SET_PDEATHSIG, signal.SIGKILL)


def _wait_until_it_listens(home: str) -> None:
    settings = Settings(Config(), Path(home, "config.toml"), Path(home))
    while (found := lock.running(settings)) is None or not found.socket:
        time.sleep(0.02)


def _seconds(home: Path, items: int) -> float:
    """Return how long the last items took together."""
    with open_journal(next(home.rglob("journal.db"))) as journal:
        sessions = [each.session for each in journal.opened() if isinstance(each.fact, SessionOpened)][-items:]
        entries = [entry for session in sessions for entry in journal.of_session(session)]
    return max(each.at for each in entries if isinstance(each.fact, TurnEnded)) - min(each.at for each in entries)
