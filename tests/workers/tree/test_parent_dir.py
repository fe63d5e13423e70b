"""A place for a file: its directories are made with it, and gone with it where it could not be written."""

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.tool_calls import refused, told
from workers.files.edit_file import edit_file
from workers.files.write_file import write_file
from workers.tool import ToolContext
from workers.tree.root import closing, sync_directory


def write(context: ToolContext, path: str) -> None:
    told(write_file, context, path=path, content="text\n")


def names(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in root.rglob("*")}


@contextmanager
def disk_full() -> Iterator[None]:
    """No file of this process may hold anything; Python ignores the signal that would come with it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_directories_that_are_missing_are_made_beneath_those_that_are_there(context: ToolContext, root: Path) -> None:
    (root / "a").mkdir()
    write(context, "a/b/c/x")
    assert (root / "a/b/c/x").read_text() == "text\n"


@pytest.mark.parametrize("there", [(), ("a",), ("a", "a/b")], ids=["none", "one", "two"])
def test_directories_that_were_made_for_nothing_are_removed(
    context: ToolContext, root: Path, there: tuple[str, ...]
) -> None:
    for name in there:
        (root / name).mkdir()
    with disk_full(), refused("resource_limit"):
        write(context, "a/b/c/x")
    assert names(root) == set(there)


@pytest.mark.parametrize("path", ["a/", "a/.", "b/..", ".", "./"])
def test_a_path_that_ends_in_a_directory_is_no_place_for_a_file(context: ToolContext, root: Path, path: str) -> None:
    with refused("not_a_file"):
        write(context, path)
    assert names(root) == set()


def test_for_an_edit_no_directory_is_made(context: ToolContext, root: Path) -> None:
    with refused("not_found"):
        edit_file.run(edit_file.args(path="a/x", old="a", new="b"), context)
    assert names(root) == set()


def test_a_file_system_that_cannot_sync_directories_is_no_failure() -> None:
    with closing(os.open("/proc", os.O_RDONLY | os.O_DIRECTORY)) as directory:
        sync_directory(directory)


def test_any_other_failure_to_sync_is_one() -> None:
    with pytest.raises(OSError, match="Bad file descriptor"):
        sync_directory(2**20)
