"""Every way out that an attacker's Python, or ripgrep with an attacker's arguments, could take from the search worker.

As for the files worker: a door is shut by the whole confinement, by each of its locks alone, and open without them.
"""

import os
import socket
import stat
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.direct import Direct
from tests.workers.confine.conftest import outside, victim
from tests.workers.confine.test_seccomp import decide
from tests.workers.search.shared import RIPGREP, open_search
from workers import wire
from workers.confine.policy import SEARCH
from workers.confine.probe import ATTEMPTS
from workers.confine.seccomp import ALLOW, ARCHITECTURES, EPERM, assemble
from workers.confine.syscalls import NUMBERS

__all__ = ["outside", "victim"]

Hostile = Callable[..., Direct]
Given = dict[str, str | int]

LANDLOCK = ("landlock",)
SECCOMP = ("seccomp",)
BOTH = ("landlock", "seccomp")

IN_A_CHILD = """
def in_a_child(deed, *given):
    mine, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            deed(*given)
        except OSError as error:
            os.write(theirs, str(error.errno).encode())
        finally:
            os._exit(0)
    os.close(theirs)
    said = os.read(mine, 9)
    os.close(mine)
    os.waitpid(child, 0)
    if said:
        raise OSError(int(said), 'said the child')
def execute(path):
    in_a_child(os.execve, path, [path, '--version'], {})
"""


class Door(NamedTuple):
    name: str
    held_by: tuple[str, ...]
    code: str
    as_root: tuple[str, ...] = ()

    @property
    def locks(self) -> tuple[str, ...]:
        return self.held_by + (self.as_root if os.geteuid() == 0 else ())


