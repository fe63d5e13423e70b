"""Finding a daemon that is just ending, hung or of another version; most of them are played here."""

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final, Literal

import pytest

from supervisor import unix
from supervisor.acp import ours, rpc, schema
from supervisor.clients.link import Deaf, Listener
from supervisor.clients.start import Connected, connect, connect_or_private, find, version_notices
from supervisor.config import Settings, load
from supervisor.daemon.lock import hold
from supervisor.errors import DaemonLost, DaemonRefused
from supervisor.version import VERSION
from tests.daemon_process import Lines
from tests.supervisor.command import CODE, HANG_GUARD

ABOUT: Final = ours.Daemon(pid=os.getpid(), version=VERSION, home="", model="", profile="vault")
STOPPING: Final = rpc.fault(rpc.INTERNAL_ERROR, "The daemon is stopping; connect again.", "stopping")
OTHER: Final = rpc.fault(rpc.INTERNAL_ERROR, "Something else.", "internal")


Deed = rpc.ErrorObject | Literal["close", "serve"]
"""What a daemon does with a client: answer with an error, close at once, or let it in."""

Reach = Callable[[Settings, Listener, str], Connected]


class Ear(Deaf):
    """Hears of a loss."""

    def __init__(self) -> None:
        self.losses = 0

    def lost(self, _why: str) -> None:
        self.losses += 1


class Played:
    """A daemon that does one deed for each client."""

    def __init__(self, server: socket.socket, deeds: Sequence[Deed]) -> None:
        self.deeds = list(deeds)
        self._server = server

    def run(self) -> None:
        while self.deeds:
            connection, _ = self._server.accept()
            deed = self.deeds.pop(0)
            with Lines(connection) as client:
                if deed == "close":
                    continue
                asked = client.read()
                if isinstance(deed, rpc.ErrorObject):
                    client.send(rpc.failure(asked["id"], deed))
                    continue
                introduction = schema.InitializeResult(
                    protocol_version=schema.VERSION,
                    agent_capabilities={},
                    agent_info=schema.Implementation(name="played", version=VERSION),
                    auth_methods=[],
                    meta={ours.DAEMON: ABOUT},
                )
                client.send(rpc.result(asked["id"], introduction))
                client.line()  # until it leaves


@pytest.fixture
def settings(home: Path) -> Settings:
    return load({"STRONGROOM_HOME": str(home)})


@contextmanager
def playing(settings: Settings, *deeds: Deed) -> Iterator[Played]:
    """Hold the lock and listen; the daemon ends when it has done its deeds."""
    with ExitStack() as daemon:
        lock = daemon.enter_context(hold(settings))
        server = daemon.enter_context(socket.socket(socket.AF_UNIX))
        server.settimeout(HANG_GUARD)
        with unix.address(str(settings.socket)) as name:
            server.bind(name)
        server.listen()
        lock.publish(settings.socket)
        played = Played(server, deeds)

        def run() -> None:
            played.run()
            daemon.close()

        thread = threading.Thread(target=run)
        thread.start()
        yield played
        thread.join(HANG_GUARD)
        assert not thread.is_alive()


@pytest.mark.parametrize("deed", ["close", STOPPING], ids=["closes", "says that it is stopping"])
@pytest.mark.parametrize("reach", [connect, connect_or_private])
def test_a_daemon_that_is_just_stopping_is_not_the_last_one(settings: Settings, reach: Reach, deed: Deed) -> None:
    ear = Ear()
    with playing(settings, deed, deed, "serve"), reach(settings, ear, "test") as connected:
        assert connected.link.daemon == ABOUT
        assert not connected.private
    assert ear.losses == 0


def test_where_the_daemon_has_ended_another_is_started(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STRONGROOM_HOME", str(settings.home))
    with playing(settings, "close"), connect_or_private(settings, Ear(), "test") as connected:
        assert connected.private


def test_three_daemons_that_go_away_are_enough(settings: Settings) -> None:
    with playing(settings, "close", "close", "close", "serve"):
        with pytest.raises(DaemonLost):
            connect(settings, Ear(), "test")
        connect(settings, Ear(), "test").close()


def test_a_daemon_that_refuses_is_asked_once(settings: Settings) -> None:
    with playing(settings, OTHER) as played, pytest.raises(DaemonRefused, match="Something else"):
        connect(settings, Ear(), "test")
    assert played.deeds == []


def test_a_daemon_that_stops_for_long_is_told_of_with_what_to_do(settings: Settings) -> None:
    with hold(settings) as lock:
        lock.publish(settings.socket)
        with pytest.raises(
            DaemonLost, match=rf"\(pid {os.getpid()}\) .* stopping, .* still running.*`kill {os.getpid()}`"
        ):
            find(settings, time.monotonic())


def test_a_lock_that_nobody_says_anything_about_is_told_of(settings: Settings) -> None:
    with hold(settings), pytest.raises(DaemonLost, match=r"holds .*daemon\.lock and does not listen"):
        find(settings, time.monotonic())


def test_only_another_version_is_worth_a_note() -> None:
    assert version_notices(7, VERSION) == version_notices(0, "") == ()
    (notice,) = version_notices(7, "0.0.0")
    assert f"(pid 7) is version 0.0.0, this is {VERSION}. " in notice


def test_no_client_reads_the_package_s_metadata_to_know_its_version() -> None:
    code = "import sys, supervisor.clients.start; sys.exit('importlib.metadata' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=HANG_GUARD, cwd=CODE)
