from collections.abc import Iterator
from pathlib import Path

import pytest

from supervisor.clients.console import answer_guard, approval_queue
from tests.supervisor.clients.console.fake_daemon import FakeDaemon
from tests.supervisor.clients.tui.played_screen import QUICK


@pytest.fixture
def daemon(home: Path, root: Path) -> Iterator[FakeDaemon]:
    with FakeDaemon(home, root) as fake:
        yield fake


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A person who reads and types quicker than people do, so that tests need not wait for them."""
    for name, seconds in QUICK.items():
        monkeypatch.setattr(answer_guard, name, seconds)
        if name in vars(approval_queue):
            monkeypatch.setattr(approval_queue, name, seconds)
