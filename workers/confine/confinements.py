"""Confinements: what each category of worker may ask the kernel for. Data only.

Rule: an allowlist; an empty list means nothing is allowed. A row stands here because a tool of the category
needs it to do its work, or because Python does to live and to end. What is given only to a writable root
stands apart.
"""

from typing import TYPE_CHECKING, Final

import msgspec

from workers.confine import landlock
from workers.confine.namespaces import NEW_HOST_NAME, NEW_IPC, NEW_MOUNTS, NEW_NETWORK, NEW_PROCESSES, NEW_USERS
from workers.confine.privileges import PR_GET_DUMPABLE, PR_GET_NO_NEW_PRIVS, PR_SET_PDEATHSIG, SIGKILL
from workers.confine.seccomp import Allow, Only, Without

if TYPE_CHECKING:
    from workers.confine.denylist import Deny

_PROT_EXEC: Final = 4
_FIOCLEX: Final = 0x5451
_FS_IOC_GETFLAGS: Final = 0x80086601
_FS_IOC_SETFLAGS: Final = 0x40086602
_F_GETFD: Final = 1
_F_SETFD: Final = 2
_F_GETFL: Final = 3
_F_DUPFD_CLOEXEC: Final = 1030
_RENAME_NOREPLACE: Final = 1
_RENAME_EXCHANGE: Final = 2
_ANY_BUT_FIFO: Final = 0o160000
_ARCH_SET_FS: Final = 0x1002
_ITIMER_REAL: Final = 0
_SAME_OWNER: Final = 0xFFFFFFFF


class Confinement(msgspec.Struct, frozen=True):
    """One category's confinement: rights beneath the root (Landlock) and system calls (seccomp).

    The `write_` fields are granted on top of the `read_` fields when the root is writable.
    """

    read_access: int
    write_access: int
    read_calls: tuple[Allow, ...]
    write_calls: tuple[Allow, ...]
    plan_calls: tuple[Allow, ...] = ()
    """What a writer that only rehearses needs of them."""
    namespaces: int = 0
    """CLONE_NEW* of the namespaces that it gets of its own, empty ones; with that of processes, it is the first one."""
    denies: "tuple[Deny, ...]" = ()
    """For programs that nobody knows beforehand: the calls that they may not make, instead of those that they may."""
    opens: tuple[str, ...] = ()
    """Doors of `probe.ATTEMPTS` that this category's work needs open."""
    optional_protections: tuple[str, ...] = ()
    """Protections that may be missing without a word of the operator's: systems forbid them often, and what they shut
    is shut by another lock too, or matters only once the worker is taken over. It is reported all the same."""

    @property
    def has_root(self) -> bool:
        """Whether the category works on the root at all."""
        return bool(self.read_access | self.write_access)

    def access(self, *, writable: bool) -> int:
        """Return the Landlock rights beneath the root."""
        return self.read_access | (self.write_access if writable else 0)

    def calls(self, *, writable: bool, plan: bool = False) -> tuple[Allow, ...]:
        """Return the allowlist of system calls."""
        return self.read_calls + (self.write_calls if writable else self.plan_calls if plan else ())


def _calls(names: str) -> tuple[Allow, ...]:
    return tuple(map(Allow, names.split()))


PYTHON: Final = (
    # Memory, never executable: nothing that was written can be run.
    Allow("brk"),
    Allow("mmap", (Without(2, _PROT_EXEC),)),
    Allow("mprotect", (Without(2, _PROT_EXEC),)),
    *_calls("mremap munmap madvise"),
    # Locks, time and signals of its own.
    *_calls("futex sched_yield clock_gettime clock_nanosleep restart_syscall rt_sigaction"),
    *_calls("rt_sigprocmask rt_sigreturn getrandom"),
    # Who it is, and whether it is locked: facts without a path to anyone else.
    *_calls("getpid getppid"),
    Allow("prctl", (Only(0, (PR_GET_DUMPABLE, PR_GET_NO_NEW_PRIVS)),)),
    # The pipes, and the end.
    *_calls("read write close exit exit_group"),
)
"""What every Python process with one thread needs."""

_READ_FILES: Final = (
    # Which file may be opened is Landlock's decision: a filter cannot read a path.
    *_calls("openat openat2 newfstatat fstat getdents64 lseek pread64"),
    # No owner for signals, no leases, no change of the flags that a shared descriptor has.
    Allow("fcntl", (Only(1, (_F_GETFD, _F_SETFD, _F_GETFL, _F_DUPFD_CLOEXEC)),)),
    # Python marks a descriptor as not inheritable this way; no terminal and no device can be reached.
    Allow("ioctl", (Only(1, (_FIOCLEX,)),)),
)

_LOOK_AT_FILES: Final = _calls("flistxattr fgetxattr geteuid getegid")
"""What a new file shall get of the one that it replaces."""

_WRITE_FILES: Final = (
    *_calls("mkdirat unlinkat renameat"),
    Allow("renameat2", (Only(4, (0, _RENAME_NOREPLACE, _RENAME_EXCHANGE)),)),
    *_calls("fsync fdatasync flock"),
    # What a new file gets of the one that it replaces: by a descriptor, so of the root, and no other owner.
    *_LOOK_AT_FILES,
    *_calls("fsetxattr fremovexattr"),
    Allow("fchown", (Only(1, (_SAME_OWNER,)),)),
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
    read_calls=PYTHON + _READ_FILES,
    write_calls=_WRITE_FILES,
    plan_calls=_LOOK_AT_FILES,
)
"""The root and nothing else: no links, devices, sockets or FIFOs, no other process, no network."""

