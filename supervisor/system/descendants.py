"""Descendants of a process, also those that hide from it: found, killed, reaped.

Rule: only a subreaper may rely on this (PR_SET_CHILD_SUBREAPER, prctl(2)): every orphan among its descendants becomes
its child, so a process without children has no descendants. Process groups are killed at once, so that none of
their members forks meanwhile. A group does not hold a grandchild that called setsid; what is a child of this process,
and was neither started by it nor there before, is the orphan of one that it started.
"""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from workers.kernel import prctl

_SET_CHILD_SUBREAPER: Final = 36
_AT_ONCE: Final = 0.02
"""Seconds in which the kernel lets go of processes that were killed, unless they held very much, or are stuck."""
_LOOK_AGAIN: Final = 0.001


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


def _has_ended(pid: int) -> bool:
    """Say whether a child has ended, and collect it."""
    try:
        return os.waitpid(pid, os.WNOHANG)[0] != 0
    except ChildProcessError:  # somebody was faster
        return True


def _ends(pid: int, until: float) -> bool:
    """Wait for a child that was killed, and collect it; return False where it is stuck in the kernel."""
    while not _has_ended(pid):
        if time.monotonic() > until:
            return False
        time.sleep(_LOOK_AGAIN)
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


class Orphans:
    """Finds and kills the processes that our children left behind, wherever they hid: those that are not our own.

    Make one a process, before anything is spawned; children of other code in the same process would be taken
    for orphans, so only programs that own their process use it.
    """

    def __init__(self) -> None:
        become_subreaper()
        self._expected = 0
        self._put_off = False
        self._ours = set(children(os.getpid()))
        self._stuck: set[int] = set()

    def adopt(self, pid: int) -> None:
        """Count `pid` as our own child."""
        self._ours.add(pid)

    def release(self, pid: int) -> None:
        """Forget a child that has been reaped."""
        self._ours.discard(pid)

    @property
    def stuck(self) -> bool:
        """Whether one that was killed has not ended: freeing what it held may take seconds. Sweep again."""
        return bool(self._stuck)

    def leave(self, pid: int) -> None:
        """Collect a child later, which counts as our own: it was killed, and the kernel has not let it go yet."""
        self._stuck.add(pid)

    @contextmanager
    def expecting(self) -> Iterator[None]:
        """Sweep later: a child of our own is about to be there, whose pid is not known yet."""
        self._expected += 1
        try:
            yield
        finally:
            self._expected -= 1
            if self._put_off and not self._expected:
                self._put_off = False
                self.sweep()

    def sweep(self) -> int:
        """Kill every orphan, and reap those that end at once; return how many there were.

        Their own children come up the next time, and all of them where no descriptor is free to look for them.
        """
        found, until = 0, time.monotonic() + _AT_ONCE
        for pid in tuple(self._stuck):
            if _has_ended(pid):
                self._stuck.discard(pid)
                self.release(pid)
        if self._expected:
            self._put_off = True
            return found
        while strangers := [pid for pid in children(os.getpid()) if pid not in self._ours]:
            for pid in strangers:
                if not _killed(pid):  # it has become another user's, for example by sudo: nobody may wait for it
                    self._ours.add(pid)
                    continue
                if not _ends(pid, until):
                    self.adopt(pid)
                    self.leave(pid)
            found += len(strangers)
        return found
