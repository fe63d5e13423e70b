"""Waits of a person: for the first prompt, and one tool call from the command line, with and without a daemon."""

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import trio

from scripts.benchmarks.figures import Figure, Goal, at, figure
from scripts.benchmarks.pools import NOTE
from supervisor.config.config_keys import Config
from supervisor.config.settings import Settings
from supervisor.daemon.process import lock

_PROGRAM: Final = str(Path(sys.executable).with_name("strongroom"))
_PROMPT: Final = b"Ready"
"""Of the bar below the prompt, which is drawn together with it."""
_PATIENCE: Final = 15.0
_SIZE: Final = struct.pack("HHHH", 24, 80, 0, 0)


async def first_prompt(quick: bool) -> list[Figure]:
    """Measure from the start of `strongroom` to its prompt on a terminal, with a daemon running and without."""
    times = 3 if quick else 9
    name = "first prompt of the console"
    bare: list[float] = []
    warm: list[float] = []
    cold: list[float] = []
    with _home() as (home, root):
        for _ in range(times):
            bare.append(_wall([sys.executable, "-c", "import prompt_toolkit.application, click, msgspec"], home))
            cold.append(_prompt(home, root))
            warm.append(_prompt(home, root))
            await _stop(home)
    limit = at(bare, 0.5)
    return [
        figure(name, "import prompt_toolkit, click, msgspec (the limit)", limit, "ms", times),
        figure(name, "with a daemon running", at(warm, 0.5), "ms", times, limit=limit, goal=Goal(150)),
        figure(name, "starting the daemon", at(cold, 0.5), "ms", times, limit=limit, goal=Goal(300)),
    ]


async def one_call(quick: bool) -> list[Figure]:
    """Measure `strongroom call read_file`, through a private daemon and through one that runs."""
    times = 3 if quick else 9
    name = "strongroom call read_file"
    private: list[float] = []
    running: list[float] = []
    with _home() as (home, root):
        command = [_PROGRAM, "call", "read_file", f'{{"path": "{NOTE}"}}', "--root", root]
        private += [_wall(command, home) for _ in range(times)]
        _prompt(home, root)
        running += [_wall(command, home) for _ in range(times)]
        await _stop(home)
    return [
        figure(name, "with a private daemon for the run", at(private, 0.5), "ms", times, goal=Goal(300)),
        figure(name, "through the daemon that runs", at(running, 0.5), "ms", times, goal=Goal(80)),
    ]


@contextmanager
def _home() -> Iterator[tuple[str, str]]:
    with tempfile.TemporaryDirectory() as home, tempfile.TemporaryDirectory() as root:
        Path(root, NOTE).write_text("A note.\n", encoding="utf-8")
        yield home, root


def _environment(home: str) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "STRONGROOM_HOME": home, "TERM": "xterm-256color"}


def _wall(command: list[str], home: str) -> float:
    began = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=_environment(home))
    return (time.perf_counter() - began) * 1e3


def _prompt(home: str, root: str) -> float:
    """Start the console on a terminal; return the milliseconds to its prompt, after it has left."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, _SIZE)
    began = time.perf_counter()
    command = [_PROGRAM, "console", "--model", "offline", "--root", root]
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=_environment(home)) as process:
        os.close(theirs)
        seen = b""
        took = 0.0
        while not took:
            ready, _, _ = select.select([ours], [], [], _PATIENCE)
            if not ready:
                process.kill()
                raise TimeoutError(f"no prompt: {seen!r}")
            seen += os.read(ours, 65536)
            if b"\x1b[6n" in seen:
                os.write(ours, b"\x1b[1;1R")  # where the cursor is, as a terminal says it
                seen = seen.replace(b"\x1b[6n", b"")
            if _PROMPT in seen:
                took = (time.perf_counter() - began) * 1e3
        process.send_signal(signal.SIGHUP)
        process.kill()
    os.close(ours)
    return took


async def _stop(home: str) -> None:
    """End the home's daemon."""
    settings = Settings(Config(), Path(home, "config.toml"), Path(home))
    found = lock.running(settings)
    if found is not None:
        handle = os.pidfd_open(found.pid)
        os.kill(found.pid, signal.SIGTERM)
        await trio.lowlevel.wait_readable(handle)
        os.close(handle)
