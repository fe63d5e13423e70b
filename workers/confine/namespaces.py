"""A process that is the first one of namespaces of its own: it, and all that it ever starts, end together.

Rule: the process that was spawned stays outside, holds nothing, and stands by: it ends as the first one ends. The
kernel kills the first one when that process ends, and with the first one everything in its PID namespace. Sources:
user_namespaces(7), pid_namespaces(7), prctl(2).
"""

import errno
import os
import struct

# Not `signal`, which takes a worker 0.4 ms to import; this is built in.
from _signal import SIG_IGN, SIGINT, SIGXCPU, signal  # type: ignore[import-not-found]
from contextlib import ExitStack, suppress
from typing import Final

from workers import kernel
from workers.confine import mounts
from workers.confine.privileges import ORPHAN, PR_SET_PDEATHSIG, SIGKILL, drop_capabilities, undumpable
from workers.confine.syscalls import NUMBERS

NEW_MOUNTS: Final = 0x00020000
NEW_HOST_NAME: Final = 0x04000000
NEW_IPC: Final = 0x08000000
NEW_USERS: Final = 0x10000000
NEW_PROCESSES: Final = 0x20000000
NEW_NETWORK: Final = 0x40000000
"""CLONE_NEW* of unshare(2)."""

EVERYTHING: Final = NEW_USERS | NEW_MOUNTS | NEW_PROCESSES | NEW_NETWORK | NEW_IPC | NEW_HOST_NAME

_PID_MAX_OF_ITS_OWN: Final = (6, 14)
"""Since this Linux each PID namespace has its own kernel.pid_max; before it was the whole machine's."""

_SET_INTERFACE_FLAGS: Final = 0x8914
_UP: Final = 0x1
_RUNNING: Final = 0x40
"""SIOCSIFFLAGS, and IFF_* of its flags."""

_PROC: Final = "/proc"

_TIME_IS_UP: Final = 128 + SIGXCPU
"""Exit code of a first process that has used up its processor time: none dies of SIGXCPU itself (pid_namespaces(7))."""

_DESCRIPTORS: Final = 2**16
"""More than a worker is started with."""

_RESERVED: Final = 300
"""The kernel gives numbers up to this one only once (RESERVED_PIDS in kernel/pid.c)."""


def leave(kinds: int) -> None:
    """Move into new, empty namespaces of the `kinds` (CLONE_NEW* of unshare(2)); the process must have one thread.

    With a user namespace among them no privilege is needed; the powers that it gives inside go with
    `drop_capabilities`. No user is mapped there, so files are judged by the user that this process was.

    Raises:
        OSError: the system forbids it.
    """
    kernel.syscall("unshare", NUMBERS.get(kernel.MACHINE, {}).get("unshare", -1), kinds)


def leave_as_oneself(kinds: int, proc: str = _PROC) -> None:
    """Move into new namespaces of the `kinds`, that of users among them, as the user that this process is.

    `proc` is where a /proc is mounted, writable.

    Raises:
        OSError: the system forbids it; `filename` says what.
    """
    user, group = os.geteuid(), os.getegid()
    leave(kinds)
    for file, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        _write(f"{proc}/self/{file}", text)


def try_as_oneself(kinds: int) -> None:
    """Do `leave_as_oneself` in a process that ends with it: where it fails half-way, this one has not become nobody.

    Raises:
        OSError: the system forbids it.
    """
    child = os.fork()
    if child == 0:
        number = errno.EPERM
        try:
            leave_as_oneself(kinds)
            number = 0
        except OSError as error:
            number = error.errno or errno.EPERM
        finally:
            os._exit(number)
    if number := os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]):
        raise OSError(abs(number), os.strerror(abs(number)), f"{_PROC}/self/uid_map")


