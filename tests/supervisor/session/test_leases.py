"""One process runs a session: the kernel's locks, between real processes."""

import os
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

from supervisor.errors import ConfigError
from supervisor.session.leases import Leases, offset
from tests.supervisor.command import CODE, HANG_GUARD

HOLDER: Final = """
import sys
from pathlib import Path
from supervisor.session.leases import Leases
leases = Leases.open(Path(sys.argv[1]))
for line in sys.stdin:
    print(leases.acquire(line.strip()), flush=True)
"""


@pytest.fixture
def leases(tmp_path: Path) -> Iterator[Leases]:
    with Leases.open(tmp_path) as found:
        yield found


@pytest.fixture
def other(tmp_path: Path) -> Iterator["subprocess.Popen[str]"]:
    """Another process, which takes the session whose name it reads and says how that went."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={"PYTHONPATH": str(CODE)},
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate(timeout=HANG_GUARD)


def takes(process: "subprocess.Popen[str]", session: str) -> bool:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{session}\n")
    process.stdin.flush()
    return {"True\n": True, "False\n": False}[process.stdout.readline()]


def test_a_session_that_another_process_runs_cannot_be_had(leases: Leases, other: "subprocess.Popen[str]") -> None:
    assert takes(other, "a")
    assert not leases.acquire("a")
    assert leases.acquire("b")
    assert not takes(other, "b")


def test_a_lease_that_was_given_back_can_be_had(leases: Leases, other: "subprocess.Popen[str]") -> None:
    assert leases.acquire("a")
    assert leases.acquire("b")
    leases.release("a")
    assert takes(other, "a")
    assert not takes(other, "b")


def test_a_killed_process_holds_nothing(leases: Leases, other: "subprocess.Popen[str]") -> None:
    assert takes(other, "a")
    assert leases.acquire("b")
    assert [leases.held_elsewhere(session) for session in "abc"] == [True, False, False]
    other.kill()
    other.wait(HANG_GUARD)
    assert not leases.held_elsewhere("a")
    assert leases.acquire("a")


def test_two_in_one_process_exclude_each_other(leases: Leases, tmp_path: Path) -> None:
    with Leases.open(tmp_path) as second:
        assert leases.acquire("a")
        assert not second.acquire("a")
    assert not leases.acquire("a")  # still ours: closing another descriptor of the file drops no lock


def test_a_lease_that_is_held_cannot_be_taken_again(leases: Leases) -> None:
    assert [leases.acquire("a"), leases.acquire("a")] == [True, False]
    leases.release("a")
    assert leases.acquire("a")


def test_a_lease_that_is_not_held_cannot_be_given_away(leases: Leases, tmp_path: Path) -> None:
    with Leases.open(tmp_path) as second:
        assert second.acquire("a")
        leases.release("a")
        assert not leases.acquire("a")


def test_closing_gives_everything_back(leases: Leases, tmp_path: Path) -> None:
    second = Leases.open(tmp_path)
    assert second.acquire("a")
    second.close()
    second.close()
    assert leases.acquire("a")


def test_a_program_that_is_started_meanwhile_keeps_no_lease(leases: Leases, tmp_path: Path) -> None:
    second = Leases.open(tmp_path)
    assert second.acquire("a")
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, close_fds=False):
        second.close()
        assert leases.acquire("a")


def test_a_thousand_sessions_leave_one_empty_file_for_us_alone(tmp_path: Path, umask_000: None) -> None:
    with Leases.open(tmp_path) as leases:
        assert all(leases.acquire(f"session-{number}") for number in range(1000))
    (file,) = tmp_path.iterdir()
    assert (file.name, file.stat().st_size, stat.S_IMODE(file.stat().st_mode)) == ("sessions.lock", 0, 0o600)


@pytest.mark.parametrize("session", ["", "a", "20260304-101500-a1b2c3", "é日😀", "\ud800", "x" * 10_000])
def test_every_name_has_a_byte_that_a_file_can_have(leases: Leases, session: str) -> None:
    assert 0 <= offset(session) < 2**62
    assert leases.acquire(session)


def test_the_byte_of_a_session_is_fixed() -> None:
    # The first 62 bits of SHA-256("abc"), FIPS 180-2: ba7816bf 8f01cfea.
    assert offset("abc") == 0xBA7816BF8F01CFEA >> 2


def a_link(file: Path) -> None:
    (file.parent / "elsewhere").write_text("")
    file.symlink_to("elsewhere")


@pytest.mark.parametrize("plant", [a_link, os.mkfifo, Path.mkdir])
def test_a_lock_that_is_no_file_of_ours_is_refused(tmp_path: Path, plant: Callable[[Path], None]) -> None:
    plant(tmp_path / "sessions.lock")
    before = os.lstat(tmp_path / "sessions.lock")
    with pytest.raises(ConfigError, match=r"sessions\.lock"):
        Leases.open(tmp_path)
    assert os.path.samestat(before, os.lstat(tmp_path / "sessions.lock"))
