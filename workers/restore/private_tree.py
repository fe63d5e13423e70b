"""The worker's own tree, made ready before lock-down: `prepare` of the category.

Rule: the process sees the root, what was kept (to read), a scratch directory, another one in memory, and /proc, and no
other file of the system. Modes and times are changed by names, which neither Landlock nor a filter can judge: so names
lead nowhere else. Where a system forbids namespaces it serves without, and says so. Where only one of these directories
cannot be shown there, nothing helps but to mend that: it does not serve.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Final, NamedTuple

from workers.confine import landlock, mounts, namespaces
from workers.confine.confinements import SCRATCH
from workers.confine.mounts import NO_DEVICES, NO_PROGRAMS, NO_SUID, READ_ONLY
from workers.confine.namespaces import NEW_HOST_NAME, NEW_IPC, NEW_MOUNTS, NEW_NETWORK, NEW_USERS
from workers.confine.probe import try_doors
from workers.confine.steps import STEPS, Prepared, StepContext
from workers.restore.restore_inputs import RestoreInputs
from workers.restore.restorer import MEMORY, Restorer
from workers.tree.attributes import ACCESS, INTERNAL, plain_list
from workers.tree.root import DIRECTORY, HANDLE, closing
from workers.wire import messages

_NAMESPACES: Final = NEW_USERS | NEW_MOUNTS | NEW_NETWORK | NEW_IPC | NEW_HOST_NAME

_BASE: Final = "/dev"
"""Where the new tree is built: a directory that is always there and holds nothing that is shown."""

_NAMES: Final = ("/root", "/kept", "/scratch")
"""Where the places are in it."""

_MEMORY: Final = "/memory"
"""Where the scratch directory in memory is; `restorer.MEMORY` bytes are used of it."""

_PROC: Final = "/proc"

_REFUSALS: Final = frozenset({errno.EPERM, errno.EACCES, errno.ENOSYS, errno.ENOENT, errno.EROFS})
"""How its locks say no: with a word, by nothing being there, or by what is there being only shown."""

_PLAIN: Final = NO_SUID | NO_DEVICES | NO_PROGRAMS


class _ShownDirectory(NamedTuple):
    """A directory that is shown in the new tree."""

    what: str
    """How it is called."""
    descriptor: int
    path: str


def prepare(start: messages.Start, inputs: RestoreInputs) -> Prepared:
    """Open both directories, which are made if need be.

    Raises:
        OSError: one cannot be made or opened.
        ValueError: one is not this user's own.
    """
    paths = inputs.packs, inputs.scratch
    kept, scratch = (_own(path) for path in paths)
    memory = os.dup(scratch)  # and stays that where there is no tree of its own

    def tree_of_its_own(order: StepContext) -> str:
        root = _ShownDirectory(f"the root {order.start.context.working_directory}", order.start.root_fd, ".")
        others = _ShownDirectory(paths[0], kept, paths[0]), _ShownDirectory(paths[1], scratch, paths[1])
        _leave(root, others, memory, writable=start.writable)
        return "namespaces"

    steps = tuple((name, tree_of_its_own if name == "namespaces" else step) for name, step in STEPS)
    rules = landlock.Beneath(kept, landlock.READ_FILE), *(landlock.Beneath(each, SCRATCH) for each in (scratch, memory))
    doors = partial(try_doors, refusals=_REFUSALS)
    return Prepared(Restorer(kept, scratch, memory), rules, (kept, scratch, memory), steps, doors)


def _own(path: str) -> int:
    """Return a descriptor of a directory that belongs to this user alone."""
    os.makedirs(path, stat.S_IRWXU, exist_ok=True)
    directory = os.open(path, HANDLE | os.O_NOFOLLOW)
    status = os.fstat(directory)
    if status.st_uid == os.geteuid() and not status.st_mode & 0o022:
        return directory
    os.close(directory)
    if status.st_uid != os.geteuid():
        mended = f"Move it away, or, as root: chown {os.geteuid()} {path}"
        raise ValueError(f"{path} is not this user's own: it belongs to user {status.st_uid}. {mended}")
    raise ValueError(f"others may write in {path}. Use: chmod 700 {path}")


def _leave(root: _ShownDirectory, others: tuple[_ShownDirectory, ...], memory: int, *, writable: bool) -> None:
    """Move into namespaces of which this process sees nothing but these places, under their descriptors.

    Args:
        root: The current directory goes along, whatever it is called; what a descriptor stands for does not.
        others: What was kept, and the scratch directory.
        memory: The descriptor that gets a directory in memory, if one of this kernel has attributes and access lists.
        writable: Whether the root is.

    Raises:
        OSError: the system forbids it.
        ValueError: it does not, but a place cannot be used there, or lies elsewhere by now.
    """
    with _had(root):
        os.fchdir(root.descriptor)
    namespaces.try_as_oneself(_NAMESPACES)
    namespaces.leave_as_oneself(_NAMESPACES)
    mounts.keep_to_ourselves()
    opened = [_same(each, each.path) for each in others]  # anew, or they could not be mounted
    sources = (".", *(f"/proc/self/fd/{each}" for each in opened))
    mounts.new("tmpfs", _BASE, _PLAIN, "size=1m,mode=755")
    _bind(_PROC, _PROC, READ_ONLY)  # before the places: if a system lets nothing be shown, it is seen here
    for place, name, source, flags in zip(
        (root, *others), _NAMES, sources, (0 if writable else READ_ONLY, READ_ONLY, 0), strict=True
    ):
        with _had(place):
            _bind(source, name, flags)
    os.mkdir(_BASE + _MEMORY)
    mounts.new("tmpfs", _BASE + _MEMORY, _PLAIN, f"size={2 * MEMORY},mode=700")
    mounts.change_root(_BASE)
    mounts.restrict("/", READ_ONLY)
    for each in opened:  # they lead into the old tree
        os.close(each)
    for name, place in zip(_NAMES, (root, *others), strict=True):
        again = _same(place, name)  # or something is mounted over it
        os.dup2(again, place.descriptor, inheritable=False)
        os.close(again)
    with closing(os.open(_MEMORY, DIRECTORY)) as made, suppress(OSError):
        os.setxattr(made, f"{INTERNAL}probe", b"y")
        os.setxattr(made, ACCESS, plain_list(stat.S_IRWXU))
        os.dup2(made, memory, inheritable=False)


def _bind(source: str, name: str, flags: int) -> None:
    os.mkdir(_BASE + name)
    mounts.bind(source, _BASE + name, _PLAIN | flags)


def _same(place: _ShownDirectory, path: str) -> int:
    """Open the directory that `place` stands for.

    Raises:
        ValueError: it cannot be opened, or lies elsewhere by now.
    """
    with _had(place):
        again = os.open(path, HANDLE | os.O_NOFOLLOW)
        if not os.path.samestat(os.fstat(again), os.fstat(place.descriptor)):
            os.close(again)
            raise FileNotFoundError(errno.ENOENT, "it is another directory by now")
        return again


@contextmanager
def _had(place: _ShownDirectory) -> Iterator[None]:
    """Tell what the system says within of a place: no protection is missing then.

    Raises:
        ValueError: the place cannot be used.
    """
    try:
        yield
    except OSError as error:
        mended = "Look at its owner and mode, and at what is mounted there: this user must be able to enter it"
        raise ValueError(f"{place.what} cannot be used: {error.strerror}. {mended}") from error
