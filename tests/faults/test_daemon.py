"""Faults of the daemon's process in the corpus: two of them, its death, its limits, its signals, its directory.

Rows about the journal are run by `tests/supervisor/test_journal*.py`, rows about protections that a kernel lacks by
`tests/workers/confine/test_fails_closed.py`.
"""

import json
import os
import resource
import select
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from supervisor.acp import extensions
from supervisor.journal.facts import CallEnded, TurnEnded
from supervisor.system import unix_socket
from tests.daemon_process import DaemonProcess, Lines, opening, release, scripted
from tests.forked import ForkedStrongroom
from tests.supervisor.command import CODE, HANG_GUARD, Family, wait_until
from tests.supervisor.histories import DONE, READ, call, fault_in_facts


def answers(daemon: DaemonProcess) -> bool:
    with daemon.client() as client:
        return bool(client.status()["daemon"]["pid"] == daemon.pid)


def release_idle(client: Lines, pids: list[int]) -> None:
    """Let all workers go on but the one that has a call: those that do nothing end at once when they are told to."""
    pools = client.status()["pools"]
    busy = {worker["pid"] for pool in pools for worker in pool["workers"] if worker["state"] == "BUSY"}
    release([pid for pid in pids if pid not in busy])


def is_stopping(client: Lines) -> None:
    """Wait until the daemon begins nothing new."""
    params = {"sessionId": "x", "cwd": "/", "mcpServers": []}
    wait_until(lambda: client.refused("session/resume", params)["data"]["kind"] == "stopping")


# --- one daemon a home ------------------------------------------------------------------------------------------------


def test_f182_a_second_daemon_is_refused_and_told_the_first_one_s_pid(daemon: DaemonProcess) -> None:
    with daemon:
        second = DaemonProcess(daemon.home, daemon.folder)
        with pytest.raises(AssertionError, match=rf"already runs \(pid {daemon.pid}\)"):
            second.start()
        assert second.code == 1
        assert answers(daemon)


TWENTY: Final = """
import os
from supervisor.config.settings import load
from supervisor.daemon.program import run
from supervisor.errors import DaemonRuns
reader, writer = os.pipe()
for _ in range(20):
    if os.fork() == 0:
        os.close(writer)
        os.read(reader, 1)
        try:
            run(load(), None, 0, lambda: os.write(1, f"listening {os.getpid()}\\n".encode()) and None)
        except DaemonRuns as error:
            os.write(1, f"runs {error.pid}\\n".encode())
        os._exit(0)
os.close(writer)
for _ in range(20):
    os.wait()
"""
"""Twenty processes that have imported everything, and become daemons at once."""


def test_f183_of_twenty_that_start_at_once_one_runs_and_nineteen_say_so(daemon: DaemonProcess) -> None:
    command = [sys.executable, "-P", "-c", TWENTY]
    environment = {"PATH": os.environ["PATH"], "STRONGROOM_HOME": str(daemon.home), "PYTHONPATH": str(CODE)}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, env=environment)
    winner = 0
    try:
        assert process.stdout
        words = [process.stdout.readline().split() for _ in range(20)]
        ((_, pid),) = [each for each in words if each[0] == b"listening"]
        winner = int(pid)
        assert {int(each[1]) for each in words if each[0] == b"runs"} <= {0, winner}
        with daemon.client() as client:
            assert client.status()["daemon"]["pid"] == winner
    finally:
        if winner:
            os.kill(winner, signal.SIGTERM)
        else:
            process.kill()
        process.communicate(timeout=HANG_GUARD)
    assert process.returncode == 0


def test_f184_a_socket_that_a_killed_daemon_left_is_no_obstacle(daemon: DaemonProcess) -> None:
    daemon.start()
    daemon.kill()
    daemon.wait()
    assert daemon.socket.is_socket()
    with daemon:
        assert answers(daemon)
    assert not daemon.socket.exists()


