"""Finding a daemon that is just ending, mute, another home's or of another version; most of them are played here."""

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final, Literal

import msgspec
import pytest

from supervisor.acp import extensions, jsonrpc, schema
from supervisor.clients.connection import spawn
from supervisor.clients.connection import start as module
from supervisor.clients.connection.link import Link
from supervisor.clients.connection.link_events import LinkEvent, decline
from supervisor.clients.connection.patience import Patience, version_notices
from supervisor.clients.connection.spawn import (
    Starting,
    StartingBackground,
    StartingPrivate,
    background_if_none_runs,
    private_if_none_runs,
)
from supervisor.clients.connection.start import ConnectedDaemon, connect, connect_or_private, connect_running, find
from supervisor.clients.connection.stop import stop
from supervisor.config.settings import Settings
from supervisor.daemon.process.lock import Lock, hold
from supervisor.errors import ConfigError, DaemonLost, DaemonRefused
from supervisor.system import unix_socket
from supervisor.version import VERSION
from tests.daemon_process import Lines
from tests.supervisor.clients.shared import Errors
from tests.supervisor.command import CODE, HANG_GUARD

PID: Final = os.getpid()
ABOUT: Final = extensions.Daemon(pid=PID, version=VERSION, home="", model="", profile="vault")
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
                while client.line():
                    pass  # until it leaves


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


