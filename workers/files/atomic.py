"""Replace a file at once: whoever reads it sees the old text or the new one, also after a crash.

Rule: draft in the same directory, write, fsync, rename, fsync of the directory. A draft is created with
exactly the permission bits that the file shall have, because the worker can change no mode afterwards. It is
locked while it is in use; a draft that can be locked has lost its owner and is removed by the next writer.
"""

import fcntl
import os
from contextlib import suppress
from typing import Final

from workers.drafts import draft_name, is_draft
from workers.files.place import Place, sync_directory
from workers.paths import Root, open_beneath, shown
from workers.tool import ToolError

_CREATE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
_TRIES: Final = 16

Identity = tuple[int, int, int, int]
"""Device, inode, size and modification time: what is the same while a file's text is the same."""


def identity(status: os.stat_result) -> Identity:
    """Return what tells whether a file is still the one that was read."""
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def replace(root: Root, place: Place, data: bytes, expected: Identity | None = None) -> bool:
    """Put `data` into the file at `place`; return whether there was one before.

    Args:
        root: For the umask, and for what has been swept.
        place: A regular file that this process may write, or nothing.
        data: The whole new content.
        expected: The file that must still be there just before the exchange, if it matters.

    Raises:
        ToolError: something else than a regular file is there, or (`no_match`) not the expected file.
        OSError: anything the system refused. In both cases nothing has changed.
    """
    before = place.status()
    if before is not None:
        os.close(place.open(os.O_WRONLY))  # the kernel says whether this file may be written
    _sweep(root, place.parent)
    mode = before.st_mode & 0o777 if before is not None else 0o666 & ~root.umask
    name, draft = _draft(place, mode)
    try:
        _write(draft, data)
        os.fsync(draft)
        _check(place, expected)
        os.rename(name, place.name, src_dir_fd=place.parent, dst_dir_fd=place.parent)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=place.parent)
        raise
    finally:
        os.close(draft)
    sync_directory(place.parent)
    return before is not None


def changed(place: Place) -> ToolError:
    """Return the error for a file that somebody else changed between reading and writing."""
    message = f'"{shown(place.path)}" was changed meanwhile; nothing was written. Read it again, then repeat the edit.'
    return ToolError("no_match", message, path=shown(place.path))


def _check(place: Place, expected: Identity | None) -> None:
    now = place.status()
    if expected is not None and (now is None or identity(now) != expected):
        raise changed(place)


def _draft(place: Place, mode: int) -> tuple[str, int]:
    """Create and lock a draft. Between the two another writer's sweep may take it: then make another."""
    for _ in range(_TRIES):
        name = draft_name(os.urandom(8).hex())
        draft = open_beneath(place.parent, name, _CREATE, links=False, mode=mode)
        if _locks(draft) and os.fstat(draft).st_nlink:
            return name, draft
        os.close(draft)
    raise ToolError("internal", f'No draft for "{shown(place.path)}" could be kept. Try again.', path=shown(place.path))


def _write(file: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(file, rest) :]


def _locks(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _sweep(root: Root, directory: int) -> None:
    """Remove the drafts of killed workers, once per process and directory."""
    status = os.fstat(directory)
    if (status.st_dev, status.st_ino) in root.swept:
        return
    root.swept.add((status.st_dev, status.st_ino))
    with os.scandir(directory) as entries:
        names = [entry.name for entry in entries if is_draft(entry.name) and entry.is_file(follow_symlinks=False)]
    for name in names:
        with suppress(OSError):
            draft = open_beneath(directory, name, os.O_RDONLY | os.O_NOFOLLOW, links=False)
            try:
                if _locks(draft):
                    os.unlink(name, dir_fd=directory)
            finally:
                os.close(draft)
