"""Mounts of one command: its root, its home and its temporary files, in a mount namespace of its own.

Rule: all of it is made anew for each command and gone with its last process. How the root is shown is one function,
`Place`, and nothing else knows of it: by default the root itself; for a rehearsal, something that looks like it.
"""

import os
import stat
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from workers.confine import landlock, mounts, namespaces
from workers.confine.landlock import Beneath
from workers.confine.mounts import NO_DEVICES, NO_SUID
from workers.shell.sandbox import held_sockets, machine_root
from workers.shell.sandbox.private_root import Layout, in_memory
from workers.shell.shell_inputs import HOME, SYSTEM, within

Place = Callable[[str], None]
"""Shows the root at the path that it is given, an empty directory. The current directory is the root itself, and that
is the one way to it; what the function leaves mounted elsewhere, a command sees. It runs in the command's process, with
the worker's powers, in a mount namespace that the worker does not share: what shall outlive the command must have been
mounted by the worker, before. Raises OSError where it cannot."""

SHARED: Final = (
    ("tmp", "/tmp", 0o1777),  # noqa: S108 - the private one
    ("var", "/var/tmp", 0o1777),  # noqa: S108 - the private one
    ("shm", "/dev/shm", 0o1777),  # noqa: S108 - the private one
    ("home", HOME, 0o700),
)
"""Directories of one file system of limited size, what each is seen as, and its mode."""

_READ: Final = landlock.READ_FILE | landlock.READ_DIR
_USE: Final = landlock.READ_FILE | landlock.WRITE_FILE | landlock.IOCTL_DEV
_DEVICES: Final = ("/dev/full", "/dev/null", "/dev/random", "/dev/urandom", "/dev/zero")


def show_root_itself(path: str) -> None:
    """The default `Place`: what a command changes is changed.

    Raises:
        OSError: it cannot be mounted.
    """
    mounts.bind(".", path)


def arrange(layout: Layout, place: Place) -> None:
    """Make the places of one command, in the process that will become it, and step into its root.

    Raises:
        OSError: something cannot be mounted.
    """
    held_now = held_sockets.ask(layout.looker) if layout.looker >= 0 else -1
    namespaces.leave(namespaces.NEW_MOUNTS)  # the current directory stays the root, as it is mounted here
    covered = _covered(layout.toolchains)
    links = {path: os.readlink(path) for path in covered if os.path.islink(path)}
    held = {path: os.open(path, os.O_PATH | os.O_CLOEXEC) for path in covered if path not in links}
    scratch = layout.scratch
    mounts.new("tmpfs", scratch, NO_SUID | NO_DEVICES, in_memory(layout.scratch_mb))
    for name, seen_as, mode in _shared(layout):
        os.mkdir(f"{scratch}/{name}")
        os.chmod(f"{scratch}/{name}", mode)
        mounts.bind(f"{scratch}/{name}", seen_as)
    for name, text in layout.home_files.items():
        os.makedirs(os.path.dirname(f"{HOME}/{name}"), 0o700, exist_ok=True)
        with open(f"{HOME}/{name}", "x", encoding="utf-8") as file:
            file.write(text)
    mounts.detach(scratch)
    for path, descriptor in held.items():
        if os.path.isdir(f"/proc/self/fd/{descriptor}"):
            os.makedirs(path, 0o755, exist_ok=True)
        else:
            os.makedirs(os.path.dirname(path), 0o755, exist_ok=True)
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644))
        mounts.bind(f"/proc/self/fd/{descriptor}", path)
    for path, target in links.items():
        os.makedirs(os.path.dirname(path), 0o755, exist_ok=True)
        if not os.path.lexists(path):
            os.symlink(target, path)
    os.makedirs(layout.root, 0o755, exist_ok=True)  # it may lie beneath one of these
    if layout.root != "/":
        place(layout.root)
    os.chdir(layout.root)
    if layout.machine:
        machine_root.hide_in_root(layout)
        machine_root.show_proc(layout)
        held_sockets.show(held_now, layout.scratch)
    mounts.bind(scratch, layout.held)  # empty by now


def _shared(layout: Layout) -> list[tuple[str, str, int]]:
    """Return those of `SHARED` that there is a place for: the machine may lack one."""
    return [row for row in SHARED if not layout.machine or os.path.isdir(row[1])]


def _covered(toolchains: Sequence[str]) -> list[str]:
    """Return those that lie where a command's own places are mounted; they are shown there once more."""
    return [
        path for path in sorted(toolchains) if any(within(path, at) for _, at, _ in SHARED) and os.path.lexists(path)
    ]


def rules(layout: Layout, access: int, full_access: int) -> list[Beneath]:
    """Open what Landlock leaves to a command; the caller closes the descriptors.

    Args:
        layout: as for `arrange`, which has run.
        access: to the root.
        full_access: to the command's own places.

    Raises:
        OSError: a directory that must be there is not.
    """
    found = [("/", _READ | landlock.EXECUTE)] if layout.machine else []
    found += [
        ("/etc", _READ),
        ("/proc", _READ),
        ("/dev", landlock.READ_DIR),
        *((device, _USE) for device in _DEVICES),
        *((seen_as, full_access) for _, seen_as, _ in _shared(layout)),
        (layout.root, access),
    ]
    opened = [_beneath(path, wanted) for path, wanted in found]
    for path in (*SYSTEM, *layout.toolchains):
        with suppress(OSError):  # not every machine has each
            opened.append(_beneath(path, _READ | landlock.EXECUTE))
    return opened


def _beneath(path: str, access: int) -> Beneath:
    descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    is_directory = stat.S_ISDIR(os.fstat(descriptor).st_mode)
    return Beneath(descriptor, access if is_directory else access & landlock.OF_FILES)
