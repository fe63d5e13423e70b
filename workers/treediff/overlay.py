"""The overlay: the root below, what the command writes above, and how the kernel marks it there.

Rule: nothing is mounted where the overlay would show another tree than the root's, or could not say what became of it.
Marks of the upper layer: a character device 0/0 stands for a deleted name, `user.overlay.opaque` on a directory hides
what the root has in it; other `user.overlay.*` are the kernel's own. Source: the kernel's
Documentation/filesystems/overlayfs.rst.
"""

import errno
import os
import re
import stat
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from workers import kernel
from workers.confine.syscalls import NUMBERS
from workers.errors import CannotRehearse, TooMuch
from workers.tree.attributes import INTERNAL
from workers.tree.root import HANDLE, closing

_OPAQUE: Final = f"{INTERNAL}opaque"
_ELSEWHERE: Final = (f"{INTERNAL}metacopy", f"{INTERNAL}redirect")
"""Marks of an upper layer that does not hold all of what it shows; `userxattr` excludes them."""

_FLAGS: Final = 0x02 | 0x04  # MS_NOSUID | MS_NODEV
_PLAIN: Final = re.compile(r"/[^,:\\\x00-\x20]*")
"""Paths that need no escaping among the mount's options."""

_ESCAPE: Final = re.compile(rb"\\([0-7]{3})")

_REASONS: Final[Mapping[int, str]] = MappingProxyType(
    {
        errno.ENODEV: "the kernel has no overlay file system",
        errno.EPERM: "this system does not let its users mount overlays (Linux 5.11 and a user namespace are needed)",
        errno.EACCES: "a security module of this system forbids to mount overlays",
        errno.EINVAL: "the root's file system cannot lie below an overlay (it folds case, or is two overlays deep)",
        errno.EOPNOTSUPP: "the file system for changes has no user attributes (tmpfs has them from Linux 6.6 on)",
        errno.EREMOTE: "the root's file system is a remote one that cannot lie below an overlay",
        errno.ENOMEM: "the system is out of memory",
    }
)


PASSING: Final = frozenset({errno.ENOMEM, errno.ENOSPC, errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.EBUSY})
"""Errors that say nothing of the root, and what runs beside may have caused."""


def mount(root: int, path: str, at: str, upper: str, work: str) -> None:
    """Mount an overlay of the root over the path `at`, in this process's mount namespace.

    Args:
        root: The root's descriptor. One from another mount namespace cannot be mounted, so it only has to be the
            directory that lies at `path`.
        path: Where the root is in this mount namespace.
        at: Where the overlay is to be; it may be `path`.
        upper: An empty directory for what is changed, with the attributes of the root.
        work: An empty directory beside it.

    Raises:
        CannotRehearse: the kernel refuses, and why; or `path` is another directory. `TooMuch`: it may do so later.
        ValueError: `upper` or `work` is no plain absolute path.
    """
    for each in (upper, work):
        if not _PLAIN.fullmatch(each):
            raise ValueError(f"{each!r} cannot stand among the options of a mount")
    options = f"userxattr,lowerdir=.,upperdir={upper},workdir={work}"
    with closing(os.open(".", HANDLE)) as here:
        try:
            _enter(root, path)
            number = NUMBERS[kernel.MACHINE]["mount"]
            kernel.syscall("mount", number, b"overlay", os.fsencode(at), b"overlay", _FLAGS, options.encode())
        except OSError as error:
            raise refusal(error) from error
        finally:
            os.fchdir(here)


def _enter(root: int, path: str) -> None:
    with closing(os.open(path, HANDLE)) as there:
        if not os.path.samestat(os.fstat(there), os.fstat(root)):
            raise CannotRehearse("the root no longer lies where it did")
        _refuse_mounts_below(there)
        os.fchdir(there)


def refusal(error: OSError) -> CannotRehearse:
    """Return what an OSError of setting up an overlay means to people."""
    code = error.errno or 0
    reason = _REASONS.get(code, f"mounting an overlay failed with {errno.errorcode.get(code, code)}")
    return TooMuch(reason) if code in PASSING else CannotRehearse(reason)


def _refuse_mounts_below(root: int) -> None:
    """Check that the root is one file system: an overlay shows what lies under a mount, not what is mounted.

    Raises:
        CannotRehearse: something is mounted beneath the directory `root`.
    """
    try:
        top = os.readlink(f"/proc/self/fd/{root}")
        with open("/proc/self/mountinfo", "rb") as file:
            points = [line.split(b" ", 5)[4] for line in file]
    except OSError as error:
        raise CannotRehearse("/proc does not say what is mounted beneath the root") from error
    beneath = os.fsencode(top.rstrip("/") + "/")
    for escaped in points:
        point = _ESCAPE.sub(lambda match: bytes((int(match[1], 8),)), escaped) if b"\\" in escaped else escaped
        if point.startswith(beneath):
            inner = os.fsdecode(point.removeprefix(beneath))
            raise CannotRehearse(f"another file system is mounted in the root, at {inner!r}")


def is_whiteout(status: os.stat_result) -> bool:
    """Say whether a name of the upper layer stands for a deleted one."""
    return stat.S_ISCHR(status.st_mode) and status.st_rdev == 0


def is_opaque(directory: int) -> bool:
    """Say whether a directory of the upper layer hides what the root has there.

    Raises:
        CannotRehearse: it is marked as lying elsewhere.
    """
    marks = os.listxattr(directory)
    if any(mark in marks for mark in _ELSEWHERE):
        raise CannotRehearse("the overlay moved a directory in a way that cannot be followed")
    return _OPAQUE in marks and os.getxattr(directory, _OPAQUE) == b"y"
