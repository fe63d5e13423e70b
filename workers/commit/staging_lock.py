"""Directories that are in use for as long as their lock is held, and what becomes of those that nobody holds.

Rule: one that can be locked has lost its owner. It is removed, or where its owner was in the middle of changing the
root, kept under a name that a person sees: then something in it may be nowhere else. Where nothing can be locked none
is made, and none is removed: nobody knows then which is in use.
"""

import errno
import fcntl
import os
import stat
from contextlib import suppress
from typing import Final

from workers.commit.removal import remove_directory
from workers.commit.temporary_modes import put_back
from workers.tree.drafts import draft_name, is_draft
from workers.tree.root import open_beneath

BEGUN: Final = stat.S_ISVTX
"""Of a directory's mode: names in the root are changing."""

LOCK: Final = "flock"
"""The name that an error has which says that the file system does not lock directories."""

_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_TRIES: Final = 16


def draft(root: int) -> tuple[str, int]:
    """Make and lock a directory. Between the two another commit's sweep may take it: then make another.

    Raises:
        OSError: none can be made, opened or locked, and none is left; EBUSY where others took each of them.
    """
    for _ in range(_TRIES):
        name = draft_name(os.urandom(8).hex())
        os.mkdir(name, stat.S_IRWXU, dir_fd=root)
        try:
            fd = _locked(root, name)
        except BaseException:
            _remove(root, name)
            raise
        if fd is not None:
            return name, fd
        _remove(root, name)
    raise OSError(errno.EBUSY, "others took each directory that was made")


def sweep(root: int) -> list[str]:
    """Remove the staging directories of processes that were killed; return the names of those that are kept."""
    kept = []
    directory = open_beneath(root, ".", os.O_RDONLY | os.O_DIRECTORY, links=False)
    try:
        with os.scandir(directory) as entries:
            names = [each.name for each in entries if is_draft(each.name) and each.is_dir(follow_symlinks=False)]
        for name in names:
            with suppress(OSError):
                dead = os.open(name, _DIRECTORY, dir_fd=directory)
                try:
                    if not _locks(dead):
                        continue
                    if os.fstat(dead).st_mode & BEGUN:
                        try:
                            kept.append(keep(directory, name, dead))
                        finally:
                            put_back(directory, dead)
                    else:
                        remove_directory(directory, name)
                finally:
                    os.close(dead)
    finally:
        os.close(directory)
    return kept


def keep(root: int, name: str, directory: int) -> str:
    """Give a staging directory a name that a person sees; return it."""
    visible = name.replace(".strongroom-", "strongroom-rescued-").removesuffix(".tmp")
    os.rename(name, visible, src_dir_fd=root, dst_dir_fd=root)
    os.fchmod(directory, stat.S_IRWXU)
    return visible


def _locked(root: int, name: str) -> int | None:
    """Open and lock a new directory; None where a sweep takes it."""
    try:
        fd = os.open(name, _DIRECTORY, dir_fd=root)
    except FileNotFoundError:
        return None
    try:
        if _locks(fd) and os.fstat(fd).st_nlink:
            return fd
    except BaseException:
        os.close(fd)
        raise
    os.close(fd)
    return None


def _remove(root: int, name: str) -> None:
    """Remove a new directory, if it is still there."""
    with suppress(OSError):
        os.rmdir(name, dir_fd=root)


def _locks(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        raise OSError(error.errno, error.strerror, LOCK) from error
    return True
