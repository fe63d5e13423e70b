"""Finding a daemon that is just ending, mute, another home's or of another version; most of them are played here."""

import io
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

import msgspec
import pytest

from supervisor.acp import extensions, jsonrpc, schema
from supervisor.clients.connection.introduction import Patience, version_notices
from supervisor.clients.connection.link_events import LinkEvent, decline
from supervisor.clients.connection.start import ConnectedDaemon, connect, connect_or_private, find
from supervisor.config.settings import Settings, load
from supervisor.daemon.process.lock import hold
from supervisor.errors import ConfigError, DaemonLost, DaemonRefused
from supervisor.system import unix_socket
from supervisor.version import VERSION
from tests.daemon_process import Lines
from tests.supervisor.command import CODE, HANG_GUARD

ABOUT: Final = extensions.Daemon(pid=os.getpid(), version=VERSION, home="", model="", profile="vault")
STOPPING: Final = jsonrpc.fault(jsonrpc.INTERNAL_ERROR, "The daemon is stopping; connect again.", "stopping")
OTHER: Final = jsonrpc.fault(jsonrpc.INTERNAL_ERROR, "Something else.", "internal")


Deed = jsonrpc.ErrorObject | Literal["close", "serve", "mute"] | threading.Event
"""What a daemon does with a client: answer with an error, close at once, let it in, say nothing, or let it in late."""

Reach = Callable[..., ConnectedDaemon]
NO_PATIENCE: Final = Patience(0, 0)


class Played:
    """A daemon that does one deed for each client."""

    def __init__(self, server: socket.socket, deeds: Sequence[Deed]) -> None:
        self.deeds = list(deeds)
        self.about = ABOUT
        self._server = server

    def run(self) -> None:
        while self.deeds:
            connection, _ = self._server.accept()
            deed = self.deeds.pop(0)
            with Lines(connection) as client:
                if deed == "close":
                    continue
                asked = client.read()
                if isinstance(deed, jsonrpc.ErrorObject):
                    client.send(jsonrpc.failure(asked["id"], deed))
                    continue
                if deed == "mute":
                    client.line()
                    continue
                if isinstance(deed, threading.Event):
                    deed.wait(HANG_GUARD)
                introduction = schema.InitializeResult(
                    protocol_version=schema.VERSION,
                    agent_capabilities={},
                    agent_info=schema.Implementation(name="played", version=VERSION),
                    auth_methods=[],
                    meta={extensions.DAEMON: self.about},
                )
                client.send(jsonrpc.result(asked["id"], introduction))
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
        with unix_socket.address(str(settings.socket)) as name:
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
    heard: list[LinkEvent] = []
    with playing(settings, deed, deed, "serve"), reach(settings, heard.append, "test") as connected:
        assert connected.link.daemon == ABOUT
        assert not connected.private
    assert heard == []


