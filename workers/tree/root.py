"""A path that a model wrote -> an open file beneath the root.

Rule: nothing here decides by looking at a path and then opens it. The root is an inherited O_PATH descriptor,
never a path string, and every open goes through openat2(2) with RESOLVE_BENEATH and RESOLVE_NO_MAGICLINKS, so
that the kernel resolves and judges in one step; without that call nothing opens. The checks of the text only
give better messages.
"""

import errno
import os
import stat
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Final, NamedTuple

from workers import kernel
from workers.errors import ToolError
from workers.wire.messages import ErrorKind

NAME_LIMIT: Final = 255
PATH_LIMIT: Final = 4095
"""Bytes of one name and of a whole path that Linux takes (NAME_MAX; PATH_MAX without its NUL)."""

_SHOWN: Final = 120
"""Characters of a path that a message repeats."""

_TRIES: Final = 128
"""openat2 answers EAGAIN when any rename or mount happened while it went through ".."; then ask again."""

# include/uapi/linux/openat2.h
_NO_MAGICLINKS: Final = 0x02
_NO_SYMLINKS: Final = 0x04
_BENEATH: Final = 0x08
_OPEN_HOW: Final = struct.Struct("=QQQ")

_ALWAYS: Final = os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK

DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
HANDLE: Final = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
"""To open a directory: to list and change it, and only to go on from it."""

_AGAIN: Final = "List the directory to see what there is."
_REAL: Final = "Use the real path of the file, relative to the root."
_RELATIVE: Final = (
    "Use a path relative to the root, without leading / and without .. or links that leave it: notes/x.md."
)


class Problem(NamedTuple):
    """How one errno is told to the model: kind, what happened, what to do instead."""

    kind: ErrorKind
    what: str
    instead: str


_DENIED: Final = Problem("permission_denied", "The system denies access", "Use another, or ask the user.")
_NO_NAME: Final = Problem("invalid_arguments", "The file system cannot have this name", "Use another name.")
_NO_FILE: Final = Problem("not_a_file", "It is no regular file", "Name a regular file.")
_NO_DESCRIPTOR: Final = Problem("resource_limit", "Too many files are open", "Try again.")

PROBLEMS: Final[Mapping[int, Problem]] = MappingProxyType(
    {
        errno.EXDEV: Problem("path_escape", "it leads out of the root", _RELATIVE),
        errno.ELOOP: Problem("path_escape", "it goes through a symbolic link that is not followed", _REAL),
        errno.EAGAIN: Problem("path_escape", "it kept changing while it was looked up", _RELATIVE),
        errno.ENOENT: Problem("not_found", "No such file or directory", _AGAIN),
        errno.ENOTDIR: Problem("not_a_directory", "A part of the path is not a directory", _AGAIN),
        errno.EISDIR: Problem("not_a_file", "It is a directory", "Name a file in it."),
        errno.ENXIO: _NO_FILE,
        errno.ENODEV: _NO_FILE,
        errno.EACCES: _DENIED,
        errno.EPERM: _DENIED,
        errno.EROFS: Problem("permission_denied", "It is on a read-only file system", "Write elsewhere."),
        errno.ETXTBSY: Problem("permission_denied", "It is a running program", "Try when it has ended."),
        errno.ENAMETOOLONG: Problem("invalid_arguments", "The name is too long", "Use a shorter one."),
        errno.EINVAL: _NO_NAME,
        errno.EILSEQ: _NO_NAME,
        errno.ENOSPC: Problem("disk_full", "The disk is full; nothing was written", "Tell the user."),
        errno.EDQUOT: Problem("disk_full", "The disk quota is used up; nothing was written", "Tell the user."),
        errno.EFBIG: Problem("resource_limit", "The file is larger than a worker may write", "Write less."),
        errno.EOVERFLOW: Problem("too_large", "The file is too large", "Use a smaller one."),
        errno.EMFILE: _NO_DESCRIPTOR,
        errno.ENFILE: _NO_DESCRIPTOR,
        errno.ENOMEM: Problem("resource_limit", "The system is out of memory", "Try again with less."),
        errno.EMLINK: Problem("resource_limit", "The directory is full", "Use another directory."),
    }
)
"""Every errno that has an answer. Any other one is `internal`, by name."""


def shown(path: str) -> str:
    """Return `path` as a message may repeat it: one line, no control characters, not too long."""
    text = repr(path[: _SHOWN + 1])[1:-1]
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."


def escape(path: str, why: str, instead: str = _RELATIVE) -> ToolError:
    """Return the error for a path that leads out of the root."""
    message = f'Path escape: "{shown(path)}": {why}. Access denied: path outside sandbox directory. {instead}'
    return ToolError("path_escape", message, path=shown(path))


def declined(error: OSError, path: str) -> ToolError:
    """Return what the model is told when the system refused `path`."""
    code = error.errno or 0
    problem = PROBLEMS.get(code)
    if problem is None:
        name = errno.errorcode.get(code, str(code))
        return ToolError("internal", f'The system failed on "{shown(path)}": {name}.', path=shown(path), errno=name)
    if problem.kind == "path_escape":
        return escape(path, problem.what, problem.instead)
    return ToolError(problem.kind, f'{problem.what}: "{shown(path)}". {problem.instead}', path=shown(path))


@contextmanager
def about(path: str) -> Iterator[None]:
    """Tell every OSError of the body as a `ToolError` about `path`."""
    try:
        yield
    except OSError as error:
        raise declined(error, path) from error


