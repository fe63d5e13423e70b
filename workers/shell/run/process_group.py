"""The processes of one command: forked, counted, and ended together.

Rule: whatever a command starts belongs to it, however it hides. In a PID namespace all but the first process are the
command's; where there is none, all descendants are, and orphans among them come to the nearest `subreaper`
(prctl(2)). Whoever ends them sees to it that no new ones can be made meanwhile.
"""

import errno
import os
import select
import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Final, Protocol

from workers import kernel
from workers.confine.privileges import PR_SET_PDEATHSIG, keep_only

_FIRST: Final = 1
"""The worker itself, in its PID namespace; every other process there belongs to the command that runs."""
_SET_SUBREAPER: Final = 36
_REAP_EVERY_MS: Final = 100
_STATUS: Final = 4


class ProcessGroup(Protocol):
    """All processes of one command."""

    def fork(self) -> int:
        """Fork the command's first process: return 0 there, its number here."""
        ...

    def reap(self) -> None:
        """Collect dead processes, but for the first, so that they take no numbers."""
        ...

    def pids(self) -> list[str]:
        """Return what there is of them now."""
        ...

    def end(self, let_none_fork: Callable[[], None] = lambda: None) -> int:
        """Kill them all and reap them; return the status of the first one. May be called again.

        Where the worker has to let each process be made, it is told by `let_none_fork` to do so no more.
        """
        ...


class NamespaceGroup:
    """All processes of this PID namespace but the first, which is the worker."""

    def __init__(self) -> None:
        self._child = self._status = 0

    def fork(self) -> int:
        self._child = os.fork()
        return self._child

    def reap(self) -> None:
        _reap_strangers(self._child)

    def pids(self) -> list[str]:
        """Return all numbers but our own."""
        return [name for name in os.listdir("/proc") if name.isdigit() and int(name) != _FIRST]

    def end(self, _let_none_fork: Callable[[], None] = lambda: None) -> int:
        self._status = end_all(self._child) or self._status
        return self._status


class DescendantGroup:
    """The descendants of a caretaker: a process that outlives the worker only until it has ended them.

    It does nothing else: it waits for the other end of a pipe to close, which the worker alone holds, kills, reaps, and
    tells the first one's status. The worker must have seen to it that nobody can fork any more, or be dead itself:
    whoever forks in a copy waits for the worker's word (`copies.copy_calls`), and fails once nobody can give it.
    """

    def __init__(self) -> None:
        self._caretaker = self._told = self._leash = -1
        self._status = 0

    def fork(self) -> int:
        """Fork the caretaker, and let it fork the first one."""
        become_subreaper()  # for what a caretaker leaves that is killed itself
        self._told, telling = os.pipe2(os.O_CLOEXEC)
        held, self._leash = os.pipe2(os.O_CLOEXEC)
        self._caretaker = os.fork()
        if self._caretaker == 0:
            try:
                os.close(self._leash)
                become_subreaper()
                os.setsid()
                caretaker = os.getpid()
                child = os.fork()
                if child == 0:
                    kernel.prctl("PR_SET_PDEATHSIG", PR_SET_PDEATHSIG, signal.SIGKILL)
                    return 0 if os.getppid() == caretaker else os._exit(1)
                _take_care(child, held, telling)
            finally:
                if os.getpid() == caretaker:
                    os._exit(1)
        os.close(telling)
        os.close(held)
        if not (child := int.from_bytes(os.read(self._told, _STATUS), "little")):
            raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN), "fork")
        return child

    def reap(self) -> None:
        """Nothing: the caretaker does."""

    def pids(self) -> list[str]:
        return list(map(str, descendants(self._caretaker)))

    def end(self, let_none_fork: Callable[[], None] = lambda: None) -> int:
        """Let the caretaker end them, and end what may be left of a killed one's."""
        if self._caretaker > 0:
            let_none_fork()
            os.close(self._leash)
            self._status = int.from_bytes(os.read(self._told, _STATUS) or bytes((signal.SIGKILL, 0, 0, 0)), "little")
            os.close(self._told)
            end_descendants()
            self._caretaker = -1
        return self._status


def become_subreaper() -> None:
    """Become the parent of all descendants whose own has died."""
    kernel.prctl("PR_SET_CHILD_SUBREAPER", _SET_SUBREAPER, 1)


def _take_care(child: int, held: int, telling: int) -> None:
    """Be the caretaker of `child` until nobody holds the other end of `held` any more."""
    keep_only((held, telling))
    os.write(telling, child.to_bytes(_STATUS, "little"))
    leash = select.poll()
    leash.register(held, select.POLLIN)
    while not leash.poll(_REAP_EVERY_MS):
        _reap_strangers(child)
    status = end_descendants(child)
    with suppress(OSError):
        os.write(telling, status.to_bytes(_STATUS, "little"))
    os._exit(0)


def descendants(pid: int) -> Iterator[int]:
    """Yield the numbers of all that a process has started and that is still there, what those started included."""
    pending = [pid]
    while pending:
        parent = pending.pop()
        with suppress(OSError):
            for thread in os.listdir(f"/proc/{parent}/task"):
                children = list(map(int, read_all(f"/proc/{parent}/task/{thread}/children").split()))
                yield from children
                pending += children


def read_all(path: str) -> bytes:
    """Return a file of /proc to its end."""
    with open(path, "rb") as file:
        return file.read()


def end_descendants(child: int = 0) -> int:
    """Kill and reap all that this process has started; return the status of `child`.

    Each death makes orphans ours, so whoever was made while it was looked is found the next time.
    """
    return _end(lambda: descendants(os.getpid()), child)


def end_all(child: int = 0) -> int:
    """Kill every other process of this PID namespace and reap them all; return the status of `child`.

    No process can fork that has been killed, and each one whose parent is gone becomes ours.
    """
    if os.getpid() != _FIRST:
        raise RuntimeError("only the first process of a PID namespace may do this: it kills every other one")
    return _end(lambda: (-1,), child)


def _end(victims: Callable[[], Iterable[int]], child: int) -> int:
    """Kill and reap until nobody is left; return the status of `child`."""
    found = 0
    while True:
        for pid in victims():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        try:
            pid, status = os.waitpid(-1, 0)
        except ChildProcessError:
            return found
        if pid == child:
            found = status


def _reap_strangers(child: int) -> None:
    """Collect the dead that became ours, so that they take no numbers; the command itself is not touched."""
    while True:
        try:
            found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return
        if found is None or found.si_pid == child:
            return
        with suppress(ChildProcessError):
            os.waitpid(found.si_pid, 0)
