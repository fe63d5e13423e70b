"""Every way out that an attacker's Python could take from the files worker, and the locks that hold it.

A row's door must be refused by the whole confinement, by each of its locks alone (all its other locks taken
out of the worker), and must open when all of its locks are out: so each lock has a test that fails without it.
"""

import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.direct import Direct
from workers import wire

Hostile = Callable[..., Direct]

LANDLOCK = ("landlock",)
SECCOMP = ("seccomp",)
BOTH = ("landlock", "seccomp")


class Door(NamedTuple):
    name: str
    held_by: tuple[str, ...]
    code: str
    as_root: tuple[str, ...] = ()
    """Locks that hold besides when the worker runs as root, whose capabilities would open the door."""
    opens_for: str = "anyone"

    @property
    def locks(self) -> tuple[str, ...]:
        return self.held_by + (self.as_root if os.geteuid() == 0 else ())


DOORS = [
    # Files outside the root.
    Door("read", LANDLOCK, "result = open(outside + '/secret').read()"),
    Door("read by a link", LANDLOCK, "result = open(outside + '/link').read()"),
    Door(
        "read by openat2",
        LANDLOCK,
        "result = call('openat2', -100, (outside + '/secret').encode(), bytes(24), 24)",
    ),
    Door("create", LANDLOCK, "open(outside + '/new', 'x').close()"),
    Door("append", LANDLOCK, "open(outside + '/secret', 'a').close()"),
    Door("truncate on opening", LANDLOCK, "os.close(os.open(outside + '/secret', os.O_RDONLY | os.O_TRUNC))"),
    Door("list", LANDLOCK, "result = os.listdir(outside)"),
    Door("make a directory", LANDLOCK, "call('mkdirat', -100, (outside + '/new').encode(), 0o700)"),
    Door("remove a file", LANDLOCK, "call('unlinkat', -100, (outside + '/secret').encode(), 0)"),
    Door("remove a directory", LANDLOCK, "call('unlinkat', -100, (outside + '/empty').encode(), 0x200)"),
    Door(
        "move a file out",
        LANDLOCK,
        "open(room_path + '/goods', 'w').close()\n"
        "call('renameat', -100, (room_path + '/goods').encode(), -100, (outside + '/goods').encode())",
    ),
    Door(
        "move a file in",
        LANDLOCK,
        "call('renameat', -100, (outside + '/secret').encode(), -100, (room_path + '/secret').encode())",
    ),
    Door("up from the root", LANDLOCK, "result = os.listdir(os.open('..', os.O_RDONLY, dir_fd=room.root.fd))"),
    Door("by /proc/self/root", LANDLOCK, "result = open('/proc/self/root' + outside + '/secret').read()"),
    Door("by /proc/self/fd", LANDLOCK, "result = os.listdir(f'/proc/self/fd/{room.root.fd}/..')"),
    Door("a device", LANDLOCK, "os.open('/dev/null', os.O_RDWR)"),
    Door("its own status", LANDLOCK, "os.open('/proc/self/status', os.O_RDONLY)"),
    Door("change into a directory", SECCOMP, "os.chdir(outside)"),
    Door("read a link's text", SECCOMP, "result = os.readlink(outside + '/link')"),
    Door("chmod", SECCOMP, "os.chmod(outside + '/secret', 0o600)"),
    Door("chmod of a descriptor", SECCOMP, "os.fchmod(os.open(room_path, os.O_RDONLY), 0o700)"),
    Door("chown", SECCOMP, "os.chown(outside + '/secret', -1, -1)"),
    Door("utime", SECCOMP, "os.utime(outside + '/secret', (0, 0))"),
    Door("set an attribute", SECCOMP, "os.setxattr(outside + '/secret', 'user.mark', b'1')"),
    Door("list attributes", SECCOMP, "result = os.listxattr(outside + '/secret')"),
    Door("truncate by path", BOTH, "os.truncate(outside + '/secret', 0)"),
    Door(
        "link in",
        BOTH,
        "os.link(outside + '/secret', room_path + '/linked')\nos.unlink(room_path + '/linked')",
    ),
    Door("link out", BOTH, "os.link(room_path + '/.keep', outside + '/linked')"),
    Door("symlink out", BOTH, "os.symlink('secret', outside + '/linked')"),
    Door(
        "symlink in the root",
        BOTH,
        "os.symlink(outside, room_path + '/hole')\nos.unlink(room_path + '/hole')",
    ),
    Door("FIFO in the root", BOTH, "os.mkfifo(room_path + '/fifo')\nos.unlink(room_path + '/fifo')"),
    Door("leave a whiteout", SECCOMP, "call('renameat2', -100, b'/nonexistent/a', -100, b'/nonexistent/b', 4)"),
    Door("watch", SECCOMP, "call('inotify_init1', 0)"),
    # Programs and memory.
    Door("fork", SECCOMP, "child = os.fork()\nif child == 0:\n    os._exit(0)\nos.waitpid(child, 0)"),
    Door(
        "thread",
        SECCOMP,
        "child = threading.Thread(target=int)\ntry:\n    child.start()\n"
        "except RuntimeError:\n    raise PermissionError(errno.EPERM, 'no thread')\nchild.join()",
    ),
    Door("execute", BOTH, "os.waitpid(os.posix_spawn('/bin/true', ['true'], {}), 0)"),
    Door("execute by the shell", BOTH, "result = subprocess.run(['/bin/sh', '-c', 'exit 0']).returncode"),
    Door("file in memory", SECCOMP, "os.close(os.memfd_create('x'))"),
    Door("executable memory", SECCOMP, "mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_EXEC)"),
    Door(
        "executable file",
        SECCOMP,
        "open(room_path + '/code', 'wb').write(bytes(4096))\n"
        "code = os.open(room_path + '/code', os.O_RDONLY)\n"
        "mmap.mmap(code, 4096, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_EXEC)",
    ),
    Door(
        "make memory executable",
        SECCOMP,
        "page = call('mmap', 0, 4096, 3, 0x22, -1, 0)\ncall('mprotect', page, 4096, 5)",
    ),
    # Sockets.
    Door("IPv4 socket", SECCOMP, "socket.socket(socket.AF_INET).close()"),
    Door("IPv6 socket", SECCOMP, "socket.socket(socket.AF_INET6).close()"),
    Door("datagram socket", SECCOMP, "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).close()"),
    Door("Unix socket", SECCOMP, "socket.socket(socket.AF_UNIX).close()"),
    Door("netlink socket", SECCOMP, "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW).close()"),
    Door("pair of sockets", SECCOMP, "[each.close() for each in socket.socketpair()]"),
    Door("TCP", BOTH, "socket.socket().connect(('127.0.0.1', port))"),
    Door("listen on TCP", BOTH, "socket.socket().bind(('127.0.0.1', 0))"),
    Door("abstract Unix socket", BOTH, "socket.socket(socket.AF_UNIX).connect('\\0' + abstract)"),
    Door("Unix socket with a path", SECCOMP, "socket.socket(socket.AF_UNIX).connect(path)"),
    # Other processes.
    Door(
        "ptrace",
        BOTH,
        "call('ptrace', 0x4206, victim, 0, 0)\nos.kill(victim, 9)\nos.waitpid(victim, 0)",
        ("capabilities",),
    ),
    Door(
        "read another's memory",
        BOTH,
        "vector = ctypes.create_string_buffer(16)\n"
        "vector[0:8] = ctypes.addressof(vector).to_bytes(8, 'little')\nvector[8] = 8\n"
        "call('process_vm_readv', victim, vector, 1, vector, 1, 0)",
        ("capabilities",),
    ),
    Door("another's environment", LANDLOCK, "open(f'/proc/{victim}/environ').read()", ("capabilities",)),
    Door("signal another", BOTH, "os.kill(victim, 0)"),
    Door("signal its parent", BOTH, "os.kill(os.getppid(), 0)"),
    Door("hold another", SECCOMP, "os.pidfd_open(victim)"),
    Door("limit another", SECCOMP, "call('prlimit64', victim, 4, 0, 0)"),
    Door("slow another", SECCOMP, "os.setpriority(os.PRIO_PROCESS, victim, 19)", ("capabilities",)),
    Door(
        "pin another",
        SECCOMP,
        "os.sched_setaffinity(victim, os.sched_getaffinity(victim))",
        ("capabilities",),
    ),
    # The kernel.
    Door("user namespace", SECCOMP, "call('unshare', 0)"),
    Door("enter a namespace", SECCOMP, "call('setns', -1, 0)"),
    Door("mount", SECCOMP, "call('mount', 0, 0, 0, 0, 0)"),
    Door("io_uring", SECCOMP, "call('io_uring_setup', 0, 0)"),
    Door("keyring", SECCOMP, "call('keyctl', 0, -3, 0)"),
    Door("kernel program", SECCOMP, "call('bpf', 9999, 0, 0)"),
    Door("performance counters", SECCOMP, "call('perf_event_open', 0, 0, -1, -1, 0)"),
    Door("shared memory", SECCOMP, "call('shmget', 0, 0, 0)"),
    Door("clone3", SECCOMP, "call('clone3', 0, 0)"),
    # Its own locks and descriptors.
    Door("become dumpable", SECCOMP, "kernel.prctl('PR_SET_DUMPABLE', 4, 0)"),
    Door("outlive its parent", SECCOMP, "kernel.prctl('PR_SET_PDEATHSIG', 1, 9)"),
    Door("owner of a pipe's signals", SECCOMP, "fcntl.fcntl(pipe, fcntl.F_SETOWN, 0)"),
    Door("signal of a pipe", SECCOMP, "fcntl.fcntl(pipe, fcntl.F_SETSIG, 0)"),
    Door("flags of a pipe", SECCOMP, "fcntl.fcntl(pipe, fcntl.F_SETFL, fcntl.fcntl(pipe, fcntl.F_GETFL))"),
    Door("size of a pipe", SECCOMP, "fcntl.fcntl(pipe, 1031, 65536)"),
    Door("lease", SECCOMP, "fcntl.fcntl(pipe, fcntl.F_SETLEASE, fcntl.F_UNLCK)"),
    Door("ask a descriptor", SECCOMP, "fcntl.ioctl(pipe, 0x541B, bytes(4))"),
    Door("write into a terminal", SECCOMP, "fcntl.ioctl(pipe, 0x5412, b'x')"),
    Door("use a capability", SECCOMP, "os.chroot('/')", ("capabilities",), opens_for="root"),
    Door("another user", SECCOMP, "os.setresuid(-1, -1, -1)"),
]

