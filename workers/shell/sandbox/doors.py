"""The ways out of a command's sandbox that other workers do not have, tried from inside.

Rule: as in `workers.confine.probe`, an attempt is harmless when its lock is broken. What lies outside is not there, and
what is there of the system cannot be written, so that is how a lock may answer here.
"""

import errno
import fcntl
import os
from typing import Final

from workers import kernel
from workers.confine.probe import DoorAttempt
from workers.confine.syscalls import NUMBERS
from workers.shell.sandbox.private_root import HELD, LAYERS, SCRATCH

REFUSALS: Final = frozenset({errno.EPERM, errno.EACCES, errno.ENOSYS, errno.ENOENT, errno.EROFS})

_TIOCSTI: Final = 0x5412
_CLONE_NEWUSER: Final = 0x10000000
_SIGCHLD: Final = 17
_NUMBERS: Final = NUMBERS.get(kernel.MACHINE, {})


def _opened(path: str, flags: int = os.O_RDONLY) -> None:
    os.close(os.open(path, flags | os.O_CLOEXEC, 0o600))


def _made(directory: str) -> None:
    path = f"{directory}/strongroom-door-{os.getpid()}"
    _opened(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    os.unlink(path)


def _set_id() -> None:
    path = f"/tmp/strongroom-door-{os.getpid()}"  # noqa: S108 - the private one
    _opened(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        os.chmod(path, 0o4700)
    finally:
        os.unlink(path)


def _type_into_terminal() -> None:
    fcntl.ioctl(0, _TIOCSTI, b"x")


def _user_namespace() -> None:
    child = kernel.syscall("clone", _NUMBERS.get("clone", -1), _CLONE_NEWUSER | _SIGCHLD, 0, 0, 0, 0)
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)


ATTEMPTS: Final = (
    DoorAttempt("list the machine's logs", lambda: os.listdir("/var/log")),
    DoorAttempt("list other people's homes", lambda: os.listdir("/home")),
    DoorAttempt("list the home of root", lambda: os.listdir("/root")),
    DoorAttempt("look at how the sandbox is made", lambda: os.listdir(HELD)),
    DoorAttempt("look at where places are made", lambda: os.listdir(SCRATCH)),
    DoorAttempt("look at where changes are kept", lambda: os.listdir(LAYERS)),
    DoorAttempt("read the machine's passwords", lambda: _opened("/etc/shadow")),
    DoorAttempt("make a file among the system's programs", lambda: _made("/usr/bin")),
    DoorAttempt("make a file in /etc", lambda: _made("/etc")),
    DoorAttempt("make a file at the top", lambda: _made("")),
    DoorAttempt("change the kernel's settings", lambda: _opened("/proc/sys/kernel/core_pattern", os.O_WRONLY)),
    DoorAttempt("restart the machine", lambda: _opened("/proc/sysrq-trigger", os.O_WRONLY)),
    DoorAttempt("read the worker's memory", lambda: _opened("/proc/1/mem")),
    DoorAttempt("look through the worker's descriptors", lambda: os.readlink("/proc/1/fd/0")),
    DoorAttempt("go through the worker's root", lambda: os.listdir("/proc/1/root/")),
    DoorAttempt("type into a terminal", _type_into_terminal),
    DoorAttempt("new user namespace by clone", _user_namespace),
    DoorAttempt("make a program that runs as its owner", _set_id),
)
"""Every door, with the attempt to open it."""
