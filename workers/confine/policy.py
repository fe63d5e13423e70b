"""What each category of worker may ask the kernel for: data only.

Rule: an allowlist; an empty list means nothing is allowed. A row stands here because a tool of the category
needs it to do its work, or because Python does to live and to end. What is given only to a writable root
stands apart.
"""

from typing import Final

import msgspec

from workers.confine import landlock
from workers.confine.seccomp import Allow, Only, Without

_PROT_EXEC: Final = 4
_FIOCLEX: Final = 0x5451
_F_GETFD: Final = 1
_F_SETFD: Final = 2
_F_GETFL: Final = 3
_F_DUPFD_CLOEXEC: Final = 1030
_RENAME_NOREPLACE: Final = 1
_PR_GET_DUMPABLE: Final = 3
_PR_GET_NO_NEW_PRIVS: Final = 39


class Confinement(msgspec.Struct, frozen=True):
    """One category's confinement: rights beneath the root (Landlock) and system calls (seccomp).

    The `write_` fields are granted on top of the `read_` fields when the root is writable.
    """

    read_access: int
    write_access: int
    read_calls: tuple[Allow, ...]
    write_calls: tuple[Allow, ...]
    namespaces: int = 0
    """CLONE_NEW* of the namespaces that it gets of its own, empty ones."""
    opens: tuple[str, ...] = ()
    """Doors of `probe.ATTEMPTS` that this category's work needs open."""

    @property
    def has_root(self) -> bool:
        """Whether the category works on the root at all."""
        return bool(self.read_access | self.write_access)

    def access(self, *, writable: bool) -> int:
        """Return the Landlock rights beneath the root."""
        return self.read_access | (self.write_access if writable else 0)

    def calls(self, *, writable: bool) -> tuple[Allow, ...]:
        """Return the allowlist of system calls."""
        return self.read_calls + (self.write_calls if writable else ())


_PYTHON: Final = (
    # Memory, never executable: nothing that was written can be run.
    Allow("brk"),
    Allow("mmap", (Without(2, _PROT_EXEC),)),
    Allow("mprotect", (Without(2, _PROT_EXEC),)),
    Allow("mremap"),
    Allow("munmap"),
    Allow("madvise"),
    # Locks, time and signals of its own.
    Allow("futex"),
    Allow("sched_yield"),
    Allow("clock_gettime"),
    Allow("clock_nanosleep"),
    Allow("restart_syscall"),
    Allow("rt_sigaction"),
    Allow("rt_sigprocmask"),
    Allow("rt_sigreturn"),
    Allow("getrandom"),
    # Who it is, and whether it is locked: facts without a path to anyone else.
    Allow("getpid"),
    Allow("getppid"),
    Allow("prctl", (Only(0, (_PR_GET_DUMPABLE, _PR_GET_NO_NEW_PRIVS)),)),
    # The pipes, and the end.
    Allow("read"),
    Allow("write"),
    Allow("close"),
    Allow("exit"),
    Allow("exit_group"),
)
"""What every Python process with one thread needs."""

_READ_FILES: Final = (
    # Which file may be opened is Landlock's decision: a filter cannot read a path.
    Allow("openat"),
    Allow("openat2"),
    Allow("newfstatat"),
    Allow("fstat"),
    Allow("getdents64"),
    Allow("lseek"),
    Allow("pread64"),
    # No owner for signals, no leases, no change of the flags that a shared descriptor has.
    Allow("fcntl", (Only(1, (_F_GETFD, _F_SETFD, _F_GETFL, _F_DUPFD_CLOEXEC)),)),
    # Python marks a descriptor as not inheritable this way; no terminal and no device can be reached.
    Allow("ioctl", (Only(1, (_FIOCLEX,)),)),
)

_WRITE_FILES: Final = (
    Allow("mkdirat"),
    Allow("unlinkat"),
    Allow("renameat"),
    Allow("renameat2", (Only(4, (0, _RENAME_NOREPLACE)),)),
    Allow("fsync"),
    Allow("fdatasync"),
    Allow("flock"),
)

FILES: Final = Confinement(
    read_access=landlock.READ_FILE | landlock.READ_DIR,
    write_access=landlock.WRITE_FILE
    | landlock.TRUNCATE
    | landlock.MAKE_REG
    | landlock.MAKE_DIR
    | landlock.REMOVE_FILE
    | landlock.REMOVE_DIR
    | landlock.REFER,
    read_calls=_PYTHON + _READ_FILES,
    write_calls=_WRITE_FILES,
)
"""The root and nothing else: no links, devices, sockets or FIFOs, no other process, no network."""