def test_f185_a_pid_that_somebody_else_has_by_now_is_no_obstacle(daemon: DaemonProcess) -> None:
    daemon.configure("")
    left = {"pid": os.getpid(), "version": "0", "socket": str(daemon.socket)}
    (daemon.home / "daemon.lock").write_text(json.dumps(left))
    with daemon:
        assert answers(daemon)


# --- its death --------------------------------------------------------------------------------------------------------


SPINNING: Final = '[[faults]]\ncategory = "files"\ntool = "read_file"\nfault = "spin"\n'


@pytest.mark.parametrize("state", ["idle", "stopped", "stopped in a call", "spinning in a call"])
def test_f186_killed_it_leaves_no_worker_whatever_that_does(
    daemon: DaemonProcess, model: str, tmp_path: Path, root: Path, state: str
) -> None:
    if state.startswith("spinning"):
        daemon.plan = tmp_path / "plan.toml"
        daemon.plan.write_text(SPINNING)
    daemon.start()
    with daemon.client() as client:
        session = client.new_session(root, model=model)
        held = client.hold_workers()
        if not state.startswith("stopped"):
            release(held)
        if state.endswith("in a call"):
            client.begin_call(session)
        family = daemon.family()
        assert len(family.handles) >= 1
        daemon.kill()
        daemon.wait()
        assert family.is_gone()


# --- its limits and its directory -------------------------------------------------------------------------------------


def test_f189_with_32_descriptors_everything_is_done_or_has_a_reason(
    daemon: DaemonProcess, tmp_path: Path, root: Path
) -> None:
    many = {"text": "I look.", "calls": [call("read_file", path="a.txt")] * 8}
    model = scripted(tmp_path / "many.jsonl", many, DONE, READ, DONE)
    daemon.prelude = "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (32, 32))\n"
    with daemon:
        with daemon.client() as client:
            session = client.new_session(root, model=model)
            with ExitStack() as stack:
                for _ in range(16):
                    stack.enter_context(daemon.connect())
                assert client.prompt(session, "go")["stopReason"] == "end_turn"
            assert client.prompt(session, "again")["stopReason"] == "end_turn"
        *first, last = daemon.facts_of(session, CallEnded)
        assert {fact.kind for fact in first} <= {None, "worker_unavailable", "worker_crashed"}
        assert last.ok
        assert fault_in_facts(daemon.sessions[session]) is None
        assert "Too many open files" in daemon.log


@pytest.mark.parametrize("allowed", [0, 8])
def test_a_worker_that_ends_while_no_descriptor_is_to_be_had_fails_its_call_and_no_other(
    daemon: DaemonProcess, tmp_path: Path, root: Path, allowed: int
) -> None:
    model = scripted(tmp_path / "twice.jsonl", READ, DONE, READ, DONE)
    with daemon:
        with daemon.client() as client:
            session, held, prompt = client.begin_held_call(root, model)
            limits = resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE)
            resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE, (allowed, limits[1]))
            family = Family(held)
            for pid in held:
                os.kill(pid, signal.SIGKILL)
            assert family.is_gone()
            resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE, limits)
            assert client.ends_turn(prompt)
            assert client.prompt(session, "again")["stopReason"] == "end_turn"
        assert fault_in_facts(daemon.sessions[session]) is None


@pytest.mark.usefixtures("umask_000")
def test_f196_whatever_the_umask_nothing_is_open_to_others(daemon: DaemonProcess, model: str, root: Path) -> None:
    with daemon:
        with daemon.client() as client:
            client.prompt(client.new_session(root, model=model), "go")
        kept = [daemon.home, *daemon.home.rglob("*")]
        open_to_others = [path for path in kept if path.lstat().st_mode & 0o077]
    assert {"daemon.lock", "daemon.sock", "journal.db", "logs", "sessions.lock"} <= {path.name for path in kept}
    assert open_to_others == []


def test_f197_a_home_that_others_can_write_is_refused(daemon: DaemonProcess) -> None:
    daemon.configure("")
    daemon.home.chmod(0o777)
    with pytest.raises(AssertionError, match="insecure permissions"):
        daemon.start()
    assert [path.name for path in daemon.home.iterdir()] == ["config.toml"]
    assert stat.S_IMODE(daemon.home.stat().st_mode) == 0o777