def settle(place: str) -> None:
    """Move once more into namespaces of users and of mounts: what is mounted by now stays, with the flags it has.

    The powers that this process has from here on are none over the namespaces in which it was mounted: the kernel lets
    nobody take a flag away, or unmount it, or mount a /proc of these processes without them (mount_namespaces(7)). To
    be called by the first process of its own.

    Args:
        place: an empty directory, where something is mounted for a moment.

    Raises:
        OSError: the system forbids it; `filename` says what.
    """
    mounts.new("proc", place, mounts.NO_SUID | mounts.NO_DEVICES | mounts.NO_PROGRAMS)  # the other is read-only
    with ExitStack() as stack:
        proc = os.open(place, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        stack.callback(os.close, proc)
        mounts.detach(place)
        leave_as_oneself(NEW_USERS | NEW_MOUNTS, f"{_PROC}/self/fd/{proc}")


def become_first(shared: int = 0) -> None:
    """Go on as the first process of new namespaces of every kind but `shared`, as the user that this process was.

    Only the new process returns; the one that was spawned ends here, as the new one ends.

    Raises:
        OSError: the system forbids it; `filename` says what.
    """
    leave_as_oneself(EVERYTHING & ~shared)
    go_on_as_first()


def go_on_as_first() -> None:
    """Go on as the first process of the PID namespace that this process has made for its children.

    Only the new process returns; the one that was spawned ends here, as the new one ends.

    Raises:
        OSError: the kernel refuses.
    """
    import select  # most workers have no need of it

    outside = os.pidfd_open(os.getpid())
    child = os.fork()
    if child:
        _stand_by(child)
    kernel.prctl("PR_SET_PDEATHSIG", PR_SET_PDEATHSIG, SIGKILL)
    ended = select.poll()
    ended.register(outside, select.POLLIN)
    if ended.poll(0):  # before it was asked for
        os._exit(ORPHAN)
    os.close(outside)
    signal(SIGINT, SIG_IGN)  # the one signal that Python would let come through to a first process


def end_when_out_of_time() -> None:
    """Let SIGXCPU end this process, the first of its namespace, as it does any other: those inside can send it too."""

    def end(_number: int, _frame: object) -> None:
        os._exit(_TIME_IS_UP)

    signal(SIGXCPU, end)


def raise_loopback() -> None:
    """Let processes of this network namespace, which is ours, reach each other at 127.0.0.1 and ::1.

    Needs CAP_NET_ADMIN in it. Source: netdevice(7).

    Raises:
        OSError: the kernel refuses.
    """
    import fcntl  # most workers have no need of them, and they take longest of all that is here
    import socket

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SET_INTERFACE_FLAGS, struct.pack("=16sh14x", b"lo", _UP | _RUNNING))


def limit_own_numbers(processes: int, *, needed: bool) -> None:
    """Let this PID namespace hold so many processes and threads, its first one among them, and show no others in /proc.

    It needs a mount namespace of its own. It is `needed` for user 0, whom no RLIMIT_NPROC holds; for others that one
    does, and it is nothing to them where this is unavailable.

    Raises:
        OSError: it is needed and unavailable.
    """
    try:
        mounts.keep_to_ourselves()
        mounts.new("proc", _PROC, mounts.NO_SUID | mounts.NO_DEVICES | mounts.NO_PROGRAMS)
        limited = limit_numbers(_PROC, processes - 1)
        with suppress(OSError):  # where the kernel has it not, the reserved numbers are given besides, once
            _write(f"{_PROC}/sys/kernel/ns_last_pid", str(_RESERVED))
        mounts.restrict(_PROC, mounts.READ_ONLY)
    except OSError:
        if needed:
            raise
    else:
        if needed and not limited:
            raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS), f"{_PROC}/sys/kernel/pid_max")


def limit_numbers(proc: str, processes: int) -> bool:
    """Let this PID namespace hold about so many processes and threads; say whether the kernel can.

    `proc` is where its /proc is mounted, writable.

    Raises:
        OSError: the kernel refuses.
    """
    release = os.uname().release.split(".")
    if tuple(int("".join(filter(str.isdigit, part)) or 0) for part in release[:2]) < _PID_MAX_OF_ITS_OWN:
        return False
    _write(f"{proc}/sys/kernel/pid_max", str(_RESERVED + processes))
    return True


def _stand_by(child: int) -> None:
    """Hold nothing, and end as `child` ends."""
    os.closerange(0, _DESCRIPTORS)
    with suppress(OSError):  # where this fails it fails in the child as well, which says so
        undumpable()
        drop_capabilities()
    _, status = os.waitpid(child, 0)
    with suppress(ChildProcessError):  # what else it had started ends with the first one
        os.waitpid(-1, 0)
    code = os.waitstatus_to_exitcode(status)
    if code == _TIME_IS_UP:
        code = -SIGXCPU
    if code < 0:
        os.kill(os.getpid(), -code)
    os._exit(code & 0xFF)


def _write(path: str, text: str) -> None:
    file = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(file, text.encode())
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from error
    finally:
        os.close(file)
