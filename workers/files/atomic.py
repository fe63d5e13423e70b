"""Replace a file at once: whoever reads it sees the old text or the new one, also after a crash.

Rule: draft in the same directory, write, fsync, exchange, look at what came out, fsync of the directory. What came out
and is not what was seen goes back: nobody's change is lost, however late it comes. A draft is created with exactly
the permission bits that the file shall have, or fewer where it gets an access list, and has the old one's attributes
and group before it has its name. It is locked while it
is in use; a draft that can be locked has lost its owner and is removed by the next writer. Where the file system
has no locks nothing is written: somebody who can lock there, on another machine, would sweep away what is in use.
"""

import errno
import fcntl
import os
import stat
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Final

from workers.changes.digest import sha256
from workers.errors import ToolError
from workers.files.seen_file import Old, expect, holds, identity
from workers.kernel import EXCHANGE, NOREPLACE, rename
from workers.tree.attributes import become
from workers.tree.drafts import LOCK, TAKEN, create_draft, locks, remove_directory, sweep_directory
from workers.tree.parent_dir import ParentDir, changed
from workers.tree.root import DIRECTORY, Root, closing, open_beneath, shown, sync_directory

_CREATE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW

_SWEEPING_S: Final = 0.002
_SWEEPS: Final = 100
"""How long, and how often, to wait for another writer's sweep. Whoever holds the lock for longer does not sweep."""


def replace(root: Root, place: ParentDir, data: bytes, mode: int, old: Old | None) -> None:
    """Put `data` with `mode` into the file at `place`, where `old` is.

    Raises:
        ToolError: `conflict`, it is not what is there any more; or `internal`, no draft can be locked or kept.
        OSError: anything the system refused. In all cases nothing has changed.
    """
    try:
        _sweep(root, place.parent)
        if place.missing:
            _plant(root, place, data, mode)
            return
        first = mode & (stat.S_ISVTX | stat.S_IRWXU) if old is not None and old.attributes else mode
        name, draft = create_draft(
            lambda name: open_beneath(place.parent, name, _CREATE, links=False, mode=first),
            lambda name: _remove(place, name),
        )
        with closing(draft), ExitStack() as unswept:
            try:
                _write(draft, data)
                if old is not None:
                    become(draft, old.attributes, mode, old.group)
                os.fsync(draft)
                new = Old(identity(os.fstat(draft)), 0, 1, sha256(data).digest())
                expect(place, old)  # spares readers a new text that would be taken back
                unswept.enter_context(_unswept(place.parent))
            except BaseException:
                _remove(place, name)
                raise
            _exchange(place, name, new, old)
    except OSError as error:
        if error.filename == TAKEN:
            path = shown(place.path)
            message = f'Nothing was written: other writers removed every temporary file for "{path}". Try again.'
            raise ToolError("internal", message, path=path) from error
        if error.filename != LOCK:
            raise
        code = errno.errorcode.get(error.errno or 0, str(error.errno))
        message = f"Nothing was written: the file system there does not lock files ({code}). Write elsewhere."
        raise ToolError("internal", message, errno=code) from error
    sync_directory(place.parent)


def _plant(root: Root, place: ParentDir, data: bytes, mode: int) -> None:
    """Make a file in directories that are missing: all of it under a draft's name, which becomes the first of them."""
    first, *inner = place.missing
    bits = 0o777 & ~root.umask
    name, top = create_draft(lambda name: _directory(place.parent, name, bits), lambda name: _uproot(place, name))
    with ExitStack() as opened:
        directories = [opened.enter_context(closing(top))]
        try:
            for each in inner:
                directories.append(opened.enter_context(closing(_directory(directories[-1], each, bits))))
            with closing(open_beneath(directories[-1], place.name, _CREATE, links=False, mode=mode)) as file:
                _write(file, data)
                os.fsync(file)
            for directory in reversed(directories):
                sync_directory(directory)
            _name(place, name, first)
        except BaseException as error:
            _uproot(place, name)
            if isinstance(error, FileExistsError):
                raise changed(place.path) from error
            raise
    sync_directory(place.parent)


def _name(place: ParentDir, name: str, first: str) -> None:
    """Let a draft have its name, unless something has it."""
    try:
        rename(place.parent, name, place.parent, first, NOREPLACE)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        with suppress(FileNotFoundError):
            os.lstat(first, dir_fd=place.parent)
            raise FileExistsError(errno.EEXIST, "somebody else made it", first) from error
        os.rename(name, first, src_dir_fd=place.parent, dst_dir_fd=place.parent)


def _directory(parent: int, name: str, mode: int) -> int:
    os.mkdir(name, mode, dir_fd=parent)
    return open_beneath(parent, name, DIRECTORY, links=False)


def _uproot(place: ParentDir, name: str) -> None:
    with suppress(OSError):
        remove_directory(place.parent, name)


def _exchange(place: ParentDir, name: str, new: Old, old: Old | None) -> None:
    """Rename the draft `name`, which is `new`, to its place.

    A file system that has no such renames (EINVAL) gets the plain one, for which a moment remains after the last look.
    """
    try:
        try:
            rename(place.parent, name, place.parent, place.name, EXCHANGE if old else NOREPLACE)
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
            expect(place, old)
            os.rename(name, place.name, src_dir_fd=place.parent, dst_dir_fd=place.parent)
            return
    except BaseException as error:
        _remove(place, name)
        if isinstance(error, FileExistsError | FileNotFoundError):
            raise changed(place.path) from error
        raise
    if old is None:
        return
    if not holds(place.parent, name, old):
        raise changed(place.path, _given_back(place, name, new))
    _remove(place, name)


def _given_back(place: ParentDir, name: str, new: Old) -> str:
    """Exchange again, and remove the draft. What is not the draft is somebody's as well: keep it, and say where."""
    try:
        rename(place.parent, name, place.parent, place.name, EXCHANGE)
    except FileNotFoundError:
        with suppress(FileExistsError):
            rename(place.parent, name, place.parent, place.name, NOREPLACE)
            return ""
    else:
        if holds(place.parent, name, new):
            _remove(place, name)
            return ""
    kept = f"strongroom-{os.urandom(8).hex()}.kept"
    rename(place.parent, name, place.parent, kept, NOREPLACE)
    return f' What somebody wrote to it at the same moment is in "{kept}" beside it.'


def _remove(place: ParentDir, name: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=place.parent)


def _write(file: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(file, rest) :]


@contextmanager
def _unswept(directory: int) -> Iterator[None]:
    """Keep other writers from sweeping for the body, in which a draft's name holds what somebody wrote."""
    tries = _SWEEPS
    while not (held := locks(directory, fcntl.LOCK_SH)) and tries:
        tries -= 1
        time.sleep(_SWEEPING_S)
    try:
        yield
    finally:
        if held:
            with suppress(OSError):  # the file is written by now, and closing the directory unlocks it as well
                fcntl.flock(directory, fcntl.LOCK_UN)


def _sweep(root: Root, directory: int) -> None:
    """Remove the drafts of killed workers, once per process and directory; not while anybody renames in it."""
    status = os.fstat(directory)
    if (status.st_dev, status.st_ino) not in root.swept and sweep_directory(directory):
        root.swept.add((status.st_dev, status.st_ino))
