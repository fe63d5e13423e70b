"""Drafts: files and directories under a name of their own, locked for as long as somebody works on them.

Rule: no other file has such a name: whoever lists or searches leaves it out, and no tool writes it. A draft that can be
locked has lost its owner, and the next sweep takes it. Where the file system has no locks no draft is kept and none is
swept: nobody knows there which is in use. A directory is emptied whatever a command left in it: no link is followed, no
depth exhausts descriptors or paths, no mode is in the way, since one that is found is first moved up to where its name
is short.
"""

import errno
import fcntl
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, suppress
from itertools import islice
from typing import Final

LOCK: Final = "flock"
"""The file name of an OSError which says that the file system has no locks."""

TAKEN: Final = "draft"
"""The file name of an OSError which says that sweeps took each draft that was made."""

DRAFT: Final = ".strongroom-"
"""The beginning of a draft's name."""

_DRAFT: Final = re.compile(rf"{re.escape(DRAFT)}[0-9a-f]{{16}}\.tmp")
_OPEN: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_TRIES: Final = 16
_BATCH: Final = 4096
"""Names of a directory that are looked at at once."""


def is_draft(name: str) -> bool:
    """Say whether a name is that of a write in progress; listings leave it out."""
    return name.startswith(DRAFT) and _DRAFT.fullmatch(name) is not None


def drafts_in(directory: str | int) -> list[str]:
    """Return the names of directories that are made ready there, or were when their process was killed.

    Raises:
        OSError: the directory cannot be read.
    """
    with _entries(directory) as entries:
        return [each.name for each in entries if is_draft(each.name) and each.is_dir(follow_symlinks=False)]


def _entries(directory: str | int) -> AbstractContextManager[Iterator[os.DirEntry[str]]]:
    """Look through a directory as it is now: through an older descriptor btrfs lists what was there when it was opened.

    Raises:
        OSError: it cannot be read.
    """
    if isinstance(directory, int):
        os.lseek(directory, 0, os.SEEK_SET)
    return os.scandir(directory)


def create_draft(create: Callable[[str], int | None], remove: Callable[[str], None]) -> tuple[str, int]:
    """Create and lock a draft; return its name and descriptor. If a sweep takes it first, create another.

    Args:
        create: makes a name and opens it; None where a sweep has taken it in between.
        remove: removes a name, if it is still there.

    Raises:
        OSError: none can be created or locked, and none is left; named `TAKEN` where sweeps took each of them.
    """
    for _ in range(_TRIES):
        name = f"{DRAFT}{os.urandom(8).hex()}.tmp"
        draft = create(name)
        with ExitStack() as undone:
            undone.callback(remove, name)
            if draft is not None:
                undone.callback(os.close, draft)
                if locks(draft) and os.fstat(draft).st_nlink:
                    undone.pop_all()
                    return name, draft
    raise OSError(errno.EBUSY, "others took each draft that was made", TAKEN)


def sweep_drafts(names: Iterable[str], take: Callable[[str, int], None], directory: int | None = None) -> None:
    """Let `take` have the name and descriptor of each draft without an owner. What cannot be opened or taken stays."""
    for name in names:
        with suppress(OSError):
            draft = os.open(name, _OPEN, dir_fd=directory)
            try:
                if locks(draft):
                    take(name, draft)
            finally:
                os.close(draft)


def sweep_directory(directory: int) -> bool:
    """Remove the drafts of killed writers from an open directory, and say so; not while anybody renames in it.

    What a commit has left in the middle of its renames stays: that is settled, or kept by the next commit.
    """
    if not locks(directory):
        return False
    try:
        with _entries(directory) as entries:
            names = [each.name for each in entries if is_draft(each.name) and not each.is_symlink()]
        sweep_drafts(names, lambda name, draft: _take(directory, name, draft), directory)
    finally:
        fcntl.flock(directory, fcntl.LOCK_UN)
    return True


def _take(directory: int, name: str, draft: int) -> None:
    mode = os.fstat(draft).st_mode
    if stat.S_ISREG(mode):
        os.unlink(name, dir_fd=directory)
    elif stat.S_ISDIR(mode) and not mode & stat.S_ISVTX:
        remove_directory(directory, name)


def locks(file: int, how: int = fcntl.LOCK_EX) -> bool:
    """Lock a file or a directory, unless somebody else has locked it, and say whether it was.

    Raises:
        OSError: nobody can lock it; its file name is `LOCK`.
    """
    try:
        fcntl.flock(file, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        raise OSError(error.errno, error.strerror, LOCK) from error
    return True


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
    with _entries(directory) as entries:
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
