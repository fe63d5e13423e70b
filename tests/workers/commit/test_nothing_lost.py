"""Nothing is lost: what somebody writes into the root in the middle of a commit is there afterwards.

And what is committed has nothing of the place where it was made ready.
"""

import os
import struct
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.workers.commit.namespaces import Rehearsing, before_each
from workers.changes.effects import CommitFailed, CommitOutcome, Committed
from workers.commit.exchange import Exchange
from workers.commit.operations import Operation
from workers.commit.staging import Staging

OTHER = b"somebody else's\n"


def write_to_what_was_open(path: str) -> None:
    """Let a file that was open before all renames be written after them, in the process that is asked."""
    file = open(path, "ab", buffering=0)  # noqa: SIM115 - it stays open
    before_each(Staging, "sync_root", lambda _directories: file.write(OTHER))


def act_before_the_last(command: str, root: str) -> None:
    """Run a command after some renames, of which the last one then fails, in the process that is asked."""

    def act(operation: Operation, *_given: int) -> None:
        if operation.name == "zz":
            subprocess.run(["/bin/bash", "-e", "-c", command], cwd=root, check=True)
            raise OSError(5, "Input/output error", "renameat2")

    before_each(Exchange, "_out", act)


def die_before_the_last() -> None:
    """End the process as by kill -9 in the middle of the renames."""
    before_each(Exchange, "_out", lambda operation, *_given: operation.name == "zz" and os._exit(9))


def committed(alone: Rehearsing, tree: Path, command: str, first: Callable[..., None], *given: str) -> CommitOutcome:
    alone.rehearse(tree, command)
    alone.ask("call", first, *given)
    return alone.commit()


def contents(tree: Path) -> Iterator[bytes]:
    for path in tree.rglob("*"):
        if path.is_file() and not path.is_symlink():
            yield path.read_bytes()


@pytest.mark.parametrize("command", ["echo new > text", "rm text", "mv d n; rm -rf n", "rm -rf d; echo x > d"])
def test_a_write_to_an_open_file_that_goes_is_kept(alone: Rehearsing, tree: Path, command: str) -> None:
    written = tree / ("text" if "text" in command else "d/sub/y")
    outcome = committed(alone, tree, command, write_to_what_was_open, str(written))
    assert isinstance(outcome, Committed)
    assert "strongroom-rescued-" in outcome.remark
    assert any(OTHER in each for each in contents(tree))


@pytest.mark.parametrize(
    ("command", "script"),
    [
        ("echo new > text", ">> text"),
        ("echo new > aa", ">> aa"),
        ("mkdir -p aa/b", "> aa/b/own"),
        ("mkdir -p aa/b; echo new > aa/b/c", "> aa/b/c"),
        ("rm text; mkdir text", "> text/own"),
    ],
)
def test_a_write_into_a_new_file_is_kept_when_that_is_taken_back(
    alone: Rehearsing, tree: Path, command: str, script: str
) -> None:
    script = f'echo "somebody else\'s" {script}'
    outcome = committed(alone, tree, f"{command}; echo z > zz", act_before_the_last, script, str(tree))
    assert isinstance(outcome, CommitFailed)
    assert outcome.stands
    assert any(OTHER in each for each in contents(tree))


def test_content_taken_out_by_a_killed_commit_is_kept_by_the_next(
    rehearsing: Rehearsing, alone: Rehearsing, tree: Path
) -> None:
    before = (tree / "text").read_bytes()
    with pytest.raises(EOFError):
        committed(alone, tree, "echo new > text; echo z > zz", die_before_the_last)
    rehearsing.rehearse(tree, "echo x > x")
    outcome = rehearsing.commit()
    (rescued,) = tree.glob("strongroom-rescued-*")
    assert isinstance(outcome, Committed)
    assert rescued.name in outcome.remark
    assert before in list(contents(rescued))


def test_no_file_of_another_directory_inherits_as_new_files_of_the_root_do(rehearsing: Rehearsing, tree: Path) -> None:
    entries = ((1, 7, -1), (2, 7, os.getuid()), (4, 5, -1), (16, 7, -1), (32, 5, -1))
    packed = b"".join(struct.pack("<HHi", *each) for each in entries)
    os.setxattr(tree, "system.posix_acl_default", struct.pack("<I", 2) + packed)
    rehearsing.rehearse(tree, "echo new > own; echo new > d/new; echo new > d/x; mkdir d/n")
    assert isinstance(rehearsing.commit(), Committed)
    listed = {path: os.listxattr(tree / path) for path in ("own", "d/new", "d/x", "d/n")}
    assert listed == {"own": ["system.posix_acl_access"], "d/new": [], "d/x": [], "d/n": []}
