"""Commands in a copy of the root, as where there are no namespaces: their locks, and what becomes of their changes."""

import errno
import os
import pwd
import select
import shlex
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import msgspec
import pytest

from tests.raw_worker import RawWorker, open_worker, receive, send
from tests.supervisor.command import HANG_GUARD
from tests.workers.confine.test_fails_closed import Fault, name, on_a_kernel_with
from tests.workers.shell.conftest import inputs, open_shell, propose, python, shell
from tests.workers.shell.test_command_proposal import OWN_REHEARSAL
from workers import kernel
from workers.catalog import protections
from workers.confine.command_policy import METADATA
from workers.confine.syscalls import NUMBERS
from workers.shell.copies.moved_paths import hints
from workers.shell.copies.tree_copy import TreeCopy
from workers.shell.run.process_group import descendants
from workers.tree.root import DIRECTORY, closing
from workers.wire import messages

LIMITS: Final = messages.Limits(memory_mb=512, processes=40, open_files=1024, file_mb=64)
OUTSIDE: Final = Path("/tmp")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("copies") / "root"
    (root / "d").mkdir(parents=True)
    (root / "a.txt").write_text("alpha\n")
    (root / "d" / "b.txt").write_text("beta\n")
    (root / "link").symlink_to("a.txt")
    os.setxattr(root, "user.note", b"of the root")
    return root


@pytest.fixture(scope="module")
def worker(root: Path) -> Iterator[RawWorker]:
    with open_shell(root, limits=LIMITS, copies=str(root.parent / "copies"), copy_mb=8, disk_mb=8) as opened:
        assert isinstance(opened.ready, messages.Ready), opened.ready
        yield opened


def test_it_says_what_holds_it_and_every_door_is_shut(worker: RawWorker) -> None:
    assert {"copy", "landlock_scope", "landlock_network", "seccomp"} <= set(worker.report.enforced)
    assert "sandbox" not in worker.report.enforced
    assert worker.report.degraded == ()
    doors = worker.probe()
    assert [door for door in doors if not door.shut] == []
    assert {"change a mode outside", "signal the supervisor", "limit the supervisor"} <= {door.name for door in doors}


EFFECTS: Final[dict[str, tuple[str, dict[str, str]]]] = {
    "nothing": ("cat a.txt; ls -R", {}),
    "looked at and touched": ("touch a.txt", {}),
    "modified": ("echo more >> a.txt", {"a.txt": "modified"}),
    "made": ("echo new > n; mkdir -p x/y", {"n": "added", "x": "added", "x/y": "added"}),
    "removed": ("rm a.txt", {"a.txt": "deleted"}),
    "a directory removed": ("rm -r d", {"d": "deleted", "d/b.txt": "deleted"}),
    "renamed": ("mv d e", {"d": "deleted", "d/b.txt": "deleted", "e": "added", "e/b.txt": "added"}),
    "made anew": ("rm -r d; mkdir d; echo beta > d/b.txt", {}),
    "another kind": ("rm a.txt; mkdir a.txt; echo 1 > a.txt/1", {"a.txt": "replaced", "a.txt/1": "added"}),
    "all closed": ("chmod 0 d .", {".": "mode", "d": "mode"}),
    "closed": ("mkdir c; echo 1 > c/1; chmod 0 c", {"c": "added", "c/1": "added"}),
    "a mode": ("chmod 600 a.txt; chmod 700 d", {"a.txt": "mode", "d": "mode"}),
    "by the link": ("echo 1 > link; chmod 755 link", {"a.txt": "modified"}),
    "a file replaced by itself": ("cp -p a.txt t; mv t a.txt", {}),
}


@pytest.mark.parametrize(("command", "wanted"), EFFECTS.values(), ids=EFFECTS)
def test_its_changes_are_told_and_nothing_is_changed(
    command: str, wanted: dict[str, str], worker: RawWorker, root: Path
) -> None:
    proposed = propose(worker, command)
    if not wanted:
        assert isinstance(proposed, messages.Done), proposed
        return
    worker.decide(proposed, commit=False)
    assert isinstance(proposed, messages.Proposed)
    assert {change.path: change.what for change in proposed.effects.changes} == wanted
    assert proposed.effects.rehearsed_in.startswith("ran in a copy of the root")
    assert (root / "a.txt").read_text() == "alpha\n"
    assert sorted(os.listdir(root)) == ["a.txt", "d", "link"]


