"""`strongroom daemon --stop`: who is signalled, and what is said of a daemon that does not end."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pytest

from supervisor.clients.connection.patience import Patience
from supervisor.clients.connection.stop import stop
from supervisor.config.settings import Settings
from supervisor.daemon.process.lock import hold
from supervisor.errors import StrongroomError
from tests.supervisor.clients.shared import Errors
from tests.supervisor.command import CODE, HANG_GUARD, Strongroom

HOLDER: Final = """
import signal, sys
from pathlib import Path
from supervisor.config.settings import load
from supervisor.daemon.process.lock import hold
if sys.argv[1:]:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
with hold(load()) as lock:
    lock.publish(Path("/run/the.sock"))
    print("holds", flush=True)
    sys.stdin.read()
"""
"""Holds the lock until its input ends; with an argument, whatever signal asks it to end."""
NO_PATIENCE: Final = Patience(0, 0)


@pytest.fixture
def settings(strongroom: Strongroom) -> Settings:
    strongroom.configure("[daemon]\ndrain_s = 0\n")
    return strongroom.settings


@contextmanager
def holding(settings: Settings, *arguments: str) -> Iterator["subprocess.Popen[bytes]"]:
    command = [sys.executable, "-c", HOLDER, *arguments]
    environment = {"PYTHONPATH": str(CODE), "STRONGROOM_HOME": str(settings.home)}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as process:
        try:
            assert process.stdout
            assert process.stdout.readline() == b"holds\n"
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("claim", ["{pid}", "1"], ids=["a process that is not ours to end", "init"])
def test_a_process_that_does_not_hold_the_lock_is_never_signalled(settings: Settings, claim: str) -> None:
    with hold(settings), subprocess.Popen(["cat"], stdin=subprocess.PIPE) as bystander:
        claimed = claim.format(pid=bystander.pid)
        settings.lock.write_text(f'{{"pid": {claimed}, "version": "0", "socket": "/nowhere"}}')
        with pytest.raises(StrongroomError, match="does not say who it is") as caught:
            stop(settings, NO_PATIENCE)
        assert f"kill {claimed}`" not in str(caught.value)
        bystander.communicate(timeout=HANG_GUARD)
    assert bystander.returncode == 0


def test_a_stopped_daemon_is_told_of_and_ends_when_it_goes_on(settings: Settings) -> None:
    with holding(settings) as process:
        process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
        with pytest.raises(StrongroomError, match=rf"\(pid {process.pid}\) is stopped, .*`kill -CONT {process.pid}`"):
            stop(settings)
        process.send_signal(signal.SIGCONT)
        assert process.wait(HANG_GUARD) == -signal.SIGTERM


def test_a_daemon_that_does_not_end_is_not_waited_for_for_ever(settings: Settings) -> None:
    with holding(settings, "whatever") as process:
        with pytest.raises(StrongroomError, match=rf"was asked to end, and has not\. .*`kill -KILL {process.pid}`"):
            stop(settings, NO_PATIENCE)
        assert process.poll() is None


def test_a_person_is_told_that_turns_have_time_to_finish(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    with holding(settings, "whatever") as process:
        assert process.stdin
        errors = Errors(process.stdin.close)
        monkeypatch.setattr(sys, "stderr", errors)
        assert stop(settings, Patience(0, HANG_GUARD)) == process.pid
    assert errors.getvalue() == (
        f"note: The daemon (pid {process.pid}) was asked to end; turns that run have 0 s to finish.\n"
    )
