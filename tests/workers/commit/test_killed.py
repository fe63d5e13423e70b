"""A commit that is killed leaves directories loosened; the sweep of the next one gives them their modes again."""

import os
import stat
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.workers.commit.children import die_at, in_child
from workers.commit.operations import OpenParents, Operation
from workers.commit.staging_directory import BEGUN, draft, sweep
from workers.commit.temporary_modes import TemporaryModes
from workers.commit.upper_layer import UpperLayer
from workers.treediff.comparison import Difference

Tree = dict[str, int | str | None]
"""The mode of a directory, the text of a file, or None for the mark that says that something is gone."""

ROOT: Tree = {
    "ro": 0o555, "ro/text": "old", "ro/gone": "gone", "dead": 0o555, "dead/in": 0o500, "dead/in/x": "x",
    "wx": 0o311, "open": 0o755, "zz": 0o755,
}  # fmt: skip
UPPER: Tree = {
    "ro": 0o555, "ro/text": "newer", "ro/gone": None, "ro/more": "more", "dead": None, "new": 0o500, "new/y": "y",
    "wx": 0o300, "open": 0o500, "zz": 0o500,
}  # fmt: skip
DIRECTORIES = ("ro", "dead", "new", "wx", "open", "zz")

Modes = dict[str, int | None]


def make(at: Path, tree: Tree) -> None:
    at.mkdir(mode=0o755)
    for path, what in tree.items():
        match what:
            case int():
                (at / path).mkdir()
            case str():
                (at / path).write_text(what)
            case None:
                os.mknod(at / path, stat.S_IFCHR)
    for path, what in reversed(tree.items()):
        if isinstance(what, int):
            (at / path).chmod(what)


class Case:
    """A root and the layer over it: what is in a read-only directory, goes, is new, or gets another mode."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.root = base / "root"
        make(base / "root", ROOT)
        make(base / "upper", UPPER)

    def modes(self) -> Modes:
        """Return the modes of those directories that are there."""
        found: Modes = dict.fromkeys(DIRECTORIES)
        for name in DIRECTORIES:
            if (self.root / name).exists():
                found[name] = stat.S_IMODE((self.root / name).lstat().st_mode)
        return found

    def commit(self, *, fails: bool = False) -> str:
        """Commit, and return the outcome; let the last operation fail, if it shall."""
        layer = UpperLayer(self._opened(), os.open(self.base / "upper", os.O_RDONLY), time.time_ns())
        layer.effects()
        if fails:
            (self.base / "upper/zz").rmdir()
        return type(layer.commit()).__name__

    def killed(self, number: int, *, fails: bool = False) -> bool:
        """Commit in a child that is killed before it changes a mode the `number`th time, if it comes so far."""

        def commit() -> str:
            die_at("os.chmod", number)
            return self.commit(fails=fails)

        code, said = in_child(commit)
        assert (code, said) in {(-9, ""), (0, "CommitFailed" if fails else "Committed")}
        return code == -9

    def sweep(self) -> list[str]:
        return sweep(self._opened())

    def _opened(self) -> int:
        return os.open(self.root, os.O_PATH | os.O_DIRECTORY)


@pytest.fixture
def case(memory: Path) -> Callable[[], Case]:
    """Make the same case again and again."""
    numbers = count()

    def again() -> Case:
        (memory / (name := str(next(numbers)))).mkdir()
        return Case(memory / name)

    return again


@pytest.mark.parametrize("fails", [False, True], ids=["that goes on", "that is taken back"])
def test_wherever_a_commit_is_killed_each_directory_has_its_old_mode_or_its_new_one(
    case: Callable[[], Case], fails: bool
) -> None:
    done = case()
    old = done.modes()
    done.commit()
    new = done.modes()
    for number in count(1):
        again = case()
        if not again.killed(number, fails=fails):
            break
        again.sweep()
        assert {name: mode for name, mode in again.modes().items() if mode not in (old[name], new[name])} == {}
    assert again.modes() == (old if fails else new)
    assert number > len(DIRECTORIES)  # so it was killed often


class Dead:
    """A commit that has ended in the middle of the renames, in a root that has one directory."""

    def __init__(self, root: Path) -> None:
        self.directory = root / "d"
        self.directory.mkdir(mode=0o755)
        self.root = os.open(root, os.O_PATH | os.O_DIRECTORY)
        _name, self.staging = draft(self.root)
        self.parents = OpenParents(self.root)
        self.loosened = TemporaryModes(self.parents, self.staging)

    def note(self, mode: int) -> None:
        self.loosened.remember("d", self.directory.stat().st_ino, mode)

    def mode_after_a_sweep(self) -> int:
        os.fchmod(self.staging, stat.S_IRWXU | BEGUN)
        os.close(self.staging)
        (rescued,) = sweep(self.root)
        assert list((self.directory.parent / rescued).iterdir()) == []
        return stat.S_IMODE(self.directory.stat().st_mode)


@pytest.fixture
def dead(tmp_path: Path) -> Iterator[Dead]:
    dead = Dead(tmp_path)
    yield dead
    dead.parents.close()
    os.close(dead.root)


def test_of_several_modes_that_a_directory_was_to_have_the_last_counts(dead: Dead) -> None:
    dead.note(0o355)
    dead.note(0o555)
    assert dead.mode_after_a_sweep() == 0o555


@pytest.mark.parametrize("mode", [0o577, 0o2555, 0o500], ids=oct)
def test_a_sweep_changes_no_rights_but_the_owners(dead: Dead, mode: int) -> None:
    dead.note(mode)
    assert dead.mode_after_a_sweep() == 0o755


def test_a_sweep_gives_the_owner_no_right(dead: Dead) -> None:
    dead.note(0o555)
    dead.directory.chmod(0o355)
    assert dead.mode_after_a_sweep() == 0o355


def test_another_directory_of_the_name_keeps_its_mode(dead: Dead) -> None:
    dead.note(0o555)
    dead.directory.rename(dead.directory.with_name("e"))
    dead.directory.mkdir(mode=0o755)
    assert dead.mode_after_a_sweep() == 0o755


def test_a_mode_that_cannot_be_noted_is_loosened_only_to_take_back(dead: Dead) -> None:
    dead.directory.chmod(0o555)
    os.mkdir("modes", dir_fd=dead.staging)
    difference = Difference("d/x", None, None)
    operation = Operation("0", difference, ())
    with pytest.raises(IsADirectoryError), dead.loosened.parent(operation):
        pass
    dead.loosened.may_fail = True
    with dead.loosened.parent(operation) as parent:
        assert stat.S_IMODE(os.fstat(parent).st_mode) == 0o755
    assert stat.S_IMODE(dead.directory.stat().st_mode) == 0o555
