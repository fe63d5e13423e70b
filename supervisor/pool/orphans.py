"""Finds and kills the processes that a worker left behind, wherever they hid.

Rule: a process group does not hold a grandchild that called setsid, but the kernel hands every orphan to the
nearest subreaper. This process becomes one (PR_SET_CHILD_SUBREAPER, prctl(2)), so whatever is its child and was
neither started by it nor there before is a worker's orphan.
"""

import contextlib
import os
import signal

from supervisor.system.descendants import become_subreaper, children


class Orphans:
    """Knows this process's own children, so that it can tell the others.

    Make one a process, before anything is spawned; children of other code in the same process would be taken
    for orphans, so only programs that own their process use it.
    """

    def __init__(self) -> None:
        become_subreaper()
        self._ours = set(children(os.getpid()))

    def adopt(self, pid: int) -> None:
        """Count `pid` as our own child."""
        self._ours.add(pid)

    def release(self, pid: int) -> None:
        """Forget a child that has been reaped."""
        self._ours.discard(pid)

    def sweep(self) -> int:
        """Kill and reap every orphan; return how many there were.

        Their own children come up the next time, and all of them where no descriptor is free to look for them.
        """
        found = 0
        while strangers := [pid for pid in children(os.getpid()) if pid not in self._ours]:
            for pid in strangers:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
                except PermissionError:  # it has become another user's, for example by sudo: nobody may wait for it
                    self._ours.add(pid)
                    continue
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, 0)
            found += len(strangers)
        return found
