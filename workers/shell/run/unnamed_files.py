"""Files without a name that a command holds open, on a disk or in memory, which nothing else counts.

Rule: what cannot be looked into counts as too much: a program that nobody may read is none that a build starts.
"""

import errno
import math
import os
import stat
from collections.abc import Iterable
from typing import Final

from workers.kernel import read_proc

_BLOCK: Final = 512
_GONE: Final = (errno.ENOENT, errno.ESRCH)


def memory_device() -> int:
    """Return the device of files that are in memory alone (memfd_create(2))."""
    file = os.memfd_create("device")
    try:
        return os.fstat(file).st_dev
    finally:
        os.close(file)


def shared_memory() -> int:
    """Return the bytes of the whole machine's files in memory."""
    for line in read_proc("/proc/meminfo").splitlines():
        if line.startswith(b"Shmem:"):
            return int(line.split()[1]) * 1024
    return 0


def unnamed_bytes(pids: Iterable[str], device: int) -> float:
    """Return the bytes of files without a name on a device that processes hold open."""
    found: dict[int, int] = {}
    for pid in pids:
        try:
            for each in os.listdir(f"/proc/{pid}/fd"):
                status = _status(f"/proc/{pid}/fd/{each}")
                if status and status.st_dev == device and not status.st_nlink and stat.S_ISREG(status.st_mode):
                    found[status.st_ino] = status.st_blocks * _BLOCK
        except OSError as error:
            if error.errno not in _GONE:
                return math.inf
    return sum(found.values())


def _status(file: str) -> os.stat_result | None:
    try:
        return os.stat(file)
    except OSError as error:
        if error.errno not in _GONE:
            raise
    return None