DOORS = [
    # Files outside the root.
    Door("read", LANDLOCK, "result = open(outside + '/secret').read()"),
    Door("list", LANDLOCK, "result = os.listdir(outside)"),
    Door("create", LANDLOCK, "open(outside + '/new', 'x').close()"),
    Door("append", LANDLOCK, "open(outside + '/secret', 'a').close()"),
    Door("truncate on opening", LANDLOCK, "os.close(os.open(outside + '/secret', os.O_RDONLY | os.O_TRUNC))"),
    Door("by a link in the root", LANDLOCK, "result = open(room_path + '/link/secret').read()"),
    Door("by /proc/self/root", LANDLOCK, "result = open('/proc/self/root' + outside + '/secret').read()"),
    Door("up from the root", LANDLOCK, "result = os.listdir('..')"),
    Door("a device", LANDLOCK, "os.open('/dev/null', os.O_RDWR)"),
    Door("change into a directory", SECCOMP, "os.chdir(outside)"),
    Door("read a link's text", SECCOMP, "result = os.readlink(outside + '/link')"),
    Door("chmod", SECCOMP, "os.chmod(outside + '/secret', 0o600)"),
    Door("chown", SECCOMP, "os.chown(outside + '/secret', -1, -1)"),
    Door("utime", SECCOMP, "os.utime(outside + '/secret', (0, 0))"),
    Door("set an attribute", SECCOMP, "os.setxattr(outside + '/secret', 'user.mark', b'1')"),
    Door("truncate by path", BOTH, "os.truncate(outside + '/secret', 0)"),
    Door("remove", BOTH, "os.unlink(outside + '/secret')"),
    Door("watch", SECCOMP, "call('inotify_init1', 0)"),
    # Files in the root, which is only read.
    Door("create in the root", LANDLOCK, "open(room_path + '/made', 'x').close()"),
    Door("write in the root", LANDLOCK, "open(room_path + '/kept', 'w').close()"),
    Door("truncate in the root", LANDLOCK, "os.close(os.open(room_path + '/kept', os.O_RDONLY | os.O_TRUNC))"),
    Door("remove in the root", BOTH, "os.unlink(room_path + '/kept')"),
    Door("make a directory in the root", BOTH, "os.mkdir(room_path + '/made')"),
    Door("rename in the root", BOTH, "os.rename(room_path + '/kept', room_path + '/made')"),
    Door("link in the root", BOTH, "os.link(room_path + '/kept', room_path + '/made')"),
    Door("symlink in the root", BOTH, "os.symlink('x', room_path + '/made')"),
    Door("chmod in the root", SECCOMP, "os.chmod(room_path + '/kept', 0o600)"),
    # Programs and memory.
    Door("execute a program", LANDLOCK, "execute('/bin/true')"),
    Door("execute Python", LANDLOCK, "execute(sys.executable)"),
    Door("execute the loader", LANDLOCK, "execute(loader)"),
    Door("execute a program in the root", LANDLOCK, "execute(room_path + '/program')"),
    Door("execute a script in the root", LANDLOCK, "execute(room_path + '/script')"),
    Door("execute itself", LANDLOCK, "execute('/proc/self/exe')"),
    Door("execute a descriptor", SECCOMP, "call('execveat', -1, b'', 0, 0, 0x1000)"),
    Door("execute by another clone", BOTH, "os.waitpid(os.posix_spawn('/bin/true', ['true'], {}), 0)"),
    Door("file in memory", SECCOMP, "os.close(os.memfd_create('x'))"),
    Door("executable memory", SECCOMP, "mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_EXEC)"),
    Door(
        "thread",
        SECCOMP,
        "child = threading.Thread(target=int)\ntry:\n    child.start()\n"
        "except RuntimeError:\n    raise PermissionError(errno.EPERM, 'no thread')\nchild.join()",
    ),
    Door("leave the process group", SECCOMP, "in_a_child(os.setpgid, 0, 0)"),
    Door("begin a session", SECCOMP, "in_a_child(os.setsid)"),
    Door("outlive its parent", SECCOMP, "kernel.prctl('PR_SET_PDEATHSIG', 1, 0)"),
    Door(
        "a process in a namespace of its own",
        ("seccomp", "namespaces"),
        "child = call('clone', 0x10000011, 0, 0, 0, 0)\nif child == 0:\n    os._exit(0)\nos.waitpid(child, 0)",
    ),
    Door("clone3", SECCOMP, "call('clone3', 0, 0)"),
    Door("namespaces", SECCOMP, "call('unshare', 0)"),
    Door("mount", SECCOMP, "call('mount', 0, 0, 0, 0, 0)"),
    Door("io_uring", SECCOMP, "call('io_uring_setup', 0, 0)"),
    Door("keyring", SECCOMP, "call('keyctl', 0, -3, 0)"),
    Door("kernel program", SECCOMP, "call('bpf', 9999, 0, 0)"),
    # Sockets.
    Door("IPv4 socket", SECCOMP, "socket.socket(socket.AF_INET).close()"),
    Door("Unix socket", SECCOMP, "socket.socket(socket.AF_UNIX).close()"),
    Door("netlink socket", SECCOMP, "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW).close()"),
    Door("pair of sockets", SECCOMP, "[each.close() for each in socket.socketpair()]"),
    Door(
        "TCP",
        ("landlock", "seccomp", "namespaces"),
        "try:\n    socket.socket().connect(('127.0.0.1', port))\n"
        "except OSError as error:\n    raise PermissionError(errno.EPERM, 'no way') from error",
    ),
    # Other processes.
    Door("kill another", LANDLOCK, "os.kill(victim, 9)"),
    Door("signal another", BOTH, "os.kill(victim, 0)"),
    Door("ask for its parent", BOTH, "os.kill(os.getppid(), 0)"),
    Door("hold another", SECCOMP, "os.pidfd_open(victim)"),
    Door("limit another", SECCOMP, "call('prlimit64', victim, 4, 0, 0)"),
    Door(
        "another's environment", ("landlock", "namespaces"), "open(f'/proc/{victim}/environ').read()", ("capabilities",)
    ),
    Door(
        "trace another",
        (*BOTH, "namespaces"),
        "call('ptrace', 0x4206, victim, 0, 0)\nos.kill(victim, 9)\nos.waitpid(victim, 0)",
        ("capabilities",),
    ),
]
LOCKS = [(door, lock) for door in DOORS for lock in door.locks]


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The root of every shared worker, with programs in it."""
    folder = tmp_path_factory.mktemp("room")
    (folder / "program").write_bytes(Path(RIPGREP).read_bytes())
    (folder / "script").write_text(f"#!{RIPGREP}\n")
    for name in ("program", "script"):
        (folder / name).chmod(0o755)
    (folder / "text").write_text("swordplay\n")
    return folder


@pytest.fixture(scope="module")
def hostile(room: Path) -> Iterator[Hostile]:
    """Return the shared worker that lacks the given locks."""
    with ExitStack() as stack:
        workers: dict[tuple[str, ...], Direct] = {}

        def worker(*removed: str) -> Direct:
            key = tuple(sorted(removed))
            if key not in workers or workers[key].process.poll() is not None:
                workers[key] = stack.enter_context(open_search(room, *key, hostile=True))
            return workers[key]

        yield worker


@pytest.fixture
def target(room: Path, outside: Path, victim: int) -> Iterator[Given]:
    """Everything that a row goes for, ready to be taken."""
    (room / "kept").write_text("kept")
    (room / "link").symlink_to(outside)
    loader = next((str(each) for each in Path("/").glob("lib*/ld-*.so*")), "/bin/true")
    with socket.create_server(("127.0.0.1", 0)) as tcp:
        yield {
            "outside": str(outside),
            "room_path": str(room),
            "victim": victim,
            "loader": loader,
            "port": tcp.getsockname()[1],
        }
    for left in ("kept", "link", "made"):
        path = room / left
        if path.is_dir() and not path.is_symlink():
            path.rmdir()
        path.unlink(missing_ok=True)


def attacked(worker: Direct, code: str, given: Given) -> str:
    answer = worker.call("attack", {"code": IN_A_CHILD + code, "given": given})
    assert isinstance(answer, wire.Done), answer
    return answer.content


@pytest.mark.parametrize("door", DOORS, ids=[door.name for door in DOORS])
def test_the_confined_worker_finds_the_door_shut(door: Door, hostile: Hostile, target: Given) -> None:
    assert attacked(hostile(), door.code, target).startswith("refused ")


@pytest.mark.parametrize(("door", "lock"), LOCKS, ids=[f"{door.name}, {lock}" for door, lock in LOCKS])
def test_each_lock_holds_the_door_alone(door: Door, lock: str, hostile: Hostile, target: Given) -> None:
    others = [other for other in door.locks if other != lock]
    assert attacked(hostile(*others), door.code, target).startswith("refused ")


@pytest.mark.parametrize("door", DOORS, ids=[door.name for door in DOORS])
def test_the_door_opens_without_its_locks(door: Door, hostile: Hostile, target: Given) -> None:
    assert attacked(hostile(*door.locks), door.code, target).startswith(("did ", "passed "))


RUN = """
from workers.search.program import Runs
import time
output = b''
with Runs(room.engine.program, time.monotonic() + 20) as runs:
    run = runs.start(*[each.replace('OUTSIDE', outside).replace('ROOM', room_path) for each in arguments.split()])
    for _, chunk in runs.chunks():
        output += chunk