def test_another_daemon_is_started_in_place_of_one_that_ended(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STRONGROOM_HOME", str(settings.home))
    with playing(settings, "close"), connect_or_private(settings, decline, "test") as connected:
        assert connected.private


@pytest.mark.parametrize("reach", [connect, connect_or_private])
def test_a_daemon_that_starts_already_is_the_one_that_is_connected_to(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, reach: Reach
) -> None:
    monkeypatch.setenv("STRONGROOM_HOME", str(settings.home))
    private = reach is connect_or_private
    starting = private_if_none_runs(settings) if private else background_if_none_runs(settings)
    with reach(settings, decline, "test", starting=starting) as connected:
        assert connected.private == private
        assert connected.link.daemon is not None
        if isinstance(starting, StartingPrivate):
            assert connected.link.daemon.pid == starting.process.pid
        else:
            assert stop(settings) == connected.link.daemon.pid


def test_a_relative_home_is_the_same_in_the_daemon(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(settings.home.parent)
    monkeypatch.setenv("STRONGROOM_HOME", settings.home.name)
    with connect_or_private(settings, decline, "test") as connected:
        assert connected.link.daemon is not None
        assert connected.link.daemon.home == str(settings.home)


def test_a_private_daemon_that_stays_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_STOP_TIMEOUT", 0.01)
    ours, theirs = socket.socketpair()
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    ConnectedDaemon(Link(ours, decline), process).close()
    assert process.returncode == -signal.SIGKILL
    theirs.close()


def test_a_daemon_that_cannot_be_begun_leaves_nothing_open(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    before = sorted(os.listdir("/proc/self/fd"))
    monkeypatch.setattr(spawn, "_command", lambda: ("/nonexistent",))
    with pytest.raises(ConfigError, match="The daemon cannot be started: No such file"):
        spawn.begin_background(settings)
    assert sorted(os.listdir("/proc/self/fd")) == before


def test_no_daemon_is_begun_where_one_runs(settings: Settings) -> None:
    with playing(settings, "close"):
        assert private_if_none_runs(settings) is None
        assert background_if_none_runs(settings) is None
        with pytest.raises(DaemonLost):
            connect_running(settings, decline, "test", NO_PATIENCE)


@pytest.fixture(params=[True, False], ids=["private", "background"])
def early(request: pytest.FixtureRequest, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[Starting]:
    """A daemon that was begun, and not let go on."""
    monkeypatch.setenv("STRONGROOM_HOME", str(settings.home))
    settings.logs.mkdir(mode=0o700, parents=True)
    (settings.logs / "daemon.err").touch(0o600)
    begun = spawn.begin_early(private=request.param)
    assert begun is not None
    yield begun
    with suppress(OSError):
        spawn.forget(begun)


def test_a_daemon_that_is_begun_early_does_nothing_until_it_is_let_go_on(early: Starting, settings: Settings) -> None:
    before = sorted(settings.home.rglob("*"))
    assert early.process.stdin
    early.process.stdin.close()  # as a client's end does
    assert early.process.wait(HANG_GUARD) == 0
    if isinstance(early, StartingBackground):
        assert os.read(early.word, 1) == b""
    else:
        assert early.connection.recv(1) == b""
    assert sorted(settings.home.rglob("*")) == before


def test_a_daemon_that_is_begun_early_is_the_one_that_is_connected_to(early: Starting, settings: Settings) -> None:
    private = isinstance(early, StartingPrivate)
    starting = private_if_none_runs(settings, early) if private else background_if_none_runs(settings, early)
    assert starting is early
    reach: Reach = connect_or_private if private else connect
    with reach(settings, decline, "test", starting=starting) as connected:
        assert connected.private == private
        assert connected.link.daemon is not None
        if private:
            assert connected.link.daemon.pid == early.process.pid
        else:
            assert stop(settings) == connected.link.daemon.pid


def test_a_daemon_that_is_begun_early_is_ended_where_another_was_faster(early: Starting, settings: Settings) -> None:
    with playing(settings, "close"):
        assert private_if_none_runs(settings, early) is None
        assert early.process.returncode is not None
        with pytest.raises(DaemonLost):
            connect_running(settings, decline, "test", NO_PATIENCE)


@pytest.mark.parametrize("private", [True, False])
def test_none_is_begun_early_where_one_runs_or_its_errors_go_nowhere(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, *, private: bool
) -> None:
    monkeypatch.setenv("STRONGROOM_HOME", str(settings.home))
    if not private:
        assert spawn.begin_early(private=False) is None  # a home that is to be made when it is known what for
        assert not settings.logs.exists()
        settings.logs.mkdir(mode=0o700, parents=True)
        (settings.logs / "daemon.err").symlink_to(os.devnull)
        assert spawn.begin_early(private=False) is None
    with playing(settings, "close"):
        assert spawn.begin_early(private=private) is None
        with pytest.raises(DaemonLost):
            connect_running(settings, decline, "test", NO_PATIENCE)


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
    words = rf"\(pid {PID}\) does not answer\. It may be very busy.*`kill -KILL {PID}`.*{settings.logs}"
    with playing(settings, "mute"), pytest.raises(DaemonLost, match=words):
        reach(settings, decline, "test", patience=NO_PATIENCE)
    assert capsys.readouterr().err == (
        f"note: The daemon (pid {PID}) does not answer. It may be stopped or busy; waiting for it.\n"
    )


def test_a_daemon_that_answers_late_is_as_good_as_any(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    event = threading.Event()
    told = Errors(event.set)
    monkeypatch.setattr(sys, "stderr", told)
    late = Patience(0, HANG_GUARD)
    with playing(settings, event), connect(settings, decline, "test", late) as connected:
        assert connected.link.daemon == ABOUT
    assert "does not answer" in told.getvalue()


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


# not to be found ---------------------------------------------------------------------------------------------


@pytest.fixture
def published(settings: Settings) -> Iterator[Lock]:
    """The lock, held for a daemon that says where it listens, and does not."""
    with hold(settings) as lock:
        lock.publish(settings.socket)
        yield lock


def why(settings: Settings) -> str:
    """Return why the daemon is not found."""
    with pytest.raises(DaemonLost) as caught:
        find(settings, time.monotonic())
    return str(caught.value)


def test_a_daemon_with_a_full_queue_is_not_waited_for_for_ever(settings: Settings, published: Lock) -> None:
    with socket.socket(socket.AF_UNIX) as server, unix_socket.address(str(settings.socket)) as name:
        server.bind(name)
        server.listen(0)
        with unix_socket.connect(name):
            assert "does not answer" in why(settings)


def test_a_daemon_that_stops_for_long_is_told_of_with_what_to_do(settings: Settings, published: Lock) -> None:
    published.retire()
    assert re.search(rf"\(pid {PID}\) .* stopping, .* still running.*`kill {PID}`", why(settings))


TAKEN_AWAY: Final = {
    "import sys": "is gone",
    "import sys; open(sys.argv[1], 'w').write('precious')": "is not its socket any more",
    "import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])": "nobody listens at",
}


@pytest.mark.parametrize(("deed", "what"), TAKEN_AWAY.items())
def test_of_a_daemon_whose_socket_was_taken_away_that_is_told(
    settings: Settings, published: Lock, deed: str, what: str
) -> None:
    subprocess.run([sys.executable, "-c", deed, settings.socket.name], cwd=settings.socket.parent, check=True)
    assert re.search(rf"\(pid {PID}\) runs, but .*{what}.* --stop`", why(settings))


@pytest.mark.parametrize("text", ["", "garbage", '{"pid": 1, "version": "x", "socket": "/nowhere"}'])
def test_the_kernel_names_the_lock_s_holder_if_its_file_is_of_no_use(
    settings: Settings, published: Lock, text: str
) -> None:
    settings.lock.write_text(text)
    said = why(settings)
    assert "does not say who it is" in said
    assert f"process {PID} holds the lock; `kill {PID}` ends it" in said
    assert "kill 1`" not in said


def test_only_another_version_is_worth_a_note() -> None:
    assert version_notices(7, VERSION) == version_notices(0, "") == ()
    (notice,) = version_notices(7, "0.0.0")
    assert f"(pid 7) is version 0.0.0, this is {VERSION}. " in notice


def test_no_client_reads_the_package_s_metadata_to_know_its_version() -> None:
    code = "import sys, supervisor.clients.connection.start; sys.exit('importlib.metadata' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=HANG_GUARD, cwd=CODE)