Given = dict[str, str | int]

LOCKS = [(door, lock) for door in DOORS for lock in door.locks]


@pytest.fixture
def target(room: Path, outside: Path, victim: int) -> Iterator[Given]:
    """Everything outside that a row goes for, ready to be taken."""
    (room / ".keep").touch()
    path, abstract = str(outside / "socket"), outside.as_posix()
    with (
        socket.create_server(("127.0.0.1", 0)) as tcp,
        socket.socket(socket.AF_UNIX) as by_path,
        socket.socket(socket.AF_UNIX) as by_name,
    ):
        by_path.bind(path)
        by_path.listen()
        by_name.bind("\0" + abstract)
        by_name.listen()
        given: Given = {"outside": str(outside), "room_path": str(room), "victim": victim, "path": path}
        yield {**given, "abstract": abstract, "port": tcp.getsockname()[1]}
    for left in ("linked", "hole", "fifo", "secret", "goods", "code"):
        (room / left).unlink(missing_ok=True)


def attacked(worker: Direct, door: Door, target: Given) -> str:
    answer = worker.call("attack", {"code": door.code, "given": target})
    assert isinstance(answer, wire.Done), answer
    return answer.content


@pytest.mark.parametrize("door", DOORS, ids=[door.name for door in DOORS])
def test_the_confined_worker_finds_the_door_shut(door: Door, hostile: Hostile, target: Given) -> None:
    assert attacked(hostile(), door, target).startswith("refused ")


@pytest.mark.parametrize(("door", "lock"), LOCKS, ids=[f"{door.name}, {lock}" for door, lock in LOCKS])
def test_each_lock_holds_the_door_alone(door: Door, lock: str, hostile: Hostile, target: Given) -> None:
    others = [other for other in door.locks if other != lock]
    assert attacked(hostile(*others), door, target).startswith("refused ")


@pytest.mark.parametrize("door", DOORS, ids=[door.name for door in DOORS])
def test_the_door_opens_without_its_locks(door: Door, hostile: Hostile, target: Given) -> None:
    if door.opens_for == "root" and os.geteuid():
        pytest.skip("without root this door is shut by itself")
    assert attacked(hostile(*door.locks), door, target).startswith(("did ", "passed "))
