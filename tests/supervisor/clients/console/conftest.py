from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.supervisor.clients.console.fake_daemon import FakeDaemon
from tests.supervisor.clients.console.terminals import ENTER, Parent, Terminal


@pytest.fixture(scope="session")
def parent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Parent]:
    with Parent(tmp_path_factory.mktemp("parent")) as process:
        yield process


@pytest.fixture
def daemon(home: Path, root: Path) -> Iterator[FakeDaemon]:
    with FakeDaemon(home, root) as fake:
        yield fake


@pytest.fixture
def terminal(parent: Parent, home: Path, root: Path, daemon: FakeDaemon) -> Iterator[Callable[..., Terminal]]:
    """Open a console on a terminal, ready for a line."""
    with ExitStack() as stack:

        def opened(columns: int = 80, rows: int = 24, **options: Any) -> Terminal:
            console = stack.enter_context(Terminal(parent, home, root.parent, columns, rows, **options))
            console.until(lambda screen: "Input" in screen and ">" in screen)
            return console

        yield opened


@pytest.fixture
def console(terminal: Callable[..., Terminal], daemon: FakeDaemon) -> Terminal:
    """A console in a turn that the test plays, begun with the line `go`."""
    console = terminal()
    console.type("go" + ENTER)
    assert daemon.prompt() == "go"
    return console


@pytest.fixture
def held(parent: Parent, home: Path, root: Path, daemon: FakeDaemon) -> Iterator[Terminal]:
    """A console whose session is not open until `daemon.release`."""
    daemon.hold = True
    with Terminal(parent, home, root.parent) as console:
        console.until(lambda screen: "Connecting" in screen and ">" in screen)
        yield console
