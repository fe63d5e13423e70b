"""The use that a worker, with all that it has started, makes of its limits: read from /proc.

Rule: a worker is undumpable, so what the kernel tells everybody about it is what there is: pages, processor time and
how many descriptors are open, not which. A process that ends meanwhile counts nothing, nor does the one that only waits
for a worker which is the first of its PID namespace.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Final, NamedTuple

from workers.kernel import read_proc

_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_TICKS: Final = os.sysconf("SC_CLK_TCK")
_AT_MOST: Final = 4096
"""Processes that are looked at: a fork bomb may be going on."""


class WorkerUsage(NamedTuple):
    """Of a process and its descendants; all zero where it has ended."""

    memory: int = 0
    """Bytes that are resident; a page that several share counts for each."""
    private: int = 0
    """Of these, the ones that no file backs: what the limit of memory counts."""
    cpu: float = 0.0
    """Seconds, of those that live."""
    processes: int = 0
    open_files: int | None = None
    """Of the one that has most: the limit is each one's. None where the kernel does not tell (before 6.2)."""


def usage_of_tree(pid: int) -> WorkerUsage:
    """Return what a process and its descendants use now."""
    return _sum(_tree(pid))


def usage_of_process(pid: int) -> WorkerUsage:
    """Return what a process uses now, without its descendants."""
    return _sum([pid])


def _sum(pids: Iterable[int]) -> WorkerUsage:
    memory = private = processes = 0
    cpu = 0.0
    files: list[int] = []
    for each in pids:
        resident, shared = _pages(each)
        fields = read_proc(f"/proc/{each}/stat").rpartition(b")")[2].split()
        if not fields:
            continue
        memory += resident * _PAGE
        private += (resident - shared) * _PAGE
        cpu += (int(fields[11]) + int(fields[12])) / _TICKS
        processes += 1
        with suppress(OSError):
            files.append(os.stat(f"/proc/{each}/fd").st_size)
    return WorkerUsage(memory, private, cpu, processes, max(files, default=0) or None)


def private_bytes(pid: int) -> int:
    """Return the private bytes of a process and its descendants."""
    return sum((resident - shared) * _PAGE for resident, shared in map(_pages, _tree(pid)))


def _tree(pid: int) -> Iterator[int]:
    """Yield a process, and all that it and its descendants have started; not one that stands by for a first one."""
    left = _children(pid)
    if len(left) != 1 or not _is_first(left[0]):
        left = [pid]
    for _ in range(_AT_MOST):
        if not left:
            return
        each = left.pop()
        yield each
        left += _children(each)


def _children(pid: int) -> list[int]:
    return [int(child) for child in read_proc(f"/proc/{pid}/task/{pid}/children").split()]


def _is_first(pid: int) -> bool:
    """Say whether a process is the first one of a PID namespace below this one's."""
    numbers = read_proc(f"/proc/{pid}/status").partition(b"\nNSpid:")[2].partition(b"\n")[0].split()
    return len(numbers) > 1 and numbers[-1] == b"1"


def _pages(pid: int) -> tuple[int, int]:
    fields = read_proc(f"/proc/{pid}/statm").split()
    return (int(fields[1]), int(fields[2])) if fields else (0, 0)
