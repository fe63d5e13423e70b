"""Memory and number of all processes of a command together, read from /proc.

Rule: every process in the worker's PID namespace but the worker itself belongs to the command that runs. The sum of
what each has in memory is cheap to read and never too small; only where it is over the limit, shared pages are counted
once (PSS, proc(5)), which takes longer.
"""

import os
from collections.abc import Iterator
from typing import Final, NamedTuple

from workers.kernel import read_proc

_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_FIRST: Final = "1"


class CommandUsage(NamedTuple):
    """Of all processes together."""

    memory: int
    """Bytes."""
    processes: int


def used(enough: int) -> CommandUsage:
    """Return what is in use; memory is exact only where it is more than `enough` bytes."""
    pids = [name for name in os.listdir("/proc") if name.isdigit() and name != _FIRST]
    memory = sum(_resident(pid) for pid in pids)
    if memory > enough:
        memory = sum(_proportional(pid) for pid in pids)
    return CommandUsage(memory, len(pids))


def _resident(pid: str) -> int:
    fields = read_proc(f"/proc/{pid}/statm").split()
    return int(fields[1]) * _PAGE if len(fields) > 1 else 0


def _proportional(pid: str) -> int:
    kilobytes = next(_fields(f"/proc/{pid}/smaps_rollup", b"Pss:"), None)
    return _resident(pid) if kilobytes is None else kilobytes * 1024


def _fields(path: str, name: bytes) -> Iterator[int]:
    for line in read_proc(path).splitlines():
        if line.startswith(name):
            yield int(line.split()[1])