result = output + run.complaint
"""
ARGUMENTS = [
    ("a directory outside", "-e fish OUTSIDE"),
    ("a link out of the root", "--follow -e fish ./"),
    ("patterns from outside", "--file=OUTSIDE/rules ./"),
    ("a program for each file", "--pre=OUTSIDE/program -e x ./"),
    ("a program in the root for each file", "--pre=ROOM/script2 -e x ./"),
    ("an ignore file outside", "--debug --ignore-file=OUTSIDE/rules --files ./"),
    ("unpack", "--search-zip -e fish ./"),
    (
        "a program for the host's name",
        "--hostname-bin=OUTSIDE/program --color=always --hyperlink-format=x://{host} -e sword ./text",
    ),
]


@pytest.fixture
def bait(room: Path, outside: Path) -> Iterator[Given]:
    """What ripgrep could be told to read and to execute; each tells what must stay inside."""
    (room / "link").symlink_to(outside)
    (outside / "rules").write_text("[swordfish\n")
    (outside / "program").write_text(f"#!/bin/sh\necho swordfish x >&2\ntouch {outside}/marker\n")
    (room / "script2").write_text(f"#!/bin/sh\ntouch {outside}/marker\n")
    for path in (outside / "program", room / "script2"):
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
    (room / "packed.gz").write_bytes(bytes.fromhex("1f8b08000000000002ff2b2ecf2f4a49cb2cce50e00200d9d0f26b0b000000"))
    yield {"outside": str(outside), "room_path": str(room)}
    for name in ("link", "script2", "packed.gz"):
        (room / name).unlink()


@pytest.mark.parametrize(("name", "arguments"), ARGUMENTS, ids=[name for name, _ in ARGUMENTS])
def test_ripgrep_reaches_nothing_outside_whatever_it_is_told(
    name: str, arguments: str, hostile: Hostile, bait: Given, outside: Path
) -> None:
    said = attacked(hostile(), RUN, {**bait, "arguments": arguments})
    assert said.startswith("did b")
    assert "swordfish" not in said
    assert not (outside / "marker").exists()


@pytest.mark.parametrize(("name", "arguments"), ARGUMENTS[:3], ids=[name for name, _ in ARGUMENTS[:3]])
def test_without_landlock_ripgrep_reaches_it(name: str, arguments: str, hostile: Hostile, bait: Given) -> None:
    assert "swordfish" in attacked(hostile("landlock"), RUN, {**bait, "arguments": arguments})


@pytest.mark.parametrize(("name", "arguments"), ARGUMENTS[3:5], ids=[name for name, _ in ARGUMENTS[3:5]])
def test_without_its_locks_ripgrep_executes_it(
    name: str, arguments: str, hostile: Hostile, bait: Given, outside: Path
) -> None:
    attacked(hostile(*BOTH), RUN, {**bait, "arguments": arguments})
    assert (outside / "marker").exists()


def test_the_one_program_can_be_executed(hostile: Hostile, target: Given) -> None:
    assert attacked(hostile(), "execute(room.engine.program)", target) == "did None"


def test_the_probe_finds_every_door_shut_but_those_of_its_work(room: Path) -> None:
    with open_search(room) as worker:
        doors = worker.probe()
    assert [door.name for door in doors] == [each.name for each in ATTEMPTS if each.name not in SEARCH.opens]
    assert [door for door in doors if not door.shut] == []
    assert set(SEARCH.opens) == {"fork", "execute a program"}


@pytest.mark.parametrize("machine", NUMBERS)
@pytest.mark.parametrize(
    ("call", "arguments", "verdict"),
    [
        ("kill", (5, 9), ALLOW),
        ("kill", (5, 15), EPERM),
        ("kill", (-1, 9), EPERM),
        ("kill", (2**32 - 1, 9), EPERM),
        ("prctl", (1, 9), ALLOW),
        ("prctl", (1, 0), EPERM),
        ("prctl", (4, 1), EPERM),
        ("prctl", (3, 0), ALLOW),
        ("clone", (0x01200011,), ALLOW),
        ("clone", (0x007D0F00,), ALLOW),
        ("clone", (0x01208011,), EPERM),
        ("clone", (0x11 | 0x20000000,), EPERM),
        ("execveat", (), EPERM),
    ],
)
def test_the_filter_sees_arguments(machine: str, call: str, arguments: tuple[int, ...], verdict: int) -> None:
    for writable in (True, False):
        program = assemble(SEARCH.calls(writable=writable), machine)
        assert decide(program, ARCHITECTURES[machine], NUMBERS[machine][call], *arguments) == verdict


def test_nothing_is_written_even_where_the_root_is() -> None:
    assert SEARCH.access(writable=True) == SEARCH.access(writable=False)
    assert SEARCH.calls(writable=True) == SEARCH.calls(writable=False)
