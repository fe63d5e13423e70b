"""What an attacker's Python could reach from the worker that restores, and the locks that hold it.

As for the files worker: a door is shut by the whole confinement, by each of its locks alone, and open without them. In
its own namespaces what lies outside has no name, and what was kept is only shown. Doors of processes, sockets and the
kernel are those of all workers: the probe tries them, and the filter's list says the same.
"""

import errno
import os
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.direct import Direct, open_worker
from tests.hostile_worker import hostile_command
from tests.workers.confine.conftest import outside
from tests.workers.confine.test_fails_closed import Fault, on_a_kernel_with
from tests.workers.confine.test_seccomp import decide
from tests.workers.restore.conftest import House, equipment
from workers import wire
from workers.confine.policy import FILES, RESTORE
from workers.confine.probe import ATTEMPTS
from workers.confine.seccomp import ALLOW, ARCHITECTURES, EPERM, assemble
from workers.confine.syscalls import NUMBERS

__all__ = ["outside"]

Hostile = Callable[..., Direct]
Given = dict[str, str | int]

LANDLOCK = ("landlock",)
SECCOMP = ("seccomp",)
NAMESPACES = ("namespaces",)

SHUT = ("refused ", "passed ENOENT", "passed EROFS")
"""A lock says no, or there is nothing of that name, or it is only shown."""


class Door(NamedTuple):
    name: str
    locks: tuple[str, ...]
    code: str


DOORS = (
    # Files outside.
    Door("read", LANDLOCK + NAMESPACES, "result = open(outside + '/secret').read()"),
    Door("list", LANDLOCK + NAMESPACES, "result = os.listdir(outside)"),
    Door("create", LANDLOCK + NAMESPACES, "open(outside + '/new', 'x').close()"),
    Door("remove", LANDLOCK + NAMESPACES, "call('unlinkat', -100, (outside + '/secret').encode(), 0)"),
    Door("change a mode", NAMESPACES, "os.chmod(outside + '/secret', 0o600)"),
    Door("change times", NAMESPACES, "os.utime(outside + '/secret', ns=(0, 0))"),
    Door("change an owner", SECCOMP + NAMESPACES, "os.chown(outside + '/secret', -1, -1)"),
    Door("change an attribute", SECCOMP + NAMESPACES, "os.setxattr(outside + '/secret', 'user.mark', b'1')"),
    Door("truncate by path", LANDLOCK + SECCOMP + NAMESPACES, "os.truncate(outside + '/secret', 0)"),
    Door("link in", LANDLOCK + NAMESPACES,
        "os.link(outside + '/secret', 'made', dst_dir_fd=room.root.fd, follow_symlinks=False)"),
    Door("symlink out", LANDLOCK + NAMESPACES, "os.symlink('x', outside + '/linked')"),
    Door("up from the root", NAMESPACES, "os.chmod('../outside', 0o700, dir_fd=room.root.fd)"),
    Door("up from what was kept", NAMESPACES, "os.chmod('../outside', 0o700, dir_fd=room.engine.kept)"),
    Door("up from the scratch directory", NAMESPACES, "os.chmod('../../outside', 0o700, dir_fd=room.engine.scratch)"),
    Door("its own code", NAMESPACES, "os.chmod(kernel.__file__, os.stat(kernel.__file__).st_mode & 0o7777)"),
    # What was kept.
    Door("write a pack", LANDLOCK + NAMESPACES,
        "os.close(os.open('pack', os.O_WRONLY, dir_fd=room.engine.kept))"),
    Door("make a pack", LANDLOCK + NAMESPACES,
        "os.close(os.open('made', os.O_WRONLY | os.O_CREAT, dir_fd=room.engine.kept))"),
    Door("remove a pack", LANDLOCK + NAMESPACES, "os.unlink('pack', dir_fd=room.engine.kept)"),
    Door("replace a pack", LANDLOCK + NAMESPACES,
        "os.rename('kept', 'pack', src_dir_fd=room.root.fd, dst_dir_fd=room.engine.kept)"),
    Door("change a pack's mode", NAMESPACES, "os.chmod('pack', 0o600, dir_fd=room.engine.kept)"),
    Door("list the packs", LANDLOCK, "result = os.listdir(os.open('.', os.O_RDONLY, dir_fd=room.engine.kept))"),
    # Names that no undo makes.
    Door("a deleted name's mark in the root", LANDLOCK, "os.mknod('made', 0o020000, 0, dir_fd=room.root.fd)"),
    Door("a socket", SECCOMP, "os.mknod('made', 0o140600, dir_fd=room.root.fd)"),
    Door("a socket in the scratch directory", LANDLOCK + SECCOMP,
        "os.mknod('made', 0o140600, dir_fd=room.engine.scratch)"),
)  # fmt: skip
LOCKS = [(door, lock) for door in DOORS for lock in door.locks]


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
    with ExitStack() as stack:
        workers: dict[tuple[str, ...], Direct] = {}

        def worker(*removed: str) -> Direct:
            key = tuple(sorted(removed))
            if key not in workers:
                command = hostile_command(*key, category="restore")
                opened = open_worker(
                    base / "root", category="restore", equipment=equipment(base / "kept"), command=command
                )
                workers[key] = stack.enter_context(opened)
                assert isinstance(workers[key].ready, wire.Ready), workers[key].ready
            return workers[key]

        yield worker


