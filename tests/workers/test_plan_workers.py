"""Workers that only rehearse: whatever they are asked, by whomever, no byte and no time of the root changes."""

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from supervisor.categories.restore import UndoConfig
from supervisor.undo.packs import PackStore
from tests.hostile_worker import hostile_command
from tests.raw_worker import RawWorker, open_worker, receive, send
from tests.workers.shell.conftest import LIMITS, inputs
from workers.changes.effects import NodeState
from workers.restore.restore_inputs import RestoreInputs
from workers.wire import messages

Seen = dict[str, tuple[object, ...]]
FILES = messages.Limits()

RESULTS = {
    ("files", "write_file"): ({"path": "a.txt", "content": "new"}, ""),
    ("files", "edit_file"): ({"path": "a.txt", "old": "alpha", "new": "beta"}, ""),
    ("shell", "run_cmd"): ({"command": "echo new > a.txt; rm b.txt; mkdir d; cat a.txt"}, '"stdout":"new\\n"'),
    ("shell", "exec_shell"): ({"command": "touch", "args": ["c.txt"]}, '"exit_code":0'),
    ("restore", "undo"): ({"pack": "PACK", "force": True}, ""),
}
"""Calls, and what is in the result of each whose rehearsal is all that there is."""


def seen(root: Path) -> Seen:
    """Return all that can be said of a tree, times included, but for the time of the last look."""
    found: Seen = {}
    for directory, names, files in os.walk(root):
        for path in (directory, *(os.path.join(directory, name) for name in (*names, *files))):
            status = os.lstat(path)
            content = Path(path).read_bytes() if stat.S_ISREG(status.st_mode) else b""
            found[path] = (status.st_mode, status.st_ino, status.st_mtime_ns, status.st_ctime_ns, content)
    return found


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = tmp_path / "root"
    made.mkdir()
    for name in ("a.txt", "b.txt"):
        (made / name).write_text("alpha\n")
    return made


@pytest.fixture
def pack(tmp_path: Path) -> str:
    """What a call that changed a.txt would have had kept."""
    with PackStore(tmp_path / "kept", UndoConfig()).begin("session", "call") as forged:
        before = NodeState("file", 0o644, 5)
        forged.add(messages.Original(1, "a.txt", before, NodeState("file", 0o644, 6), kept=True))
        forged.add(messages.Piece(1, b"omega"))
        return forged.finish()


@pytest.fixture
def planning(tmp_path: Path, root: Path) -> Callable[[str], Any]:
    given = {
        "files": (messages.Inputs(), FILES),
        "shell": (inputs(), LIMITS),
        "restore": (RestoreInputs(str(tmp_path / "kept"), str(tmp_path / "scratch")), FILES),
    }

    def start(category: str) -> Any:
        with_inputs, limits = given[category]
        return open_worker(root, category=category, writable=False, inputs=with_inputs, limits=limits, plan=True)

    return start


def proposed(worker: RawWorker, tool: str, pack: str) -> messages.Proposed:
    arguments = msgspec.json.encode(RESULTS[next(key for key in RESULTS if key[1] == tool)][0])
    answer = worker.propose(tool, arguments.replace(b"PACK", pack.encode()))
    assert isinstance(answer, messages.Proposed), answer
    return answer


@pytest.mark.parametrize(("category", "tool"), RESULTS)
def test_what_would_change_is_told_and_nothing_is(
    planning: Callable[[str], Any], root: Path, pack: str, category: str, tool: str
) -> None:
    before = seen(root)
    with planning(category) as worker:
        for _ in range(2):  # the next call is served as well, and finds the root as it was
            rehearsed = proposed(worker, tool, pack)
            assert rehearsed.effects.changes
            ended = worker.decide(rehearsed, commit=False)
            assert isinstance(ended, messages.Done)
            assert RESULTS[category, tool][1] in ended.content
            assert bool(ended.content) == bool(RESULTS[category, tool][1])
    assert seen(root) == before


HANDMADE: dict[str, Callable[[RawWorker, int], messages.Down]] = {
    "a commit": lambda _worker, number: messages.Decide(number, commit=True),
    "another call's commit": lambda _worker, number: messages.Decide(number + 1, commit=True),
    "a call without a rehearsal": lambda _worker, number: messages.Call(
        number + 1, "run_cmd", b'{"command": "touch c.txt"}', without_rehearsal=True
    ),
}


@pytest.mark.parametrize("name", HANDMADE)
@pytest.mark.parametrize(("category", "tool"), RESULTS)
def test_a_message_that_would_have_it_changed_ends_the_worker(
    planning: Callable[[str], Any], root: Path, pack: str, category: str, tool: str, name: str
) -> None:
    before = seen(root)
    with planning(category) as worker:
        number = proposed(worker, tool, pack).id
        send(worker.process, HANDMADE[name](worker, number))
        assert receive(worker.process) is None
        assert worker.process.wait(60) != 0
    assert seen(root) == before


@pytest.mark.parametrize("category", ["files", "shell", "restore"])
def test_a_worker_that_is_killed_in_between_has_changed_nothing(
    planning: Callable[[str], Any], root: Path, pack: str, category: str
) -> None:
    tool = next(tool for each, tool in RESULTS if each == category)
    before = seen(root)
    with planning(category) as worker:
        proposed(worker, tool, pack)
        worker.process.kill()
        worker.process.wait(60)
    assert seen(root) == before


def test_a_command_without_a_rehearsal_is_never_started(planning: Callable[[str], Any], root: Path) -> None:
    before = seen(root)
    with planning("shell") as worker:
        send(worker.process, messages.Call(1, "run_cmd", b'{"command": "touch c.txt"}', without_rehearsal=True))
        assert receive(worker.process) is None
    assert seen(root) == before


ATTACKS = {
    "writes": "os.open('a.txt', os.O_WRONLY | os.O_TRUNC, dir_fd=root)",
    "makes": "os.open('new', os.O_WRONLY | os.O_CREAT, dir_fd=root)",
    "removes": "call('unlinkat', root, b'a.txt', 0)",
    "renames": "call('renameat', root, b'a.txt', root, b'z.txt')",
}


@pytest.mark.parametrize("name", ATTACKS)
def test_a_worker_that_is_taken_over_cannot_write_either(root: Path, name: str) -> None:
    before = seen(root)
    with open_worker(root, writable=False, plan=True, command=hostile_command()) as worker:
        send(worker.process, messages.Call(1, "attack", msgspec.json.encode({"code": ATTACKS[name], "given": {}})))
        receive(worker.process)
    assert seen(root) == before
