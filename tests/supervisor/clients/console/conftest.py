from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.supervisor.clients.console.fake_daemon import FakeDaemon
from tests.supervisor.clients.console.terminals import Terminal


@pytest.fixture
def daemon(home: Path, root: Path) -> Iterator[FakeDaemon]:
    with FakeDaemon(home, root) as fake:
        yield fake


@pytest.fixture
def terminal(home: Path, root: Path, daemon: FakeDaemon) -> Iterator[Callable[..., Terminal]]:
    """Open a console on a terminal, ready for a line."""
    with ExitStack() as stack:

        def opened(columns: int = 80, rows: int = 24, **options: Any) -> Terminal:
            console = stack.enter_context(Terminal(home, root.parent, columns, rows, **options))
            console.until(lambda screen: "Input" in screen and ">" in screen)
            return console

        yield opened