def test_modes_that_shut_us_out_are_told_as_they_are(worker: RawWorker) -> None:
    proposed = propose(worker, "mkdir c; echo 1 > c/1; chmod 0 c; chmod 111 d; chmod 5 .")
    worker.decide(proposed, commit=False)
    assert isinstance(proposed, messages.Proposed)
    modes = {change.path: change.after and change.after.mode for change in proposed.effects.changes}
    assert modes == {".": 0o005, "c": 0, "c/1": 0o644, "d": 0o111}


def test_what_is_committed_is_what_was_told_and_a_change_by_others_is_a_conflict(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    for each in ("a", "b"):
        (root / each).write_text("1\n")
    os.link(root / "a", root / "also")
    (root / "a").chmod(0o666)
    os.setxattr(root / "a", "user.note", b"of the file")
    with open_shell(root, copies=str(tmp_path / "copies"), copy_mb=8) as worker:
        assert "ran in a copy" in worker.done("run_cmd", {"command": "echo 2 >> a; rm b; mkfifo f"}).note
        assert sorted(os.listdir(root)) == ["a", "also", "f"]
        assert (root / "also").read_text() == "1\n2\n"
        assert (root / "also").stat().st_mode & 0o777 == 0o666
        assert os.getxattr(root / "also", "user.note") == b"of the file"
        proposed = propose(worker, "echo 3 >> a; echo 1 > n")
        (root / "a").write_text("theirs\n")
        answer = worker.decide(proposed, commit=True)
        assert isinstance(answer, messages.Failed)
        assert answer.kind == "conflict"
        assert (root / "a").read_text() == "theirs\n"
        assert sorted(os.listdir(root)) == ["a", "also", "f"]
        worker.probe()  # by then it has let go of it
        assert os.listdir(tmp_path / "copies") == []


@pytest.mark.parametrize("command", ["echo 2 >> d/f", "echo 2 > d/new", "rm d/f; mkdir d/f"])
def test_what_others_remove_while_it_runs_does_not_come_back(tmp_path: Path, command: str) -> None:
    root = tmp_path / "root"
    (root / "d").mkdir(parents=True)
    (root / "d/f").write_text("1\n")
    with open_shell(root, copies=str(tmp_path / "copies"), copy_mb=8) as worker:
        line = f"echo runs; while test -e {root}/d; do sleep 0.01; done; {command}"
        send(worker.process, messages.Call(1, "run_cmd", msgspec.json.encode({"command": line})))
        assert isinstance(receive(worker.process), messages.Output)
        (root / "d").rename(tmp_path / "d")
        answer = receive(worker.process)
    assert isinstance(answer, messages.Failed), answer
    assert (answer.kind, os.listdir(root)) == ("conflict", [])
    assert "somebody else removed it while the command ran" in answer.message


REFUSED: Final[dict[str, str]] = {
    "a mode by name": "chmod 777 {outside}",
    "a mode by a link": "ln -s {outside} l && chmod 777 l",
    "a mode of the root itself": "chmod 777 {root}/a.txt",
    "a mode by a descriptor": "{python} -c \"import os; os.fchmod(os.open('{root}/a.txt', os.O_RDONLY), 0o777)\"",
    "a mode by a name of a descriptor": "{python} -c \"import os; f = os.open('{root}/a.txt', os.O_RDONLY); "
    "os.chmod(f'/proc/self/fd/{{f}}', 0o777)\"",
    "times": "touch -d 2001-01-01 {outside}",
    "times of the root itself": "touch -d 2001-01-01 {root}/a.txt",
    "an owner": "chown $(id -u) {outside}",
    "an attribute": "{python} -c \"import os; os.setxattr('{root}/a.txt', 'user.x', b'1')\"",
    "writing": "echo x > {root}/a.txt",
    "a file in /tmp": "echo x > /tmp/strongroom-was-here",
    "a hard link": "ln {root}/a.txt theirs",
    "a set-ID program": "cp /bin/true t && chmod 4755 t",
    "others' variables": "cat /proc/{pid}/environ",
    "others' descriptors": "readlink /proc/{pid}/fd/0",
    "others' memory": "head -c 1 /proc/{pid}/mem",
    "others' root": "ls /proc/{pid}/root/",
    "a signal": "kill -9 {pid}",
    "others' limits": '{python} -c "import resource; resource.prlimit({pid}, resource.RLIMIT_NOFILE, (9, 9))"',
    "others' priority": "renice 5 {pid}",
    "the internet": '{python} -c "import socket; socket.socket(socket.AF_INET)"',
    "datagrams": '{python} -c "import socket; socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)"',
    "a socket of this machine": "{python} -c \"import socket; socket.socket(socket.AF_UNIX).connect('{socket}')\"",
    "a name of a socket of this machine": '{python} -c "import socket; '
    "socket.socket(socket.AF_UNIX).bind(chr(0) + 'strongroom-was-here')\"",
    "hiding its files": '{python} -c "import ctypes; exit(ctypes.CDLL(None).prctl(4, 0, 0, 0, 0) < 0)"',
    "a watch outside": '{python} -c "import ctypes, os; c = ctypes.CDLL(None, use_errno=True); '
    "exit(c.inotify_add_watch(c.inotify_init1(0), b'/tmp', 0xfff) < 0)\"",
    "namespaces": "unshare -U true",
    "a home": "ls ~{user}/",
    "passwords": "cat /etc/shadow",
    "a device": ": < /dev/ptmx",
}


def seen(file: Path) -> tuple[int, ...]:
    status = file.stat()
    return status.st_mode, status.st_uid, status.st_mtime_ns, status.st_ctime_ns


def exit_code(worker: RawWorker, command: str) -> int:
    """Run a command line of which nothing is kept."""
    proposed = propose(worker, command)
    if isinstance(proposed, messages.Proposed):
        worker.decide(proposed, commit=False)
        return proposed.effects.exit_code
    assert isinstance(proposed, messages.Done), proposed
    return int(msgspec.json.decode(proposed.content)["exit_code"])


@pytest.mark.parametrize("row", REFUSED)
def test_nothing_outside_is_reached(row: str, worker: RawWorker, root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("theirs\n")
    before = seen(outside), seen(root / "a.txt")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "s"))
        listening.listen()
        given = {"outside": outside, "root": root, "pid": os.getpid(), "socket": tmp_path / "s", "python": python()}
        command = REFUSED[row].format(user=pwd.getpwuid(os.geteuid()).pw_name, **given)
        assert exit_code(worker, command) != 0
    assert (seen(outside), seen(root / "a.txt")) == before
    assert not (OUTSIDE / "strongroom-was-here").exists()


