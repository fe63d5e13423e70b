from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.authority import Authority
from tests.daemon_process import scripted
from tests.supervisor.histories import DONE, READ
from tests.web_world import World


@pytest.fixture
def model(tmp_path: Path) -> str:
    """A model that reads a file and says so."""
    return scripted(tmp_path / "script.jsonl", READ, DONE)


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with World(Authority()) as world:
        yield world
