"""What stands in regular files, at names where anything may stand by now.

Rule: nobody is waited for, as the reader of a FIFO waits for its writer, and no device is touched.
"""

import errno
import os
import stat
from pathlib import Path


def content(path: Path, most: int = -1) -> bytes:
    """Return what is in a regular file, through links.

    Args:
        path: of the file.
        most: bytes that there may be; -1 is any number.

    Raises:
        OSError: it cannot be opened or read, it is no regular file, or there is more in it; `strerror` says which.
        ValueError: no file can have that name.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file", str(path))
        with open(descriptor, "rb", closefd=False) as file:
            data = file.read(most + 1 if most >= 0 else -1)
    finally:
        os.close(descriptor)
    if 0 <= most < len(data):
        raise OSError(errno.EFBIG, f"it has more than {most} bytes", str(path))
    return data
