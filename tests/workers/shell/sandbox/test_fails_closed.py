"""Without a part of the sandbox the worker refuses to serve and names it: nothing ever runs bare."""

import errno
from pathlib import Path

import pytest

from tests.raw_worker import RawWorker
from tests.supervisor.command import HANG_GUARD
from tests.workers.confine.test_fails_closed import Fault, in_words, name, on_a_kernel_with
from tests.workers.shell.conftest import open_shell, shell
from workers.catalog import protections

ESSENTIAL = [
    Fault("sandbox", "unshare", errno.EPERM),
    Fault("sandbox", "unshare", errno.ENOSPC),
    Fault("private_root", "mount", errno.EPERM),
    Fault("private_root", "mount", errno.EACCES),
    Fault("private_root", "mount_setattr", errno.ENOSYS),
    Fault("private_root", "pivot_root", errno.EPERM),
    Fault("private_root", "umount2", errno.EPERM),
]
"""What no operator can do without."""

OTHERS = [
    Fault("descriptors", "close_range", errno.ENOSYS),
    Fault("rlimits", "prlimit64", errno.EPERM),
    Fault("no_new_privs", "prctl", errno.EINVAL, 38),
    Fault("no_new_privs", "prctl", 0, 39),
    Fault("capabilities", "capset", errno.EPERM),
    Fault("capabilities", "capset", 0),
    Fault("capabilities", "prctl", 0, 24),
    Fault("undumpable", "prctl", errno.EINVAL, 4),
    Fault("undumpable", "prctl", 0, 4),
    Fault("parent_death", "prctl", errno.EINVAL, 2),
    Fault("parent_death", "prctl", 0, 1),
    Fault("landlock", "landlock_create_ruleset", errno.ENOSYS),
    Fault("landlock", "landlock_restrict_self", errno.E2BIG),
    Fault("seccomp", "seccomp", errno.EINVAL),
]


@pytest.mark.parametrize("fault", [*OTHERS, *ESSENTIAL], ids=name)
def test_a_missing_part_stops_the_worker_and_no_word_of_the_operators_lets_a_command_run_bare(
    fault: Fault, tmp_path: Path
) -> None:
    let = protections() if fault in ESSENTIAL else ()
    with open_shell(tmp_path, command=on_a_kernel_with(fault), allow_degraded=let) as worker:
        assert worker.refusal.missing == fault.feature
        assert in_words(fault) in worker.refusal.message
        assert fault in OTHERS or "allow_degraded" not in worker.refusal.message
        assert worker.process.wait(HANG_GUARD) == 1


def test_no_part_of_the_sandbox_can_be_named_in_the_configuration() -> None:
    assert not {"sandbox", "private_root", "places", "command"} & set(protections())


def test_the_operator_may_do_without_landlock_and_it_is_reported(tmp_path: Path) -> None:
    command = on_a_kernel_with(Fault("landlock", "landlock_create_ruleset", errno.ENOSYS))
    with open_shell(tmp_path, command=command, allow_degraded=("landlock",)) as worker:
        assert worker.report.degraded == ("landlock",)
        assert shell(worker, "echo ran")["stdout"] == "ran\n"


def test_inputs_of_a_wrong_type_are_refused(tmp_path: Path) -> None:
    with open_shell(tmp_path, programs="ls") as worker:
        assert "programs" in worker.refusal.message


def test_all_that_holds_is_reported(worker: RawWorker) -> None:
    assert {"sandbox", "private_root", "places", "seccomp", "capabilities", "undumpable"} <= set(worker.report.enforced)
    assert worker.report.degraded == ()


def test_every_door_is_shut_from_within_a_command(worker: RawWorker) -> None:
    doors = worker.probe()
    assert [door for door in doors if not door.shut] == []
    assert {"trace the supervisor", "mount", "read the worker's memory", "list the machine's logs"} <= {
        door.name for door in doors
    }
