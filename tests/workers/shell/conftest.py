import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from supervisor.categories.shell import ShellConfig
from supervisor.categories.shown_places import HiddenPlaces
from supervisor.categories.toolchains import find_toolchains
from tests.doors import shared_workers
from tests.hostile_worker import hostile_command
from tests.raw_worker import RawWorker, open_worker
from workers.changes.effects import Effects
from workers.shell.shell_inputs import ShellInputs
from workers.wire import messages

Open = Callable[..., AbstractContextManager[RawWorker]]
Hostile = Callable[..., RawWorker]

LIMITS = messages.Limits(memory_mb=512, processes=300, open_files=1024, file_mb=64)


def inputs(**given: Any) -> ShellInputs:
    """Return what the supervisor would give a shell worker, but for what is `given`."""
    found = find_toolchains(("known",), HiddenPlaces(os.path.expanduser("~"), ()))
    usual = ShellInputs(ShellConfig().programs, found.shown, found.path, timeout_s=20.0, disk_mb=64)
    return msgspec.structs.replace(usual, **given)


def open_shell(root: Path, limits: messages.Limits = LIMITS, **given: Any) -> AbstractContextManager[RawWorker]:
    """Start a shell worker; `given` is of `open_worker`, or inputs."""
    of_inputs = {name: given.pop(name) for name in tuple(given) if name in ShellInputs.__struct_fields__}
    return open_worker(root, category="shell", limits=limits, inputs=inputs(**of_inputs), **given)


@pytest.fixture(scope="session")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The root of every shared worker."""
    root = tmp_path_factory.mktemp("shell") / "project"
    root.mkdir()
    (root / "a.txt").write_text("alpha\n")
    return root


@pytest.fixture(scope="session")
def worker(project: Path) -> Iterator[RawWorker]:
    """A shared worker, for commands that leave nothing."""
    with open_shell(project) as opened:
        assert isinstance(opened.ready, messages.Ready), opened.ready
        yield opened


@pytest.fixture(scope="session")
def hostile(project: Path) -> Iterator[Hostile]:
    """Return the shared worker whose commands, or which itself, lacks the given locks."""
    yield from shared_workers(lambda *removed: open_shell(project, command=hostile_command(*removed, category="shell")))


def shell(worker: RawWorker, command: str, **more: Any) -> dict[str, Any]:
    """Run a command line, commit what it changed, and return the result; `more` are fields of the call."""
    answer = worker.done("run_cmd", {"command": command}, **more)
    result: dict[str, Any] = msgspec.json.decode(answer.content)
    return result


def propose(worker: RawWorker, command: str, **more: Any) -> messages.Up | None:
    """Run a command line up to what it proposes; `more` are fields of the call."""
    return worker.propose("run_cmd", {"command": command}, **more)


def effects_of(worker: RawWorker, command: str, **more: Any) -> Effects:
    """Return what a command line would change; nothing of it is kept."""
    proposed = propose(worker, command, **more)
    worker.decide(proposed, commit=False)
    assert isinstance(proposed, messages.Proposed)
    return proposed.effects


def write(file: Path, text: str, mode: int = 0o644) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    file.chmod(mode)


def python() -> str:
    """Return an interpreter of the system's, which commands can see, or skip."""
    for file in ("/usr/bin/python3", "/usr/local/bin/python3"):
        if os.access(file, os.X_OK):
            return file
    pytest.skip("no Python among the system's programs")