def parts_of(path: str) -> tuple[str, ...]:
    """Check the text of `path`, and return its components without "", "." and "..", resolved lexically.

    Raises:
        ToolError: `path_escape` if it is absolute or climbs out, `invalid_arguments` if it can name no file.
    """
    if path.startswith("/"):
        raise escape(path, "it is absolute")
    parts: list[str] = []
    for part in path.split("/"):
        if part == "..":
            if not parts:
                raise escape(path, "it climbs out of the root")
            parts.pop()
        elif part not in {"", "."}:
            parts.append(part)
    if not path:
        raise ToolError("invalid_arguments", "The path is empty. Use . for the root itself.")
    if "\0" in path:
        raise ToolError("invalid_arguments", f'No path has a NUL in it: "{shown(path)}".', path=shown(path))
    try:
        raw = path.encode()
    except UnicodeEncodeError as error:
        raise ToolError("invalid_arguments", f'Not Unicode text: "{shown(path)}".', path=shown(path)) from error
    if len(raw) > PATH_LIMIT or max(map(len, raw.split(b"/"))) > NAME_LIMIT:
        raise declined(OSError(errno.ENAMETOOLONG, ""), path)
    return tuple(parts)


def open_beneath(directory: int, path: str, flags: int, *, links: bool, mode: int = 0) -> int:
    """Open `path` beneath the descriptor `directory`; the caller closes the result.

    Args:
        directory: Where the resolution starts and what it cannot leave.
        path: Relative.
        flags: Of open(2); O_CLOEXEC, O_NOCTTY and O_NONBLOCK are added (O_PATH takes only the first).
        links: Whether symbolic links that stay beneath are followed.
        mode: Permission bits of a file that is created; the worker's umask is 0.

    Raises:
        OSError: EXDEV or ELOOP where `path` leads out; ENOSYS where the kernel has no openat2.
    """
    resolve = _BENEATH | _NO_MAGICLINKS | (0 if links else _NO_SYMLINKS)
    always = os.O_CLOEXEC if flags & os.O_PATH else _ALWAYS
    how = _OPEN_HOW.pack(flags | always, mode, resolve)
    tries = _TRIES
    while True:
        try:
            return kernel.syscall("openat2", kernel.OPENAT2, directory, os.fsencode(path), how, len(how))
        except BlockingIOError:
            tries -= 1
            if not tries:
                raise
        except InterruptedError:
            continue


class _Closing:
    """A descriptor for the body, closed after it; a class, as a generator takes three times as long."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def __enter__(self) -> int:
        return self._descriptor

    def __exit__(self, *_raised: object) -> None:
        os.close(self._descriptor)


closing: Final = _Closing


@contextmanager
def parent_of(directory: int, path: str) -> Iterator[tuple[int, str]]:
    """Have the directory that a path beneath `directory` is in, through no link, and the name in it, for the body.

    Raises:
        OSError: there is no such directory.
    """
    parent, _, name = path.rpartition("/")
    with closing(open_beneath(directory, parent or ".", HANDLE, links=False)) as opened:
        yield opened, name


def sync_directory(directory: int) -> None:
    """Make the names in a directory durable, where its file system can (EINVAL means: it cannot)."""
    try:
        os.fsync(directory)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise


class Root:
    """The one directory of a worker. It owns `fd` for the life of the process."""

    def __init__(self, fd: int, umask: int, *, plan: bool = False) -> None:
        self.fd = fd
        self.plan = plan
        """Nothing in it will ever be changed by this process."""
        self.umask = umask
        """What the process was started with; by now its own is 0."""
        self.swept: set[tuple[int, int]] = set()
        """Directories (st_dev, st_ino) from which this process has removed left-over drafts."""

    @contextmanager
    def open_file(self, path: str) -> Iterator[tuple[int, os.stat_result]]:
        """Open a regular file for the body, and close it; links that stay beneath the root are followed.

        Raises:
            ToolError: it cannot be read, or an OSError of the body.
        """
        parts_of(path)
        with about(path), closing(open_beneath(self.fd, path, os.O_RDONLY, links=True)) as file:
            yield file, regular(os.fstat(file), path)

    @contextmanager
    def listing(self, path: str, *, links: bool = True) -> Iterator[int]:
        """Open a directory for the body, and close it.

        Raises:
            ToolError: it is none or cannot be listed, or an OSError of the body.
        """
        parts_of(path)
        flags = os.O_RDONLY | os.O_DIRECTORY
        with about(path), closing(open_beneath(self.fd, path, flags, links=links)) as directory:
            yield directory

    def mode_of(self, path: str) -> int | None:
        """Return the st_mode of what `path` leads to, through links; None if that is not beneath the root."""
        try:
            with closing(open_beneath(self.fd, path, os.O_PATH, links=True)) as place:
                return os.fstat(place).st_mode
        except OSError:
            return None


def regular(status: os.stat_result, path: str) -> os.stat_result:
    """Return `status` if it is a regular file's.

    Raises:
        ToolError: `path_escape` for a symbolic link, `not_a_file` for anything else.
    """
    if stat.S_ISREG(status.st_mode):
        return status
    if stat.S_ISLNK(status.st_mode):
        raise declined(OSError(errno.ELOOP, ""), path)
    raise declined(OSError(errno.EISDIR if stat.S_ISDIR(status.st_mode) else errno.ENXIO, ""), path)
