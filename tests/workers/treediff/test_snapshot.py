"""Small contents stay with what was seen, within their bounds; a directory of many names is opened once."""

import errno
import os
from pathlib import Path

import pytest

from workers.commit import operations
from workers.commit.operations import OpenParents
from workers.tree.root import open_beneath
from workers.treediff.snapshot import KEPT_EACH, Ration, look

SIZES = {"small": 3, "other": 3, "largest": KEPT_EACH, "large": KEPT_EACH + 1, "empty": 0}
ROOM = {
    0: ["empty"],
    5: ["small", "empty"],
    KEPT_EACH: ["small", "other", "empty"],
    2**20: ["small", "other", "largest", "empty"],
}


@pytest.mark.parametrize(("keeps", "kept"), ROOM.items())
def test_small_contents_are_kept_while_there_is_room(tmp_path: Path, keeps: int, kept: list[str]) -> None:
    ration = Ration(2**30, 2**30, strict=True, keeps=keeps)
    found: dict[str, bytes] = {}
    directory = os.open(tmp_path, os.O_RDONLY)
    for name, size in SIZES.items():
        (tmp_path / name).write_bytes(b"x" * size)
        seen = look(directory, name, ration, ours=False)
        if seen is not None and seen.content is not None:
            found[name] = seen.content
    os.close(directory)
    assert found == {name: b"x" * SIZES[name] for name in kept}


def test_a_directory_is_opened_once_for_all_names_in_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []

    def opening(directory: int, path: str, flags: int, *, links: bool) -> int:
        opened.append(path)
        return open_beneath(directory, path, flags, links=links)

    monkeypatch.setattr(operations, "open_beneath", opening)
    (tmp_path / "a" / "b").mkdir(parents=True)
    root = os.open(tmp_path, os.O_PATH)
    before = os.listdir("/proc/self/fd")
    with OpenParents(root) as parents:
        for path in ("", "", "a", "a/b", "a/b", "a/b", "a"):
            inode = (tmp_path / path).stat().st_ino
            assert os.fstat(parents.of(path)).st_ino == inode
        with pytest.raises(FileNotFoundError):
            parents.of("none")
        assert os.fstat(parents.of("a")).st_ino == (tmp_path / "a").stat().st_ino
    assert opened == [".", "a", "a/b", "a", "none", "a"]
    assert os.listdir("/proc/self/fd") == before
    os.close(root)


def test_a_directory_on_another_file_system_is_no_parent() -> None:
    root = os.open("/", os.O_PATH)
    before = os.listdir("/proc/self/fd")
    with OpenParents(root) as parents, pytest.raises(OSError, match="another file system") as refused:
        parents.of("proc")
    assert refused.value.errno == errno.EXDEV
    assert os.listdir("/proc/self/fd") == before
    os.close(root)
