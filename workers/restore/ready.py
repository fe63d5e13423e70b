"""The worker's own tree, made ready before lock-down: `prepare` of the category.

Rule: the process sees the root, what was kept (to read), a scratch directory and /proc, and no other file of the
system. Modes and times are changed by names, which neither Landlock nor a filter can judge: so names lead nowhere else.
Where a system forbids namespaces it does not serve, unless the operator does without them by name.
"""

import errno
import os
import stat
from functools import partial
from typing import Final

from workers import wire
from workers.confine import landlock, mounts
from workers.confine.mounts import NO_DEVICES, NO_PROGRAMS, NO_SUID, READ_ONLY
from workers.confine.namespaces import NEW_HOST_NAME, NEW_IPC, NEW_MOUNTS, NEW_NETWORK, NEW_USERS, leave_as_oneself
from workers.confine.order import STEPS, Order, Prepared
from workers.confine.policy import SCRATCH
from workers.confine.probe import try_doors
from workers.restore.engine import Engine

_HANDLE: Final = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
_NAMESPACES: Final = NEW_USERS | NEW_MOUNTS | NEW_NETWORK | NEW_IPC | NEW_HOST_NAME

_BASE: Final = "/dev"
"""Where the new tree is built: a directory that is always there and holds nothing that is shown."""

_NAMES: Final = ("/root", "/kept", "/scratch", "/proc")
"""What is in it."""

_REFUSALS: Final = frozenset({errno.EPERM, errno.EACCES, errno.ENOSYS, errno.ENOENT, errno.EROFS})
"""How its locks say no: with a word, by nothing being there, or by what is there being only shown."""

_PLAIN: Final = NO_SUID | NO_DEVICES | NO_PROGRAMS


def prepare(start: wire.Start) -> Prepared:
    """Open both directories, which are made if need be.

    Raises:
        OSError: one cannot be made or opened.
        ValueError: one is not this user's own.
    """
    paths = start.equipment.get("kept", ""), start.equipment.get("scratch", "")
    kept, scratch = (_own(path) for path in paths)

    def namespaces(order: Order) -> str:
        _leave(((order.start.root_fd, "."), (kept, paths[0]), (scratch, paths[1])), writable=start.writable)
        return "namespaces"

    steps = tuple((name, namespaces if name == "namespaces" else step) for name, step in STEPS)
    rules = landlock.Beneath(kept, landlock.READ_FILE), landlock.Beneath(scratch, SCRATCH)
    doors = partial(try_doors, refusals=_REFUSALS)
    return Prepared(Engine(kept, scratch), rules, (kept, scratch), steps, doors)


def _own(path: str) -> int:
    """Return a descriptor of a directory that belongs to this user alone."""
    os.makedirs(path, stat.S_IRWXU, exist_ok=True)
    directory = os.open(path, _HANDLE | os.O_NOFOLLOW)
    status = os.fstat(directory)
    if status.st_uid != os.geteuid() or status.st_mode & 0o022:
        os.close(directory)
        raise ValueError(f"{path} is not this user's own, or others may write there. Use: chmod 700 {path}")
    return directory


def _leave(places: tuple[tuple[int, str], ...], *, writable: bool) -> None:
    """Move into namespaces of which this process sees nothing but `places`, under their descriptors.

    Args:
        places: The root, what was kept, and the scratch directory, each a descriptor and a path. The current directory
            goes along, whatever it is called; what a descriptor stands for does not.
        writable: Whether the root is.

    Raises:
        OSError: the system forbids it, or a place lies elsewhere by now.
    """
    root, *others = places
    os.fchdir(root[0])
    leave_as_oneself(_NAMESPACES)
    mounts.keep_to_ourselves()
    opened = [_opened_again(*each) for each in others]
    sources = (".", *(f"/proc/self/fd/{each}" for each in opened), "/proc")
    mounts.new("tmpfs", _BASE, _PLAIN, "size=1m,mode=755")
    for name, source, flags in zip(
        _NAMES, sources, (0 if writable else READ_ONLY, READ_ONLY, 0, READ_ONLY), strict=True
    ):
        os.mkdir(_BASE + name)
        mounts.bind(source, _BASE + name, _PLAIN | flags)
    mounts.change_root(_BASE)
    mounts.restrict("/", READ_ONLY)
    for each in opened:  # they lead into the old tree
        os.close(each)
    for name, (descriptor, _path) in zip(_NAMES, places, strict=False):
        place = os.open(name, _HANDLE)
        if not os.path.samestat(os.fstat(place), os.fstat(descriptor)):  # something is mounted over it
            raise FileNotFoundError(errno.ENOENT, "another directory by now", name)
        os.dup2(place, descriptor, inheritable=False)
        os.close(place)


def _opened_again(descriptor: int, path: str) -> int:
    """Open a directory in the mount namespace of now: one that was opened before cannot be mounted.

    Raises:
        OSError: it lies elsewhere by now.
    """
    again = os.open(path, _HANDLE | os.O_NOFOLLOW)
    if not os.path.samestat(os.fstat(again), os.fstat(descriptor)):
        os.close(again)
        raise FileNotFoundError(errno.ENOENT, "another directory by now", path)
    return again
