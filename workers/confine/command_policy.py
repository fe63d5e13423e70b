"""System calls and rights of a command, which may be any program: data only.

Rule: what lies outside is not there at all (`workers/shell`), so a command may do much within. Listed is what would
take the sandbox apart, reach the worker, or outlive the command; a row stands here because something can be reached
that way.
"""

import errno
from typing import Final

from workers.confine import landlock
from workers.confine.confinements import Confinement
from workers.confine.denylist import Deny, Has, Is, IsNot

_NEW_NAMESPACES: Final = 0x7E020000
"""CLONE_NEW* of clone(2)."""
_SET_ID_BITS: Final = 0o6000
_CREATES: Final = 0x40 | 0x400000
"""O_CREAT, and what O_TMPFILE is known by."""
_DEVICE_BIT: Final = 0o020000
"""In the type of a character or block device, and in no other's."""
_RENAME_WHITEOUT: Final = 4
_AF_UNIX: Final = 1
_INTERNET: Final = (2, 10)
"""AF_INET, AF_INET6."""
_AF_NETLINK: Final = 16
_FIRST: Final = 1
"""The worker itself, as its commands see it."""
_PRIO_PROCESS: Final = 0
_IOPRIO_WHO_PROCESS: Final = 1
_TIOCSTI: Final = 0x5412
_TIOCLINUX: Final = 0x541C
_CONNECTED_TYPES: Final = tuple(kind | flags for kind in (1, 5) for flags in (0, 0x800, 0x80000, 0x80800))
"""SOCK_STREAM and SOCK_SEQPACKET, with SOCK_NONBLOCK and SOCK_CLOEXEC or without: what sends to no address."""
_INTERNET_TYPES: Final = tuple(kind | flags for kind in (1, 2) for flags in (0, 0x800, 0x80000, 0x80800))
"""SOCK_STREAM and SOCK_DGRAM, likewise."""
_TCP, _UDP = 6, 17
_TCP_ULP, _UDP_ENCAP = 31, 100
_INTERNET_PROTOCOLS: Final = (0, _TCP, _UDP)
"""The usual one of a type, TCP, UDP: no multipath TCP, no SCTP."""
_NETLINK_TO_LOOK: Final = (0, 4)
"""NETLINK_ROUTE, NETLINK_SOCK_DIAG."""
_NETLINK_ADDRESS: Final = 12
"""Bytes of struct sockaddr_nl (netlink(7))."""
_READ_THE_LOG: Final = (3, 10)
"""SYSLOG_ACTION_READ_ALL and SIZE_BUFFER: anybody may ask for these where the system says so (syslog(2))."""
_F_SETLEASE: Final = 1024
_HARMLESS_PERSONALITIES: Final = (0, 0x40000, 0xFFFFFFFF)
"""The usual one, the usual one without random addresses, and the question which one it is."""