# --- signals ----------------------------------------------------------------------------------------------------------


def test_f192_sigterm_ends_it_cleanly(daemon: DaemonProcess, model: str, root: Path) -> None:
    daemon.start()
    with daemon.client() as client:
        client.prompt(client.new_session(root, model=model), "go")
        family = daemon.family()
        daemon.terminate()
        assert client.line() == b""
        assert daemon.wait() == 0
    assert family.is_gone()
    assert not daemon.socket.exists()
    assert (daemon.home / "daemon.lock").read_bytes() == b""
    assert daemon.verdict.problem == ""


def test_a_turn_may_finish_while_the_daemon_stops_and_is_answered(
    daemon: DaemonProcess, model: str, root: Path
) -> None:
    daemon.start()
    with daemon.client() as client, daemon.client() as other:
        session, held, prompt = client.begin_held_call(root, model)
        daemon.terminate()
        is_stopping(other)
        assert other.status()["sessions"][0]["state"] == "Executing"
        assert not daemon.socket.exists()
        release(held)
        assert client.ends_turn(prompt)
        family = daemon.family()
        assert daemon.wait() == 0
    assert family.is_gone()
    assert [fact.status for fact in daemon.facts_of(session, TurnEnded)] == ["ok"]


@pytest.mark.parametrize("attempt", range(3))
def test_a_turn_that_does_not_finish_in_time_is_cut_off_recorded_and_answered(
    daemon: DaemonProcess, model: str, root: Path, attempt: int
) -> None:
    daemon.configure("[daemon]\ndrain_s = 0.05\n")
    daemon.start()
    with daemon.client() as client:
        assert_cut_off(daemon, client, root, model, daemon.terminate)


def test_f193_a_second_sigint_cuts_off_what_the_first_one_lets_finish(
    daemon: DaemonProcess, model: str, root: Path
) -> None:
    daemon.configure("[daemon]\ndrain_s = 600\n")
    daemon.start()
    with daemon.client() as client, daemon.client() as other:

        def interrupt_twice() -> None:
            daemon.signal(signal.SIGINT)
            is_stopping(other)
            daemon.signal(signal.SIGINT)

        assert_cut_off(daemon, client, root, model, interrupt_twice)


def assert_cut_off(daemon: DaemonProcess, client: Lines, root: Path, model: str, stop: Callable[[], None]) -> None:
    """Stop the daemon in the middle of a call: the turn is cancelled, which is recorded and answered."""
    session, held, prompt = client.begin_held_call(root, model)
    release_idle(client, held)
    family = daemon.family()
    stop()
    assert client.answer(prompt)["result"]["stopReason"] == "cancelled"
    assert daemon.wait() == 0
    assert family.is_gone()
    assert [fact.status for fact in daemon.facts_of(session, TurnEnded)] == ["cancelled"]
    assert fault_in_facts(daemon.sessions[session]) is None


def test_f195_sigpipe_is_no_death(daemon: DaemonProcess) -> None:
    with daemon:
        daemon.signal(signal.SIGPIPE)
        assert answers(daemon)


BROKEN: Final = [
    ("profile = ", "not valid TOML"),
    ("profil = 'narrow'", "did you mean 'profile'"),
    ("profile = 'wide'", "wide"),
    ("[profiles.wide]\nroot = '.'\ntools = ['rm']", "no tool 'rm'"),
    ("max_steps = " + "9" * 5000, "too many digits"),
    ("x = " + "[" * 100_000, "nested too deep"),
]
NARROW: Final = "profile = 'narrow'\n[profiles.narrow]\nroot = '.'\ntools = ['read_file']\n"