SCRATCH: Final = (
    landlock.READ_FILE
    | landlock.READ_DIR
    | landlock.WRITE_FILE
    | landlock.TRUNCATE
    | landlock.MAKE_REG
    | landlock.MAKE_DIR
    | landlock.MAKE_SYM
    | landlock.MAKE_FIFO
    | landlock.REMOVE_FILE
    | landlock.REMOVE_DIR
    | landlock.REFER
)
"""Rights to where a layer is made."""

_COMMIT: Final = (
    # Names of every kind that a call may have changed; no socket and no device.
    *_calls("linkat symlinkat readlinkat"),
    Allow("mknodat", (Without(2, _ANY_BUT_FIFO),)),
    # Modes, times and attributes.
    *_calls("fchmod fchmodat chmod utimensat"),
    # Content, as fast as the kernel can, holes included; and everything to the disk at once.
    *_calls("sendfile ftruncate syncfs umask"),
    # Where on the disk the files of a directory are put. A flag that protects a file takes a capability.
    Allow("ioctl", (Only(1, (_FS_IOC_GETFLAGS, _FS_IOC_SETFLAGS)),)),
)

RESTORE: Final = Confinement(
    read_access=landlock.READ_FILE | landlock.READ_DIR,
    write_access=FILES.write_access | landlock.MAKE_SYM | landlock.MAKE_FIFO | landlock.MAKE_SOCK,
    read_calls=PYTHON + _READ_FILES,
    write_calls=_WRITE_FILES + _COMMIT,
    plan_calls=_WRITE_FILES + _COMMIT,
    opens=("link outside", "symlink outside"),
    optional_protections=("namespaces",),
)
"""The root, what was kept (to read), and a scratch directory: the rules for these two come with the category, and its
own namespaces, in which nothing else has a name. Links are made, and Landlock says where. A socket of the root can be
moved away, and none can be made."""

_FORK: Final = (0x01200011, 0x00000011, 0x00004111)
"""Flags of clone(2) with which fork(3) makes a process, in glibc and in musl, and posix_spawn(3) in both."""

_THREAD: Final = (0x007D0F00,)
"""Those with which musl, in the search program, makes a thread."""

_RUN_A_PROGRAM: Final = (
    # A child that dies with the worker and is killed by it, of the worker's own group for good. Which file may be
    # executed is Landlock's decision, whom a signal reaches as well.
    Allow("clone", (Only(0, _FORK + _THREAD),)),
    *_calls("fork execve"),
    Allow("prctl", (Only(0, (PR_SET_PDEATHSIG,)), Only(1, (SIGKILL,)))),
    Allow("kill", (Without(0, 1 << 31), Only(1, (SIGKILL,)))),
    *_calls("wait4 pipe2 dup2 dup3 poll ppoll"),
)

_SEARCH_PROGRAM: Final = (
    # What it does to begin, and in its threads.
    Allow("arch_prctl", (Only(0, (_ARCH_SET_FS,)),)),
    *_calls("set_tid_address sigaltstack gettid sched_getaffinity"),
    # Where it stands, and what lies there.
    *_calls("getcwd open stat lstat statx"),
)

SEARCH: Final = Confinement(
    read_access=landlock.READ_FILE | landlock.READ_DIR,
    write_access=0,
    read_calls=PYTHON + _READ_FILES + _RUN_A_PROGRAM + _SEARCH_PROGRAM,
    write_calls=(),
    namespaces=NEW_USERS | NEW_MOUNTS | NEW_PROCESSES | NEW_NETWORK | NEW_IPC,
    opens=("fork", "execute a program"),
    optional_protections=("namespaces",),
)
"""The root to read, whoever may write it, and one program to execute, the rule for which comes with its category. The
program inherits all of this, and what either starts ends with the worker: it is the first of its PID namespace."""

WEB: Final = Confinement(
    read_access=0,
    write_access=0,
    read_calls=(
        *PYTHON,
        # Connections come from the broker, each with a message, and are read and written as any descriptor is. No call
        # that takes an address, passes a descriptor on or changes a socket is here: a connection stays what it is.
        *_calls("recvmsg poll ppoll"),
        # Its own alarm, for a page that takes too long to understand.
        Allow("setitimer", (Only(0, (_ITIMER_REAL,)),)),
    ),
    write_calls=(),
    namespaces=NEW_USERS | NEW_NETWORK | NEW_IPC | NEW_HOST_NAME,
    optional_protections=("namespaces",),
)
"""No file at all, no socket of its own, no way to another address: only what the broker hands over."""

MEDIA: Final = Confinement(
    read_access=0,
    write_access=0,
    read_calls=(
        *PYTHON,
        # Its own alarm, for content that takes too long to decode.
        Allow("setitimer", (Only(0, (_ITIMER_REAL,)),)),
    ),
    write_calls=(),
    namespaces=WEB.namespaces,
    optional_protections=("namespaces",),
)
"""No file, no socket, nothing to wait for but its pipe: bytes come with a call, and go with its answer."""

PROXY: Final = Confinement(
    read_access=0,
    write_access=0,
    read_calls=(
        *PYTHON,
        # The socket that it listens on was made before; connections are the command's own, or come from the broker with
        # a message. No call that takes an address is here.
        *_calls("accept4 getsockname recvmsg"),
        Allow("recvfrom", (Only(4, (0,)),)),
        Allow("sendto", (Only(4, (0,)),)),
        *_calls("shutdown poll ppoll"),
    ),
    write_calls=(),
)
"""For the proxy of a command with a network (`workers.shell.proxy.proxy`): it passes bytes on, and nothing else."""
