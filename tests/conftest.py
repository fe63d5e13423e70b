import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import forked
from tests.supervisor.command import Strongroom


def pytest_configure() -> None:
    """Ctrl-C reaches what the tests start, also where a shell in the background started them, which ignores it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def _forking() -> Iterator[None]:
    """What forks processes for tests ends with them."""
    yield
    forked.close()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """What STRONGROOM_HOME names; not made yet."""
    return tmp_path / "home"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The directory that tools work on, with a note in it."""
    folder = tmp_path / "root"
    folder.mkdir()
    (folder / "a.txt").write_text("hello\n")
    return folder


@pytest.fixture
def umask_000() -> Iterator[None]:
    """Nothing is kept from others unless somebody says so."""
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.fixture
def strongroom(home: Path, tmp_path: Path) -> Strongroom:
    """The command line, in `tmp_path`, with a home and nothing else of its own, in processes that are forked."""
    return forked.ForkedStrongroom(home, tmp_path)
