"""A commit that is killed at any step is settled: every name as before, or every name as after, and nothing besides."""

import fcntl
import os
import sys
import time
from collections.abc import Callable
from itertools import count, takewhile
from pathlib import Path
from typing import Final

import msgspec
import pytest

from tests.raw_worker import open_worker
from tests.workers.commit.children import in_child
from tests.workers.commit.conftest import memory
from tests.workers.commit.snapshot import Snapshot, lasting, snapshot
from tests.workers.commit.test_killed import ROOT, UPPER, Tree, make
from tests.workers.restore.conftest import inputs
from workers import kernel
from workers.changes.effects import Effects
from workers.commit import exchange
from workers.commit.commit_plan import PLAN
from workers.commit.staging_directory import BEGUN, sweep
from workers.commit.upper_layer import UpperLayer
from workers.errors import ToolError
from workers.restore.settlement import Settlement, entries_of, settle
from workers.tree.root import closing

__all__ = ["memory"]

STEPS: Final = {
    *("open", "os.chmod", "os.mkdir", "os.remove", "os.rmdir", "os.rename", "os.link", "os.symlink", "os.utime"),
    *("os.truncate", "os.scandir", "os.setxattr"),
}

NUMBER: Final = 2**55 + 7
"""Of the call."""


def _readable(tree: Tree) -> Tree:
    """Let its owner look into it, who is not root."""
    return {name: each | 0o400 if isinstance(each, int) and os.geteuid() else each for name, each in tree.items()}


CASES: Final[dict[str, tuple[Tree, Tree]]] = {
    "one file": ({"a": "old"}, {"a": "newer"}),
    "a new file": ({"b": "b"}, {"a": "new"}),
    "a file that goes": ({"a": "old"}, {"a": None}),
    "two names exchanged for others": ({"a": "old", "b": "b"}, {"a": None, "c": "old", "b": "other"}),
    "a directory for a file": ({"a": "old", "d": 0o755, "d/x": "x"}, {"a": 0o700, "a/in": "in", "d": "file"}),
    "a directory that gets another mode": ({"d": 0o755, "d/x": "x"}, {"d": 0o555, "d/x": "y"}),
    "many": (_readable(ROOT), _readable(UPPER)),
    "names that sort by their directories": (
        {"a": 0o755, "a/b": "1", "a-b": "2", "a.b": "3"},
        {"a": 0o755, "a/b": "one", "a-b": None, "a.b": "three"},
    ),
}


class Killed:
    """A root and a commit over it, which is killed right before one of its steps."""

    def __init__(self, base: Path, root: Tree, upper: Tree) -> None:
        self.base, self.root = base, base / "root"
        for name, tree in (("root", root), ("upper", upper)):
            make(base / name, tree)
            for path, what in tree.items():
                if isinstance(what, str):
                    os.utime(base / name / path, (1, len(name)))
        self.before = self.look()
        self.effects = Effects((), {}, b"")

    def look(self) -> Snapshot:
        return lasting(snapshot(self.root))

    def commit(self, number: int = 0) -> bool:
        """Commit in a child; return whether it was killed before its step of that number."""
        root = self._opened()
        layer = UpperLayer(root, os.open(self.base / "upper", os.O_RDONLY), time.time_ns())

        def committed() -> str:
            self.die_at(number)
            return type(layer.commit(NUMBER)).__name__

        try:
            self.effects = layer.effects()
            code, said = in_child(committed)
        finally:
            layer.close()
            os.close(root)
        assert (code, said) in {(-9, ""), (0, "Committed")}
        return code == -9

    @staticmethod
    def die_at(number: int) -> None:
        """Let this process be killed before its step of that number."""
        left = number

        def step(happens: str = "open", *_given: object) -> None:
            nonlocal left
            if happens in STEPS:
                left -= 1
                if not left:
                    os.kill(os.getpid(), 9)

        def rename(*given: object) -> None:
            step()
            kernel.rename(*given)  # type: ignore[arg-type]
            step()

        setattr(exchange, "rename", rename)  # noqa: B010 - its module only imports it
        sys.addaudithook(step)

    def settle(self, number: int = NUMBER) -> Settlement:
        root = self._opened()
        try:
            return settle(root, number, entries_of(self.effects.changes))
        finally:
            os.close(root)

    def settle_killed(self, number: int) -> bool:
        """Settle in a child; return whether it was killed before its step of that number."""

        def settled() -> str:
            self.die_at(number)
            return self.settle().fate

        return in_child(settled)[0] == -9

    def swept(self) -> list[str]:
        with closing(self._opened()) as root:
            return sweep(root)

    def _opened(self) -> int:
        return os.open(self.root, os.O_PATH | os.O_DIRECTORY)


@pytest.fixture
def killed(memory: Path) -> Callable[[str], Killed]:
    """Make the same case again and again."""
    numbers = count()

    def again(case: str) -> Killed:
        (memory / (name := str(next(numbers)))).mkdir()
        return Killed(memory / name, *CASES[case])

    return again


@pytest.mark.parametrize("case", CASES)
def test_wherever_a_commit_is_killed_all_names_are_as_before_or_as_after(
    case: str, killed: Callable[[str], Killed]
) -> None:
    whole = killed(case)
    assert not whole.commit()
    after, fates = whole.look(), set()
    for number in count(1):
        again = killed(case)
        if not again.commit(number):
            break
        found = again.settle()
        fates.add(found.fate)
        assert found.others == ()
        assert again.look() == (again.before if found.fate == "before" else after), number
    assert fates == {"before", "after"}
    assert again.settle() == Settlement("after")


