"""Reads regular files, at names where anything may stand by now.

Rule: nobody is waited for, as the reader of a FIFO waits for its writer, and no device is touched.
"""

import errno
import os
import stat
from pathlib import Path
from typing import Final

AT_ONCE: Final = os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
"""Flags of `os.open` for a name where anything may stand: nobody is waited for, and no child inherits it."""
NO_LINK: Final = AT_ONCE | os.O_NOFOLLOW
"""The same for a file of our own, which is no link."""


def read_bytes(path: Path, most: int = -1, *, own: bool = False) -> bytes:
    """Return the content of a regular file.

    Args:
        path: of the file; it may be a link unless it must be our own.
        most: bytes that there may be; -1 is any number.
        own: the file must be one that this user alone can write.

    Raises:
        OSError: it cannot be opened or read, it is no such file, or there is more in it; `strerror` says which.
        ValueError: no file can have that name.
    """
    descriptor = os.open(path, os.O_RDONLY | (NO_LINK if own else AT_ONCE))
    try:
        status = os.fstat(descriptor)
        if own and not (stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o022):
            raise PermissionError(errno.EPERM, "it is not a regular file that this user alone can write")
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file", str(path))
        with open(descriptor, "rb", closefd=False) as file:
            data = file.read(most + 1 if most >= 0 else -1)
    finally:
        os.close(descriptor)
    if 0 <= most < len(data):
        raise OSError(errno.EFBIG, f"it has more than {most} bytes", str(path))
    return data
