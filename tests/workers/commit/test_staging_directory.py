"""A directory that cannot be opened or locked: the call ends with that error, and nothing stays behind."""

import errno
import fcntl
import os
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.workers.commit.children import in_child, refuse_descriptors, refuse_locks
from tests.workers.commit.namespaces import Rehearsing
from workers.changes.effects import CommitFailed
from workers.commit.staging_directory import draft, sweep
from workers.restore.restorer import scratch_directory
from workers.tree.drafts import is_draft

FS_IOC_SETFLAGS = 0x40086602
FS_TOPDIR_FL = 0x20000

REFUSALS: list[tuple[str, Callable[[], None]]] = [
    ("EMFILE", refuse_descriptors),
    ("ENOLCK", partial(refuse_locks, errno.ENOLCK)),
    ("ENOTSUP", partial(refuse_locks, errno.ENOTSUP)),
]


@pytest.fixture
def root(tmp_path: Path) -> Iterator[int]:
    descriptor = os.open(tmp_path, os.O_PATH | os.O_DIRECTORY)
    yield descriptor
    os.close(descriptor)


@pytest.mark.parametrize("files", [1, 1000])
@pytest.mark.parametrize(
    "make", [draft, lambda within, files: scratch_directory(within, files).__enter__()], ids=["draft", "scratch"]
)
@pytest.mark.parametrize(("code", "refuse"), REFUSALS, ids=[row[0] for row in REFUSALS])
def test_a_directory_that_cannot_be_had_is_an_error_and_leaves_nothing(
    root: int, tmp_path: Path, code: str, refuse: Callable[[], None], make: Callable[[int, int], object], files: int
) -> None:
    def made() -> str:
        lowest = os.dup(0)
        os.close(lowest)
        refuse()
        try:
            make(root, files)
        except OSError as error:
            with pytest.raises(OSError, match="Bad file descriptor"):
                os.fstat(lowest)  # so none was left open
            return errno.errorcode[error.errno or 0]
        return "made"

    assert in_child(made) == (0, code)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("refused", ["", "fcntl.ioctl", "os.mkdir", "os.rename"])
def test_a_directory_for_many_files_is_made_whether_or_not_it_can_be_put_apart(
    root: int, tmp_path: Path, refused: str
) -> None:
    def made() -> str:
        happened: list[str] = []
        flags = 0

        def hook(event: str, arguments: tuple[Any, ...]) -> None:
            nonlocal flags
            happened.append(event)
            if event == "fcntl.ioctl" and arguments[1] == FS_IOC_SETFLAGS:
                flags = int.from_bytes(arguments[2], sys.byteorder)
            if event == refused and happened.count(event) == 1 + (event == "os.mkdir"):
                raise OSError(errno.EOPNOTSUPP, "refused by the test")

        sys.addaudithook(hook)
        name, fd = draft(root, 1000)
        assert os.fstat(fd).st_ino == (tmp_path / name).stat().st_ino
        left = os.listdir(tmp_path) == [name] and not os.listdir(fd)
        return str([happened.count("os.rename"), flags & FS_TOPDIR_FL, left])

    renamed = 0 if refused in {"fcntl.ioctl", "os.mkdir"} else 1
    flagged = 0 if refused == "fcntl.ioctl" else FS_TOPDIR_FL
    assert in_child(made) == (0, str([renamed, flagged, True]))


def _sweep(root: int, _name: str) -> None:
    sweep(root)


def _lock(root: int, name: str) -> None:
    """Lock the directory for as long as this process lives."""
    fcntl.flock(os.open(name, os.O_RDONLY, dir_fd=root), fcntl.LOCK_EX)


RACES: list[tuple[str, str, Callable[[int, str], None]]] = [
    ("swept before it is opened", "open", _sweep),
    ("swept before it is locked", "fcntl.flock", _sweep),
    ("locked by another", "fcntl.flock", _lock),
]


def _draft(root: int, event: str, race: Callable[[int, str], None], times: int) -> str:
    """Make a directory while others interfere so many times, each time right before an event of `sys.audit`."""
    left, busy = times, False

    def hook(happens: str, _arguments: object) -> None:
        nonlocal left, busy
        if happens == event and left and not busy:
            busy, left = True, left - 1
            place = os.open(".", os.O_RDONLY, dir_fd=root)
            race(root, next(filter(is_draft, os.listdir(place))))
            os.close(place)
            busy = False

    sys.addaudithook(hook)
    try:
        return draft(root)[0]
    except OSError as error:
        return errno.errorcode[error.errno or 0]


@pytest.mark.parametrize("times", [2, 1000], ids=["at once", "time and again"])
@pytest.mark.parametrize(("event", "race"), [row[1:] for row in RACES], ids=[row[0] for row in RACES])
def test_a_directory_that_others_take_is_made_anew_until_others_are_given_way_to(
    root: int, tmp_path: Path, event: str, race: Callable[[int, str], None], times: int
) -> None:
    code, said = in_child(lambda: _draft(root, event, race, times))
    left = os.listdir(tmp_path)
    assert (code, said, left) == ((0, left[0], left) if times == 2 else (0, "EBUSY", []))


def test_a_commit_says_that_the_file_system_does_not_lock(alone: Rehearsing, tree: Path) -> None:
    alone.rehearse(tree, "echo new > text")
    alone.ask("call", refuse_locks, errno.ENOLCK)
    outcome = alone.commit()
    assert isinstance(outcome, CommitFailed)
    assert "does not lock directories (ENOLCK)" in outcome.message
    assert "Nothing was changed." in outcome.message
    assert not any(is_draft(name) for name in os.listdir(tree))