_UNREACHABLE: Final = (
    # Namespaces and mounts of its own: the sandbox is made of them.
    *("unshare", "setns", "mount", "umount2", "pivot_root", "chroot", "open_tree", "open_tree_attr", "move_mount"),
    *("fsopen", "fsconfig", "fsmount", "fspick", "mount_setattr", "statmount", "listmount", "open_by_handle_at"),
    "name_to_handle_at",
    # Other processes' memory and descriptors.
    *("ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "process_mrelease", "pidfd_getfd", "kcmp"),
    *("migrate_pages", "move_pages"),
    # Parts of the kernel that no build needs, and that have been the way out of many a sandbox.
    *("bpf", "perf_event_open", "userfaultfd", "io_uring_setup", "io_uring_enter", "io_uring_register", "memfd_secret"),
    *("keyctl", "add_key", "request_key", "fanotify_init", "lookup_dcookie", "uselib", "ustat", "sysfs", "modify_ldt"),
    # What is the machine's.
    *("init_module", "finit_module", "delete_module", "kexec_load", "kexec_file_load", "reboot", "swapon", "swapoff"),
    *("quotactl", "quotactl_fd", "acct", "syslog", "settimeofday", "clock_settime", "clock_adjtime", "adjtimex"),
    *("sethostname", "setdomainname", "iopl", "ioperm", "vhangup"),
    # Memory and queues that would outlive the command.
    *("shmget", "shmat", "shmctl", "semget", "msgget", "mq_open"),
    # Of a queue that was opened as a file, where a directory of them is mounted.
    *("mq_timedsend", "mq_timedreceive", "mq_notify", "mq_getsetattr"),
)

NO_NETLINK: Final = Deny("socket", (Is(0, (_AF_NETLINK,)),))
"""Nobody is told: it leads to the kernel alone, and runtimes ask there for addresses that they do not need."""
FAMILIES: Final = (_AF_UNIX,)
"""Of sockets that a command may have."""
NO_NETWORK: Final = Deny("socket", (IsNot(0, FAMILIES),))

_SHELL_DENIES: Final = (
    *(Deny(call) for call in _UNREACHABLE),
    Deny("clone", (Has(0, _NEW_NAMESPACES),)),
    NO_NETWORK,
    # A pair of another family is made by that family's part of the kernel, which is loaded for it, before it says no.
    Deny("socketpair", (IsNot(0, FAMILIES),)),
    Deny("personality", (IsNot(0, _HARMLESS_PERSONALITIES),)),
    Deny("ioctl", (Is(1, (_TIOCSTI, _TIOCLINUX)),)),
    # A program that runs as its owner, once the command has gone. Where nothing is made, a mode may be anything; that
    # of openat2 stands in memory, so that call does not exist.
    *(Deny(call, (Has(1, _SET_ID_BITS),)) for call in ("chmod", "fchmod", "creat", "mknod")),
    *(Deny(call, (Has(2, _SET_ID_BITS),)) for call in ("fchmodat", "fchmodat2", "mknodat")),
    Deny("open", (Has(1, _CREATES), Has(2, _SET_ID_BITS))),
    Deny("openat", (Has(2, _CREATES), Has(3, _SET_ID_BITS))),
    Deny("openat2", (), errno.ENOSYS),
    Deny("mknod", (Has(1, _DEVICE_BIT),)),
    Deny("mknodat", (Has(2, _DEVICE_BIT),)),
    # It leaves the device 0/0 where the name was. An overlay refuses it too, and makes its own whiteouts in the kernel.
    Deny("renameat2", (Has(4, _RENAME_WHITEOUT),)),
    # The whole machine shares one number of requests (fs.aio-max-nr), and one process can take all of them. ENOSYS is
    # what a kernel says that was built without the call, so it is what programs with another way expect.
    Deny("io_setup", (), errno.ENOSYS),
    # The worker, which has the same user.
    *(
        Deny(call, (Is(0, (_FIRST,)),))
        for call in ("prlimit64", "sched_setaffinity", "sched_setattr", "sched_setscheduler", "sched_setparam")
    ),
    Deny("setpriority", (IsNot(0, (_PRIO_PROCESS,)),)),
    Deny("setpriority", (Is(1, (_FIRST,)),)),
    Deny("ioprio_set", (IsNot(0, (_IOPRIO_WHO_PROCESS,)),)),
    Deny("ioprio_set", (Is(1, (_FIRST,)),)),
)

SHELL: Final = Confinement(
    read_access=landlock.READ_FILE | landlock.READ_DIR | landlock.EXECUTE,
    write_access=landlock.WRITE_FILE
    | landlock.TRUNCATE
    | landlock.MAKE_REG
    | landlock.MAKE_DIR
    | landlock.MAKE_SYM
    | landlock.MAKE_FIFO
    | landlock.MAKE_SOCK
    | landlock.REMOVE_FILE
    | landlock.REMOVE_DIR
    | landlock.REFER,
    read_calls=(),
    write_calls=(),
    denies=_SHELL_DENIES,
    opens=(
        # A command is any program, and these are a program's life.
        *("fork", "execute a program", "execute a descriptor", "file in memory", "executable memory", "dump core"),
        *("open a device", "read its own memory", "watch outside", "socket of this machine", "pair of sockets"),
        *("raise its own limits", "hold the supervisor"),
        # Calls that may be made, for what lies outside is not there: `workers.shell.sandbox.doors` looks for it.
        *("read a file outside", "write a file outside", "change a mode outside", "change an owner outside"),
        *("change times outside", "change an attribute outside", "link outside", "symlink outside"),
    ),
)
"""What a command may do, which is any program: what lies outside is not there at all (`workers/shell`), so a command
may do much within. The worker itself, which starts it, is held by its namespaces and its capabilities alone."""

ON_THE_ROOT_ITSELF: Final = (
    Deny("connect"),
    Deny("socket", (IsNot(1, _CONNECTED_TYPES),)),
    Deny("socketpair", (IsNot(1, _CONNECTED_TYPES),)),
)
"""What a command may not do besides where it sees the root itself: a socket file there may lead to a server outside.
On an overlay it leads nowhere, so there a command may connect to what it has bound."""

NETLINK_ALONE: Final = (_AF_NETLINK,)
"""Families of sockets of a command that sees the machine, and so is in the machine's network."""

NO_SOCKET_FILES: Final = Deny("socket", (Is(0, FAMILIES),))
"""Nobody is told either: every program that looks up a user's name asks for one."""

MACHINE_DENIES: Final = (
    *(row for row in _SHELL_DENIES if row is not NO_NETWORK and row.call != "syslog"),
    *(Deny(call) for call in ("connect", "listen", "accept", "accept4", "pidfd_send_signal")),
    # What is changed by these protocols takes a power over the network that no command has.
    Deny("socket", (Is(0, (_AF_NETLINK,)), IsNot(2, _NETLINK_TO_LOOK))),
    Deny("socketpair", (IsNot(1, _CONNECTED_TYPES),)),
    # The program `ip` needs it; nobody's name is so short.
    Deny("bind", (IsNot(2, (_NETLINK_ADDRESS,)),)),
    Deny("syslog", (IsNot(0, _READ_THE_LOG),)),
    # Who opens a file waits for whoever has a lease on it.
    Deny("fcntl", (Is(1, (_F_SETLEASE,)),)),
)
"""Instead of the rows of `SHELL` where a command sees the machine, besides one about families of sockets."""

FAMILIES_OF_THE_NETWORK: Final = (*FAMILIES, *_INTERNET, _AF_NETLINK)
"""Those with the proxy beside it (`workers.shell.proxy.proxy`), or a localhost of its own."""

WITH_A_NETWORK: Final = (
    # Servers list their machine's addresses (getifaddrs(3)), and some do not start where they cannot.
    Deny("socket", (Is(0, (_AF_NETLINK,)), IsNot(2, _NETLINK_TO_LOOK))),
    Deny("socket", (Is(0, _INTERNET), IsNot(1, _INTERNET_TYPES))),
    Deny("socket", (Is(0, _INTERNET), IsNot(2, _INTERNET_PROTOCOLS))),
    # Parts of the kernel that are put between: encryption (TLS), and packets in packets (IPsec, L2TP).
    Deny("setsockopt", (Is(1, (_TCP,)), Is(2, (_TCP_ULP,))), errno.ENOPROTOOPT),
    Deny("setsockopt", (Is(1, (_UDP,)), Is(2, (_UDP_ENCAP,))), errno.ENOPROTOOPT),
)
"""What stands instead of `NO_NETWORK` where a person let a command use the network of its profile: there is nothing in
the network namespace but the proxy."""

# --- in a copy of the root, where there are no namespaces -----------------------------------------------------------

_TERMINAL: Final = (0x5401, 0x5402, 0x5403, 0x5404, 0x540F, 0x5410, 0x5413, 0x802C542A)
"""TCGETS, TCSETS*, TIOCGPGRP, TIOCSPGRP, TIOCGWINSZ, TCGETS2 of ioctl_tty(2)."""
_DESCRIPTOR: Final = (0x5421, 0x5450, 0x5451, 0x541B)
"""FIONBIO, FIONCLEX, FIOCLEX, FIONREAD."""
_CONTENT: Final = (0x40049409, 0x4020940D, 0x80086601)
"""FICLONE, FICLONERANGE, FS_IOC_GETFLAGS of linux/fs.h."""
_SET_DUMPABLE: Final = 4
"""PR_SET_DUMPABLE of prctl(2)."""
_LEASES: Final = (1024, 1026)
"""F_SETLEASE, F_NOTIFY of fcntl(2): what lies outside can be opened to be read."""

FORKS: Final = ("fork", "vfork", "clone")
METADATA: Final = (
    *("chmod", "fchmod", "fchmodat", "fchmodat2", "chown", "lchown", "fchown", "fchownat"),
    *("utime", "utimes", "futimesat", "utimensat"),
)
"""Calls that neither Landlock nor a filter can judge, which go by a name or a descriptor that was opened to be read:
the worker makes them instead, in the copy alone."""

IN_A_COPY: Final = (
    *(row for row in SHELL.denies if row is not NO_NETWORK),
    *ON_THE_ROOT_ITSELF,
    # The machine's processes have numbers here: nothing is done to another by its number.
    *(
        Deny(call, (IsNot(0, (0,)),))
        for call in ("prlimit64", "sched_setaffinity", "sched_setattr", "sched_setscheduler", "sched_setparam")
    ),
    Deny("setpriority", (IsNot(1, (0,)),)),
    Deny("ioprio_set", (IsNot(1, (0,)),)),
    # What lies outside has names here. ENOSYS is what a kernel says that has no attributes, so programs that set a mode
    # by a list (`install`) go on without one.
    *(Deny(call, (), errno.ENOSYS) for call in ("setxattr", "lsetxattr", "fsetxattr", "setxattrat")),
    *(Deny(call, (), errno.ENOSYS) for call in ("removexattr", "lremovexattr", "fremovexattr", "removexattrat")),
    Deny("file_setattr"),
    # The machine's names of abstract sockets are there, and whoever has one is taken for its usual owner. As nobody can
    # connect, nothing is lost.
    *(Deny(call) for call in ("bind", "listen")),
    # The worker looks at what files its processes hold open.
    Deny("prctl", (Is(0, (_SET_DUMPABLE,)),)),
    Deny("inotify_add_watch", (), errno.ENOSPC),
    Deny("fcntl", (Is(1, _LEASES),)),
    Deny("ioctl", (IsNot(1, (*_TERMINAL, *_DESCRIPTOR, *_CONTENT)),), errno.ENOTTY),
)
"""What a command may not do besides, where only Landlock and this filter hold it: what lies outside is there."""

ASKED_IN_A_COPY: Final = (*FORKS, *METADATA)
"""Calls for which the worker is asked."""
