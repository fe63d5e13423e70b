"""A supervisor's life in a cgroup of its own, as a service has it: `python -m tests.supervisor.pool.cgroup_life PATH`.

It moves in, tries everything, and writes what it saw as JSON. It becomes no subreaper: only its workers'
cgroups can end what they left behind.
"""

import json
import os
import select
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import trio

from supervisor.pool.cgroup import WorkerCgroups, inspect_cgroup, worker_cgroups
from supervisor.pool.worker_process import WorkerProcess
from tests.supervisor.pool.harness import Unheard
from workers.wire.messages import Limits

PATIENCE_MS: Final = 60_000

HIDE: Final = """
import os
if not os.fork():
    os.setsid()
    if not os.fork():
        os.execv('/bin/sleep', ['sleep', '60'])
    os._exit(0)
os.wait()
print(1, flush=True)
"""
EAT: Final = """
kept = []
while True:
    kept.append(bytes(b'x' * 2**20))
"""
BOMB: Final = """
import os, time
started = 0
try:
    while os.fork():
        started += 1
    time.sleep(1000)
except OSError:
    print(started, flush=True)
"""


def members(path: Path) -> list[int]:
    return [int(pid) for pid in (path / "cgroup.procs").read_text().split()]


def sleeper(path: Path) -> "subprocess.Popen[bytes]":
    process = subprocess.Popen(["sleep", "60"], start_new_session=True)
    path.mkdir(exist_ok=True)
    (path / "cgroup.procs").write_text(str(process.pid))
    return process


def ended(watched: list[int]) -> int:
    """Return how many of these pidfds tell of an end."""
    return sum(bool(select.select([each], [], [], PATIENCE_MS / 1000)[0]) for each in watched)


async def live(groups: WorkerCgroups, code: str, limits: Limits, *, answers: bool = True) -> dict[str, Any]:
    """Let a worker run `code` in its cgroup until it has said something, or ended; then end it."""
    process = WorkerProcess((sys.executable, "-I", "-S", "-c", f"input()\n{code}\ninput()"), 0, None, Unheard())
    await process.enter_cgroup(groups, limits, 0)
    assert process.cgroup is not None
    os.write(process.channel._outgoing, b"\n")
    if answers:
        await trio.lowlevel.wait_readable(process.channel._incoming)
    else:
        await process.wait()
    inside = members(process.cgroup.path)
    watched = [os.pidfd_open(pid) for pid in inside]
    files = [process.cgroup.path / name for name in ("memory.max", "pids.max")]
    seen = {
        "said": os.read(process.channel._incoming, 100).decode().strip(),
        "inside": len(inside),
        "beside": len(list(groups.base.glob("worker-*"))) - 1,
        "limits": {each.name: each.read_text().strip() for each in files if each.exists()},
        "death": process.reap().ordered,
    }
    return {**seen, "ended": ended(watched)}


async def lives(groups: WorkerCgroups) -> dict[str, Any]:
    seen = {"hid": await live(groups, HIDE, Limits(processes=3))}
    seen["next"] = await live(groups, "print(1, flush=True)", Limits())
    if "memory" in groups.controllers:
        seen["ate"] = await live(groups, EAT, Limits(memory_mb=64), answers=False)
    if "pids" in groups.controllers:
        seen["bombed"] = await live(groups, BOMB, Limits(processes=3))
    return seen


def main(base: Path) -> dict[str, Any]:
    (base / "cgroup.procs").write_text(str(os.getpid()))
    seen: dict[str, Any] = {"others alone": inspect_cgroup(os.getpid()).others}
    other = sleeper(base)
    seen["others with another"] = inspect_cgroup(os.getpid()).others
    with worker_cgroups() as shared:
        seen["ours with another"] = shared is not None
    other.kill()
    other.wait()
    stale = sleeper(base / "worker-7")
    with worker_cgroups() as groups:
        assert groups is not None
        seen["stale"] = [stale.wait(), (base / "worker-7").exists()]
        seen["in the leaf"] = (members(base / "supervisor"), members(base)) == ([os.getpid()], [])
        seen["controllers"] = groups.controllers
        seen |= trio.run(lives, groups)
    seen["as before"] = members(base) == [os.getpid()] and not [each for each in base.iterdir() if each.is_dir()]
    return seen


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(Path(sys.argv[1]))))