@pytest.fixture
def target(base: Path, outside: Path) -> Iterator[Given]:
    """Everything that a row goes for, ready to be taken."""
    (base / "outside").mkdir(exist_ok=True)
    (base / "root/kept").write_text("kept")
    (base / "kept/pack").write_text("pack")
    yield {"outside": str(outside)}
    for left in ("root/made", "root/kept", "kept/made", "kept/pack", "kept/scratch/made"):
        (base / left).unlink(missing_ok=True)


def attacked(worker: Direct, code: str, given: Given) -> str:
    answer = worker.call("attack", {"code": code, "given": given})
    assert isinstance(answer, wire.Done), answer
    return answer.content


@pytest.mark.parametrize("door", DOORS, ids=[door.name for door in DOORS])
def test_the_confined_worker_finds_the_door_shut(door: Door, hostile: Hostile, target: Given) -> None:
    assert attacked(hostile(), door.code, target).startswith(SHUT)


@pytest.mark.parametrize(("door", "lock"), LOCKS, ids=[f"{door.name}, {lock}" for door, lock in LOCKS])
def test_each_lock_holds_the_door_alone(door: Door, lock: str, hostile: Hostile, target: Given) -> None:
    others = [other for other in ("landlock", "seccomp", "namespaces") if other != lock]
    assert attacked(hostile(*others), door.code, target).startswith(SHUT)


@pytest.mark.parametrize("door", DOORS, ids=[door.name for door in DOORS])
def test_the_door_opens_without_its_locks(door: Door, hostile: Hostile, target: Given) -> None:
    assert not attacked(hostile("landlock", "seccomp", "namespaces"), door.code, target).startswith(SHUT)


def test_the_descriptors_are_those_that_were_agreed(hostile: Hostile) -> None:
    """Those of every worker, and the two directories: none that leads into the old tree."""
    assert attacked(hostile(), "result = len(descriptors())", {}) == "did 8"


def test_the_probe_finds_every_door_shut_but_those_of_its_work(base: Path) -> None:
    with open_worker(base / "root", category="restore", equipment=equipment(base / "kept")) as worker:
        doors = worker.probe()
        assert isinstance(worker.ready, wire.Ready)
        assert "namespaces" in worker.ready.enforced
    assert [door.name for door in doors] == [each.name for each in ATTEMPTS if each.name not in RESTORE.opens]
    assert [door for door in doors if not door.shut] == []


@pytest.mark.parametrize("machine", NUMBERS)
@pytest.mark.parametrize(
    ("arguments", "verdict"),
    [
        ((3, 0, stat.S_IFIFO | 0o7777, 0), ALLOW),
        ((3, 0, stat.S_IFCHR, 0), ALLOW),
        ((3, 0, stat.S_IFCHR, os.makedev(1, 3)), EPERM),
        ((3, 0, stat.S_IFCHR | 0o600, 0), EPERM),
        ((3, 0, stat.S_IFBLK, 0), EPERM),
        ((3, 0, stat.S_IFSOCK | 0o600, 0), EPERM),
        ((3, 0, stat.S_IFREG | 0o600, 0), EPERM),
    ],
)
def test_of_devices_only_the_mark_of_a_deleted_name_is_made(
    machine: str, arguments: tuple[int, ...], verdict: int
) -> None:
    program = assemble(RESTORE.calls(writable=True), machine)
    assert decide(program, ARCHITECTURES[machine], NUMBERS[machine]["mknodat"], *arguments) == verdict


@pytest.mark.parametrize("call", ["unshare", "mount"])
def test_where_a_system_forbids_namespaces_it_says_so_and_works(call: str, house: House) -> None:
    before = house.look()
    pack = house.do("rm -rf d; chmod 000 text; ln -s a new")
    command = on_a_kernel_with(Fault("namespaces", call, errno.EPERM))
    with open_worker(house.tree, category="restore", equipment=equipment(house.kept), command=command) as worker:
        assert isinstance(worker.ready, wire.Ready), worker.ready
        assert worker.ready.degraded == ("namespaces",)
        assert isinstance(worker.call("undo", {"pack": pack}), wire.Done)
    assert house.look() == before


def test_where_the_root_is_only_read_it_has_no_more_than_the_files_worker() -> None:
    assert RESTORE.calls(writable=False) == FILES.calls(writable=False)
    assert RESTORE.access(writable=False) == FILES.access(writable=False)


def test_nothing_is_imported_in_a_days_work(house: House) -> None:
    packs = house.do("echo new > text; rm -rf d; mkfifo f; chmod 600 b"), house.do("touch {1..40}; chmod 000 e")
    broken = house.put(wire.Original(1, "../x"), wire.Original(1, "../y"))
    (house.kept / "text").write_bytes(wire.LENGTH.pack(3) + b"abc")
    command = hostile_command(category="restore")
    with open_worker(house.tree, category="restore", equipment=equipment(house.kept), command=command) as worker:
        before = attacked(worker, "result = sorted(sys.modules)", {})
        for pack in (*reversed(packs), *packs, "text", broken, "gone"):
            for force in (False, True):
                worker.call("undo", {"pack": pack, "force": force})
        worker.call("undo", b"[")
        worker.probe()
        assert attacked(worker, "result = sorted(sys.modules)", {}) == before
    (house.kept / "text").unlink()