CALLS: Final[dict[str, str]] = {
    **dict.fromkeys(("chmod", "creat"), "path, 0o777"),
    **dict.fromkeys(("fchmodat", "fchmodat2"), "-100, path, 0o777, 0"),
    **dict.fromkeys(("chown", "lchown"), "path, os.getuid(), -1"),
    **dict.fromkeys(("utime", "utimes"), "path, 0"),
    **dict.fromkeys(("futimesat", "utimensat"), "-100, path, 0, 0"),
    **dict.fromkeys(("setxattr", "lsetxattr"), "path, b'user.x', b'1', 1, 0"),
    **dict.fromkeys(("removexattr", "lremovexattr"), "path, b'user.note'"),
    **dict.fromkeys(("sched_setscheduler", "sched_setparam", "sched_setaffinity"), "pid, *given"),
    "fchmod": "file, 0o777",
    "fchown": "file, os.getuid(), -1",
    "fchownat": "-100, path, os.getuid(), -1, 0",
    "fsetxattr": "file, b'user.x', b'1', 1, 0",
    "fremovexattr": "file, b'user.note'",
    "setxattrat": "-100, path, 0, b'user.x', bytes(16), 16",
    "removexattrat": "-100, path, 0, b'user.note'",
    "file_setattr": "-100, path, bytes(24), 24, 0",
    "fcntl": "file, 1024, 0",
    "ioprio_set": "1, pid, 0x4007",
    "prlimit64": "pid, 7, 0, bytes(16)",
}
"""Calls, each with arguments with which it would be made outside of the copy."""
ARGUMENTS: Final = {"sched_setscheduler": "(0, bytes(4))", "sched_setparam": "(bytes(4),)"}
CALL: Final = """
import ctypes, os
path, pid = b'{path}', {pid}
file = os.open(path, os.O_RDONLY)
call = ctypes.CDLL(None, use_errno=True).syscall
"""


