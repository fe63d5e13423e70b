"""Every door out of a worker, tried from inside: what `strongroom doctor` asks a confined worker to do.

Rule: an attempt is harmless when its lock is broken. It changes nothing of others', undoes what it makes, or
is made with arguments that the kernel refuses after the lock. So a door is shut only if the refusal is a
lock's (EPERM, EACCES, ENOSYS); any other end, good or bad, means that the call went through. Nothing is
imported late. stat(2) outside the root is not stopped, and not listed.
"""

import ctypes
import errno
import os
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Final, NamedTuple

from workers import kernel
from workers.confine.syscalls import NUMBERS
from workers.wire.messages import Door

_REFUSALS: Final = frozenset({errno.EPERM, errno.EACCES, errno.ENOSYS})
_HERE: Final = os.path.dirname(__file__)
"""This program's own folder: outside every root, and what an attacker would most like to change."""

_NOWHERE: Final = b"/nonexistent/strongroom"
_CWD: Final = -100
_NULL: Final = 0
_PAGE: Final = 4096
_NUMBERS: Final = NUMBERS.get(kernel.MACHINE, {})


class DoorAttempt(NamedTuple):
    """One door: its name, and a function that returns if it is open and raises OSError if not."""

    name: str
    make: Callable[[], object]


def try_doors(
    opens: Collection[str] = (), attempts: Iterable[DoorAttempt] | None = None, refusals: Collection[int] = _REFUSALS
) -> Iterator[Door]:
    """Try every door once, in this process, but those that its work `opens`.

    Args:
        opens: names of doors that are left out.
        attempts: which doors there are; by default all that every worker has.
        refusals: how a lock says no.
    """
    for attempt in ATTEMPTS if attempts is None else attempts:
        if attempt.name in opens:
            continue
        try:
            attempt.make()
        except OSError as error:
            word = errno.errorcode.get(error.errno or 0, str(error.errno))
            shut = error.errno in refusals
            yield Door(attempt.name, shut, f"refused: {word}" if shut else f"not refused, it ended with {word}")
        else:
            yield Door(attempt.name, shut=False, detail="it worked")


def _call(name: str, *arguments: int | bytes | ctypes.Array[ctypes.c_char]) -> int:
    return kernel.syscall(name, _NUMBERS.get(name, -1), *arguments)


def _calling(name: str, *arguments: int | bytes) -> Callable[[], object]:
    """Return an attempt that makes one system call, which gives nothing even if it is let through."""
    return lambda: _call(name, *arguments)


def _descriptor(name: str, *arguments: int | bytes) -> Callable[[], object]:
    """Return an attempt that makes one system call, and closes the descriptor that it gives."""
    return lambda: os.close(_call(name, *arguments))


def _opened(path: str, flags: int = os.O_RDONLY) -> None:
    os.close(os.open(path, flags | os.O_CLOEXEC))


def _write_outside() -> None:
    path = f"/tmp/strongroom-door-{os.urandom(8).hex()}"  # noqa: S108 - made with O_EXCL, and removed at once
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    os.unlink(path)


def _chmod() -> None:
    os.chmod(_HERE, os.stat(_HERE).st_mode & 0o7777)


def _utime() -> None:
    now = os.stat(_HERE)
    os.utime(_HERE, ns=(now.st_atime_ns, now.st_mtime_ns))


def _socketpair() -> None:
    pair = (ctypes.c_char * 8)()
    _call("socketpair", 1, 1, 0, pair)
    os.close(int.from_bytes(pair.raw[:4], "little"))
    os.close(int.from_bytes(pair.raw[4:], "little"))


def _fork() -> None:
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)


def _executable_memory() -> None:
    address = _call("mmap", _NULL, _PAGE, 1 | 4, 0x02 | 0x20, -1, 0)
    _call("munmap", address, _PAGE)


def _gain_privileges() -> None:
    if kernel.prctl("PR_GET_NO_NEW_PRIVS", 39) == 1:
        raise PermissionError(errno.EPERM, "no_new_privs is set")


def _dump_core() -> None:
    if kernel.prctl("PR_GET_DUMPABLE", 3) == 0:
        raise PermissionError(errno.EPERM, "not dumpable")


def _supervisor() -> int:
    """Return the supervisor's pid; this process's own, which may be reached no more, where the supervisor has none."""
    return os.getppid() or os.getpid()


