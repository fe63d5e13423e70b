"""The calls of the kernel that any commit of changed files must make, bare: what a commit of ours is judged by.

Rule: no file is half old and half new at any moment. So each is made anew beside the others, all are synced, exchanged
by name and synced again, and the old ones go; what they take on the disk is freed after the time is taken, as ours is
after the answer. A disk may take much longer for that than for all else.
"""

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from workers.kernel import EXCHANGE, hold, let_go, rename, syncfs
from workers.tree.root import DIRECTORY, closing

_CREATE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


def exchanged(top: Path) -> float:
    """Replace all files two levels beneath a directory by copies; return the milliseconds that the calls took."""
    contents = [(each, each.read_bytes()) for each in sorted(top.glob("*/*"))]
    place = top.parent / ".anew"
    place.mkdir()
    with closing(os.open(place, DIRECTORY)) as anew:
        began = time.perf_counter()
        for number, (_, content) in enumerate(contents):
            with closing(os.open(str(number), _CREATE, 0o600, dir_fd=anew)) as file:
                os.write(file, content)
                os.fchmod(file, 0o644)
                os.utime(file, ns=(0, 0))
        syncfs(anew)
        for number, (each, _) in enumerate(contents):
            rename(anew, str(number), anew, str(each), EXCHANGE)
        syncfs(anew)
        held = list(_removed(anew, len(contents)))
        took = (time.perf_counter() - began) * 1e3
    for file_held in held:
        let_go(file_held)
    place.rmdir()
    return took


def _removed(directory: int, files: int) -> Iterator[int]:
    """Remove the names of old files, and yield what holds each."""
    for number in range(files):
        with closing(os.open(str(number), os.O_RDONLY | os.O_CLOEXEC, dir_fd=directory)) as file:
            yield hold(file)
        os.unlink(str(number), dir_fd=directory)