def test_no_call_changes_what_lies_outside(worker: RawWorker, root: Path) -> None:
    assert {*METADATA} <= {*CALLS}
    outside = root / "outside"
    outside.write_text("theirs\n")
    os.setxattr(outside, "user.note", b"theirs")
    before = seen(outside)
    script = [
        f"given = {ARGUMENTS.get(call, '(128, bytes([255]) * 128)')}\n"
        f"if call({NUMBERS[kernel.MACHINE][call]}, {arguments}) >= 0: print('{call}')\n"
        for call, arguments in CALLS.items()
        if call in NUMBERS[kernel.MACHINE]
    ]
    given = CALL.format(path=outside, pid=os.getpid())
    proposed = propose(worker, f"{python()} - <<'END'\n{given}{''.join(script)}END")
    assert seen(outside) == before
    outside.unlink()
    assert isinstance(proposed, messages.Done), proposed
    assert msgspec.json.decode(proposed.content) == {"stdout": "", "stderr": "", "exit_code": 0}


WORKS: Final[dict[str, str]] = {
    "modes": "touch f; chmod 755 f; test -x f; chmod -R u+w .; install -m 700 f g; test -x g",
    "times": "touch -d 2001-01-01 a.txt; test $(stat -c %Y a.txt) -lt 1000000000",
    "times of a link": "touch -h -d 2001-01-01 link; test $(stat -c %Y link) -lt 1000000000 -a "
    "$(stat -Lc %Y link) -gt 1000000000",
    "by a descriptor": "{python} -c \"import os; f = os.open('n', os.O_CREAT | os.O_WRONLY); os.fchmod(f, 0o755); "
    'os.utime(f, ns=(5, 5)); assert os.fstat(f).st_mtime_ns == 5 and os.fstat(f).st_mode & 0o777 == 0o755"',
    "beneath a directory": "{python} -c \"import os; d = os.open('d', os.O_RDONLY); "
    "os.chmod('b.txt', 0o700, dir_fd=d); os.utime('b.txt', dir_fd=d); assert os.stat('d/b.txt').st_mode & 0o100\"",
    "home and temporary files": 'test -w "$HOME" && test -w "$TMPDIR" && f=$(mktemp) && chmod 600 "$f"',
    "itself": "test $(ps -o pid= -p $$) = $$; ls /proc/self/fd >/dev/null; test $(nproc) -gt 0",
    "threads": '{python} -c "import threading; t = threading.Thread(target=print); t.start(); t.join()"',
    "a pair of sockets": "{python} -c \"import socket; a, b = socket.socketpair(); a.send(b'x'); assert b.recv(1)\"",
    "a pipeline": "seq 100 | sort -rn | head -1 | grep -qx 100",
    "an archive": "tar cf t.tar d && rm -r d && tar xf t.tar && test -f d/b.txt",
    "the root is read": 'cmp a.txt {root}/a.txt; test "$(stat -c %a%y a.txt d)" = "$(cd {root}; stat -c %a%y a.txt d)"',
    "a user's name": "id -un",
}


@pytest.mark.parametrize("row", WORKS)
def test_ordinary_work_is_done(row: str, worker: RawWorker, root: Path) -> None:
    assert exit_code(worker, f"set -e; {WORKS[row].format(root=root, python=python())}") == 0


FORKS: Final = """
import os, time
made = 0
try:
    while True:
        if os.fork() == 0:
            os.setsid()
            time.sleep(1000)
        made += 1
except OSError as error:
    print(made, error.errno)
"""


def test_it_has_so_many_processes_and_none_of_them_outlives_it(worker: RawWorker) -> None:
    found = shell(worker, f"exec {python()} -c '{FORKS}'")
    made, error = map(int, found["stdout"].split())
    assert LIMITS.processes // 2 < made < LIMITS.processes
    assert error == 11
    assert not shell(worker, "ps -eo args | grep '[s]leep(1000)' || true")["stdout"]


THREADS: Final = """
import threading
made, end = 0, threading.Event()
try:
    while True:
        threading.Thread(target=end.wait, daemon=True).start()
        made += 1
except RuntimeError:
    print(made)
"""


