"""The file tree of a mount namespace of our own: what can be mounted, and how.

Rule: a mount only ever gains restrictions. Whoever enters a user namespace inherits mounts whose flags the kernel
locks there: a remount that leaves one of them out fails, so flags are added one by one, and beneath a mount
everywhere at once. Sources: mount(2), mount_setattr(2), open_tree(2), move_mount(2), pivot_root(2),
mount_namespaces(7).
"""

import os
import struct
from typing import Final

from workers import kernel
from workers.confine.syscalls import NUMBERS

READ_ONLY: Final = 1
NO_SUID: Final = 2
NO_DEVICES: Final = 4
NO_PROGRAMS: Final = 8
"""MOUNT_ATTR_* of mount_setattr(2); the first four flags of mount(2) have the same values."""

_BIND: Final = 4096
_RECURSIVE: Final = 16384
_PRIVATE: Final = 1 << 18
_DETACH: Final = 2
_CWD: Final = -100
_AT_RECURSIVE: Final = 0x8000
_CLONE: Final = 1
_FROM_DESCRIPTOR: Final = 4
"""OPEN_TREE_CLONE of open_tree(2), MOVE_MOUNT_F_EMPTY_PATH of move_mount(2)."""
_NULL: Final = 0
_NUMBERS: Final = NUMBERS.get(kernel.MACHINE, {})


def keep_to_ourselves() -> None:
    """Let nothing that is mounted from here on reach another namespace, nor the other way round.

    Raises:
        OSError: EPERM, this process may not mount.
    """
    _mount("none", "/", "", _RECURSIVE | _PRIVATE)


def new(kind: str, target: str, flags: int = 0, data: str = "") -> None:
    """Mount a new file system of a `kind`, with the flags named above.

    Raises:
        OSError: the kernel refuses.
    """
    _mount(kind, target, kind, flags, data)


def bind(source: str, target: str, flags: int = 0, *, beneath: bool = True) -> None:
    """Show a file, or a directory with all that is mounted beneath it, at `target` as well; add `flags` there.

    Raises:
        OSError: the kernel refuses; EINVAL, something is mounted `beneath` and shall not be shown.
    """
    _mount(source, target, "", _BIND | (_RECURSIVE if beneath else 0))
    if flags:
        restrict(target, flags, recursive=beneath)


def restrict(target: str, flags: int, *, recursive: bool = False) -> None:
    """Add flags to the mount at `target`, and to all beneath it.

    Raises:
        OSError: the kernel refuses.
    """
    attributes = struct.pack("=QQQQ", flags, 0, 0, 0)  # struct mount_attr: set, clear, propagation, a user namespace's
    _call("mount_setattr", _CWD, os.fsencode(target), _AT_RECURSIVE if recursive else 0, attributes, len(attributes))


def stand_on_top() -> None:
    """Show this process's directory, with all that is mounted beneath it, on top of the root as well, and stand there.

    Landlock looks for a right from a file upwards until it is granted, and what nobody is granted (to truncate) up to
    the top, for each file that is opened: from here, nothing is above the directory. Names are what they were.

    Raises:
        OSError: the kernel refuses; nothing has changed.
    """
    tree = _call("open_tree", _CWD, b".", _CLONE | _AT_RECURSIVE | os.O_CLOEXEC)
    try:
        _call("move_mount", tree, b"", _CWD, b"/", _FROM_DESCRIPTOR)
        os.fchdir(tree)
    finally:
        os.close(tree)


def detach(target: str) -> None:
    """Take a mount out of sight, and all beneath it; what holds it open keeps it.

    Raises:
        OSError: the kernel refuses.
    """
    _call("umount2", os.fsencode(target), _DETACH)


def change_root(new_root: str) -> None:
    """Make `new_root`, a mount, the root of this namespace, and let go of the old one.

    Raises:
        OSError: the kernel refuses.
    """
    os.chdir(new_root)
    _call("pivot_root", b".", b".")  # the old root now lies on top of the new one, in which this process stands
    detach(".")


def _mount(source: str, target: str, kind: str, flags: int, data: str = "") -> None:
    _call(
        "mount",
        os.fsencode(source),
        os.fsencode(target),
        os.fsencode(kind) if kind else _NULL,
        flags,
        os.fsencode(data) if data else _NULL,
    )


def _call(name: str, *arguments: int | bytes) -> int:
    return kernel.syscall(name, _NUMBERS.get(name, -1), *arguments)
