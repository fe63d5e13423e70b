from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.daemon_process import DaemonProcess
from tests.supervisor.clients.shared import Guest, Shared


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
    home = place / "home"
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text("[profiles.vault]\nask = ['write_file']\n")
    with DaemonProcess(home, place) as process:
        yield process


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shared]:
    with Shared(tmp_path_factory.mktemp("shared")) as daemon:
        yield daemon


@pytest.fixture
def guest(shared: Shared, tmp_path: Path) -> Guest:
    """The command line, in `tmp_path`, where a daemon runs: for whatever needs no home of its own."""
    return Guest(shared, tmp_path)
