"""Doors that are shut for an attacker's Python run as a command, each by every one of its locks alone.

What is tried in every worker stands in `tests/door_table.py`. What lies outside is not there at all, whatever other
locks there are.
"""

import json
import os
import signal
import socket
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import msgspec
import pytest

from tests.door_table import DOORS, LS, L, S
from tests.doors import PRELUDE, Door, Held, check, of, open_target
from tests.each_row import each_row
from tests.hostile_worker import hostile_command
from tests.raw_worker import RawWorker
from tests.supervisor.command import ignored
from tests.workers.shell.conftest import LIMITS, Hostile, open_shell, python, shell
from workers import kernel
from workers.confine import landlock
from workers.confine.syscalls import NUMBERS
from workers.shell.sandbox.private_root import of_etc
from workers.shell.sandbox.quiet_variables import QUIET

_OWN_PID_MAX, _RESERVED = (6, 14), 300
"""Since when a PID namespace has its own, and the numbers that the kernel gives only once."""

ALONE = f"""
import ctypes, errno, fcntl, json, os, signal, socket, sys
numbers = {dict(NUMBERS[kernel.MACHINE])!r}
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
def call(name, *arguments):
    passed = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    result = libc.syscall(ctypes.c_long(numbers[name]), *passed)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result
def child(flags):
    pid = call('clone', flags | 17, 0, 0, 0, 0)
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
top = os.open('.', os.O_RDONLY)
for code in json.loads(sys.argv[1]):
    sys.stdout.flush()
    if pid := os.fork():
        os.waitpid(pid, 0)
        continue
    names = dict(globals(), result=None)
    try:
        exec(sys.argv[2] + code, names)
        print('did', repr(names['result']))
    except OSError as error:
        refused = error.errno in (errno.EPERM, errno.EACCES, errno.ENOSYS, errno.EXDEV)
        print('refused' if refused else 'passed', errno.errorcode[error.errno])
    sys.stdout.flush()
    os._exit(0)
"""


OWN = (
    # Namespaces, and what can be mounted in them.
    Door("user namespace", Held(shell=S), "call('unshare', 0x10000000)"),
    Door("user namespace by clone", Held(shell=S), "child(0x10000000)"),
    Door("user namespace, and more in the high half", Held(shell=S), "child(0x10000000 + 2**32)"),
    Door("mount namespace", Held(shell=S), "call('unshare', 0x00020000)", as_root=True),
    Door("mount", Held(shell=LS), "call('mount', b'x', b'/tmp', b'tmpfs', 0, 0)", as_root=True),
    Door("unmount", Held(shell=LS), "call('umount2', b'/tmp', 2)", as_root=True),
    Door("file system without a mount", Held(shell=S), "os.close(call('fsopen', b'tmpfs', 0))", as_root=True),
    Door("change the root", Held(shell=S), "past(errno.ENOENT, call, 'chroot', b'/nonexistent')"),
    # Other processes.
    Door("trace itself", Held(shell=S), "call('ptrace', 0, 0, 0, 0)"),
    Door("read memory as of another", Held(shell=S), "call('process_vm_readv', os.getpid(), 0, 0, 0, 0, 0)"),
    Door("signal the worker", Held(shell=L), "os.kill(1, 0)"),
    Door("limit the worker", Held(shell=S), "call('prlimit64', 1, 7, 0, 0)"),
    # Sockets.
    Door("IPv4 socket, and more in the high half", Held(shell=S), "os.close(call('socket', 2 + 2**32, 1, 0))"),
    # Parts of the kernel.
    Door("type into a terminal", Held(shell=S), "fcntl.ioctl(0, 0x5412, b'x')"),
    Door("type into a terminal, and more in the high half", Held(shell=S), "call('ioctl', 0, 0x5412 + 2**32, b'x')"),
    # Files.
    Door("set-user-id bit", Held(shell=S), "open('/tmp/s', 'w').close()\nos.chmod('/tmp/s', 0o4755)"),
    Door("set-user-id bit at birth", Held(shell=S), "os.close(os.open('/tmp/t', os.O_CREAT | os.O_WRONLY, 0o4755))"),
    Door("set-user-id bit in memory", Held(shell=S), "call('openat2', -100, b'/tmp', bytes(24), 24)"),
    Door("list where the sandbox keeps the root", Held(shell=L), "result = os.listdir('/.held')"),
    Door("list where the sandbox keeps changes", Held(shell=L), "result = os.listdir('/.layers')"),
)  # fmt: skip
"""Besides what is tried in every worker."""

