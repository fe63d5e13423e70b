"""The cgroups (version 2) of this process's workers: one a worker, with limits that hold for all it starts together.

Rule: a cgroup that is not ours is never touched. Ours is one that holds this process alone, or the one above it where
systemd has delegated that and put us into a leaf of it; never the top of the hierarchy. What the system does not
offer is told and left out: the limits of each process hold without (workers/confine/limits.py).

    OURS                    made by whoever started us
    OURS/supervisor         this process: no cgroup with processes may pass controllers on (cgroups(7))
    OURS/worker-PID         one worker and everything that it starts
"""

import logging
import os
import re
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

from workers.wire.messages import Limits

CONTROLLERS: Final = ("memory", "pids")
"""Those that limit something of ours."""

_LEAF: Final = "supervisor"
_WORKER: Final = "worker-"
_MEGABYTE: Final = 2**20
_OWN_MB: Final = 64
"""For the worker itself, and what the kernel counts besides its pages."""
_OWN_PROCESSES: Final = 8
"""For the worker itself, and what it starts to lock itself in."""
_TRIES: Final = 100
_PAUSE_S: Final = 0.005
"""For what a killed daemon left: how often, and after how long, it is looked whether it has died."""
_log: Final = logging.getLogger("strongroom.daemon")
_DELEGATED: Final = ("user.delegate", "trusted.delegate")
"""How systemd marks what it has delegated: https://systemd.io/CGROUP_DELEGATION."""


class CgroupInfo(NamedTuple):
    """The state of a process's cgroup."""

    base: Path | None = None
    """Below it the workers' would be made; None where there is no version 2 of cgroups."""
    inside: bool = False
    """The process is in the leaf below it already."""
    top: bool = False
    writable: bool = False
    others: int = 0
    """Processes that are in it, or in the leaf, besides the process."""
    controllers: tuple[str, ...] = ()
    """Of those that we want, the ones that it could pass on."""


_PROBLEMS: Final[tuple[tuple[Callable[[CgroupInfo], bool], str], ...]] = (
    (lambda found: found.base is None, "this system has no cgroups of version 2"),
    (lambda found: found.top, "this process is in the root cgroup, which all processes share"),
    (lambda found: not found.writable, "its cgroup may not be written"),
    (lambda found: found.others > 0, "its cgroup holds other programs too"),
)


def problem_of(found: CgroupInfo) -> str:
    """Return why workers get no cgroups there; "" where they do."""
    return next((why for applies, why in _PROBLEMS if applies(found)), "")


def cgroup_directory(groups: str, mounts: str) -> Path | None:
    """Return the directory of a process's cgroup, from its /proc files `cgroup` and `mountinfo`."""
    path = next((line[3:] for line in groups.splitlines() if line.startswith("0::/")), "..")
    for line in mounts.splitlines():
        fields, _, kind = line.partition(" - ")
        if ".." in path.split("/") or kind.split(" ", 1)[0] != "cgroup2":
            continue
        shown, where = (_unescaped(field) for field in fields.split(" ")[3:5])
        if f"{path}/".startswith(f"{shown.rstrip('/')}/"):
            return Path(where, path[len(shown) :].lstrip("/")) if shown != "/" else Path(where, path.lstrip("/"))
    return None


def limit_files(limits: Limits, disk_mb: int) -> Mapping[str, Mapping[str, str]]:
    """Return what is written for a worker, by controller: file and text.

    `disk_mb` is what its commands may write into memory as if it were a disk: the kernel counts that too.
    """
    most = (limits.memory_mb + disk_mb + _OWN_MB) * _MEGABYTE
    return {
        "memory": {"memory.swap.max": "0", "memory.max": str(most)},
        "pids": {"pids.max": str(limits.processes + _OWN_PROCESSES)},
    }


def inspect_cgroup(pid: int) -> CgroupInfo:
    """Return what the cgroup of a process is like; nothing is changed."""
    try:
        base = cgroup_directory(Path(f"/proc/{pid}/cgroup").read_text(), Path(f"/proc/{pid}/mountinfo").read_text())
    except OSError:
        return CgroupInfo()
    if base is None or not base.is_dir():
        return CgroupInfo()
    inside = base.name == _LEAF and _delegated(base.parent)
    base = base.parent if inside else base
    processes = {*_lines(base / "cgroup.procs"), *_lines(base / _LEAF / "cgroup.procs")}
    passed = " ".join(_lines(base / "cgroup.controllers")).split()
    return CgroupInfo(
        base,
        inside,
        not (base / "cgroup.events").exists(),
        all(os.access(base / file, os.W_OK) for file in ("", "cgroup.procs", "cgroup.subtree_control")),
        len(processes - {str(pid)}),
        tuple(each for each in CONTROLLERS if each in passed),
    )


