"""The search tools on a small root, in this process: no confinement, the same code."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.workers.search.shared import RIPGREP
from workers.search.searcher import Searcher
from workers.tool import ToolContext
from workers.tree.root import Root
from workers.wire.messages import Context


@pytest.fixture
def root(tmp_path: Path) -> Path:
    directory = tmp_path / "root"
    directory.mkdir()
    return directory


@pytest.fixture
def context(root: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ToolContext]:
    """As in a worker, which stands in the root."""
    monkeypatch.chdir(root)
    descriptor = os.open(root, os.O_PATH | os.O_DIRECTORY)
    yield ToolContext(Context(str(root)), Root(descriptor, 0o022), engine=Searcher(RIPGREP, 2, 20.0))
    os.close(descriptor)
