"""Cgroups for workers: what is ours, what is written, and, where this kernel lets us make one, what they do."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pytest

from supervisor.pool.cgroup import CgroupInfo, WorkerCgroup, cgroup_directory, inspect_cgroup, limit_files, problem_of
from tests.each_row import each_row
from tests.supervisor.pool.harness import HANG
from workers.wire.messages import Limits

UNIFIED: Final = "22 1 0:21 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw"
HYBRID: Final = """\
30 1 0:30 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
31 1 0:31 / /sys/fs/cgroup/unified rw - cgroup2 none rw
"""

PLACES: Final = [
    ("0::/user.slice/a.service\n", UNIFIED, "/sys/fs/cgroup/user.slice/a.service"),
    ("4:memory:/elsewhere\n0::/x\n", HYBRID, "/sys/fs/cgroup/unified/x"),
    ("0::/\n", UNIFIED, "/sys/fs/cgroup"),
    ("0::/box/inner\n", "22 1 0:21 /box /sys/fs/cgroup rw - cgroup2 cgroup2 rw", "/sys/fs/cgroup/inner"),
    ("0::/boxed\n", "22 1 0:21 /box /sys/fs/cgroup rw - cgroup2 cgroup2 rw", None),
    ("0::/a\n", "22 1 0:21 / /sys/fs/c\\040group rw - cgroup2 cgroup2 rw", "/sys/fs/c group/a"),
    ("0::/../outside\n", UNIFIED, None),
    ("4:memory:/only\n", HYBRID, None),
    ("0::/a\n", "22 1 0:21 / / rw - ext4 /dev/vda rw", None),
]


@each_row(("groups", "mounts", "expected"), PLACES)
def test_a_cgroup_is_found_where_it_is_mounted(groups: str, mounts: str, expected: str | None) -> None:
    assert cgroup_directory(groups, mounts) == (None if expected is None else Path(expected))


OURS: Final = CgroupInfo(Path("/g"), writable=True, controllers=("memory", "pids"))
JUDGED: Final = [
    (OURS, ""),
    (OURS._replace(controllers=()), ""),
    (CgroupInfo(), "this system has no cgroups of version 2"),
    (OURS._replace(top=True), "this process is in the root cgroup, which all processes share"),
    (OURS._replace(writable=False), "its cgroup may not be written"),
    (OURS._replace(others=1), "its cgroup holds other programs too"),
]


@each_row(("found", "problem"), JUDGED)
def test_a_cgroup_that_is_not_ours_is_left_alone(found: CgroupInfo, problem: str) -> None:
    assert problem_of(found) == problem


def test_the_limits_hold_for_the_worker_and_all_that_it_starts() -> None:
    written = limit_files(Limits(memory_mb=100, processes=3), disk_mb=1000)
    assert written == {
        "memory": {"memory.swap.max": "0", "memory.max": str((100 + 1000 + 64) * 2**20)},
        "pids": {"pids.max": "11"},
    }


def test_a_death_of_memory_is_told_from_others(tmp_path: Path) -> None:
    (tmp_path / "memory.events").write_text("low 0\noom 1\noom_kill 0\n")
    assert not WorkerCgroup(tmp_path, ("memory",)).ran_out_of_memory()
    (tmp_path / "memory.events").write_text("low 0\noom 1\noom_kill 2\n")
    assert WorkerCgroup(tmp_path, ("memory",)).ran_out_of_memory()


# with the kernel ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def base() -> Iterator[Path]:
    """A cgroup of our own, made for this and removed."""
    above = cgroup_directory(Path("/proc/self/cgroup").read_text(), Path("/proc/self/mountinfo").read_text())
    if above is None:
        pytest.skip("this system has no cgroups of version 2")
    path = above / f"strongroom-test-{os.getpid()}"
    try:
        path.mkdir()
    except OSError as error:
        pytest.skip(f"no cgroup can be made below {above}: {error.strerror}")
    yield path
    WorkerCgroup(path, ()).kill()
    for each in (*path.iterdir(), path):
        if each.is_dir():
            with suppress(OSError):
                each.rmdir()


@pytest.fixture(scope="module")
def told(base: Path) -> dict[str, Any]:
    """What a supervisor that was started in it, as a service is, says of its life there."""
    environment = {"PYTHONPATH": str(Path(__file__).parents[3]), "PATH": os.environ["PATH"]}
    command = (sys.executable, "-m", "tests.supervisor.pool.cgroup_life", str(base))
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG, check=False, env=environment)
    assert (done.stderr, done.returncode) == ("", 0)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def needs(told: dict[str, Any], controller: str) -> None:
    if controller not in told["controllers"]:
        pytest.skip(f"this kernel's cgroups of version 2 cannot be given the controller {controller}")


def test_a_cgroup_with_others_in_it_is_left_alone(told: dict[str, Any]) -> None:
    assert (told["others alone"], told["others with another"], told["ours with another"]) == (0, 1, False)


def test_the_supervisor_steps_into_a_leaf_and_back_at_the_end(told: dict[str, Any]) -> None:
    assert (told["in the leaf"], told["as before"]) == (True, True)


def test_cgroups_of_a_killed_daemon_are_ended_and_removed(told: dict[str, Any]) -> None:
    assert told["stale"] == [-9, False]


def test_nothing_that_a_worker_started_outlives_it_however_it_hid(told: dict[str, Any]) -> None:
    """A grandchild in a session of its own, whose parent has ended."""
    assert (told["hid"]["inside"], told["hid"]["ended"]) == (2, 2)


def test_the_cgroup_of_a_worker_goes_with_it(told: dict[str, Any]) -> None:
    assert told["next"]["beside"] == 0


def test_the_kernel_holds_the_limits_of_memory(told: dict[str, Any]) -> None:
    needs(told, "memory")
    assert told["ate"]["limits"]["memory.max"] == str((64 + 64) * 2**20)
    assert told["ate"]["death"] == "resource_limit"


def test_the_kernel_holds_the_limit_of_processes(told: dict[str, Any]) -> None:
    needs(told, "pids")
    assert told["bombed"]["limits"]["pids.max"] == "11"
    assert told["bombed"]["said"] == "10"


def test_an_ended_process_has_no_cgroup() -> None:
    process = subprocess.Popen(["true"])
    process.wait()
    assert inspect_cgroup(process.pid) == CgroupInfo()
