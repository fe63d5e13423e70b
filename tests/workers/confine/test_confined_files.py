"""The confined files worker: the work that it can still do, and its surroundings."""

import errno
import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from supervisor.pool.template_process import worker_command
from tests.hostile_worker import hostile_command
from tests.raw_worker import RawWorker, open_worker, receive, send
from tests.supervisor.command import CODE, HANG_GUARD
from workers import kernel
from workers.confine import STEPS
from workers.confine.probe import ATTEMPTS
from workers.wire import messages

Hostile = Callable[..., RawWorker]


def started_by(code: str, command: tuple[str, ...], *arguments: str) -> tuple[str, ...]:
    """Return a command that runs `code` before it becomes `command`."""
    become = "\nos.execv(sys.argv[at], sys.argv[at:])"
    start = f"import os, resource, sys\nat = {1 + len(arguments)}\n"
    return (sys.executable, "-I", "-S", "-c", start + code + become, *arguments, *command)


def test_ready_reports_every_protection(tmp_path: Path) -> None:
    with open_worker(tmp_path) as worker:
        reported = [name.split(":")[0] for name in worker.report.enforced]
    assert reported == [feature for feature, _ in STEPS if feature != "namespaces"]


@pytest.mark.parametrize("writable", [True, False])
def test_the_probe_finds_every_door_shut_however_often(tmp_path: Path, writable: bool) -> None:
    with open_worker(tmp_path, writable=writable) as worker:
        doors = worker.probe()
        assert worker.probe() == doors
    assert [door.name for door in doors] == [attempt.name for attempt in ATTEMPTS]
    assert [door for door in doors if not door.shut] == []


NEEDS_ROOT = {
    "change the root directory",
    "mount",
    "load a kernel program",
    "open by handle",
    "change a mode outside",
    "change times outside",
    "change an attribute outside",
}
"""Doors that may be shut without any lock: their owner, or the kernel's settings, keep other users out."""


def test_the_probe_finds_open_doors_without_the_locks(root: Path) -> None:
    everything = tuple(feature for feature, _ in STEPS if feature != "parent_death")
    with open_worker(root, command=hostile_command(*everything)) as worker:
        shut = {door.name for door in worker.probe() if door.shut}
    assert shut <= (NEEDS_ROOT if os.geteuid() else set())


TOOLS: list[tuple[str, dict[str, Any], str]] = [
    ("write_file", {"path": "new/deep/note.md", "content": "one\ntwo\n"}, ""),
    ("write_file", {"path": "new/deep/note.md", "content": "one\ntwo\nthree\n"}, ""),
    ("read_file", {"path": "new/deep/note.md"}, "three"),
    ("edit_file", {"path": "new/deep/note.md", "old": "two", "new": "2"}, ""),
    ("read_file", {"path": "new/deep/note.md"}, "one\n2\nthree"),
    ("list_files", {"pattern": "**/*.md"}, "new/deep/note.md"),
    ("list_directory", {"path": "new"}, "deep"),
]


def test_the_five_tools_do_their_work(tmp_path: Path) -> None:
    with open_worker(tmp_path) as worker:
        for tool, arguments, expected in TOOLS:
            answer = worker.done(tool, arguments)
            assert expected in answer.content
    assert (tmp_path / "new/deep/note.md").read_text() == "one\n2\nthree\n"


CHANGES: list[tuple[str, dict[str, Any]]] = [
    ("write_file", {"path": "new.md", "content": ""}),
    ("write_file", {"path": "note.md", "content": ""}),
    ("edit_file", {"path": "note.md", "old": "one", "new": "two"}),
]
READS: list[tuple[str, dict[str, Any]]] = [
    ("read_file", {"path": "note.md"}),
    ("list_files", {"pattern": "*"}),
    ("list_directory", {"path": "."}),
]


def test_a_read_only_worker_reads_and_lists_and_declines_to_write(tmp_path: Path) -> None:
    (tmp_path / "note.md").write_text("one")
    with open_worker(tmp_path, writable=False) as worker:
        for tool, arguments in READS:
            worker.done(tool, arguments)
        for tool, arguments in CHANGES:
            assert worker.failed(tool, arguments).kind == "permission_denied"
            assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [("note.md", "one")]


WRITES = [
    ("create", "open(root_path + '/made', 'x').close()"),
    ("overwrite", "open(root_path + '/kept', 'w').close()"),
    ("truncate", "os.close(os.open(root_path + '/kept', os.O_RDONLY | os.O_TRUNC))"),
    ("make a directory", "os.mkdir('made', dir_fd=context.root.fd)"),
    ("remove", "os.unlink('kept', dir_fd=context.root.fd)"),
    ("remove a directory", "os.rmdir('empty', dir_fd=context.root.fd)"),
    ("rename", "os.rename('kept', 'made', src_dir_fd=context.root.fd, dst_dir_fd=context.root.fd)"),
    ("move", "os.rename('kept', 'empty/made', src_dir_fd=context.root.fd, dst_dir_fd=context.root.fd)"),
]


@pytest.fixture
def furnished(root: Path) -> Path:
    """The shared root with a file and an empty directory."""
    for left in ("made", "kept", "empty/made"):
        path = root / left
        if path.is_dir():
            path.rmdir()
        path.unlink(missing_ok=True)
    (root / "empty").mkdir(exist_ok=True)
    (root / "kept").write_text("kept")
    return root


@pytest.mark.parametrize(("name", "code"), WRITES)
def test_a_writable_root_can_be_written(name: str, code: str, hostile: Hostile, furnished: Path) -> None:
    assert hostile().attack(code, root_path=str(furnished)) == "did None"