def test_where_the_daemon_has_ended_another_is_started(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STRONGROOM_HOME", str(settings.home))
    with playing(settings, "close"), connect_or_private(settings, decline, "test") as connected:
        assert connected.private


def test_three_daemons_that_go_away_are_enough(settings: Settings) -> None:
    with playing(settings, "close", "close", "close", "serve"):
        with pytest.raises(DaemonLost):
            connect(settings, decline, "test")
        connect(settings, decline, "test").close()


def test_a_daemon_that_refuses_is_asked_once(settings: Settings) -> None:
    with playing(settings, OTHER) as played, pytest.raises(DaemonRefused, match="Something else"):
        connect(settings, decline, "test")
    assert played.deeds == []


@pytest.mark.parametrize("reach", [connect, connect_or_private])
def test_a_daemon_that_does_not_answer_is_given_up_with_what_to_do(
    settings: Settings, reach: Reach, capsys: pytest.CaptureFixture[str]
) -> None:
    words = rf"\(pid {os.getpid()}\) does not answer\. It may be very busy.*`kill -KILL {os.getpid()}`.*{settings.logs}"
    with playing(settings, "mute"), pytest.raises(DaemonLost, match=words):
        reach(settings, decline, "test", patience=NO_PATIENCE)
    assert capsys.readouterr().err == (
        f"note: The daemon (pid {os.getpid()}) does not answer. It may be stopped or busy; waiting for it.\n"
    )


class Told(io.StringIO):
    """Standard error, and an event: somebody was told something."""

    def __init__(self) -> None:
        super().__init__()
        self.event = threading.Event()

    def write(self, text: str, /) -> int:
        self.event.set()
        return super().write(text)


def test_a_daemon_that_answers_late_is_as_good_as_any(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    told = Told()
    monkeypatch.setattr(sys, "stderr", told)
    late = Patience(0, HANG_GUARD)
    with playing(settings, told.event), connect(settings, decline, "test", late) as connected:
        assert connected.link.daemon == ABOUT
    assert "does not answer" in told.getvalue()


def test_a_daemon_with_a_full_queue_is_not_waited_for_for_ever(settings: Settings) -> None:
    with (
        hold(settings) as lock,
        socket.socket(socket.AF_UNIX) as server,
        unix_socket.address(str(settings.socket)) as name,
    ):
        server.bind(name)
        server.listen(0)
        lock.publish(settings.socket)
        with unix_socket.connect(name), pytest.raises(DaemonLost, match="does not answer"):
            find(settings, time.monotonic())


def test_the_daemon_of_another_home_is_refused(settings: Settings) -> None:
    with playing(settings, "serve") as played:
        played.about = msgspec.structs.replace(ABOUT, home="/another")
        with pytest.raises(ConfigError, match=rf"of the home /another, and this is {settings.home}\. .* --socket"):
            connect(settings, decline, "test").close()


def test_a_home_has_other_names_too(settings: Settings, tmp_path: Path) -> None:
    (tmp_path / "alias").symlink_to(settings.home)
    with playing(settings, "serve") as played:
        played.about = msgspec.structs.replace(ABOUT, home=str(tmp_path / "alias"))
        connect(settings, decline, "test").close()


def test_a_daemon_that_stops_for_long_is_told_of_with_what_to_do(settings: Settings) -> None:
    with hold(settings) as lock:
        lock.publish(settings.socket)
        lock.retire()
        with pytest.raises(
            DaemonLost, match=rf"\(pid {os.getpid()}\) .* stopping, .* still running.*`kill {os.getpid()}`"
        ):
            find(settings, time.monotonic())


def nothing(_path: Path) -> None:
    pass


def a_file(path: Path) -> None:
    path.write_text("precious")


def a_dead_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server, unix_socket.address(str(path)) as name:
        server.bind(name)


TAKEN_AWAY: Final = [(nothing, "is gone"), (a_file, "is not its socket any more"), (a_dead_socket, "nobody listens at")]


@pytest.mark.parametrize(("plant", "what"), TAKEN_AWAY)
def test_of_a_daemon_whose_socket_was_taken_away_that_is_told(
    settings: Settings, plant: Callable[[Path], None], what: str
) -> None:
    with hold(settings) as lock:
        lock.publish(settings.socket)
        plant(settings.socket)
        with pytest.raises(DaemonLost, match=rf"\(pid {os.getpid()}\) runs, but .*{what}.* --stop`"):
            find(settings, time.monotonic())


@pytest.mark.parametrize("text", ["", "garbage", '{"pid": 1, "version": "x", "socket": "/nowhere"}'])
def test_where_the_lock_s_file_is_of_no_use_the_kernel_says_who_holds_it(settings: Settings, text: str) -> None:
    with hold(settings) as lock:
        lock.publish(settings.socket)
        settings.lock.write_text(text)
        with pytest.raises(DaemonLost, match=r"does not say who it is") as caught:
            find(settings, time.monotonic())
    assert f"process {os.getpid()} holds the lock; `kill {os.getpid()}` ends it" in str(caught.value)
    assert "kill 1`" not in str(caught.value)


def test_only_another_version_is_worth_a_note() -> None:
    assert version_notices(7, VERSION) == version_notices(0, "") == ()
    (notice,) = version_notices(7, "0.0.0")
    assert f"(pid 7) is version 0.0.0, this is {VERSION}. " in notice


def test_no_client_reads_the_package_s_metadata_to_know_its_version() -> None:
    code = "import sys, supervisor.clients.connection.start; sys.exit('importlib.metadata' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=HANG_GUARD, cwd=CODE)
