"""Locks on bytes of an open file: open file description locks, fcntl(2).

Rule: a lock belongs to the open file and not to the process, so two that one process opened exclude each other as
well, and it ends with the last descriptor of the open file. Nobody waits for one.
"""

import fcntl
import os
import struct
from typing import Final

_FLOCK: Final = struct.Struct("@hhqqi4x")
"""`struct flock` of Linux on 64 bits: type, whence, start, length, and a pid that must be 0 here."""


def set_lock(descriptor: int, kind: int, start: int, length: int) -> None:
    """Set a lock of a `kind` (fcntl.F_RDLCK, F_WRLCK, F_UNLCK) on bytes of a file.

    Raises:
        OSError: somebody else has it (EAGAIN, EACCES), or the file system has no such locks.
    """
    fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, _FLOCK.pack(kind, os.SEEK_SET, start, length, 0))