REHEARSED = (*of("shell", DOORS), *OWN)

_SENDS = "sendto(b'x', socket.MSG_DONTWAIT, 'mailbox')"
ON_THE_ROOT_ITSELF = tuple(
    Door(name, Held(shell=S), code)
    for name, code in {
        "server behind a socket in the root": "socket.socket(socket.AF_UNIX).connect('server')",
        "datagram to a socket in the root": f"socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).{_SENDS}",
        "raw datagram to a socket in the root": f"socket.socket(socket.AF_UNIX, socket.SOCK_RAW).{_SENDS}",
        "datagram by a pair of sockets": f"socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)[0].{_SENDS}",
    }.items()
)
"""What is only there for a command on the root itself."""


@pytest.fixture(scope="module", autouse=True)
def servers(project: Path) -> Iterator[None]:
    """Servers outside, whose sockets lie in the root."""
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as mailbox:
        server.bind(str(project / "server"))
        server.listen()
        mailbox.bind(str(project / "mailbox"))
        yield
    (project / "server").unlink()
    (project / "mailbox").unlink()


Outcomes = Callable[..., Mapping[str, str]]


@pytest.fixture(scope="module")
def outcomes(hostile: Hostile, project: Path) -> Iterator[Outcomes]:
    """Return how each door was found by a command that lacks the given locks."""
    found: dict[tuple[str, ...], dict[str, str]] = {}
    with open_target(project.parent, project) as target:
        given = "".join(f"{name} = {value!r}\n" for name, value in target.ready().items()) + PRELUDE

        def tried(*removed: str) -> Mapping[str, str]:
            key = tuple(sorted(removed))
            if key not in found:
                found[key] = {}
                for without_rehearsal, doors in ((False, REHEARSED), (True, ON_THE_ROOT_ITSELF)):
                    codes = [door.code for door in doors]
                    lines = attack(hostile(*key), codes, given, without_rehearsal=without_rehearsal)
                    found[key] |= {door.name: line for door, line in zip(doors, lines, strict=True)}
            return found[key]

        yield tried


def attack(worker: RawWorker, codes: list[str], given: str = "", *, without_rehearsal: bool = False) -> list[str]:
    """Run an attacker's Python as a command, each piece in a process of its own; return how each ended."""
    arguments = " ".join(quoted(each) for each in (ALONE, json.dumps(codes), given))
    result = shell(worker, f"exec {python()} -I -c {arguments}", without_rehearsal=without_rehearsal)
    assert result["exit_code"] == 0, result
    return str(result["stdout"]).splitlines()


def quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


@pytest.mark.parametrize("door", [*REHEARSED, *ON_THE_ROOT_ITSELF], ids=lambda door: door.name)
def test_a_door_is_shut_by_each_of_its_locks_and_by_no_other(door: Door, outcomes: Outcomes) -> None:
    check(door, "shell", lambda removed: outcomes(*removed)[door.name])


@pytest.mark.parametrize("removed", [(), ("seccomp", "landlock")])
def test_on_an_overlay_a_socket_in_the_root_leads_nowhere(removed: tuple[str, ...], hostile: Hostile) -> None:
    assert set(attack(hostile(*removed), [door.code for door in ON_THE_ROOT_ITSELF])) == {"passed ECONNREFUSED"}


ALSO_HELD_BY_THE_WORKERS_POWERS = [
    "os.sched_setaffinity(1, os.sched_getaffinity(0))",
    "os.setpriority(os.PRIO_PROCESS, 1, 0)",
    "os.setpriority(os.PRIO_USER, os.getuid(), 0)",
    "call('ioprio_set', 1, 1, 0x6000)",
    "open('/proc/1/mem')",
    "os.readlink('/proc/1/fd/0')",
    "os.readlink('/proc/1/root')",
]


@pytest.mark.parametrize("removed", [(), ("seccomp",), ("seccomp", "landlock")])
def test_a_command_has_fewer_powers_than_the_worker_so_it_cannot_touch_it(
    removed: tuple[str, ...], hostile: Hostile
) -> None:
    found = attack(hostile(*removed), ALSO_HELD_BY_THE_WORKERS_POWERS)
    assert {line.split()[0] for line in found} <= {"refused", "passed"}
    assert {line.split()[1] for line in found} <= {"EPERM", "EACCES", "ENOENT"}