def test_threads_are_counted_as_processes_are(worker: RawWorker) -> None:
    made = int(shell(worker, f"exec {python()} -c '{THREADS}'")["stdout"])
    assert LIMITS.processes // 2 < made < LIMITS.processes


@pytest.mark.parametrize("end", [os.kill, os.killpg])
def test_all_of_it_dies_with_its_worker_and_the_next_one_removes_the_copy(
    end: Callable[[int, int], None], root: Path, tmp_path: Path
) -> None:
    copies = tmp_path / "copies"
    command = "(setsid setsid sleep 1000 &) ; trap '' TERM; setsid sleep 1000 & echo begun; sleep 1000"
    with open_shell(root, copies=str(copies), copy_mb=8) as worker, ExitStack() as stack:
        send(worker.process, messages.Call(1, "run_cmd", msgspec.json.encode({"command": command})))
        while not isinstance(receive(worker.process), messages.Output):
            pass
        held = [os.pidfd_open(pid) for pid in descendants(worker.process.pid)]
        for each in held:
            stack.callback(os.close, each)
        assert len(held) >= 4, "the caretaker, the shell, and what it started"
        end(worker.process.pid, signal.SIGKILL)
        assert all(select.select([each], [], [], HANG_GUARD)[0] for each in held)
    assert len(os.listdir(copies)) == 1
    with open_shell(root, copies=str(copies), copy_mb=8) as worker:
        assert isinstance(worker.ready, messages.Ready)
        assert os.listdir(copies) == []


HIDDEN: Final = """
import os, time
held = []
for number in range({count}):
    held.append({made})
    os.write(held[-1], bytes({size}))
time.sleep(100)
"""
TOO_MUCH: Final[dict[str, tuple[str, str]]] = {
    "files": ("for i in $(seq 100); do head -c 4000000 /dev/zero > f$i; done; sleep 100", "wrote more than 8 MB"),
    "files without a name": (
        HIDDEN.format(count=5, made="os.open('.', os.O_TMPFILE | os.O_RDWR)", size=4_000_000),
        "wrote more than 8 MB",
    ),
    "names": ("mkdir d/n; for i in $(seq 9000); do : > d/n/$i; done; sleep 100", "wrote more than 8 MB"),
    "files in memory": (
        HIDDEN.format(count=9, made="os.memfd_create('n')", size=64_000_000),
        "used more than 512 MB of memory",
    ),
}


@pytest.mark.parametrize(("command", "said"), TOO_MUCH.values(), ids=TOO_MUCH)
def test_too_much_ends_it(command: str, said: str, worker: RawWorker) -> None:
    command = f"{python()} -c {shlex.quote(command)}" if command.startswith("\n") else command
    failed = worker.failed("run_cmd", {"command": command})
    assert failed.kind == "resource_limit"
    assert said in failed.message


@pytest.mark.parametrize("mode", [0o777, 0o770, None], ids=["others may write", "its group may write", "a link"])
def test_no_copy_is_made_where_others_could_change_it(mode: int | None, root: Path, tmp_path: Path) -> None:
    copies = tmp_path / "copies"
    if mode is None:
        copies.symlink_to(tmp_path)
    else:
        copies.mkdir()
        copies.chmod(mode)
    with open_shell(root, copies=str(copies), copy_mb=8) as worker:
        assert "in which no other may write" in worker.refusal.message


def test_whatever_is_written_to_a_copy_is_later_than_the_copy(tmp_path: Path) -> None:
    for each in ("root", "copy"):
        (tmp_path / each).mkdir()
    (tmp_path / "root" / "a").write_text("1")
    with ExitStack() as stack:
        root, copied = (stack.enter_context(closing(os.open(tmp_path / each, DIRECTORY))) for each in ("root", "copy"))
        for _ in range(20):
            copy = TreeCopy(root, 1)
            copy.make(copied)
            (tmp_path / "copy" / "a").write_text("2")
            assert (tmp_path / "copy" / "a").stat().st_ctime_ns > copy.names[""]["a"].changed_ns
            (tmp_path / "copy" / "a").unlink()


