"""An unavailable protection stops the worker, and its refusal names it; only the operator may do without."""

import errno
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from supervisor.pool.template_process import worker_command
from tests.each_row import each_row
from tests.raw_worker import open_worker, receive
from tests.supervisor.command import CODE, HANG_GUARD
from workers import kernel
from workers.confine import ProtectionUnavailable, confine, landlock
from workers.confine.confinements import FILES
from workers.confine.seccomp import ALLOW, ARGUMENTS, JUMP_EQUAL, LOAD, RETURN, Instruction
from workers.confine.steps import STEPS
from workers.confine.syscalls import NUMBERS
from workers.wire import messages

BREAK = """
import os, sys
sys.path[:0] = sys.argv[1].split(":")
from workers import kernel
from workers.confine.seccomp import Instruction, install
kernel.prctl("PR_SET_NO_NEW_PRIVS", 38, 1)
install(tuple(Instruction(*row) for row in {program}))
os.execv(sys.argv[2], sys.argv[2:])
"""


class Fault(NamedTuple):
    """A kernel that lacks `feature`: this call fails there, if its argument number `argument` is `option`.

    With an `errno` of 0 it does nothing, and says that it did: what counts is what can be read back.
    """

    feature: str
    call: str
    errno: int
    option: int | None = None
    argument: int = 0
    says: str = ""
    """How the refusal names what is wrong, where that is not the errno."""


NOTHING_ASKED = (0, 3)
"""Its fourth argument is where the limits until now are wanted: none there, new ones are set."""

FAULTS = [
    Fault("descriptors", "close_range", errno.ENOSYS),
    Fault("rlimits", "prlimit64", errno.EPERM),
    Fault("rlimits", "prlimit64", errno.EPERM, *NOTHING_ASKED),
    Fault("rlimits", "prlimit64", 0, *NOTHING_ASKED),
    Fault("no_new_privs", "prctl", errno.EINVAL, 38),
    Fault("no_new_privs", "prctl", 0, 39),
    Fault("capabilities", "capset", errno.EPERM),
    *([] if os.geteuid() else [Fault("capabilities", "capset", 0)]),
    Fault("capabilities", "capget", errno.EPERM),
    Fault("capabilities", "prctl", errno.EACCES, 24),
    Fault("undumpable", "prctl", errno.EINVAL, 4),
    Fault("undumpable", "prctl", 0, 4),
    Fault("parent_death", "prctl", errno.EINVAL, 2),
    Fault("parent_death", "prctl", 0, 1),
    Fault("landlock", "landlock_create_ruleset", errno.ENOSYS),
    Fault("landlock", "landlock_create_ruleset", errno.EOPNOTSUPP),
    Fault("landlock", "landlock_create_ruleset", 0, says="ENOSYS"),
    Fault("landlock", "landlock_add_rule", errno.EINVAL),
    Fault("landlock", "landlock_restrict_self", errno.E2BIG),
    Fault("seccomp", "seccomp", errno.ENOSYS),
    Fault("seccomp", "seccomp", errno.EINVAL),
]


def name(fault: Fault) -> str:
    option = "" if fault.option is None else f" {fault.argument}={fault.option}"
    return f"{fault.feature}, {fault.call}{option} {errno.errorcode.get(fault.errno, 'does nothing')}"


def in_words(fault: Fault) -> str:
    """How the refusal names what is wrong: a protection that only seems to be there is as one that is not permitted."""
    return fault.says or errno.errorcode[fault.errno or errno.EPERM]


