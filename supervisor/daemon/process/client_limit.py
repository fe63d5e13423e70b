"""Limit of clients: as many as there can be descriptors for, besides those of the workers."""

import resource
from contextlib import suppress
from typing import Final

CLIENTS: Final = 1024
"""Clients at once, if the kernel grants as many descriptors and some for the workers."""
_FILES: Final = 8192
_FILES_FOR_WORKERS: Final = 128


def client_limit() -> int:
    """Raise our limit of open files as far as is sensible; return how many clients fit under it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _FILES if hard == resource.RLIM_INFINITY else min(hard, _FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            soft = wanted
    room = CLIENTS if soft == resource.RLIM_INFINITY else soft - _FILES_FOR_WORKERS
    return max(1, min(CLIENTS, room))