READ_ONLY = "/proc/sys/kernel/core_pattern /proc/sys/kernel/hostname /usr/bin/new /etc/new /run/new /new"


@pytest.mark.parametrize("removed", [(), ("seccomp", "landlock", "capabilities")])
def test_nothing_of_the_system_can_be_written_whatever_other_locks_there_are(
    removed: tuple[str, ...], hostile: Hostile
) -> None:
    found = attack(hostile(*removed), [f"os.open({path!r}, os.O_CREAT | os.O_WRONLY)" for path in READ_ONLY.split()])
    assert {line.split()[1] for line in found} <= {"EROFS", "EACCES"}
    assert os.geteuid() or set(found) == {"passed EROFS"}


# --- the worker itself, taken over -------------------------------------------------------------------------------


HIDDEN = ["/etc/shadow", "/var/log", "/sys/kernel", "/boot", "/proc/1/root/etc/shadow", "/proc/1/cwd/../etc/shadow"]


@each_row("path", HIDDEN)
def test_nothing_of_the_old_tree_is_there_even_for_the_worker(path: str, hostile: Hostile) -> None:
    assert hostile().attack(f"result = os.stat({path!r})") == "passed ENOENT"


def test_a_secret_beside_the_root_is_not_there_even_for_the_worker(hostile: Hostile, project: Path) -> None:
    (project.parent / "secret").write_text("swordfish")
    code = f"result = [os.listdir(each) for each in ({str(project.parent)!r}, '/.held/..')]"
    found = hostile().attack(code)
    assert "secret" not in found
    assert project.name in found


TO_BE_WRITTEN = "(0).to_bytes(8, 'little') + (1).to_bytes(8, 'little') + bytes(16)"
"""struct mount_attr that takes away what makes a mount read-only."""

WAYS_TO_WRITE = {
    "the system": f"call('mount_setattr', -100, b'/usr', 0, {TO_BE_WRITTEN}, 32)",
    "the kernel's settings": f"call('mount_setattr', -100, b'/proc', 0, {TO_BE_WRITTEN}, 32)",
    "the root of a profile that only reads": f"call('mount_setattr', -100, b'/.held', 0, {TO_BE_WRITTEN}, 32)",
    "the system, mounted anew": "call('mount', 0, b'/usr', 0, 32 | 4096, 0)",
    "what lies beneath": "call('umount2', b'/proc', 2)",
    "what lies beneath, elsewhere": "call('mount', b'/proc', b'/.scratch', 0, 8192, 0)",
    "another /proc": "call('mount', b'proc', b'/.scratch', b'proc', 0, 0)",
    "another /sys": "call('mount', b'sysfs', b'/.scratch', b'sysfs', 0, 0)",
    "the system, shown once more": (
        "call('mount', b'/usr', b'/.scratch', 0, 4096 | 16384, 0)\n"
        f"try: call('mount_setattr', -100, b'/.scratch', 0, {TO_BE_WRITTEN}, 32)\n"
        "finally: call('umount2', b'/.scratch', 2)"
    ),
    "the kernel's settings as they are": "os.open('/proc/sys/kernel/core_pattern', os.O_WRONLY)",
}


@pytest.fixture(scope="module")
def read_only(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RawWorker]:
    """A worker, taken over, that keeps every power which it has once its tree is made, and whose root is only read."""
    command = hostile_command("seccomp", "landlock", "capabilities", category="shell")
    with open_shell(tmp_path_factory.mktemp("reading"), command=command, writable=False) as worker:
        assert worker.report
        yield worker


@pytest.mark.parametrize("what", WAYS_TO_WRITE)
def test_a_read_only_place_stays_so_whoever_takes_the_worker_over(what: str, read_only: RawWorker) -> None:
    answer = read_only.attack(WAYS_TO_WRITE[what])
    assert answer.split()[1] in {"EPERM", "EINVAL", "EROFS", "EACCES"}, answer


_STATUS = "[line for line in open('/proc/self/status') if line.startswith('NoNewPrivs')]"
_KINDS = "sorted({os.readlink(f'/proc/self/fd/{each}').partition(':')[0] for each in descriptors()})"
ITS_OWN = {
    "no descriptor of the old tree": (_KINDS, ["/dev/null", "pipe"]),
    "no more by executing": (_STATUS, ["NoNewPrivs:\t1\n"]),
    "no process but its own": ("[each for each in os.listdir('/proc') if each.isdigit()]", ["1"]),
}