@pytest.mark.parametrize("removed", [(), ("seccomp",)])
@pytest.mark.parametrize(("name", "code"), WRITES)
def test_a_read_only_root_cannot_be_written(
    name: str, code: str, removed: tuple[str, ...], hostile: Hostile, furnished: Path
) -> None:
    worker = hostile(*removed, writable=False)
    assert worker.attack(code, root_path=str(furnished)).startswith("refused ")


def test_the_environment_is_empty_but_for_what_python_sets(hostile: Hostile) -> None:
    assert hostile().attack("result = set(os.environ) - {'LC_CTYPE'}") == "did set()"


def test_the_descriptors_are_those_that_were_agreed(tmp_path: Path) -> None:
    code = "result = len(descriptors()), set(descriptors()) >= {0, 1, 2, context.root.fd}"
    with open_worker(tmp_path, command=hostile_command()) as worker:
        assert worker.attack(code) == "did (6, True)"


def test_no_descriptor_passes_to_another_program(hostile: Hostile) -> None:
    code = "result = [fd for fd in descriptors() if os.get_inheritable(fd)]"
    assert hostile().attack(code) == "did []"


KEPT = """
from workers.confine.privileges import keep_only
try:
    keep_only((0, 1, 2, 999))
except OSError as error:
    print(error.errno)
"""


def test_a_descriptor_to_be_kept_has_to_be_there() -> None:
    done = subprocess.run([sys.executable, "-c", KEPT], capture_output=True, text=True, check=True, cwd=CODE)
    assert done.stdout == f"{errno.EBADF}\n"


INHERIT = "os.dup2(os.open(sys.argv[1], os.O_RDONLY), 40)"


@pytest.mark.parametrize(("removed", "found"), [((), "passed EBADF"), (("descriptors",), "did b'swordfish'")])
def test_an_inherited_descriptor_is_closed(removed: tuple[str, ...], found: str, tmp_path: Path, outside: Path) -> None:
    (tmp_path / "room").mkdir()
    command = started_by(INHERIT, hostile_command(*removed), str(outside / "secret"))
    with open_worker(tmp_path / "room", command=command) as worker:
        assert worker.attack("result = os.read(40, 9)") == found


LIMITS = messages.Limits(memory_mb=128, cpu_s=7, open_files=20, file_mb=1)
BOUNDS = {
    resource.RLIMIT_CORE: (0, 0),
    resource.RLIMIT_NOFILE: (20, 20),
    resource.RLIMIT_FSIZE: (2**20, 2**20),
    resource.RLIMIT_NPROC: (0, 0),
    resource.RLIMIT_DATA: (128 * 2**20, 128 * 2**20),
    resource.RLIMIT_CPU: (7, 8),
}
"""The soft and the hard limit of each kind: of processor time there is a second of grace."""


def test_every_limit_is_set_for_good(tmp_path: Path) -> None:
    with open_worker(tmp_path, limits=LIMITS) as worker:
        found = {kind: resource.prlimit(worker.process.pid, kind) for kind in BOUNDS}
    assert found == BOUNDS


def test_a_limit_is_never_raised(tmp_path: Path) -> None:
    command = started_by("resource.setrlimit(resource.RLIMIT_NOFILE, (30, 30))", worker_command())
    with open_worker(tmp_path, command=command) as worker:
        assert isinstance(worker.ready, messages.Ready)
        assert resource.prlimit(worker.process.pid, resource.RLIMIT_NOFILE) == (30, 30)


def test_too_much_memory_is_an_answer(tmp_path: Path) -> None:
    with open_worker(tmp_path, command=hostile_command(), limits=LIMITS) as worker:
        answer = worker.failed("attack", {"code": "bytearray(2**28)"})
        assert answer.kind == "resource_limit"
        assert worker.attack("result = 1") == "did 1"


def ended(worker: RawWorker, code: str) -> int:
    """Return how the worker ended while it ran `code`."""
    send(worker.process, messages.Call(1, "attack", json.dumps({"code": code}).encode()))
    assert receive(worker.process) is None
    return worker.process.wait(HANG_GUARD)


def test_too_much_processor_time_kills(tmp_path: Path) -> None:
    with open_worker(tmp_path, command=hostile_command(), limits=messages.Limits(cpu_s=1)) as worker:
        assert ended(worker, "while True: pass") == -signal.SIGXCPU


@pytest.mark.skipif(kernel.MACHINE != "x86_64", reason="x32 exists on x86_64 alone")
def test_an_x32_call_kills(tmp_path: Path) -> None:
    with open_worker(tmp_path, command=hostile_command()) as worker:
        assert ended(worker, "kernel.syscall('x32', 0x40000000 + 39)") == -signal.SIGSYS


def test_a_call_that_is_too_new_does_not_exist(hostile: Hostile) -> None:
    assert hostile().attack("kernel.syscall('new', 470, -1, 0, 0, 0)") == "refused ENOSYS"


def test_no_capability_is_left(hostile: Hostile) -> None:
    code = "import workers.confine.privileges as own\nresult = any(own.capabilities())"
    assert hostile("seccomp", "landlock").attack(code) == "did False"


def test_nothing_is_imported_in_a_days_work(tmp_path: Path) -> None:
    with open_worker(tmp_path, command=hostile_command()) as worker:
        code = "result = sorted(sys.modules)"
        before = worker.attack(code)
        for tool, arguments, _ in TOOLS:
            worker.call(tool, arguments)
        for tool in ("read_file", "write_file", "edit_file", "list_files", "list_directory", "none"):
            worker.call(tool, b"[")
            worker.call(tool, {"path": "../up", "content": "", "old": "a", "new": "b", "pattern": "["})
        worker.call("read_file", {"path": "missing"})
        worker.call("read_file", {"path": "../up"})
        worker.probe()
        assert worker.attack(code) == before
