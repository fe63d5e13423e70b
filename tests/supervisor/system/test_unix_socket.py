"""Unix sockets at paths of any length, and who is at the other end."""

import errno
import os
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
import trio

from supervisor.system import unix_socket

LENGTHS: Final = [90, 107, 108, 109, 200, 1000]


def path_of(length: int, folder: Path) -> Path:
    """Return a path of so many bytes, in a directory that is there."""
    while length - len(str(folder)) > 60:
        folder /= "d" * min(50, length - len(str(folder)) - 10)
    folder.mkdir(parents=True, exist_ok=True)
    return folder / ("s" * (length - len(str(folder)) - 1))


@pytest.fixture
def folder() -> Iterator[Path]:
    """A directory with a short name."""
    with tempfile.TemporaryDirectory(prefix="s", dir="/tmp") as name:
        yield Path(name)


def bound(path: Path, backlog: int = 8) -> socket.socket:
    server = socket.socket(socket.AF_UNIX)
    with unix_socket.address(str(path)) as name:
        server.bind(name)
    server.listen(backlog)
    return server


@pytest.mark.parametrize("length", LENGTHS)
def test_a_path_of_any_length_connects(folder: Path, length: int) -> None:
    path = path_of(length, folder)
    assert len(os.fsencode(path)) == length
    with bound(path) as server, unix_socket.connect(str(path)) as client:
        accepted, _ = server.accept()
        with accepted:
            client.sendall(b"hello")
            assert accepted.recv(9) == b"hello"


def test_a_long_relative_path_connects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = path_of(300, tmp_path)
    monkeypatch.chdir(tmp_path)
    with bound(path), unix_socket.connect(str(path.relative_to(tmp_path))):
        pass


def test_bytes_are_counted_and_not_characters(folder: Path) -> None:
    path = folder / ("é" * 20) / ("é" * 30)
    assert len(str(path)) < unix_socket.SUN_PATH < len(os.fsencode(path))
    path.parent.mkdir()
    with bound(path), unix_socket.connect(str(path)):
        pass


def test_a_name_that_is_itself_too_long_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="too long") as caught:
        unix_socket.connect(str(tmp_path / ("s" * 107)))
    assert caught.value.errno == errno.ENAMETOOLONG


def test_no_descriptor_stays_open(tmp_path: Path) -> None:
    path = path_of(300, tmp_path)
    before = os.listdir("/proc/self/fd")
    with bound(path), unix_socket.connect(str(path)) as client:
        assert client.getblocking()
        assert not client.get_inheritable()
    with pytest.raises(ConnectionRefusedError):
        unix_socket.connect(str(path))
    with pytest.raises(FileNotFoundError):
        unix_socket.connect(str(path.with_name("other" * 5)))
    with pytest.raises(FileNotFoundError):
        unix_socket.connect(str(path.parent / "nowhere" / "s"))
    assert os.listdir("/proc/self/fd") == before


def test_a_connection_that_does_not_wait_is_told_of_a_full_queue(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with bound(path, backlog=0), unix_socket.connect(str(path)), pytest.raises(BlockingIOError):
        unix_socket.connect(str(path), wait=False)


def test_both_ends_know_each_other(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with bound(path) as server, unix_socket.connect(str(path)) as client:
        accepted, _ = server.accept()
        with accepted:
            assert unix_socket.peer(accepted) == unix_socket.peer(client) == (os.getpid(), os.getuid(), os.getgid())


async def test_a_socket_of_trio_knows_its_other_end_too() -> None:
    ours, theirs = trio.socket.socketpair()
    with ours, theirs:
        assert unix_socket.peer(ours).pid == os.getpid()


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user")
def test_another_user_is_seen_as_what_he_is() -> None:
    pair = socket.socketpair()
    with pair[0], pair[1]:
        assert unix_socket.peer(pair[0]).uid == 0
    os.setegid(54321)
    os.seteuid(12345)
    try:
        pair = socket.socketpair()
    finally:
        os.seteuid(0)
        os.setegid(0)
    with pair[0], pair[1]:
        assert unix_socket.peer(pair[0])[1:] == (12345, 54321)
