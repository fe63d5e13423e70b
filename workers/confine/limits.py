"""What one worker process may use up: setrlimit(2), soft and hard alike.

Rule: a limit is only ever lowered, never above the hard limit that this process was born with. Python sees
the file limit as OSError EFBIG (Python ignores SIGXFSZ), the memory limit as MemoryError; the CPU limit
kills.
"""

import errno
import resource

from workers.wire import Limits

_MEGABYTE = 2**20


def limit(limits: Limits) -> None:
    """Set every limit.

    Memory is RLIMIT_DATA, in bytes of private writable memory: RLIMIT_AS would count what is only mapped.

    Raises:
        OSError: the kernel refuses.
    """
    for kind, value in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, limits.open_files),
        (resource.RLIMIT_FSIZE, limits.file_mb * _MEGABYTE),
        (resource.RLIMIT_CPU, limits.cpu_s),
        (resource.RLIMIT_DATA, limits.memory_mb * _MEGABYTE),
    ):
        _, hard = resource.getrlimit(kind)
        lowest = value if hard == resource.RLIM_INFINITY else min(value, hard)
        try:
            resource.setrlimit(kind, (lowest, lowest))
        except ValueError as error:
            raise OSError(errno.EPERM, str(error), "setrlimit") from error
