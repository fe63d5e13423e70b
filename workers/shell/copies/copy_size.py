"""Size of a copy of the root, against what a command may write.

Rule: nothing is counted before the file system has lost as much, for counting takes as long as the copy is large.
"""

import os
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from workers.shell.copies.tree_copy import TreeCopy
from workers.shell.run.unnamed_files import unnamed_bytes
from workers.shell.sandbox.private_root import NAMES_PER_MB

_MEGABYTE: Final = 2**20
_BLOCK: Final = 512


def is_over(
    directory: int, top: str, copy: TreeCopy, most_mb: int, before: os.statvfs_result, pids: Sequence[str]
) -> bool:
    """Say whether what lies in the copy's directory is too much; it is counted where the file system has lost as much.

    Others write to that as well; of what is hidden from a count nobody may take half of the room.
    """
    most, now = most_mb * _MEGABYTE, os.fstatvfs(directory)
    free, was = (each.f_bavail * each.f_frsize for each in (now, before))
    if was - free <= most and before.f_ffree - now.f_ffree <= most_mb * NAMES_PER_MB:
        return False
    size, names = _size(top)
    if was - free > most and (
        free < was // 2 or unnamed_bytes(pids, os.fstat(directory).st_dev) + size - copy.size > most
    ):
        return True
    return names - copy.names_in_all > most_mb * NAMES_PER_MB


def _size(top: str) -> tuple[int, int]:
    """Return the bytes and the names beneath a directory."""
    size, names, pending = 0, 0, [top]
    while pending:
        with suppress(OSError), os.scandir(pending.pop()) as entries:
            for entry in entries:
                with suppress(OSError):
                    names += 1
                    size += entry.stat(follow_symlinks=False).st_blocks * _BLOCK
                    pending += [entry.path] if entry.is_dir(follow_symlinks=False) else []
    return size, names
