"""A daemon whose socket or lock file somebody takes away: clients find it again. The tests share one daemon."""

import fcntl
import os
from pathlib import Path
from typing import Final

import pytest

from supervisor.acp import extensions
from supervisor.clients.connection.start import find
from supervisor.config.settings import Settings, load
from supervisor.daemon.process.lock import hold, running
from supervisor.errors import DaemonRuns
from tests.daemon_process import DaemonProcess
from tests.supervisor.command import HANG_GUARD, wait_until

PRELUDE: Final = "import supervisor.daemon.process.listener as listener; listener._EVERY = 0.01\n"


@pytest.fixture
def settings(daemon: DaemonProcess) -> Settings:
    return load({"STRONGROOM_HOME": str(daemon.home)})


def is_found(daemon: DaemonProcess, settings: Settings) -> bool:
    """Say whether a client finds this daemon, after the time that a client has."""
    connection = find(settings)
    assert connection is not None
    connection.settimeout(HANG_GUARD)
    with daemon.lines(connection) as client:
        found: int = client.initialize()["_meta"][extensions.DAEMON]["pid"]
    return found == daemon.pid


def is_known(daemon: DaemonProcess, settings: Settings) -> bool:
    """Say whether the lock's file tells where this daemon listens."""
    found = running(settings)
    return found is not None and (found.pid, found.socket) == (daemon.pid, str(daemon.socket))


def until_logged(home: Path, words: str) -> None:
    log = home / "logs" / "daemon.log"
    wait_until(lambda: words in log.read_text())


def test_it_listens_again_when_its_socket_was_removed_and_loses_nobody(
    daemon: DaemonProcess, settings: Settings
) -> None:
    with daemon.client() as client:
        daemon.socket.unlink()
        assert is_found(daemon, settings)
        assert client.status()["daemon"]["pid"] == daemon.pid
    until_logged(settings.home, f"listening at {daemon.socket} again")


def test_it_leaves_what_has_taken_its_place_and_listens_again_when_that_is_gone(
    daemon: DaemonProcess, settings: Settings
) -> None:
    precious = daemon.home / "precious"
    precious.write_text("precious")
    precious.rename(daemon.socket)
    until_logged(settings.home, f"{daemon.socket} is no socket. Move it away")
    assert daemon.socket.read_text() == "precious"
    daemon.socket.unlink()
    assert is_found(daemon, settings)


def test_it_says_again_who_it_is_when_its_lock_s_file_was_changed(daemon: DaemonProcess, settings: Settings) -> None:
    os.truncate(settings.lock, 0)
    assert is_found(daemon, settings)
    until_logged(settings.home, f"somebody has changed {settings.lock}")
    assert is_known(daemon, settings)


def test_it_holds_a_lock_again_when_its_file_was_removed(daemon: DaemonProcess, settings: Settings) -> None:
    settings.lock.unlink()
    until_logged(settings.home, f"removed or replaced {settings.lock}; there is one again")
    assert is_known(daemon, settings)
    with pytest.raises(DaemonRuns), hold(settings):
        pass


def test_it_leaves_a_lock_to_whoever_holds_it_by_now(daemon: DaemonProcess, settings: Settings) -> None:
    another = settings.lock.with_name("another")
    with another.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        another.rename(settings.lock)
        until_logged(settings.home, f"{settings.lock} was changed or taken away, and cannot be put right")
        assert os.path.samestat(os.fstat(file.fileno()), settings.lock.stat())
    wait_until(lambda: is_known(daemon, settings))


def test_it_makes_no_home_where_its_own_was_moved_away(daemon: DaemonProcess, settings: Settings) -> None:
    moved = daemon.home.with_name("moved")
    daemon.home.rename(moved)
    until_logged(moved, f"{settings.lock} is gone, or another's")
    assert not daemon.home.exists()
    moved.rename(daemon.home)
    assert is_found(daemon, settings)
