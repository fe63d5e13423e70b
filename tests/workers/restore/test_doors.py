"""Doors of the worker that restores, tried by an attacker's Python, and the locks that hold it.

What is tried in every worker stands in `tests/door_table.py`. In its own namespaces what lies outside has no name, and
what was kept is only shown.
"""

import errno
import os
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from tests.door_table import DOORS, LN, LS, L, N, S
from tests.doors import Door, Given, Held, Target, attack, check, of, open_target, shared_workers
from tests.each_row import each_row
from tests.hostile_worker import hostile_command
from tests.raw_worker import RawWorker, open_worker
from tests.workers.confine.test_fails_closed import Fault, on_a_kernel_with
from tests.workers.confine.test_seccomp import decided
from tests.workers.restore.conftest import House, inputs, let_go
from workers.confine.confinements import FILES, RESTORE
from workers.confine.probe import ATTEMPTS
from workers.confine.seccomp import ALLOW, EPERM, assemble
from workers.confine.syscalls import NUMBERS
from workers.wire import frames, messages

Hostile = Callable[..., RawWorker]

TOP = "top = context.root.fd\n"

OWN = (
    Door("up from what was kept", Held(restore=N), "os.chmod('../outside', 0o700, dir_fd=context.engine.kept)"),
    Door("up from the scratch directory", Held(restore=N),
        "os.chmod('../../outside', 0o700, dir_fd=context.engine.scratch)"),
    Door("up from the directory in memory", Held(restore=N),
        "os.chmod('../../outside', 0o700, dir_fd=context.engine.memory)"),
    # What was kept.
    Door("write a pack", Held(restore=LN),
        "os.close(os.open('pack', os.O_WRONLY, dir_fd=context.engine.kept))"),
    Door("make a pack", Held(restore=LN),
        "os.close(os.open('made', os.O_WRONLY | os.O_CREAT, dir_fd=context.engine.kept))"),
    Door("remove a pack", Held(restore=LN), "os.unlink('pack', dir_fd=context.engine.kept)"),
    Door("replace a pack", Held(restore=LN),
        "os.rename('kept', 'pack', src_dir_fd=context.root.fd, dst_dir_fd=context.engine.kept)"),
    Door("change a pack's mode", Held(restore=N), "os.chmod('pack', 0o600, dir_fd=context.engine.kept)"),
    Door(
        "list the packs",
        Held(restore=L),
        "result = os.listdir(os.open('.', os.O_RDONLY, dir_fd=context.engine.kept))",
    ),
    # Names that no undo makes.
    Door("an overlay's mark in the root", Held(restore=LS), "os.mknod('made', 0o020000, 0, dir_fd=context.root.fd)"),
    Door("a socket", Held(restore=S), "os.mknod('made', 0o140600, dir_fd=context.root.fd)"),
    Door("a socket in the scratch directory", Held(restore=LS),
        "os.mknod('made', 0o140600, dir_fd=context.engine.scratch)"),
    Door("a socket in the directory in memory", Held(restore=LS),
        "os.mknod('made', 0o140600, dir_fd=context.engine.memory)"),
)  # fmt: skip
"""Besides what is tried in every worker."""


@pytest.fixture(scope="module")
def base() -> Iterator[Path]:
    """A root, what was kept, and what lies outside of both."""
    with tempfile.TemporaryDirectory() as name:
        base = Path(name)
        for each in ("root", "kept/scratch"):
            (base / each).mkdir(parents=True, mode=0o700)
        (base / "kept").chmod(0o700)
        yield base


@pytest.fixture(scope="module")
def hostile(base: Path) -> Iterator[Hostile]:
    """Return the shared worker that lacks the given locks."""

    def opened(*removed: str) -> AbstractContextManager[RawWorker]:
        command = hostile_command(*removed, category="restore")
        return open_worker(base / "root", category="restore", inputs=inputs(base / "kept"), command=command)

    yield from shared_workers(opened)


@pytest.fixture(scope="module")
def target(base: Path) -> Iterator[Target]:
    """Everything that a row goes for."""
    with open_target(base, base / "root") as target:
        yield target


def attacked(worker: RawWorker, code: str, given: Given) -> str:
    return attack(worker, TOP + code, given)


