"""A context on a small root, for tools called in this process: no confinement, the same code."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from workers.tool import ToolContext
from workers.tree.root import Root
from workers.wire.messages import Context

UMASK = 0o022


@pytest.fixture
def root(tmp_path: Path) -> Path:
    directory = tmp_path / "vault"
    directory.mkdir()
    return directory


@pytest.fixture
def context(root: Path) -> Iterator[ToolContext]:
    """As in a worker: the root is a descriptor, and the process's own umask is 0."""
    descriptor = os.open(root, os.O_PATH | os.O_DIRECTORY)
    previous = os.umask(0)
    yield ToolContext(Context(str(root)), Root(descriptor, UMASK))
    os.umask(previous)
    os.close(descriptor)
