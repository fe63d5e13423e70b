from pathlib import Path

import pytest

from tests.forked import ForkedStrongroom
from tests.supervisor.command import Strongroom


@pytest.fixture
def strongroom(home: Path, tmp_path: Path) -> Strongroom:
    """As everywhere, in processes that are forked: there are many, and what they say is the point."""
    return ForkedStrongroom(home, tmp_path)