@pytest.mark.parametrize("door", [*of("restore", DOORS), *OWN], ids=lambda door: door.name)
def test_a_door_is_shut_by_each_of_its_locks_and_by_no_other(
    door: Door, hostile: Hostile, target: Target, base: Path
) -> None:
    def tried(removed: tuple[str, ...]) -> str:
        for left in ("kept/made", "kept/scratch/made"):
            (base / left).unlink(missing_ok=True)
        (base / "kept/pack").write_text("pack")
        return attacked(hostile(*removed), door.code, target.ready())

    check(door, "restore", tried)


def test_the_descriptors_are_those_that_were_agreed(hostile: Hostile) -> None:
    """Those of every worker, and the three directories: none that leads into the old tree."""
    assert attacked(hostile(), "result = len(descriptors())", {}) == "did 9"


def test_the_probe_finds_every_door_shut_but_those_of_its_work(base: Path) -> None:
    with open_worker(base / "root", category="restore", inputs=inputs(base / "kept")) as worker:
        doors = worker.probe()
        assert "namespaces" in worker.report.enforced
    assert [door.name for door in doors] == [each.name for each in ATTEMPTS if each.name not in RESTORE.opens]
    assert [door for door in doors if not door.shut] == []


@each_row("machine", NUMBERS)
@each_row(
    ("arguments", "verdict"),
    [
        ((3, 0, stat.S_IFIFO | 0o7777, 0), ALLOW),
        ((3, 0, stat.S_IFCHR, 0), EPERM),
        ((3, 0, stat.S_IFCHR, os.makedev(1, 3)), EPERM),
        ((3, 0, stat.S_IFCHR | 0o600, 0), EPERM),
        ((3, 0, stat.S_IFBLK, 0), EPERM),
        ((3, 0, stat.S_IFSOCK | 0o600, 0), EPERM),
        ((3, 0, stat.S_IFREG | 0o600, 0), EPERM),
    ],
)
def test_of_special_files_only_a_fifo_is_made(machine: str, arguments: tuple[int, ...], verdict: int) -> None:
    program = assemble(RESTORE.calls(writable=True), machine)
    assert decided(program, machine, "mknodat", *arguments) == verdict


@each_row(("number", "verdict"), [(0x80086601, ALLOW), (0x40086602, ALLOW), (0x5412, EPERM)])
@each_row("machine", NUMBERS)
def test_of_ioctl_only_the_flags_of_files_are_let_through(machine: str, number: int, verdict: int) -> None:
    assert decided(assemble(RESTORE.calls(writable=True), machine), machine, "ioctl", 3, number) == verdict
    assert decided(assemble(RESTORE.calls(writable=False), machine), machine, "ioctl", 3, number) == EPERM


@pytest.mark.parametrize("call", ["unshare", "mount"])
def test_without_namespaces_it_works_and_says_so(call: str, house: House) -> None:
    before = house.look()
    pack = house.do("rm -rf d; chmod 000 text; ln -s a new")
    command = on_a_kernel_with(Fault("namespaces", call, errno.EPERM))
    given: Any = {"category": "restore", "inputs": inputs(house.kept), "command": command}
    with open_worker(house.tree, **given) as worker:
        assert worker.report.degraded == ("namespaces",)
        assert isinstance(worker.call("undo", {"pack": pack}), messages.Done)
        let_go(worker)
    assert house.look() == before


def test_on_a_root_that_is_only_read_it_has_no_more_than_the_files_worker() -> None:
    assert RESTORE.calls(writable=False) == FILES.calls(writable=False)
    assert RESTORE.access(writable=False) == FILES.access(writable=False)


def test_nothing_is_imported_in_a_days_work(house: House) -> None:
    packs = house.do("echo new > text; rm -rf d; mkfifo f; chmod 600 b"), house.do("touch {1..40}; chmod 000 e")
    broken = house.put(messages.Original(1, "../x"), messages.Original(1, "../y"))
    cut = house.put(*house.parts(packs[0]), damage=lambda frames: frames[:-1])
    (house.kept / "text").write_bytes(frames.LENGTH.pack(3) + b"abc")
    command = hostile_command(category="restore")
    with open_worker(house.tree, category="restore", inputs=inputs(house.kept), command=command) as worker:
        before = attacked(worker, "result = sorted(sys.modules)", {})
        for pack in (*reversed(packs), *packs, "text", broken, cut, "gone"):
            for force in (False, True):
                worker.call("undo", {"pack": pack, "force": force})
        worker.call("undo", b"[")
        worker.probe()
        assert attacked(worker, "result = sorted(sys.modules)", {}) == before
    (house.kept / "text").unlink()
