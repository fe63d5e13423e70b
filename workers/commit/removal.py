"""Empty a directory, whatever a command left in it.

Rule: no link is followed, no depth exhausts descriptors or paths, no mode is in the way: a directory that is found is
first moved up to where its name is short.
"""

import os
import stat
from itertools import islice

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_BATCH = 4096
"""Names that are looked at at once."""


def clear(directory: int) -> None:
    """Remove everything in an open directory, which belongs to this process alone.

    Raises:
        OSError: something cannot be removed.
    """
    while (pending := _remove_batch(directory, directory)) is not None:
        while pending:
            name = pending.pop()
            _let_in(directory, name)
            below = os.open(name, _DIRECTORY, dir_fd=directory)
            try:
                while (moved := _remove_batch(below, directory)) is not None:
                    pending += moved
            finally:
                os.close(below)
            os.rmdir(name, dir_fd=directory)


def remove_directory(parent: int, name: str) -> None:
    """Remove a directory with everything in it.

    Raises:
        OSError: it is none, or something in it cannot be removed.
    """
    directory = os.open(name, _DIRECTORY, dir_fd=parent)
    try:
        clear(directory)
    finally:
        os.close(directory)
    os.rmdir(name, dir_fd=parent)


def _remove_batch(directory: int, top: int) -> list[str] | None:
    """Remove some of the names in a directory, and return those directories of `top` that are to be emptied next.

    None says that there was nothing in it.
    """
    with os.scandir(directory) as entries:
        batch = [(each.name, each.is_dir(follow_symlinks=False)) for each in islice(entries, _BATCH)]
    pending: list[str] = []
    for name, is_directory in batch:
        if not is_directory:
            os.unlink(name, dir_fd=directory)
        elif directory == top:
            pending.append(name)
        else:
            _let_in(directory, name)
            pending.append(os.urandom(16).hex())
            os.rename(name, pending[-1], src_dir_fd=directory, dst_dir_fd=top)
    return pending if batch else None


def _let_in(parent: int, name: str) -> None:
    mode = stat.S_IMODE(os.lstat(name, dir_fd=parent).st_mode)
    if mode & stat.S_IRWXU != stat.S_IRWXU:
        os.chmod(name, mode | stat.S_IRWXU, dir_fd=parent)