class WorkerCgroup:
    """The cgroup of one worker."""

    def __init__(self, path: Path, controllers: tuple[str, ...]) -> None:
        self.path = path
        self.controllers = controllers
        """Those that limit it."""

    def kill(self) -> None:
        """End every process in it at once (cgroup.kill, Linux 5.14; before, one by one)."""
        with suppress(FileNotFoundError):
            if (self.path / "cgroup.kill").exists():
                _write(self.path / "cgroup.kill", "1")
                return
        for pid in _lines(self.path / "cgroup.procs"):
            with suppress(ProcessLookupError, PermissionError):
                os.kill(int(pid), signal.SIGKILL)

    def ran_out_of_memory(self) -> bool:
        """Say whether the kernel has ended a process of it for its memory."""
        return any(re.fullmatch("oom_kill [1-9][0-9]*", line) for line in _lines(self.path / "memory.events"))

    def remove(self) -> bool:
        """Remove it, and say whether it is gone: it stays while something in it is still dying."""
        try:
            self.path.rmdir()
        except FileNotFoundError:
            return True
        except OSError:
            return False
        return True


class WorkerCgroups:
    """The cgroups below one that is ours; use `open_cgroups`."""

    def __init__(self, base: Path, controllers: tuple[str, ...], *, inside: bool) -> None:
        self.base = base
        self.controllers = controllers
        self._inside = inside
        self._left: list[WorkerCgroup] = []

    def create(self, pid: int, limits: Limits, disk_mb: int) -> WorkerCgroup:
        """Make a cgroup for a worker, with its limits, and move its process in: before it has started anything.

        Raises:
            OSError: it cannot be made, or the process has ended.
        """
        self._left = [each for each in self._left if not each.remove()]
        group = WorkerCgroup(self.base / f"{_WORKER}{pid}", self.controllers)
        group.path.mkdir()
        try:
            for controller, files in limit_files(limits, disk_mb).items():
                for file, text in files.items() if controller in self.controllers else ():
                    with suppress(FileNotFoundError):  # a kernel without swap has no limit for it
                        _write(group.path / file, text)
            _write(group.path / "cgroup.procs", str(pid))
        except OSError:
            group.remove()
            raise
        return group

    def remove(self, group: WorkerCgroup) -> None:
        """End what is in it and remove it; where something is still dying, later."""
        group.kill()
        if not group.remove():
            self._left.append(group)

    def close(self) -> None:
        """Leave everything as it was found; the workers have ended."""
        _clear(self.base)
        if self._inside:
            return
        with suppress(OSError):  # else it stays ours: the next one of us finds it so
            for controller in self.controllers:
                _write(self.base / "cgroup.subtree_control", f"-{controller}")
            _write(self.base / "cgroup.procs", str(os.getpid()))
            (self.base / _LEAF).rmdir()


def open_cgroups(found: CgroupInfo) -> WorkerCgroups:
    """Make ready what was found for this process, in which there is no problem; what a killed one left is removed.

    Controllers that the kernel refuses are left out: without any, a cgroup still ends everything that is in it.

    Raises:
        OSError: the kernel refuses.
    """
    assert found.base is not None
    base, leaf = found.base, found.base / _LEAF
    _clear(base)
    if not found.inside:
        leaf.mkdir(exist_ok=True)
        _write(leaf / "cgroup.procs", str(os.getpid()))
    passed = []
    for controller in found.controllers:
        with suppress(OSError):
            _write(base / "cgroup.subtree_control", f"+{controller}")
            passed.append(controller)
    return WorkerCgroups(base, tuple(passed), inside=found.inside)


@contextmanager
def worker_cgroups() -> Iterator[WorkerCgroups | None]:
    """Have cgroups for the workers of this process as long as the context is open; None where it may have none.

    Enter it before anything is started: what is started earlier stays where it is.
    """
    found = inspect_cgroup(os.getpid())
    groups = None
    if why := problem_of(found):
        _log.info("workers get no cgroups: %s", why)
    else:
        try:
            groups = open_cgroups(found)
        except OSError as error:
            _log.warning("workers get no cgroups: %s", error)
    try:
        yield groups
    finally:
        if groups is not None:
            groups.close()


def _clear(base: Path) -> None:
    """End and remove the cgroups of workers that are there still."""
    for path in base.glob(f"{_WORKER}*"):
        stale = WorkerCgroup(path, ())
        for _ in range(_TRIES):
            stale.kill()
            if stale.remove():
                break
            time.sleep(_PAUSE_S)


def _delegated(path: Path) -> bool:
    for name in _DELEGATED:
        with suppress(OSError):
            if os.getxattr(path, name) == b"1":
                return True
    return False


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text().splitlines()
    except OSError:
        return []


def _write(file: Path, text: str) -> None:
    descriptor = os.open(file, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)


def _unescaped(field: str) -> str:
    """Read a field of mountinfo: blanks and the like stand there as octal numbers (proc(5))."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), field)
