"""Workers in namespaces of their own: what they share with the machine, and how both of their processes end."""

import os
import resource
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Final

import msgspec
import pytest

from supervisor.pool.template_process import worker_command
from tests.hostile_worker import hostile_command
from tests.raw_worker import RawWorker, open_worker, receive, send
from tests.supervisor.command import CODE, HANG_GUARD, children
from tests.workers.confine.test_confined_files import started_by
from tests.workers.search.shared import open_search
from tests.workers.shell.conftest import open_shell
from workers.restore.restore_inputs import RestoreInputs
from workers.web.web_inputs import WebInputs
from workers.wire import messages

WRITABLE: Final = {"/scratch", "/memory"}
"""Directories that a worker which restores may write besides."""
MOUNTS: Final = {"/root", "/kept", "/proc", "/"} | WRITABLE


def open_restore(root: Path, **more: object) -> AbstractContextManager[RawWorker]:
    """Start a worker that restores, with directories of its own beside the root."""
    (root.parent / "kept").mkdir(mode=0o700, exist_ok=True)
    given = RestoreInputs(str(root.parent / "kept"), str(root.parent / "kept" / "scratch"))
    return open_worker(root, category="restore", inputs=given, **more)  # type: ignore[arg-type]


@contextmanager
def open_web(root: Path, **more: object) -> Iterator[RawWorker]:
    """Start a worker that fetches, whom nobody makes connections for."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    given = {"broker_fd": theirs.fileno(), "inputs": WebInputs(5.0), **more}
    with ours, theirs, open_worker(root, category="web", **given) as worker:  # type: ignore[arg-type]
        yield worker


def open_media(root: Path, **more: object) -> AbstractContextManager[RawWorker]:
    """Start a worker that decodes images and documents."""
    return open_worker(root, category="media", **more)  # type: ignore[arg-type]


OPEN: Mapping[str, Callable[..., AbstractContextManager[RawWorker]]] = {
    "shell": open_shell,
    "search": open_search,
    "web": open_web,
    "restore": open_restore,
    "media": open_media,
}
OWN: Mapping[str, set[str]] = {
    "shell": {"user", "mnt", "pid", "net", "ipc", "uts"},
    "search": {"user", "mnt", "pid", "net", "ipc"},
    "web": {"user", "net", "ipc", "uts"},
    "restore": {"user", "mnt", "net", "ipc", "uts"},
    "media": {"user", "net", "ipc", "uts"},
}


@contextmanager
def inside(category: str, root: Path, **more: object) -> Iterator[int]:
    """Run a worker that may be looked at; yield the pid of the process that does its work."""
    root.mkdir(exist_ok=True)
    with OPEN[category](root, command=hostile_command("undumpable", category=category), **more) as worker:
        assert isinstance(worker.ready, messages.Ready), worker.ready
        pid = worker.process.pid
        yield children(pid)[0] if "pid" in OWN[category] else pid


def namespaces(pid: int) -> dict[str, str]:
    return {kind: os.readlink(f"/proc/{pid}/ns/{kind}") for kind in ("user", "mnt", "pid", "net", "ipc", "uts")}


@pytest.mark.parametrize("category", OWN)
def test_it_shares_no_namespace_that_it_need_not(category: str, tmp_path: Path) -> None:
    with inside(category, tmp_path / "root") as pid:
        found, ours = namespaces(pid), namespaces(os.getpid())
    assert {kind for kind in found if found[kind] != ours[kind]} == OWN[category]


def mounts(pid: int) -> dict[str, set[str]]:
    """Return what is mounted where in a process's tree, and how."""
    lines = Path(f"/proc/{pid}/mounts").read_text().splitlines()
    return {line.split()[1]: set(line.split()[3].split(",")) for line in lines}


@pytest.mark.parametrize("writable", [True, False])
def test_the_tree_of_the_restore_worker_gives_no_more_than_it_must(writable: bool, tmp_path: Path) -> None:
    with inside("restore", tmp_path / "root", writable=writable) as pid:
        found = mounts(pid)
    assert {path for path in found if not path.startswith("/proc/")} == MOUNTS
    assert all({"nosuid", "nodev", "noexec"} <= flags for flags in found.values())
    assert {path for path, flags in found.items() if "rw" in flags} == ({"/root"} if writable else set()) | WRITABLE


def test_the_search_worker_sees_its_own_processes_alone_and_only_to_read(tmp_path: Path) -> None:
    with inside("search", tmp_path / "root") as pid:
        flags = mounts(pid)["/proc"]
        seen = [each for each in os.listdir(f"/proc/{pid}/root/proc") if each.isdigit()]
    assert {"ro", "nosuid", "nodev", "noexec"} <= flags
    assert seen == ["1"]


