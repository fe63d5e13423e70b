"""Orphans: what a child of ours has left behind."""

import subprocess
import sys
from pathlib import Path

from supervisor.pool.worker_process import orphans_ended
from supervisor.system.descendants import Orphans
from tests.supervisor.pool.harness import until

HELD = """
import ctypes, sys, time
from workers import kernel
pid = kernel.sibling_fork()()
if pid == 0:
    time.sleep(600)
assert ctypes.CDLL(None).ptrace(0x4206, pid, None, None) == 0  # PTRACE_SEIZE: who traces it hears of its end first
print(pid, flush=True)
sys.stdin.read()
"""
"""Leaves a child of its parent that does not end when it is killed, until this process has."""


async def test_an_orphan_that_does_not_end_holds_nobody_up_and_is_reaped_when_it_does(orphans: Orphans) -> None:
    pipe = subprocess.PIPE
    with subprocess.Popen(  # noqa: ASYNC220 - waited for by nobody
        [sys.executable, "-c", HELD], stdin=pipe, stdout=pipe, cwd=Path(__file__).parents[3]
    ) as holder:
        orphans.adopt(holder.pid)
        assert holder.stdout is not None
        assert int(holder.stdout.readline())
        assert orphans.sweep() == 1
        assert orphans.stuck
        assert orphans.sweep() == 0
        holder.kill()
    await orphans_ended(orphans)
    await until(lambda: orphans.sweep() == 0 and not orphans.stuck)