PATHS: Final[dict[str, tuple[str, str, str]]] = {
    "its directory": ("pwd", "{root}\n", ""),
    "to the root": ("cd {root} && echo 1 > n && cat {root}/n n", "1\n", ""),
    "below it": ("cd '{root}/d' && ls && pwd", "b.txt\n{root}/d\n", ""),
    "of make": ("echo 'all:; @pwd' > Makefile; make -s -C {root} 2>/dev/null || pwd", "{root}\n", ""),
    "in a variable": ("cat $HERE/b.txt; echo 1 > ${{TWO#*:}}/n && cat d/n", "beta\n1\n", ""),
    "another that begins alike": ("cd {root}2 2>/dev/null || echo no", "no\n", ""),
    "as a text": ("echo {root} > n && cat n", "{root}\n", ""),
    "written there": ("echo 1 >> {root}/n", "", "paths that begin with {root} lead to the root itself"),
    "in /tmp": ("echo 1 > /tmp/n", "", "it has no /tmp here: use $TMPDIR"),
    "left in a file": ("mkdir e; pwd > e/n", "", "stands in place of the root's in e/n"),
}


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RawWorker, Path]]:
    root = tmp_path_factory.mktemp("paths") / "root"
    (root / "d").mkdir(parents=True)
    (root / "d" / "b.txt").write_text("beta\n")
    given = (("HERE", f"{root}/d"), ("TWO", f"/usr:{root}/d"))
    with open_shell(root, limits=LIMITS, copies=str(root.parent / "copies"), copy_mb=8, environment=given) as opened:
        yield opened, root


@pytest.mark.parametrize(("command", "stdout", "note"), PATHS.values(), ids=PATHS)
def test_paths_of_the_root_lead_to_its_copy_where_they_can(
    command: str, stdout: str, note: str, own: tuple[RawWorker, Path]
) -> None:
    worker, root = own
    done = worker.done("run_cmd", {"command": command.format(root=root)})
    assert msgspec.json.decode(done.content)["stdout"] == stdout.format(root=root)
    assert note.format(root=root) in done.note
    assert note or "root" not in done.note.removeprefix("ran in a copy of the root")


def test_a_copy_in_which_nothing_can_be_executed_is_named_as_that() -> None:
    told = [hints(said, "/root", noexec=noexec) for said in ("Permission denied", "") for noexec in (True, False)]
    assert [any("noexec" in each for each in found) for found in told] == [True, False, False, False]


def test_holes_are_copied_as_holes_and_a_file_may_be_larger_than_what_a_command_may_write(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    with (tmp_path / "root" / "sparse").open("wb") as file:
        file.truncate(2**32)
        file.seek(2**31)
        file.write(b"in the middle")
    command = "stat -c '%s %b' sparse; tail -c +2147483649 sparse | head -c 13; echo 1 >> sparse"
    with open_shell(tmp_path / "root", limits=LIMITS, copies=str(tmp_path / "copies"), copy_mb=1) as worker:
        size, blocks, *rest = shell(worker, command)["stdout"].split(maxsplit=2)
    assert (size, rest) == (str(2**32), ["in the middle"])
    assert int(blocks) < 2**11


def git(root: Path, *arguments: str) -> None:
    subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *arguments], cwd=root, check=True)


LEFT_OUT: Final[dict[str, tuple[str, int | None]]] = {
    "not seen": ("sh -c 'test ! -e big' && ls src/file", 0),
    "made": ("mkdir big", None),
    "above it removed": ("rm -r src", None),
    "above it renamed": ("mv src new", None),
    "above it replaced": ("mkdir new; echo 1 > new/file; rm -r src; mv new src", None),
    "beside it": ("echo 1 > src/other", 0),
}


@pytest.mark.parametrize(("command", "code"), LEFT_OUT.values(), ids=LEFT_OUT)
def test_of_a_root_that_is_too_large_what_git_ignores_is_left_out(
    command: str, code: int | None, large: RawWorker
) -> None:
    assert shell(large, "test -e big && ls src/file")["exit_code"] == 0, "what only looks sees all of the root"
    answer = propose(large, command)
    if code is None:
        assert isinstance(answer, messages.Failed), answer
        assert "not in the copy of the root" in answer.message
        assert "copy_mb of [shell]" in answer.message
        return
    if isinstance(answer, messages.Proposed):
        answer = large.decide(answer, commit=True)
    assert isinstance(answer, messages.Done), answer
    assert f'"exit_code":{code}'.encode() in answer.content.encode()
    assert "not in the copy because copy_mb of [shell] is smaller than the root: big, src/big" in answer.note


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RawWorker]:
    root = tmp_path_factory.mktemp("large") / "root"
    for directory in ("big", "src/big"):
        (root / directory).mkdir(parents=True)
        (root / directory / "file").write_bytes(bytes(2**20))
    (root / "src" / "file").write_text("1\n")
    (root / ".gitignore").write_text("big/\n")
    git(root, "init", "-q")
    with open_shell(root, copies=str(root.parent / "copies"), copy_mb=1) as worker:
        yield worker