def test_f194_a_changed_configuration_is_read_again_and_a_broken_one_refused(daemon: DaemonProcess, root: Path) -> None:
    with daemon, daemon.client() as client:
        assert opened(client, root)["profile"] == "vault"
        daemon.configure(NARROW)
        reload(daemon, client, "it counts for what is opened from now on", 1)
        assert opened(client, root)["tools"] == ["read_file"]
        for text, problem in BROKEN:
            daemon.configure(text)
            session = opened(client, root)
            assert session["profile"] == "narrow"
            assert session["notices"][-1].startswith("THE CONFIGURATION HAS A MISTAKE, and what was read before stays")
            assert problem in session["notices"][-1]
            assert problem in client.status()["configProblem"]
        command = ForkedStrongroom(daemon.home, root)
        command.run("daemon", "--reload").assert_refused(problem, f"What the daemon (pid {daemon.pid}) has read before")
        assert "Configuration problem" in command.run("status").out
        daemon.configure("")
        assert f"the daemon (pid {daemon.pid}) has read" in command.run("daemon", "--reload").err
        assert "configProblem" not in client.status()
        assert opened(client, root)["profile"] == "vault"
        daemon.configure(NARROW)
        changed = opened(client, root)
        assert (changed["tools"], changed["notices"][-1][:30]) == (["read_file"], "THE CONFIGURATION HAS CHANGED:")
        assert "notices" not in opened(client, root)
    assert "in which there is no mistake" in command.run("daemon", "--reload").err
    daemon.configure("max_steps = 5\nprofil = 'x'")
    command.run("daemon", "--reload").assert_refused("config.toml:2: unknown name 'profil'")


def test_a_root_with_the_socket_of_the_command_line_is_refused_also_after_sighup(
    daemon: DaemonProcess, root: Path
) -> None:
    root.chmod(0o700)
    daemon.socket = root / "own.sock"
    daemon.prelude = (
        "from pathlib import Path\nfrom supervisor.daemon import program\nbegin = program.run\n"
        f"program.run = lambda settings, _, *others: begin(settings, Path({str(daemon.socket)!r}), *others)\n"
    )
    with daemon, daemon.client() as client:
        assert "own.sock" in client.refused("session/new", opening(root, model="offline"))["message"]
        reload(daemon, client, "it counts for what is opened from now on", 1)
        assert "own.sock" in client.refused("session/new", opening(root, model="offline"))["message"]


def opened(client: Lines, root: Path) -> Any:
    """Return what a new session is."""
    meta = {extensions.OPTIONS: {"model": "offline"}}
    return client.request("session/new", {"cwd": str(root), "mcpServers": [], "_meta": meta})["_meta"][
        extensions.OPTIONS
    ]


def reload(daemon: DaemonProcess, client: Lines, word: str, times: int) -> None:
    """Send SIGHUP, and wait until the log says so often what became of it."""
    daemon.signal(signal.SIGHUP)
    wait_until(lambda: client.status() and daemon.log.count(word) >= times, lambda: daemon.log)


# --- systemd ----------------------------------------------------------------------------------------------------------


@contextmanager
def systemd(path: Path) -> Iterator[socket.socket]:
    """Yield what listens where NOTIFY_SOCKET says."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener, unix_socket.address(str(path)) as name:
        listener.bind(name)
        listener.settimeout(HANG_GUARD)
        yield listener


def until_word(listener: socket.socket, word: str) -> list[str]:
    """Return what was said until `word`."""
    heard: list[str] = []
    while word not in heard:
        heard += listener.recv(4096).decode().splitlines()
    return heard


def test_systemd_hears_that_it_is_ready_alive_reloading_and_stopping(home: Path, tmp_path: Path) -> None:
    path = tmp_path / "notify"
    with systemd(path) as listener:
        daemon = DaemonProcess(home, tmp_path, NOTIFY_SOCKET=str(path), WATCHDOG_USEC="30000")
        with daemon:
            assert until_word(listener, "READY=1").count("READY=1") == 1
            until_word(listener, "WATCHDOG=1")
            until_word(listener, "WATCHDOG=1")
            daemon.signal(signal.SIGHUP)
            until_word(listener, "RELOADING=1")
            until_word(listener, "READY=1")
            daemon.terminate()
            until_word(listener, "STOPPING=1")
            assert daemon.wait() == 0
        while select.select([listener], [], [], 0)[0]:
            assert listener.recv(4096) == b"WATCHDOG=1"
