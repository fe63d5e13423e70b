"""One daemon a home, between real processes."""

import fcntl
import json
import os
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import metadata
from pathlib import Path
from typing import Final

import pytest

from supervisor.config.settings import Settings, load
from supervisor.daemon.process.lock import Published, hold, holder, running
from supervisor.errors import ConfigError, DaemonRuns
from tests.supervisor.command import CODE, HANG_GUARD

CONTENDER: Final = """
import os, sys
from pathlib import Path
from supervisor.config.settings import load
from supervisor.daemon.process.lock import hold
from supervisor.errors import DaemonRuns
assert "trio" not in sys.modules
print("here", flush=True)
os.read(int(sys.argv[1]), 1)
try:
    with hold(load()) as lock:
        lock.publish(Path("/run/the.sock"))
        print("holds", flush=True)
        sys.stdin.read()
except DaemonRuns as error:
    print(f"{error.pid} {error}", flush=True)
"""
"""Waits for the end of a pipe, then wants the lock, and holds it until its input ends."""


@pytest.fixture
def settings(home: Path) -> Settings:
    """The settings of a home that is not made yet."""
    return load({"STRONGROOM_HOME": str(home)})


@pytest.fixture
def left(settings: Settings) -> Path:
    """The lock's file, as a daemon leaves it that has ended."""
    with hold(settings):
        pass
    return settings.lock


def said(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


@contextmanager
def contenders(settings: Settings, count: int) -> Iterator[Sequence["subprocess.Popen[str]"]]:
    """Start so many processes, and let them go for the lock at once."""
    reader, writer = os.pipe()
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", CONTENDER, str(reader)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={"PYTHONPATH": str(CODE), "STRONGROOM_HOME": str(settings.home)},
            pass_fds=(reader,),
        )
        for _ in range(count)
    ]
    try:
        assert {said(process) for process in processes} == {"here"}
        os.close(writer)
        yield processes
    finally:
        os.close(reader)
        for process in processes:
            process.kill()
            process.communicate(timeout=HANG_GUARD)


def test_of_twenty_daemons_one_runs_and_the_others_say_so(settings: Settings) -> None:
    with contenders(settings, 20) as processes:
        words = [said(process) for process in processes]
        winner = processes[words.index("holds")]
        words.remove("holds")
        assert len(words) == 19
        assert {word.split(maxsplit=1)[1].split(";")[0].split(" (")[0] for word in words} == {"A daemon already runs"}
        assert {int(word.split()[0]) for word in words} <= {winner.pid, 0}
        assert running(settings) == Published(winner.pid, metadata.version("strongroom"), "/run/the.sock")


def test_a_killed_daemon_holds_nothing(settings: Settings) -> None:
    with contenders(settings, 1) as (process,):
        assert said(process) == "holds"
        process.kill()
        process.wait(HANG_GUARD)
        assert json.loads(settings.lock.read_text())["pid"] == process.pid
        assert running(settings) is None
        with hold(settings):
            assert running(settings) == Published()  # and not what the dead one said


def test_a_second_daemon_is_told_who_holds_the_lock_and_what_to_do(settings: Settings) -> None:
    with hold(settings) as lock:
        lock.publish(Path("/run/the.sock"))
        with pytest.raises(DaemonRuns) as caught, hold(settings):
            pass
        assert (caught.value.pid, caught.value.socket) == (os.getpid(), "/run/the.sock")
        assert str(caught.value) == (
            f"A daemon already runs (pid {os.getpid()}) at /run/the.sock. "
            f"Use that one, or end it first: kill {os.getpid()}."
        )
        assert running(settings) == Published(os.getpid(), metadata.version("strongroom"), "/run/the.sock")


def test_a_daemon_that_has_not_said_who_it_is_holds_the_lock_all_the_same(settings: Settings) -> None:
    with hold(settings):
        with pytest.raises(DaemonRuns, match=r"starting or ending\. Try again") as caught, hold(settings):
            pass
        assert (caught.value.pid, caught.value.socket) == (0, "")
        assert running(settings) == Published()


@pytest.mark.parametrize("text", [b"garbage", b'{"pid": "x"}', b"\xff", b'{"pid": 1, "vers'])
def test_the_text_of_the_lock_file_is_not_trusted(settings: Settings, text: bytes) -> None:
    with hold(settings):
        settings.lock.write_bytes(text)
        assert running(settings) == Published()
    settings.lock.write_bytes(text)
    assert running(settings) is None


@pytest.mark.parametrize("pid", [1, 0, -1, 2**40])
def test_a_pid_counts_only_where_the_kernel_says_that_it_holds_the_lock(settings: Settings, pid: int) -> None:
    with hold(settings):
        settings.lock.write_text(f'{{"pid": {pid}, "version": "0", "socket": "/s"}}')
        assert running(settings) == Published(0, "0", "/s")
        with pytest.raises(DaemonRuns) as caught, hold(settings):
            pass
    assert (caught.value.pid, f"kill {pid}" in str(caught.value)) == (0, False)


def test_a_pid_that_nobody_asks_the_kernel_for_is_not_said(settings: Settings) -> None:
    with hold(settings) as lock:
        lock.publish(Path("/run/the.sock"))
        assert running(settings, named=False) == Published(0, metadata.version("strongroom"), "/run/the.sock")
    assert running(settings, named=False) is None


def test_the_kernel_says_who_holds_the_lock_whatever_the_file_says(settings: Settings) -> None:
    assert holder(settings) == 0
    with contenders(settings, 1) as (process,):
        assert said(process) == "holds"
        os.truncate(settings.lock, 0)
        assert (holder(settings), running(settings)) == (process.pid, Published())
    assert holder(settings) == 0


