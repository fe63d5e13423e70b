"""The kernel's limits of each process of a command; what all of them use together stands in test_commands.py."""

from pathlib import Path
from typing import Final

import msgspec
import pytest

from tests.hostile_worker import hostile_command
from tests.workers.shell.conftest import LIMITS, open_shell, python, shell

SPEND: Final = "ulimit -Ht; ulimit -Hn; head -c 1500000 /dev/zero > $HOME/big; echo $?; wc -c < $HOME/big"
"""Says what it may use of processor time and open files, and writes a file that is too large."""

HELD: Final = ["8", "99", "153", str(2**20)]
"""153: ended by SIGXFSZ."""


@pytest.mark.parametrize("removed", [(), ("rlimits",)], ids=["with them", "without them"])
def test_a_command_has_the_limits_of_a_worker(removed: tuple[str, ...], tmp_path: Path) -> None:
    limits = msgspec.structs.replace(LIMITS, cpu_s=7, open_files=99, file_mb=1)
    with open_shell(tmp_path, limits, command=hostile_command(*removed, category="shell")) as worker:
        said = shell(worker, SPEND)["stdout"].split()
    assert [ours == held for ours, held in zip(said, HELD, strict=True)] == [not removed] * len(HELD)


def test_the_worker_itself_has_a_limit_of_memory_that_its_commands_have_not(tmp_path: Path) -> None:
    with open_shell(tmp_path, command=hostile_command(category="shell")) as worker:
        greedy = worker.failed("attack", {"code": f"bytearray({LIMITS.memory_mb} * 2**20)"})
        assert greedy.kind == "resource_limit"
        assert shell(worker, "ulimit -Sd; ulimit -Hd")["stdout"].split() == ["unlimited"] * 2


FILL: Final = """
import errno, os
os.close(os.open("x", os.O_CREAT))
def fill(act):
    for number in range(2 * 4096):
        try:
            act(number)
        except OSError as error:
            return errno.errorcode[error.errno]
    return "no end"
print(fill(lambda number: os.link("x", str(number))))
os.remove("0")
print(fill(lambda number: os.setxattr("x", f"user.{number}", bytes(2000))))
"""


@pytest.mark.parametrize("place", ["/tmp", "/var/tmp", "/dev/shm", "$HOME"])
def test_names_and_attributes_are_no_way_past_the_limit_of_its_own_places(place: str, tmp_path: Path) -> None:
    with open_shell(tmp_path, disk_mb=4) as worker:
        result = shell(worker, f"cd {place} && exec {python()} -I -c '{FILL}'")
    names, attributes = result["stdout"].split()
    assert names == "ENOSPC"
    assert attributes in {"ENOSPC", "EOPNOTSUPP"}  # not before Linux 6.6