def test_a_root_that_is_too_large_even_so_is_not_copied(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "file").write_bytes(bytes(2**21))
    with open_shell(tmp_path / "root", copies=str(tmp_path / "copies"), copy_mb=1) as worker:
        assert isinstance(propose(worker, "ls"), messages.Done), "what only looks needs no copy"
        failed = worker.failed("run_cmd", {"command": "sh -c true"})
        assert failed.kind == "resource_limit"
        assert "Raise copy_mb of [shell]" in failed.message


MISSING: Final = [
    Fault("landlock", "landlock_create_ruleset", errno.ENOSYS),
    Fault("landlock", "landlock_restrict_self", errno.E2BIG),
    Fault("seccomp", "seccomp", errno.EINVAL),
    Fault("capabilities", "capset", errno.EPERM),
]


@pytest.mark.parametrize("fault", MISSING, ids=name)
def test_without_a_lock_no_command_runs_whatever_the_operator_allows(fault: Fault, root: Path, tmp_path: Path) -> None:
    given = inputs(copies=str(tmp_path / "copies"), copy_mb=8)
    command = on_a_kernel_with(fault)
    with open_worker(
        root, category="shell", inputs=given, command=command, limits=LIMITS, allow_degraded=protections()
    ) as worker:
        assert fault.feature in worker.refusal.message


def test_copies_may_lie_on_an_overlay_where_nothing_can_be_marked_as_gone(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "a").write_text("1\n")
    command = on_a_kernel_with(Fault("", "mknodat", errno.EPERM))
    with open_shell(tmp_path / "root", copies=str(tmp_path / "copies"), copy_mb=8, command=command) as worker:
        worker.done("run_cmd", {"command": "mv a b"})
    assert os.listdir(tmp_path / "root") == ["b"]


def test_a_root_that_cannot_lie_below_an_overlay_is_copied_in_the_sandbox(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1\n")
    command = on_a_kernel_with(Fault("", "fsetxattr", errno.EOPNOTSUPP))
    serves = f"{python()} -c 'import socket; s = socket.create_server((\"::1\", 0), family=10); s.accept' >&2"
    with open_shell(tmp_path, copy_mb=8, command=command, localhost=True) as worker:
        assert "sandbox" in worker.report.enforced
        done = worker.done("run_cmd", {"command": f"pwd; rm a; {serves} && echo 2 > b"})
        assert f'"stdout":"{tmp_path}\\n"' in done.content
        assert done.note == "ran in a copy of the root, whose file system cannot lie below an overlay"
        assert os.listdir(tmp_path) == ["b"]
        assert isinstance(propose(worker, "ls"), messages.Done)
        (tmp_path / "big").write_bytes(bytes(9 * 2**20))
        said = propose(worker, "touch c")
        assert isinstance(said, messages.Unrehearsable)
        assert said.why.startswith("the file system for changes has no user attributes")
        assert "Raise copy_mb of [shell]" in said.why


@pytest.mark.parametrize(("command", "kind"), [row[1:] for row in OWN_REHEARSAL], ids=[row[0] for row in OWN_REHEARSAL])
def test_a_command_that_spoils_its_copy_changes_nothing(command: str, kind: str, worker: RawWorker, root: Path) -> None:
    before = sorted(root.rglob("*"))
    answer = propose(worker, f"mkdir -p d/sub; {command}")
    if isinstance(answer, messages.Proposed):
        answer = worker.decide(answer, commit=False)
    assert isinstance(answer, messages.Done | messages.Failed), answer
    assert isinstance(answer, messages.Done) or kind or "wrote more than 8 MB" in answer.message
    assert sorted(root.rglob("*")) == before
    worker.probe()
    assert os.listdir(root.parent / "copies") == []