@pytest.mark.parametrize("what", ITS_OWN)
def test_the_worker_has_nothing_but_its_own(what: str, hostile: Hostile) -> None:
    code, found = ITS_OWN[what]
    assert hostile().attack(f"result = {code}") == f"did {found!r}"


def test_a_command_is_made_without_the_workers_descriptors(hostile: Hostile) -> None:
    code = (
        "kinds = lambda _: repr([os.readlink(f'/proc/self/fd/{each}').partition(':')[0] for each in descriptors()])\n"
        "locked = sys.modules['workers.shell.run.command'].try_locks\n"
        "result = locked(context.engine, lambda held: kinds(held).encode()).decode()"
    )
    answer = hostile().attack(code)
    assert [answer.count(each) for each in ("/dev/null", "pipe", ",")] == [2, 3, 4]  # its input, and two to the worker


LACKING = """
command, landlock = sys.modules["workers.shell.run.command"], sys.modules["workers.confine.landlock"]
was, landlock.abi = landlock.abi, lambda: version
try:
    command.try_locks(context.engine, lambda held: b"")
except command.NotStarted as error:
    result = error.failure.feature
landlock.abi = was
"""
"""A kernel with an older Landlock, for a moment."""


@pytest.mark.parametrize(("feature", "since"), landlock.PARTS)
def test_without_a_part_of_landlock_there_is_no_command(feature: str, since: int, hostile: Hostile) -> None:
    assert hostile().attack(LACKING, version=since - 1) == f"did {feature!r}"


def test_the_worker_has_no_network(hostile: Hostile) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        answer = hostile().attack(f"socket.socket().connect(('127.0.0.1', {port}))")
    assert answer.startswith("passed E")


def test_the_worker_keeps_the_powers_that_it_needs_and_no_other(hostile: Hostile) -> None:
    sets = ("CapEff", "CapPrm", "CapInh", "CapAmb", "CapBnd")
    code = f"result = [line for line in open('/proc/self/status') if line.startswith({sets!r})]"
    answer = hostile().attack(code)
    kept, none = f"{1 << 1 | 1 << 19 | 1 << 21:016x}", f"{0:016x}"
    assert [answer.count(each) for each in (kept, none)] == [2, 3]


# --- what every command finds --------------------------------------------------------------------------------------


def test_a_command_has_no_powers(worker: RawWorker) -> None:
    lines = shell(worker, "grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status")["stdout"].splitlines()
    assert {line.partition(":")[2].strip() for line in lines if line.startswith("Cap")} == {"0" * 16}
    assert "NoNewPrivs:\t1" in lines
    assert "Seccomp:\t2" in lines


@pytest.mark.parametrize("without_rehearsal", [False, True])
def test_its_mounts_give_no_more_than_they_must(without_rehearsal: bool, worker: RawWorker, project: Path) -> None:
    lines = shell(worker, "cat /proc/self/mounts", without_rehearsal=without_rehearsal)["stdout"].splitlines()
    mounts = {line.split()[1]: set(line.split()[3].split(",")) for line in lines}
    assert len(mounts) == len(lines) - 1  # the last one at a place is seen: where the root is kept that is an empty one
    writable = {path for path, flags in mounts.items() if "rw" in flags and not path.startswith("/dev/")}
    assert writable == {"/tmp", "/var/tmp", "/home/agent", str(project)}
    assert all("nosuid" in flags for flags in mounts.values())
    assert all("nodev" in flags for path, flags in mounts.items() if not path.startswith("/dev/"))
    assert {"noexec", "ro", "hidepid=invisible"} <= mounts["/proc"]
    assert all("noexec" in flags for path, flags in mounts.items() if path.startswith("/dev/") and path != "/dev/shm")


def test_its_namespace_has_no_more_numbers_for_processes_than_it_may_have(worker: RawWorker) -> None:
    if tuple(int(each) for each in os.uname().release.split("-")[0].split(".")[:2]) < _OWN_PID_MAX:
        pytest.skip("this Linux has one kernel.pid_max for the whole machine")
    most = int(shell(worker, "cat /proc/sys/kernel/pid_max")["stdout"])
    assert most == LIMITS.processes + _RESERVED


