"""Descendants of a process, also those that hide from it: found, killed, reaped.

Rule: only a subreaper may rely on this (PR_SET_CHILD_SUBREAPER, prctl(2)): every orphan among its descendants becomes
its child, so a process without children has no descendants. Process groups are killed at once, so that none of
their members forks meanwhile.
"""

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from workers.kernel import prctl

_SET_CHILD_SUBREAPER: Final = 36


def become_subreaper() -> None:
    """Let every orphan among this process's descendants become its child."""
    prctl("PR_SET_CHILD_SUBREAPER", _SET_CHILD_SUBREAPER, 1)


def end_all(child: int = 0, status: int | None = None) -> int:
    """Kill and reap every descendant, until none is left; return the status of `child`, unless it is known already.

    A process that became another user's, for example by sudo, cannot be killed, and is not waited for.
    """
    while True:
        try:
            pid, found = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                if not _kill_all():
                    return status or 0
                pid, found = os.waitpid(-1, 0)
        except ChildProcessError:
            return status or 0
        status = found if pid == child else status


def _kill_all() -> bool:
    """Kill every descendant; return False where no child of ours can be."""
    for group in {_group(pid) for pid in _descendants(os.getpid())} - {os.getpgid(0), 0}:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)  # at once, so that none of it forks meanwhile
    found = children(os.getpid())
    return not found or sum(_killed(pid) for pid in found) > 0


def reap(child: int, status: int | None) -> int | None:
    """Collect the dead, without waiting; return the status of `child` if it is among them, else `status`."""
    with suppress(ChildProcessError):
        while True:
            pid, found = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                break
            status = found if pid == child else status
    return status


def _killed(pid: int) -> bool:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return True


def _group(pid: int) -> int:
    with suppress(ProcessLookupError, PermissionError):
        return os.getpgid(pid)
    return 0


def _descendants(pid: int) -> Iterator[int]:
    waiting = [pid]
    while waiting:
        found = children(waiting.pop())
        waiting += found
        yield from found


def children(pid: int) -> list[int]:
    """Return the pids of a process's children, also of those that have ended and wait to be reaped."""
    pids: list[int] = []
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            with suppress(OSError):
                pids += [int(each) for each in (task / "children").read_text().split()]
    return pids