def on_a_kernel_with(fault: Fault, program: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return the command of a worker, or of another program, on a kernel that has `fault`."""
    fails = Instruction(RETURN, 0, 0, 0x00050000 | fault.errno)
    option = [Instruction(LOAD, 0, 0, ARGUMENTS + 8 * fault.argument), Instruction(JUMP_EQUAL, 0, 1, fault.option or 0)]
    body = [fails] if fault.option is None else [*option, fails]
    number = NUMBERS[kernel.MACHINE][fault.call]
    filter_ = [
        Instruction(LOAD, 0, 0, 0),
        Instruction(JUMP_EQUAL, 0, len(body), number),
        *body,
        Instruction(RETURN, 0, 0, ALLOW),
    ]
    code = BREAK.format(program=[tuple(instruction) for instruction in filter_])
    return (sys.executable, "-I", "-S", "-c", code, ":".join(sys.path), *(program or worker_command()))


@pytest.mark.parametrize("fault", FAULTS, ids=name)
def test_a_missing_protection_stops_the_worker_though_all_others_may_be_missing(fault: Fault, tmp_path: Path) -> None:
    others = tuple(feature for feature, _ in STEPS if feature != fault.feature)
    with open_worker(tmp_path, command=on_a_kernel_with(fault), allow_degraded=others) as worker:
        assert worker.refusal.missing == fault.feature
        for part in (in_words(fault), "strongroom doctor", "allow_degraded"):
            assert part in worker.refusal.message
        assert worker.process.wait(HANG_GUARD) == 1


@pytest.mark.parametrize("fault", FAULTS, ids=name)
def test_the_operator_may_do_without_it_by_name(fault: Fault, tmp_path: Path) -> None:
    command = on_a_kernel_with(fault)
    with open_worker(tmp_path, command=command, allow_degraded=(fault.feature,)) as worker:
        assert worker.report.degraded == (fault.feature,)
        assert not any(name.startswith(fault.feature) for name in worker.report.enforced)


def test_nothing_is_degraded_on_a_kernel_that_has_it_all(tmp_path: Path) -> None:
    everything = tuple(feature for feature, _ in STEPS)
    with open_worker(tmp_path, allow_degraded=everything) as worker:
        assert worker.report.degraded == ()


def test_a_worker_that_cannot_bind_its_life_to_the_supervisor_says_nothing() -> None:
    command = on_a_kernel_with(Fault("parent_death", "prctl", errno.EINVAL, 1))
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert receive(process) is None
        assert process.wait(HANG_GUARD) == 1


KEEPING = """
from workers.confine.privileges import keep_capabilities
try:
    keep_capabilities((21,))
except OSError as error:
    print(error.strerror)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="others have no powers to keep")
def test_powers_that_are_only_said_to_be_gone_are_an_error() -> None:
    command = on_a_kernel_with(Fault("capabilities", "capset", 0), (sys.executable, "-c", KEEPING))
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=CODE)
    assert done.stdout == "it was set but does not hold\n"


PARTS = [
    (feature, since, present)
    for feature, since in {"truncate": 3, "network": 4, "devices": 5, "scope": 6}.items()
    for present in range(1, since)
]


def started(*degraded: str) -> messages.Start:
    return messages.Start(messages.VERSION, "files", messages.Context("/"), 0, True, messages.Limits(), degraded)


@pytest.mark.parametrize(("feature", "since", "present"), PARTS)
def test_an_old_landlock_lacks_a_part_which_the_operator_may_do_without(
    feature: str, since: int, present: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(landlock, "abi", lambda: present)
    name = f"landlock_{feature}"
    steps = tuple(step for step in STEPS if step[0] == name)
    with pytest.raises(ProtectionUnavailable, match=f"ABI {present}, and {since} is needed") as caught:
        confine(FILES, started(), (), steps)
    assert caught.value.feature == name
    enforced = confine(FILES, started(name), (), steps)
    assert (enforced.features, enforced.degraded) == ((), (name,))


RIGHTS = [
    (1, (2**13 - 1, 0, 0)),
    (2, (2**14 - 1, 0, 0)),
    (3, (2**15 - 1, 0, 0)),
    (4, (2**15 - 1, 3, 0)),
    (5, (2**16 - 1, 3, 0)),
    (6, (2**16 - 1, 3, 3)),
    (7, (2**16 - 1, 3, 3)),
    (99, (2**16 - 1, 3, 3)),
]


@each_row(("version", "rights"), RIGHTS)
def test_every_right_that_the_kernel_knows_is_handled(version: int, rights: tuple[int, int, int]) -> None:
    assert landlock.handled(version) == rights