LATER = """
import os, subprocess, sys
from pathlib import Path
from tests.workers.confine.test_namespaces import inside, mounts
root = Path(sys.argv[2])
subprocess.run(["mount", "-t", "tmpfs", "earlier", str(root.parent)], check=True)  # not only what is mounted at /
(root / "later").mkdir(parents=True)
with inside(sys.argv[1], root) as pid:
    before = mounts(pid)
    subprocess.run(["mount", "-t", "tmpfs", "later", str(root / "later")], check=True)
    print(str(root / "later") in mounts(os.getpid()), mounts(pid) == before)
"""
APART: Final = ("unshare", "--user", "--map-root-user", "--mount", "--propagation", "shared")


def unless_apart() -> None:
    if subprocess.run([*APART, "true"], check=False, capture_output=True).returncode:
        pytest.skip("no user namespaces, or no unshare(1), on this machine")


@pytest.mark.parametrize("category", ["shell", "search", "restore"])
def test_a_later_mount_does_not_come_in(category: str, tmp_path: Path) -> None:
    unless_apart()
    command = [*APART, sys.executable, "-c", LATER, category, str(tmp_path / "root")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=CODE, timeout=HANG_GUARD, check=True)
    assert done.stdout == "True True\n"


MOUNTED = """
import subprocess, sys
from pathlib import Path
from tests.workers.search.shared import make, open_search, rows
root = Path(sys.argv[1])
make(root, {"here/file": "needle", "there/file": "hidden needle"})
subprocess.run(["mount", "-t", "tmpfs", "mounted", str(root / "there")], check=True)
make(root, {"there/other": "needle"})
with open_search(root, hostile=True) as worker:
    found = rows(worker, "search_files", query="needle")
    print(worker.attack("result = os.getcwd()"), [each["path"] for each in found])
"""


def test_nothing_is_above_the_root_of_a_search_and_beneath_it_what_is_mounted_there(tmp_path: Path) -> None:
    unless_apart()
    command = [*APART, sys.executable, "-c", MOUNTED, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=CODE, timeout=HANG_GUARD, check=True)
    assert done.stdout == "did '/' ['here/file', 'there/other']\n"


LATE = """
import os, select
from workers.confine import namespaces
fork = os.fork
def late():
    outside = os.pidfd_open(os.getpid())
    if fork():
        os._exit(0)
    poll = select.poll()
    poll.register(outside, select.POLLIN)
    poll.poll()  # the one that was spawned has ended before this one could ask to end with it
    return 0
os.fork = late
namespaces.go_on_as_first()
print("it goes on", flush=True)
"""


def test_a_first_process_that_comes_too_late_to_end_with_the_spawned_one_ends_at_once() -> None:
    command = [sys.executable, "-c", LATE]
    done = subprocess.run(command, capture_output=True, text=True, cwd=CODE, timeout=HANG_GUARD, check=False)
    assert (done.stdout, done.stderr) == ("", "")


OLD: Final = """
import os
_, *_, version, machine = os.uname()
os.uname = lambda: os.uname_result(("Linux", "old", "6.13.0", version, machine))
from workers.__main__ import main
main()
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="for others RLIMIT_NPROC holds")
def test_without_a_limit_of_processes_for_user_0_there_are_no_namespaces(tmp_path: Path) -> None:
    with open_search(tmp_path, command=worker_command(OLD)) as worker:
        assert worker.report.degraded == ("namespaces",)


UNMAPPED: Final = """
import os
was = os.write
def write(descriptor, data):
    if bytes(data[-2:]) == b" 1" and os.readlink(f"/proc/self/fd/{descriptor}").endswith("/uid_map"):
        raise PermissionError(1, "Operation not permitted")
    return was(descriptor, data)
os.write = write
from workers.__main__ import main
main()
"""


def test_a_shell_that_can_be_no_user_in_its_namespace_is_refused(tmp_path: Path) -> None:
    with OPEN["shell"](tmp_path, command=worker_command(UNMAPPED)) as worker:
        assert "/proc/self/uid_map: EPERM" in worker.refusal.message


def test_where_nobody_can_be_a_user_in_a_namespace_undo_stays_who_it_was(tmp_path: Path) -> None:
    with OPEN["restore"](tmp_path, command=worker_command(UNMAPPED)) as worker:
        assert worker.report.degraded == ("namespaces",)
        mapped = Path(f"/proc/{worker.process.pid}/uid_map").read_text()
        assert mapped == Path("/proc/self/uid_map").read_text()


def test_a_worker_that_crashes_leaves_no_core_of_either_process(tmp_path: Path) -> None:
    """Not even where cores are written as large as they are: the spawned process holds what the first one held."""
    most = resource.getrlimit(resource.RLIMIT_CORE)[1]
    begun = f"resource.setrlimit(resource.RLIMIT_CORE, ({most}, {most}))"
    command = started_by(begun, hostile_command(category="search"))
    with open_search(tmp_path, command=command) as worker:
        assert isinstance(worker.ready, messages.Ready)
        send(worker.process, messages.Call(1, "attack", msgspec.json.encode({"code": "ctypes.string_at(0)"})))
        assert receive(worker.process) is None
        how = os.waitid(os.P_PID, worker.process.pid, os.WEXITED | os.WNOWAIT)
        assert how is not None
        assert (how.si_code, how.si_status) == (os.CLD_KILLED, 11)