def _parent(name: str, *rest: int | bytes) -> Callable[[], object]:
    """Return an attempt whose first argument is the supervisor's pid."""
    return lambda: _call(name, _supervisor(), *rest)


ATTEMPTS: Final = (
    DoorAttempt("read a file outside", lambda: _opened("/etc/passwd")),
    DoorAttempt("list a directory outside", lambda: os.listdir("/")),
    DoorAttempt("write a file outside", _write_outside),
    DoorAttempt("open a device", lambda: _opened("/dev/null", os.O_RDWR)),
    DoorAttempt("read the supervisor's environment", lambda: _opened(f"/proc/{_supervisor()}/environ")),
    DoorAttempt("read its own memory", lambda: _opened("/proc/self/mem")),
    DoorAttempt("change a mode outside", _chmod),
    DoorAttempt("change an owner outside", lambda: os.chown(_HERE, -1, -1)),
    DoorAttempt("change times outside", _utime),
    DoorAttempt("change an attribute outside", lambda: os.removexattr(_HERE, "user.strongroom-door")),
    DoorAttempt("link outside", _calling("linkat", _CWD, _NOWHERE, _CWD, _NOWHERE, 0)),
    DoorAttempt("symlink outside", _calling("symlinkat", _NOWHERE, _CWD, _NOWHERE)),
    DoorAttempt("watch outside", _descriptor("inotify_init1", 0)),
    DoorAttempt("open by handle", _descriptor("open_by_handle_at", -1, _NULL, 0)),
    DoorAttempt("socket to the internet", _descriptor("socket", 2, 1, 0)),
    DoorAttempt("socket to the internet, IPv6", _descriptor("socket", 10, 1, 0)),
    DoorAttempt("socket of this machine", _descriptor("socket", 1, 1, 0)),
    DoorAttempt("socket to the kernel", _descriptor("socket", 16, 3, 0)),
    DoorAttempt("pair of sockets", _socketpair),
    DoorAttempt("fork", _fork),
    DoorAttempt("execute a program", _calling("execve", _NOWHERE, _NULL, _NULL)),
    DoorAttempt("execute a descriptor", _calling("execveat", -1, b"", _NULL, _NULL, 0x1000)),
    DoorAttempt("file in memory", _descriptor("memfd_create", b"door", 1)),
    DoorAttempt("executable memory", _executable_memory),
    DoorAttempt("trace the supervisor", _calling("ptrace", 0x4206, -1, 0, 0)),
    DoorAttempt("read the supervisor's memory", _parent("process_vm_readv", _NULL, 0, _NULL, 0, 0)),
    DoorAttempt("signal the supervisor", lambda: os.kill(_supervisor(), 0)),
    DoorAttempt("hold the supervisor", lambda: os.close(_call("pidfd_open", _supervisor(), 0))),
    DoorAttempt("limit the supervisor", _parent("prlimit64", 4, _NULL, _NULL)),
    DoorAttempt("slow the supervisor", _calling("setpriority", 99, 0, 0)),
    DoorAttempt("pin the supervisor", _parent("sched_setaffinity", 0, _NULL)),
    DoorAttempt("schedule the supervisor", _parent("sched_setattr", _NULL, 0)),
    DoorAttempt("raise its own limits", _calling("prlimit64", 0, 99, _NULL, _NULL)),
    DoorAttempt("new namespaces", _calling("unshare", 0)),
    DoorAttempt("enter a namespace", _calling("setns", -1, 0)),
    DoorAttempt("mount", _calling("mount", _NULL, _NULL, _NULL, 0, _NULL)),
    DoorAttempt("change the root directory", lambda: os.chroot("/")),
    DoorAttempt("io_uring", _descriptor("io_uring_setup", 0, _NULL)),
    DoorAttempt("keyring", _calling("keyctl", 0, -3, 0)),
    DoorAttempt("load a kernel program", _calling("bpf", 9999, _NULL, 0)),
    DoorAttempt("measure performance", _descriptor("perf_event_open", _NULL, 0, -1, -1, 0)),
    DoorAttempt("handle page faults", _descriptor("userfaultfd", 1)),
    DoorAttempt("shared memory", _calling("shmget", 0, 0, 0)),
    DoorAttempt("message queue", _calling("msgget", 0x53_74_72_6F, 0)),
    DoorAttempt("gain privileges", _gain_privileges),
    DoorAttempt("dump core", _dump_core),
)
"""Every door, with the attempt to open it."""
