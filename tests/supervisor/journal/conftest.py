"""The path of a journal that is not there yet, and a journal that is made there."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from supervisor.journal.journal import Journal, open_journal


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.db"


@pytest.fixture
def journal(path: Path) -> Iterator[Journal]:
    with open_journal(path) as journal:
        yield journal
