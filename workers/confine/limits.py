"""Limits of one worker process: setrlimit(2), soft and hard alike but for processor time.

Rule: a limit is only ever lowered, but for the one that says so, never above the hard limit that this process was
born with. Python sees the file limit as OSError EFBIG (Python ignores SIGXFSZ), the memory limit as MemoryError; the
CPU limit kills, by SIGXCPU first so that the death says why, a second later by SIGKILL.
"""

import errno
import resource
from contextlib import suppress

from workers.wire.messages import Limits

_MEGABYTE = 2**20


def limit_memory_for_now(limits: Limits) -> None:
    """Limit the memory of this process, and of those that it forks, until `lift_memory`.

    Raises:
        OSError: the kernel refuses.
    """
    _, born = resource.getrlimit(resource.RLIMIT_DATA)
    most = limits.memory_mb * _MEGABYTE
    _set(resource.RLIMIT_DATA, most if born == resource.RLIM_INFINITY else min(most, born), born)


def lift_memory() -> None:
    """Undo `limit_memory_for_now`, for what is watched over otherwise.

    Raises:
        OSError: the kernel refuses.
    """
    _, born = resource.getrlimit(resource.RLIMIT_DATA)
    _set(resource.RLIMIT_DATA, born, born)


def limit(limits: Limits, *, own_user: bool = False, extra: int = 0, memory: bool = True, core: int = 0) -> None:
    """Set every limit.

    Memory is RLIMIT_DATA, in bytes of private writable memory: RLIMIT_AS would count what is only mapped.

    Args:
        limits: What to set.
        own_user: Whether this process has a user namespace of its own, in which the kernel counts processes anew.
            Where not, it counts all of the user's: a limit then can forbid them (0), not ration them, and a higher
            one is left as it was born.
        extra: How many of its processes there are that are none of those which are limited.
        memory: Whether to limit it for each process; where not, somebody watches over all of them together.
        core: Bytes of a core dump. 1 is none either, nor is it handed to the program that may be set up for it, as it
            is with 0 (core(5)): for processes that may be dumped.

    Raises:
        OSError: the kernel refuses.
    """
    for kind, value, grace in (
        (resource.RLIMIT_CORE, core, 0),
        (resource.RLIMIT_NOFILE, limits.open_files, 0),
        (resource.RLIMIT_FSIZE, limits.file_mb * _MEGABYTE, 0),
        (resource.RLIMIT_CPU, limits.cpu_s, 1),
        (resource.RLIMIT_DATA, limits.memory_mb * _MEGABYTE, 0),
        (resource.RLIMIT_NPROC, limits.processes + extra, 0),
    ):
        _, born = resource.getrlimit(kind)
        soft, hard = (most if born == resource.RLIM_INFINITY else min(most, born) for most in (value, value + grace))
        if (kind == resource.RLIMIT_NPROC and value and not own_user) or (kind == resource.RLIMIT_DATA and not memory):
            continue
        _set(kind, soft, hard)


def _set(kind: int, soft: int, hard: int) -> None:
    with suppress(ValueError):  # so Python tells EPERM and EINVAL; what counts is what can be read back
        resource.setrlimit(kind, (soft, hard))
    if resource.getrlimit(kind) != (soft, hard):
        raise OSError(errno.EPERM, "the limit does not hold", "setrlimit")
