"""A command that runs, seen from the worker: its output is taken, its time and what it uses are watched.

Rule: nothing that a command does keeps the worker from looking at the clock, and nothing of it is waited for but its
own exit. What ends it, ends all that it has started: all its processes.
"""

import os
import select
import time
from collections.abc import Callable
from typing import Final, Literal

from workers.kernel import read_proc
from workers.shell.command_runner import CommandRunner
from workers.shell.run.attempts import Attempts
from workers.shell.run.output import CommandOutput
from workers.shell.run.process_group import ProcessGroup
from workers.shell.run.socket_memory import of_all_sockets, of_own_sockets
from workers.shell.run.unnamed_files import memory_device, shared_memory, unnamed_bytes

Ended = Literal["exited", "timeout", "memory", "processes", "disk"]

_LOOK_EVERY: Final = 0.1
"""Seconds between two looks at what is used."""
_MEGABYTE: Final = 2**20
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")


class CommandMonitor:
    """Over one command.

    Args:
        engine: says how much it may use.
        child: its process.
        streams: the reading ends of its standard output and error, which do not block; they stay the caller's.
        show: takes what is shown of them.
        attempts: answers what the command asks; stays the caller's.
        group: all its processes.
    """

    def __init__(
        self,
        engine: CommandRunner,
        child: int,
        streams: tuple[int, int],
        show: Callable[[str], None],
        attempts: Attempts,
        group: ProcessGroup,
    ) -> None:
        self._engine = engine
        self._group = group
        self._child = child
        self._streams = streams
        self.output = CommandOutput(streams, show)
        self._attempts = attempts
        self._now = self._began = time.monotonic()
        self._deadline = self._now + engine.timeout_s
        self._look = self._now + _LOOK_EVERY
        self._shared = shared_memory()
        self._in_sockets = of_all_sockets() if engine.ports != () else 0

    def until_the_end(self) -> Ended:
        """Return when the command has exited, or must be ended, and why."""
        exited = os.pidfd_open(self._child)
        poll = select.poll()
        for descriptor in (*self._streams, exited):
            poll.register(descriptor, select.POLLIN)
        self._attempts.register(poll)
        try:
            while True:
                wait = min(self._deadline - self._now, self._look - self._now, self.output.due(self._now))
                found = poll.poll(max(0, wait) * 1000)
                ready = {descriptor for descriptor, _ in found}
                self._attempts.answer(found, poll)
                self._now = time.monotonic()
                for stream in self.output.read(ready, self._now):
                    poll.unregister(stream)
                if exited in ready:
                    return "exited"
                if over := self._over():
                    return over
        finally:
            os.close(exited)

    @property
    def seconds(self) -> float:
        """How long it ran, as of the last look."""
        return self._now - self._began

    def texts(self) -> tuple[str, str]:
        """Return what is kept of both streams, with what they still hold now that nobody writes any more."""
        self.output.read_rest(self._now)
        return self.output.texts()

    def _over(self) -> Ended | Literal[""]:
        """Say which limit the command is over, if any; look at what it uses every now and then."""
        if self._now >= self._deadline:
            return "timeout"
        if self._now < self._look:
            return ""
        self._look = self._now + _LOOK_EVERY
        self._group.reap()
        limits = self._engine.start.limits
        pids, most = self._group.pids(), limits.memory_mb * _MEGABYTE
        memory, processes = _used(pids, most)
        if memory > most or (shared_memory() - self._shared > most and unnamed_bytes(pids, memory_device()) > most):
            return "memory"
        if self._engine.ports != () and of_all_sockets() - self._in_sockets > most and of_own_sockets() > most:
            return "memory"
        if processes > limits.processes:
            return "processes"
        return "disk" if self._engine.is_over_disk(pids) else ""


def _used(pids: list[str], enough: int) -> tuple[int, int]:
    """Return the bytes of memory and the number of the processes `pids` together.

    The sum of what each has in memory is cheap to read and never too small; only where it is more than `enough`, shared
    pages are counted once (PSS, proc(5)), which takes longer.
    """
    memory = sum(map(_resident, pids))
    return memory if memory <= enough else sum(map(_proportional, pids)), len(pids)


def _resident(pid: str) -> int:
    fields = read_proc(f"/proc/{pid}/statm").split()
    return int(fields[1]) * _PAGE if len(fields) > 1 else 0


def _proportional(pid: str) -> int:
    for line in read_proc(f"/proc/{pid}/smaps_rollup").splitlines():
        if line.startswith(b"Pss:"):
            return int(line.split()[1]) * 1024
    return _resident(pid)