def test_a_settlement_that_is_killed_is_done_again(killed: Callable[[str], Killed]) -> None:
    late = max(takewhile(lambda number: killed("many").commit(number), count(1, 8))) - 16  # in the last of the renames
    for number in count(1):
        again = killed("many")
        again.commit(late)
        assert begun(again.root)
        if not again.settle_killed(number):
            break
        assert again.settle() == Settlement("before")
        assert again.look() == again.before, number
    assert number > 10


def test_a_confined_worker_settles_a_commit_in_the_middle_of_its_renames(killed: Callable[[str], Killed]) -> None:
    again = killed("many")
    inside = 0
    for number in count(1, 9):
        again = killed("many")
        if not again.commit(number):
            break
        if not begun(again.root):
            continue
        inside += 1
        kept = again.base / "kept"
        with open_worker(again.root, category="restore", inputs=inputs(kept)) as worker:
            assert worker.report
            changes = msgspec.to_builtins(again.effects.changes)
            answer = worker.done("settle", {"number": NUMBER, "pack": "", "changes": changes})
        assert msgspec.json.decode(answer.content)["fate"] == "before"
        assert again.look() == again.before
    assert inside


def test_what_somebody_else_changed_since_is_left_and_named(killed: Callable[[str], Killed]) -> None:
    again, number = killed("two names exchanged for others"), 0
    while not {*again.root.iterdir()} > {again.root / "c"} or (again.root / "a").exists():
        again, number = killed("two names exchanged for others"), number + 1
        again.commit(number)
    (again.root / "b").write_text("somebody else's")
    (again.root / "strongroom-rescued-00000000000000aa").mkdir()
    (again.root / "strongroom-rescued-00000000000000aa/1").write_text("of another commit")
    found = again.settle()
    assert found.fate == "mixed"
    assert [each.split(":")[0] for each in found.others] == ["b", "b"]
    assert {each.name: each.read_text() for each in again.root.iterdir() if each.is_file()} == {
        "a": "old",
        "b": "somebody else's",
    }
    (rescued,) = (each for each in again.root.iterdir() if each.is_dir() and not each.name.endswith("aa"))
    assert "b" in [each.read_text() for each in rescued.iterdir() if each.name != "modes"]
    assert (again.root / "strongroom-rescued-00000000000000aa/1").read_text() == "of another commit"


def test_only_the_number_of_its_call_takes_a_commit_back(killed: Callable[[str], Killed]) -> None:
    for number in count(1):
        again = killed("one file")
        assert again.commit(number)
        if begun(again.root) and (again.root / "a").read_text() == "newer":
            break
    assert [again.settle(number).fate for number in (0, NUMBER + 1)] == ["after", "after"]
    assert begun(again.root)
    assert again.settle().fate == "before"
    assert again.look() == again.before


def _anew(directory: Path) -> None:
    directory.rename(directory.with_name("theirs"))
    directory.mkdir(0o555)


@pytest.mark.parametrize(
    ("change", "mode"), [(lambda directory: directory.chmod(0o511), 0o511), (_anew, 0o555)], ids=["mode", "made anew"]
)
def test_a_directory_that_somebody_else_changed_keeps_its_mode(
    change: Callable[[Path], None], mode: int, killed: Callable[[str], Killed]
) -> None:
    for number in count(1):
        again = killed("a directory that gets another mode")
        assert again.commit(number)
        directory = again.root / "d"
        if begun(again.root) and directory.stat().st_mode & 0o777 == 0o555:
            break
    change(directory)
    found = again.settle()
    assert found.fate == "mixed"
    assert "d: somebody else changed it" in found.others
    assert directory.stat().st_mode & 0o777 == mode


@pytest.fixture
def halfway(killed: Callable[[str], Killed]) -> tuple[Killed, Path]:
    """A commit that was killed after its first rename, and its staging directory."""
    for number in count(1):
        again = killed("two names exchanged for others")
        assert again.commit(number)
        if begun(again.root) and again.look().keys() & {b"c", b"b"} == {b"c", b"b"}:
            break
    (staging,) = again.root.glob(".strongroom-*")
    return again, staging


def test_another_commit_leaves_it_to_be_settled_and_keeps_it_where_nobody_does(halfway: tuple[Killed, Path]) -> None:
    again, staging = halfway
    assert again.swept() == []
    assert staging.exists()
    os.utime(staging / PLAN, (1, 1))
    (rescued,) = again.swept()
    assert (again.root / rescued).is_dir()
    assert again.settle() == Settlement("before")
    assert again.look() == again.before


def test_nothing_is_said_while_its_process_may_still_go_on(
    halfway: tuple[Killed, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    again, staging = halfway
    monkeypatch.setattr("workers.restore.settlement._DYING_S", 0.0)
    found = again.look()
    with closing(os.open(staging, os.O_RDONLY)) as owner:
        fcntl.flock(owner, fcntl.LOCK_EX)
        with pytest.raises(ToolError, match="does not end"):
            again.settle()
        assert again.look() == found
    assert again.settle() == Settlement("before")


def begun(root: Path) -> bool:
    return any(each.stat().st_mode & BEGUN for each in root.glob(".strongroom-*"))