FOUND = {
    "what is written to nowhere": ("echo x > /dev/null && stat -c %a /dev/null", "666"),
    "the machine's devices, read-only": (
        "cd /dev; chmod 666 full null random urandom zero 2>&1 | grep -c 'Read-only file system'",
        "5",
    ),
    "places for everybody": ("stat -c %a /tmp /var/tmp /dev/shm", "1777 1777 1777"),
    "a home": ("stat -c %a ~", "700"),
    "what is of the system": ("stat -c %a / /etc /etc/passwd /run", "755 755 644 755"),
    "its descriptors": ("readlink /dev/fd /dev/stdin", "/proc/self/fd /proc/self/fd/0"),
}
"""Commands, and what they say, in one line."""


def test_it_finds_what_of_etc_is_shown(worker: RawWorker) -> None:
    shown = [each for each in of_etc() if os.access(each, os.R_OK)]
    assert "/etc/os-release" in shown
    assert shell(worker, f"ls -d {' '.join(shown)}")["stdout"].split() == sorted(shown)


@pytest.mark.parametrize("name", FOUND)
def test_it_finds_what_every_program_expects(name: str, worker: RawWorker) -> None:
    command, expected = FOUND[name]
    assert " ".join(shell(worker, command)["stdout"].split()) == expected


ENVIRONMENT = """
HOME=/home/agent USER=agent LOGNAME=agent SHELL=/bin/sh LANG=C.UTF-8 TMPDIR=/tmp TERM=dumb NO_COLOR=1
GIT_TERMINAL_PROMPT=0 GIT_OPTIONAL_LOCKS=0 CARGO_HOME=/home/agent/.cargo CARGO_NET_RETRY=0 npm_config_fetch_retries=0
pnpm_config_fetch_retries=0 npm_config_prefer_offline=true PIP_RETRIES=0
"""


def test_its_environment_is_exactly_this(worker: RawWorker) -> None:
    result = worker.done("exec_shell", {"command": "grep", "args": ["-z", "", "/proc/self/environ"]})
    lines = sorted(msgspec.json.decode(result.content)["stdout"].strip("\0").split("\0"))
    [path] = [line.partition("=")[2].split(":") for line in lines if line.startswith("PATH=")]
    expected = [*ENVIRONMENT.split(), *(f"{name}={value}" for name, value in QUIET.items())]
    assert [line for line in lines if not line.startswith("PATH=")] == sorted(expected)
    assert all(each.startswith("/") for each in path)


@pytest.mark.parametrize("mask", [0o077, 0o022, 0o002])
def test_files_that_a_command_makes_have_the_person_s_umask(mask: int, project: Path) -> None:
    before = os.umask(mask)
    try:
        with open_shell(project) as worker:
            assert int(shell(worker, "umask")["stdout"], 8) == mask
    finally:
        os.umask(before)


def test_a_command_ignores_no_signal_whoever_started_the_daemon(project: Path) -> None:
    with ignored(signal.SIGINT, signal.SIGQUIT, signal.SIGHUP), open_shell(project) as worker:
        said = shell(worker, "grep -E 'SigIgn|SigBlk' /proc/self/status")["stdout"].split()
    assert sorted(said) == ["0" * 16, "0" * 16, "SigBlk:", "SigIgn:"]


def test_no_crash_is_told_to_the_machine(worker: RawWorker) -> None:
    """With a limit of 0 a program that the kernel is set up to pipe core dumps to would be started, outside."""
    limits = shell(worker, "cat /proc/self/limits")["stdout"]
    assert [line.split()[4:6] for line in limits.splitlines() if "core" in line] == [["1", "1"]]


SIGNALS = sorted(set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP})


def test_no_signal_of_a_command_reaches_the_worker_even_without_the_lock_on_signals(hostile: Hostile) -> None:
    """Nor one to its own group."""
    found = attack(hostile("landlock"), [f"os.kill(1, {number})" for number in (*SIGNALS, 9, 19)])
    assert set(found) == {"did None"}
    assert shell(hostile("landlock"), "echo alive")["stdout"] == "alive\n"
    assert shell(hostile("landlock"), "kill -9 0")["signal"] == "SIGKILL"
    assert shell(hostile("landlock"), "echo alive")["stdout"] == "alive\n"
