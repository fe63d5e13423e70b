"""Nothing is lost: what somebody writes into the root in the middle of a commit is there afterwards.

And what is committed has nothing of the place where it was made ready.
"""

import os
import struct
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.workers.commit.namespaces import Rehearsing, open_rehearsing
from workers.changes.effects import CommitFailed, CommitOutcome, Committed
from workers.commit.exchange import Exchange
from workers.commit.operations import Operation
from workers.commit.staging import Staging

OTHER = b"somebody else's\n"


def write_to_what_was_open(path: str) -> None:
    """Let a file that was open before all renames be written after them, in the process that is asked."""
    original, file = Staging.sync_root, os.open(path, os.O_WRONLY | os.O_APPEND)

    def sync_root(self: Staging, directories: set[str]) -> None:
        original(self, directories)
        os.write(file, OTHER)
        os.close(file)

    Staging.sync_root = sync_root  # type: ignore[method-assign]


def meddle_before_the_last(root: str, script: str) -> None:
    """Run a script in the root after some renames, of which the last one then fails, in the process that is asked."""
    original = Exchange._out

    def out(self: Exchange, operation: Operation, parent: int, flags: int) -> None:
        if operation.name == "zz":
            subprocess.run(["/bin/bash", "-e", "-c", script], cwd=root, check=True)
            raise OSError(5, "Input/output error", "renameat2")
        original(self, operation, parent, flags)

    Exchange._out = out  # type: ignore[method-assign]


def die_before_the_last(_root: str) -> None:
    """End the process as by kill -9 in the middle of the renames."""
    original = Exchange._out

    def out(self: Exchange, operation: Operation, parent: int, flags: int) -> None:
        if operation.name == "zz":
            os.kill(os.getpid(), 9)
            os._exit(9)
        original(self, operation, parent, flags)

    Exchange._out = out  # type: ignore[method-assign]


def committed(tree: Path, tmp_path: Path, command: str, first: Callable[..., None], *arguments: str) -> CommitOutcome:
    (tmp_path / "scratch").mkdir()
    with open_rehearsing(tmp_path / "scratch") as rehearsing:
        rehearsing.rehearse(tree, command)
        rehearsing.ask("call", first, *arguments)
        return rehearsing.commit()


def contents(tree: Path) -> Iterator[bytes]:
    for path in tree.rglob("*"):
        if path.is_file() and not path.is_symlink():
            yield path.read_bytes()


@pytest.mark.parametrize("command", ["echo new > text", "rm text", "mv d n; rm -rf n", "rm -rf d; echo x > d"])
def test_what_is_written_to_an_open_file_that_goes_is_kept(tree: Path, tmp_path: Path, command: str) -> None:
    written = tree / ("text" if "text" in command else "d/sub/y")
    outcome = committed(tree, tmp_path, command, write_to_what_was_open, str(written))
    assert isinstance(outcome, Committed)
    assert "strongroom-rescued-" in outcome.remark
    assert any(OTHER in each for each in contents(tree))


@pytest.mark.parametrize(
    ("command", "script"),
    [
        ("echo new > text", 'echo "somebody else\'s" >> text'),
        ("echo new > aa", 'echo "somebody else\'s" >> aa'),
        ("mkdir -p aa/b", 'echo "somebody else\'s" > aa/b/own'),
        ("mkdir -p aa/b; echo new > aa/b/c", 'echo "somebody else\'s" > aa/b/c'),
        ("rm text; mkdir text", 'echo "somebody else\'s" > text/own'),
    ],
)
def test_what_is_written_into_what_is_new_is_kept_when_that_is_taken_back(
    tree: Path, tmp_path: Path, command: str, script: str
) -> None:
    outcome = committed(tree, tmp_path, f"{command}; echo z > zz", meddle_before_the_last, str(tree), script)
    assert isinstance(outcome, CommitFailed)
    assert outcome.stands
    assert any(OTHER in each for each in contents(tree))


def test_what_a_commit_had_taken_out_when_it_was_killed_is_kept_by_the_next(
    rehearsing: Rehearsing, tree: Path, tmp_path: Path
) -> None:
    before = (tree / "text").read_bytes()
    with pytest.raises(EOFError):
        committed(tree, tmp_path, "echo new > text; echo z > zz", die_before_the_last, str(tree))
    rehearsing.rehearse(tree, "echo x > x")
    outcome = rehearsing.commit()
    (rescued,) = tree.glob("strongroom-rescued-*")
    assert isinstance(outcome, Committed)
    assert rescued.name in outcome.remark
    assert before in list(contents(rescued))


def test_what_new_files_of_the_root_inherit_no_file_of_another_directory_does(
    rehearsing: Rehearsing, tree: Path
) -> None:
    entries = ((1, 7, -1), (2, 7, 0), (4, 5, -1), (16, 7, -1), (32, 5, -1))
    packed = b"".join(struct.pack("<HHi", *each) for each in entries)
    os.setxattr(tree, "system.posix_acl_default", struct.pack("<I", 2) + packed)
    rehearsing.rehearse(tree, "echo new > own; echo new > d/new; echo new > d/x; mkdir d/n")
    assert isinstance(rehearsing.commit(), Committed)
    listed = {path: os.listxattr(tree / path) for path in ("own", "d/new", "d/x", "d/n")}
    assert listed == {"own": ["system.posix_acl_access"], "d/new": [], "d/x": [], "d/n": []}
