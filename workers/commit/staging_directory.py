"""The directory of a commit beneath its root: how it is made and locked, swept, and kept where a person sees it.

Rule: it has the name of a write in progress, and is locked while its process lives. One that can be locked has lost its
owner: it is removed; where names in the root were changing it is left to be settled, or kept where nobody has done so,
for something in it may be nowhere else then.
"""

import fcntl
import os
import stat
import sys
import time
from contextlib import suppress
from functools import partial
from typing import Final

from workers.commit.commit_plan import PLAN
from workers.commit.temporary_modes import forget, put_back
from workers.tree.drafts import DRAFT, create_draft, drafts_in, remove_directory, sweep_drafts
from workers.tree.root import DIRECTORY, closing, open_beneath

_MANY: Final = 256
"""New files from which on it matters where on the disk they are."""

_PLACES: Final = 5
"""Directories that are made for one to be chosen."""
_PROBES: Final = tuple(map(str, range(8)))
"""Files that are made in each."""

_GET_FLAGS: Final = 0x80086601
_SET_FLAGS: Final = 0x40086602
_SPREADS: Final = 0x20000
"""FS_IOC_GETFLAGS, FS_IOC_SETFLAGS and FS_TOPDIR_FL of linux/fs.h."""

RESCUED: Final = "strongroom-rescued-"
"""How the name of a staging directory begins that is kept where a person sees it."""

_SETTLED_S: Final = 3600.0
"""Seconds in which a commit that was killed is settled, if it ever is."""

BEGUN: Final = stat.S_ISVTX
"""Of a directory's mode: names in the root are changing."""


def draft(root: int, files: int = 0) -> tuple[str, int]:
    """Make and lock a directory for about so many files; return its name and descriptor.

    Raises:
        OSError: none can be made, opened or locked, and none is left.
    """

    def create(name: str) -> int | None:
        if files < _MANY or not _make_apart(root, name):
            os.mkdir(name, stat.S_IRWXU, dir_fd=root)
        try:
            return os.open(name, DIRECTORY, dir_fd=root)
        except FileNotFoundError:
            return None
        except BaseException:
            remove(name)
            raise

    def remove(name: str) -> None:
        with suppress(OSError):
            os.rmdir(name, dir_fd=root)

    return create_draft(create, remove)


def _make_apart(root: int, name: str) -> bool:
    """Make a directory whose files the file system puts far from those of the root; say whether it does such a thing.

    ext4 without a journal takes no inode that was freed in the last minute, and looks at all of them each time that it
    takes one (recently_deleted in fs/ext4/ialloc.c): ten thousand files where as many have just been replaced cost 4 s.
    So several are made, which it puts here and there by their names, and the one stays that takes files fastest.
    """
    above, fd = draft(root)
    try:
        flags = int.from_bytes(fcntl.ioctl(fd, _GET_FLAGS, bytes(8))[:4], sys.byteorder)
        fcntl.ioctl(fd, _SET_FLAGS, (flags | _SPREADS).to_bytes(8, sys.byteorder))
        places = [f"{name}{number}" for number in range(_PLACES)]
        for place in places:
            os.mkdir(place, stat.S_IRWXU, dir_fd=fd)
        os.rename(min(places, key=partial(_cost_of_files, fd)), name, src_dir_fd=fd, dst_dir_fd=root)
    except OSError:
        return False
    finally:
        with suppress(OSError), closing(fd):
            remove_directory(root, above)
    return True


def _cost_of_files(above: int, place: str) -> float:
    """Return the seconds that it takes to make a few files in a directory."""
    with closing(os.open(place, DIRECTORY, dir_fd=above)) as directory:
        began = time.perf_counter()
        for name in _PROBES:
            os.close(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=directory))
        took = time.perf_counter() - began
        for name in _PROBES:
            os.unlink(name, dir_fd=directory)
    return took


def sweep(root: int) -> list[str]:
    """Remove the staging directories of processes that were killed; return the names of those that are kept."""
    kept: list[str] = []
    with closing(open_beneath(root, ".", os.O_RDONLY | os.O_DIRECTORY, links=False)) as directory:

        def take(name: str, dead: int) -> None:
            if not os.fstat(dead).st_mode & BEGUN:
                remove_directory(directory, name)
                return
            if _will_be_settled(dead):
                return
            try:
                kept.append(keep(directory, name, dead))
            finally:
                put_back(directory, dead)
                forget(dead)

        sweep_drafts(drafts_in(directory), take, directory)
    return kept


def _will_be_settled(dead: int) -> bool:
    """Say whether a commit was killed so lately that a worker which knows its call takes it back (`settle`)."""
    with suppress(OSError):
        return os.stat(PLAN, dir_fd=dead, follow_symlinks=False).st_mtime > time.time() - _SETTLED_S
    return False


def keep(root: int, name: str, directory: int) -> str:
    """Give a staging directory a name that a person sees; return it."""
    visible = name.replace(DRAFT, RESCUED).removesuffix(".tmp")
    os.rename(name, visible, src_dir_fd=root, dst_dir_fd=root)
    os.fchmod(directory, stat.S_IRWXU)
    return visible
