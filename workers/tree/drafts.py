"""Drafts: files and directories under a name of their own, locked for as long as somebody works on them.

Rule: no other file has such a name: whoever lists or searches leaves it out, and no tool writes it. A draft that can be
locked has lost its owner, and the next sweep takes it. Where the file system has no locks no draft is kept and none is
swept: nobody knows there which is in use.
"""

import errno
import fcntl
import os
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final

LOCK: Final = "flock"
"""The file name of an OSError which says that the file system has no locks."""

TAKEN: Final = "draft"
"""The file name of an OSError which says that sweeps took each draft that was made."""

_DRAFT: Final = re.compile(r"\.strongroom-[0-9a-f]{16}\.tmp")
_OPEN: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_TRIES: Final = 16


def is_draft(name: str) -> bool:
    """Say whether a name is that of a write in progress; listings leave it out."""
    return _DRAFT.fullmatch(name) is not None


def drafts_in(directory: str) -> list[str]:
    """Return the names of directories that are made ready there, or were when their process was killed."""
    found: list[str] = []
    with suppress(OSError), os.scandir(directory) as entries:
        found += [each.name for each in entries if is_draft(each.name) and each.is_dir(follow_symlinks=False)]
    return found


def create_draft(create: Callable[[str], int | None], remove: Callable[[str], None]) -> tuple[str, int]:
    """Create and lock a draft; return its name and descriptor. If a sweep takes it first, create another.

    Args:
        create: makes a name and opens it; None where a sweep has taken it in between.
        remove: removes a name, if it is still there.

    Raises:
        OSError: none can be created or locked, and none is left; named `TAKEN` where sweeps took each of them.
    """
    for _ in range(_TRIES):
        name = f".strongroom-{os.urandom(8).hex()}.tmp"
        draft = create(name)
        try:
            if draft is not None and locks(draft) and os.fstat(draft).st_nlink:
                return name, draft
        except BaseException:
            if draft is not None:
                os.close(draft)
            remove(name)
            raise
        if draft is not None:
            os.close(draft)
        remove(name)
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
