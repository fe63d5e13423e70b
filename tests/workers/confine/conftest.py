from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.doors import shared_workers
from tests.hostile_worker import hostile_command
from tests.raw_worker import RawWorker, open_worker
from workers.confine.syscalls import NUMBERS

Hostile = Callable[..., RawWorker]


@pytest.fixture(scope="session")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The root of every shared worker."""
    root = tmp_path_factory.mktemp("confine") / "room"
    root.mkdir()
    return root


@pytest.fixture(scope="session")
def hostile(root: Path) -> Iterator[Hostile]:
    """Return the shared worker that lacks the given locks."""
    yield from shared_workers(lambda *removed, **more: open_worker(root, command=hostile_command(*removed), **more))


@pytest.fixture(params=NUMBERS)
def machine(request: pytest.FixtureRequest) -> str:
    """Each architecture that there is a table of system calls for."""
    return str(request.param)


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder outside every root, with a secret in it."""
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "secret").write_text("swordfish")
    return folder