@pytest.mark.parametrize("text", ["", "{" * 4000], ids=["truncated", "overwritten"])
def test_a_changed_lock_file_is_written_again(settings: Settings, text: str) -> None:
    with hold(settings) as lock:
        lock.publish(Path("/run/the.sock"))
        before = settings.lock.read_bytes()
        assert not lock.renew()
        settings.lock.write_text(text)
        assert lock.renew()
        assert settings.lock.read_bytes() == before


def test_a_daemon_that_lets_nobody_in_any_more_says_so(settings: Settings) -> None:
    with hold(settings) as lock:
        lock.publish(Path("/run/the.sock"))
        lock.retire()
        assert running(settings) == Published(os.getpid(), metadata.version("strongroom"), "")


def test_a_lock_knows_whether_its_file_is_at_its_name(settings: Settings, tmp_path: Path) -> None:
    with hold(settings) as lock:
        assert lock.is_named()
        settings.home.rename(tmp_path / "moved")
        assert not lock.is_named()
        settings.home.mkdir(mode=0o700)
        settings.lock.touch()
        assert not lock.is_named()


def fails() -> None:
    raise KeyError


@pytest.mark.parametrize("end", [lambda: None, fails], ids=["well", "badly"])
def test_nothing_is_left_in_the_file_when_the_daemon_ends(settings: Settings, end: Callable[[], None]) -> None:
    with suppress(KeyError), hold(settings) as lock:
        lock.publish(Path("/run/the.sock"))
        end()
    assert settings.lock.read_bytes() == b""
    assert running(settings) is None


def test_the_lock_publishes_one_line_of_json(settings: Settings) -> None:
    with hold(settings) as lock:
        lock.publish(Path("/a\nb\udcff/s"))
        lines = settings.lock.read_text().splitlines()
    assert [sorted(json.loads(line)) for line in lines] == [["pid", "socket", "version"]]


def test_no_daemon_runs_where_there_is_no_home(settings: Settings) -> None:
    assert running(settings) is None
    assert not settings.home.exists()


def test_a_client_that_looks_keeps_no_daemon_from_starting(
    settings: Settings, left: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looker = os.open(left, os.O_RDONLY)
    fcntl.flock(looker, fcntl.LOCK_SH)
    monkeypatch.setattr(time, "sleep", lambda _seconds: os.close(looker))
    with hold(settings):
        assert running(settings) is not None


def test_a_client_that_never_ceases_to_look_is_not_waited_for_for_ever(
    settings: Settings, left: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "sleep", lambda _seconds: None)
    with open(left) as looker:
        fcntl.flock(looker, fcntl.LOCK_SH)
        with pytest.raises(DaemonRuns), hold(settings):
            pass


def test_looking_takes_no_lock_that_stays(settings: Settings, left: Path) -> None:
    before = os.listdir("/proc/self/fd")
    assert running(settings) is None
    assert os.listdir("/proc/self/fd") == before


def test_a_program_that_the_daemon_started_does_not_keep_the_lock(settings: Settings) -> None:
    with hold(settings):
        child = subprocess.Popen(["cat"], stdin=subprocess.PIPE, close_fds=False)
    with child:
        assert running(settings) is None


def test_home_and_file_are_for_their_owner_alone(settings: Settings, umask_000: None) -> None:
    with hold(settings):
        pass
    assert stat.S_IMODE(settings.home.stat().st_mode) == 0o700
    assert stat.S_IMODE(settings.lock.stat().st_mode) == 0o600


def test_a_file_that_others_could_read_is_closed_to_them(settings: Settings) -> None:
    settings.home.mkdir(mode=0o700)
    settings.lock.touch(0o666)
    with hold(settings):
        assert stat.S_IMODE(settings.lock.stat().st_mode) == 0o600


def a_link(file: Path) -> None:
    (file.parent / "elsewhere").write_text("precious")
    file.symlink_to("elsewhere")


def a_dangling_link(file: Path) -> None:
    file.symlink_to("nowhere")


@pytest.mark.parametrize("plant", [a_link, a_dangling_link, os.mkfifo, Path.mkdir])
def test_a_lock_that_is_no_file_of_ours_is_refused(settings: Settings, plant: Callable[[Path], None]) -> None:
    settings.home.mkdir(mode=0o700)
    plant(settings.lock)
    before = sorted(os.listdir(settings.home))
    with pytest.raises(ConfigError, match=str(settings.lock)), hold(settings):
        pass
    assert sorted(os.listdir(settings.home)) == before
    assert [file.read_text() for file in settings.home.glob("elsewhere")] in ([], ["precious"])


@pytest.mark.skipif(os.geteuid() != 0, reason="gives a file away")
def test_a_file_of_another_user_is_refused(settings: Settings) -> None:
    settings.home.mkdir(mode=0o700)
    settings.lock.touch()
    os.chown(settings.lock, 12345, 12345)
    with pytest.raises(ConfigError, match="not a regular file of this user"), hold(settings):
        pass


def test_a_home_that_others_can_write_is_refused(settings: Settings) -> None:
    settings.home.mkdir()
    settings.home.chmod(0o777)
    with pytest.raises(ConfigError, match="insecure permissions"), hold(settings):
        pass
    assert not settings.lock.exists()


def test_a_lock_whose_file_was_removed_is_held_again_also_where_the_home_is_a_link(settings: Settings) -> None:
    settings.home.with_name("elsewhere").mkdir(mode=0o700)
    settings.home.symlink_to("elsewhere")
    with hold(settings) as lock:
        settings.lock.unlink()
        assert lock.reclaim()
        assert lock.is_named()
        assert not lock.reclaim()
        with pytest.raises(DaemonRuns), hold(settings):
            pass
