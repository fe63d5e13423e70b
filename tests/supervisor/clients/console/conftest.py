from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.supervisor.clients.console.fake_daemon import FakeDaemon
from tests.supervisor.clients.console.terminals import ENTER, Terminal


@pytest.fixture
def daemon(home: Path, root: Path) -> Iterator[FakeDaemon]:
    with FakeDaemon(home, root) as fake:
        yield fake


@pytest.fixture
def terminal(home: Path, root: Path, daemon: FakeDaemon) -> Iterator[Callable[..., Terminal]]:
    """Open a console on a terminal, ready for a line."""
    with ExitStack() as stack:

        def opened(*options: str, **more: Any) -> Terminal:
            console = stack.enter_context(Terminal(home, root.parent, *options, **more))
            console.until(lambda screen: "Ready" in screen and ">" in screen)
            return console

        yield opened


@pytest.fixture
def ready(terminal: Callable[..., Terminal]) -> Terminal:
    """A console where nothing was typed yet."""
    return terminal()


@pytest.fixture
def console(ready: Terminal, daemon: FakeDaemon) -> Terminal:
    """A console in a turn that the test plays, begun with the line `go`."""
    ready.type("go" + ENTER)
    assert daemon.prompt() == "go"
    ready.until("Thinking")  # else what is waited for next may be what was there before
    return ready


@pytest.fixture
def held(home: Path, root: Path, daemon: FakeDaemon) -> Iterator[Terminal]:
    """A console whose session is not open until `daemon.release`."""
    daemon.hold = True
    with Terminal(home, root.parent) as console:
        console.until(lambda screen: "Connecting" in screen and ">" in screen)
        yield console
