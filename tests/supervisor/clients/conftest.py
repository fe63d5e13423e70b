from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.daemon_process import DaemonProcess
from tests.messages_server import MessagesServer
from tests.supervisor.clients.shared import Guest


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a vault in it, for the tests of a module."""
    folder = tmp_path_factory.mktemp("place")
    (folder / "vault").mkdir()
    (folder / "vault" / "a.txt").write_text("hello\n")
    return folder


@pytest.fixture(scope="module")
def daemon(place: Path) -> Iterator[DaemonProcess]:
    """A daemon that writes are asked about, for the tests of a module."""
    process = DaemonProcess(place / "home", place)
    process.configure("[profiles.vault]\nask = ['write_file']\n")
    with process:
        yield process


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[DaemonProcess, MessagesServer]]:
    folder = tmp_path_factory.mktemp("shared")
    with MessagesServer() as server, DaemonProcess(folder / "home", folder, ANTHROPIC_BASE_URL=server.url) as daemon:
        yield daemon, server


@pytest.fixture
def guest(shared: tuple[DaemonProcess, MessagesServer], tmp_path: Path) -> Guest:
    """The command line, in `tmp_path`, where a daemon runs: for whatever needs no home of its own."""
    return Guest(*shared, tmp_path)
