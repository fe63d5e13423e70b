"""Sockets that processes of the machine hold: looked up outside of the sandbox, shown in the /proc of a command.

Rule: only a process of the person's own may look at another's descriptors, so one is made before the worker enters its
namespaces. It tells which process has which socket, of no other descriptor a word, and takes nothing from whoever asks
but a pipe to write to. What a command finds are links, named as the descriptors are, that lead nowhere: by these
`ss -p` and `netstat -p` know who listens.

    the worker, before its namespaces -- fork --> the looker, which keeps the right to look and nothing else
    a command's process, which makes its places -- a pipe --> the looker -- "PID FD:INODE ..." --> that pipe
"""

import fcntl
import os
import select
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from workers import kernel
from workers.confine import mounts, privileges, seccomp
from workers.confine.confinements import PYTHON
from workers.confine.mounts import NO_DEVICES, NO_PROGRAMS, NO_SUID, READ_ONLY
from workers.confine.seccomp import Allow, Only, Without
from workers.tree.root import closing

_CAP_DAC_READ_SEARCH: Final = 2
_CAP_SYS_PTRACE: Final = 19
_KEPT: Final = (_CAP_DAC_READ_SEARCH, _CAP_SYS_PTRACE)
"""To look at processes of other users, where this one may."""
_FIOCLEX: Final = 0x5451
_NOT_TO_READ: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
_CALLS: Final = (
    *PYTHON,
    Allow("openat", (Without(2, _NOT_TO_READ),)),
    Allow("fcntl", (Only(1, (fcntl.F_DUPFD_CLOEXEC, fcntl.F_GETFD, fcntl.F_SETFD, fcntl.F_GETFL)),)),
    Allow("ioctl", (Only(1, (_FIOCLEX,)),)),
    *map(Allow, ("getdents64", "newfstatat", "fstat", "lseek", "readlinkat", "recvmsg")),
)

_LOOKS_S: Final = 1.0
_WAITS_S: Final = 2.0
"""Seconds for one look at all processes, and for its answer."""
_OF_ONE: Final = 512
_OF_ALL: Final = 20_000
"""Sockets of one process, those of the lowest numbers, and of all, that are told: each takes a kilobyte."""
_CHUNK: Final = 2**16
_SOCKET: Final = "socket:["


def begin() -> int:
    """Start the process that looks; return the descriptor by which it is asked. It ends with its last copy.

    Raises:
        OSError: it cannot be started.
    """
    ours, theirs = socket.socketpair()
    if os.fork() == 0:
        try:
            _look_when_told(theirs)
        finally:
            os._exit(0)
    theirs.close()
    return ours.detach()


def _look_when_told(end: socket.socket) -> None:
    privileges.keep_only((end.fileno(),))
    privileges.no_new_privs()
    privileges.empty_bounding_set()
    privileges.keep_capabilities(() if os.geteuid() else _KEPT)
    privileges.undumpable()
    kernel.prctl("PR_SET_PDEATHSIG", privileges.PR_SET_PDEATHSIG, signal.SIGKILL)
    seccomp.load(_CALLS)
    while True:
        _, pipes, _, _ = socket.recv_fds(end, 1, 1)
        if not pipes:
            return
        with suppress(BrokenPipeError), open(pipes[0], "wb") as answer:
            answer.writelines(_held())


def _held() -> Iterator[bytes]:
    """Yield a line for each process that has sockets."""
    until, left = time.monotonic() + _LOOKS_S, _OF_ALL
    for pid in sorted(map(int, filter(str.isdigit, os.listdir("/proc")))):
        if time.monotonic() > until or left <= 0:
            return
        found = list(_sockets_of(pid))
        left -= len(found)
        if found:
            yield f"{pid} {' '.join(found)}\n".encode()


def _sockets_of(pid: int) -> Iterator[str]:
    left = _OF_ONE
    with suppress(OSError), closing(os.open(f"/proc/{pid}/fd", os.O_RDONLY)) as directory:
        for number in sorted(map(int, os.listdir(directory))):
            with suppress(OSError):
                leads_to = os.readlink(str(number), dir_fd=directory)
                if leads_to.startswith(_SOCKET):
                    yield f"{number}:{leads_to[len(_SOCKET) : -1]}"
                    left -= 1
            if not left:
                return


# --- in the process that becomes a command -------------------------------------------------------------------------


def ask(looker: int) -> int:
    """Ask for all that is held now; return where the answer is read, -1 where nobody is there to answer."""
    mine, theirs = os.pipe()
    try:
        with socket.socket(fileno=os.dup(looker)) as end:
            socket.send_fds(end, [b"?"], [theirs])
    except OSError:
        os.close(mine)
        return -1
    finally:
        os.close(theirs)
    return mine


def show(answer: int, place: str) -> None:
    """Show what was answered in this process's /proc, which is the machine's. `place` is an empty directory.

    Raises:
        OSError: it cannot be mounted.
    """
    itself = os.readlink("/proc/self")  # whose descriptors are another program's by then
    table = [words for words in map(str.split, _read(answer).splitlines()) if words[0] != itself]
    if not table:
        return
    names = 2 + sum(map(len, table))
    mounts.new("tmpfs", place, NO_SUID | NO_DEVICES | NO_PROGRAMS, f"size=0,nr_inodes={names},mode=755")
    for pid, *held in table:
        os.mkdir(f"{place}/{pid}")
        for each in held:
            number, _, inode = each.partition(":")
            os.symlink(f"{_SOCKET}{inode}]", f"{place}/{pid}/{number}")
    mounts.restrict(place, READ_ONLY)
    for pid, *_ in table:
        with suppress(OSError):  # it has ended
            mounts.bind(f"{place}/{pid}", f"/proc/{pid}/fd")
    mounts.detach(place)


def _read(answer: int) -> str:
    """Return the lines that are complete; those that take too long are not waited for."""
    if answer < 0:
        return ""
    parts, until = [], time.monotonic() + _WAITS_S
    poll = select.poll()
    poll.register(answer, select.POLLIN)
    while poll.poll(max(0, until - time.monotonic()) * 1000) and (part := os.read(answer, _CHUNK)):
        parts.append(part)
    os.close(answer)
    return b"".join(parts).rpartition(b"\n")[0].decode()
