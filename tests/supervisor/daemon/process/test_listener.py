"""The daemon's socket: whole or not there, for its owner alone, and nothing of others is removed."""

import fcntl
import os
import socket
import stat
import threading
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest
import trio

from supervisor.daemon.process.listener import listening
from supervisor.errors import ConfigError, DaemonRuns
from supervisor.system import unix_socket
from supervisor.system.safe_files import own_directory
from tests.supervisor.command import HANG_GUARD


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the daemon shall listen; its directory is not made yet."""
    return tmp_path / "run" / "daemon.sock"


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def answers(path: Path, server: socket.socket) -> bool:
    """Say whether a connection to `path` arrives at `server`."""
    with unix_socket.connect(str(path), wait=False) as client:
        accepted, _ = server.accept()
        with accepted:
            accepted.sendall(b"it is me")
        return client.recv(99) == b"it is me"


def stale(path: Path) -> None:
    """Leave a socket as a killed daemon does."""
    path.parent.mkdir(mode=0o700, exist_ok=True)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()


async def test_clients_reach_what_trio_serves(path: Path) -> None:
    async def echo(stream: trio.SocketStream) -> None:
        async for some in stream:
            await stream.send_all(some)

    with trio.fail_after(HANG_GUARD), listening(path) as place:
        async with trio.open_nursery() as nursery:
            listener = trio.SocketListener(trio.socket.from_stdlib_socket(place.socket))
            nursery.start_soon(trio.serve_listeners, echo, [listener])
            async with await trio.open_unix_socket(path) as stream:
                await stream.send_all(b"hello")
                assert await stream.receive_some() == b"hello"
            nursery.cancel_scope.cancel()
    assert not path.exists()


def test_hundreds_of_clients_connect_at_once_before_any_is_accepted(path: Path) -> None:
    with listening(path), ExitStack() as clients:
        for _ in range(400):
            clients.enter_context(unix_socket.connect(str(path), wait=False))


def test_the_socket_and_its_directory_are_for_their_owner_alone(path: Path, umask_000: None) -> None:
    with listening(path):
        assert (mode(path), mode(path.parent)) == (0o600, 0o700)


def test_directories_above_are_no_more_open(tmp_path: Path, umask_000: None) -> None:
    with listening(tmp_path / "a/b/c/daemon.sock"):
        assert [mode(tmp_path / each) for each in ("a", "a/b", "a/b/c")] == [0o700] * 3


def test_it_can_be_used_whatever_the_umask(path: Path) -> None:
    own_directory(path.parent, "")
    before = os.umask(0o777)
    try:
        with listening(path) as place:
            assert mode(path) == 0o600
            assert answers(path, place.socket)
    finally:
        os.umask(before)


@pytest.mark.parametrize("length", [107, 108, 250, 900])
def test_a_path_may_be_long(tmp_path: Path, length: int) -> None:
    folder = tmp_path
    while length - len(str(folder)) > 70:
        folder /= "d" * min(60, length - len(str(folder)) - 20)
    path = folder / ("s" * (length - len(str(folder)) - 1))
    assert len(str(path)) == length
    with listening(path) as place:
        assert answers(path, place.socket)
        assert os.listdir(folder) == [path.name]
    assert os.listdir(folder) == []


def test_a_relative_path_is_one_too(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own_directory(path.parent, "")
    monkeypatch.chdir(path.parent)
    with listening(Path("daemon.sock")) as place:
        with pytest.raises(DaemonRuns, match=f"at {path}"), listening(Path("daemon.sock")):
            pass
        place.socket.accept()[0].close()  # who asked
        monkeypatch.chdir(tmp_path)
        assert answers(path, place.socket)
    assert not path.exists()


def test_nothing_stays_behind(path: Path) -> None:
    before = os.listdir("/proc/self/fd")
    with listening(path) as place:
        assert os.listdir(path.parent) == ["daemon.sock"]
        assert not place.socket.get_inheritable()
    assert os.listdir(path.parent) == []
    assert os.listdir("/proc/self/fd") == before


def test_a_server_that_was_closed_before_leaves_no_socket_either(path: Path) -> None:
    with listening(path) as place:
        place.socket.close()
    assert os.listdir(path.parent) == []


# what is there already -----------------------------------------------------------------------------------------


def test_the_socket_of_a_killed_daemon_is_replaced(path: Path) -> None:
    stale(path)
    with listening(path) as place:
        assert answers(path, place.socket)
        assert os.listdir(path.parent) == ["daemon.sock"]


def test_the_socket_of_a_daemon_killed_just_there_is_cleared_away(path: Path) -> None:
    stale(path.with_name(".daemon.sock.new"))
    with listening(path) as place:
        assert answers(path, place.socket)
        assert os.listdir(path.parent) == ["daemon.sock"]


def test_a_socket_that_somebody_listens_at_is_left_alone(path: Path) -> None:
    with listening(path) as place:
        with pytest.raises(DaemonRuns, match=rf"\(pid {os.getpid()}\) at {path}") as caught, listening(path):
            pass
        assert (caught.value.pid, caught.value.socket) == (os.getpid(), str(path))
        place.socket.accept()[0].close()  # who asked
        assert answers(path, place.socket)


def test_somebody_who_is_overwhelmed_listens_all_the_same(path: Path) -> None:
    own_directory(path.parent, "")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen(0)
        with unix_socket.connect(str(path)), pytest.raises(DaemonRuns, match=f"runs at {path}"), listening(path):
            pass


def test_of_many_at_once_one_listens(path: Path) -> None:
    stale(path)
    together, over = threading.Barrier(8), threading.Barrier(8)
    ends: list[str] = []

    def contend() -> None:
        together.wait(HANG_GUARD)
        with ExitStack() as stack:
            try:
                stack.enter_context(listening(path))
                ends.append("listens")
            except DaemonRuns:
                ends.append("refused")
            over.wait(HANG_GUARD)

    threads = [threading.Thread(target=contend) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(ends) == ["listens"] + ["refused"] * 7


def test_nobody_else_looks_while_a_socket_is_replaced(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stale(path)
    connect, looked = unix_socket.connect, []

    def look(name: str, *, wait: bool) -> socket.socket:
        looked.append(name)
        with pytest.raises(BlockingIOError):
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return connect(name, wait=wait)

    monkeypatch.setattr(unix_socket, "connect", look)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        with listening(path):
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)  # and afterwards everybody may
            fcntl.flock(folder, fcntl.LOCK_UN)
    finally:
        os.close(folder)
    assert looked == [str(path)]


def test_a_file_that_has_taken_its_place_meanwhile_is_not_removed(path: Path) -> None:
    with listening(path) as place:
        path.unlink()
        place.socket.close()  # only its descriptor keeps the file's number from being given again
        with socket.socket(socket.AF_UNIX) as other:
            other.bind(str(path))
    assert stat.S_ISSOCK(path.stat().st_mode)


def a_link_to_itself(path: Path) -> None:
    path.with_name("moved").rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


def nothing(_path: Path) -> None:
    pass


@pytest.mark.parametrize("plant", [nothing, stale, a_link_to_itself])
def test_it_knows_whether_its_name_leads_to_it(path: Path, plant: Callable[[Path], None]) -> None:
    with listening(path) as place:
        assert place.is_named()
        path.rename(path.with_name("moved"))
        plant(path)
        assert not place.is_named()


def a_link_to_a_socket(path: Path) -> None:
    stale(path.with_name("other.sock"))
    path.symlink_to("other.sock")


def a_link_to_a_file(path: Path) -> None:
    path.with_name("notes").write_text("precious")
    path.symlink_to("notes")


def a_link_to_nothing(path: Path) -> None:
    path.symlink_to("nowhere")


def a_file(path: Path) -> None:
    path.write_text("precious")


OBSTACLES: Final = [a_link_to_a_socket, a_link_to_a_file, a_link_to_nothing, a_file, Path.mkdir, os.mkfifo]


@pytest.mark.parametrize("name", ["daemon.sock", ".daemon.sock.new"])
@pytest.mark.parametrize("plant", OBSTACLES)
def test_a_file_that_is_no_socket_is_named_and_not_touched(
    path: Path, plant: Callable[[Path], None], name: str
) -> None:
    path.parent.mkdir(mode=0o700)
    plant(path.with_name(name))
    before = {file.name: file.lstat() for file in path.parent.iterdir()}
    with pytest.raises(ConfigError, match=f"{path.with_name(name)} is (no socket|a symbolic link)"), listening(path):
        pass
    assert {file.name: file.lstat() for file in path.parent.iterdir()} == before


# the directory -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bits", [0o720, 0o702, 0o777, 0o1777, 0o755, 0o701])
def test_a_directory_that_is_open_to_others_is_refused_and_left_so(path: Path, bits: int) -> None:
    path.parent.mkdir()
    path.parent.chmod(bits)
    with pytest.raises(ConfigError, match=f"chmod 700 {path.parent}"), listening(path):
        pass
    assert path.parent.stat().st_mode & 0o7777 == bits
    assert os.listdir(path.parent) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="gives a directory away")
def test_a_directory_of_another_user_is_refused(path: Path) -> None:
    path.parent.mkdir(mode=0o700)
    os.chown(path.parent, 12345, 12345)
    with pytest.raises(ConfigError, match=r"belongs to another user\. Choose a socket in a directory"), listening(path):
        pass


def test_a_directory_that_is_a_file_is_refused(path: Path) -> None:
    path.parent.write_text("")
    with pytest.raises(ConfigError, match="cannot be used"), listening(path):
        pass


@pytest.mark.parametrize("name", ["s" * 107, "s" * 300])
def test_a_name_that_no_socket_can_have_is_refused(path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="cannot be made"), listening(path.with_name(name)):
        pass
    assert os.listdir(path.parent) == []
