"""An upper layer without an overlay, in this process: what a commit holds until it is closed."""

import os
import time
from pathlib import Path

import pytest

from workers import kernel
from workers.changes.effects import Committed
from workers.commit import exchange
from workers.commit.upper_layer import UpperLayer
from workers.tree.root import closing


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, content in (("root", "old"), ("upper", "new, and longer")):
        (tmp_path / name / "d").mkdir(parents=True)
        for file in ("a", "d/b", "d/c"):
            (tmp_path / name / file).write_text(content)
    return tmp_path / "root"


def committed(root: Path) -> UpperLayer:
    """Return the layer beside the root, committed."""
    with closing(os.open(root, os.O_PATH)) as directory:
        layer = UpperLayer(directory, os.open(root.parent / "upper", os.O_RDONLY), time.time_ns())
        layer.effects()
        assert layer.commit() == Committed(3)
    assert {path.name: path.read_text() for path in root.rglob("*") if path.is_file()} == dict.fromkeys(
        "abc", "new, and longer"
    )
    assert sorted(os.listdir(root)) == ["a", "d"]
    return layer


def held(root: Path) -> int:
    """Return how many files without a name this process holds."""
    return sum(f"{root}/" in line and "(deleted)" in line for line in Path("/proc/self/maps").read_text().splitlines())


def test_old_content_has_no_name_after_a_commit_and_takes_no_room_after_its_end(root: Path) -> None:
    layer = committed(root)
    assert held(root) == 3
    layer.close()
    assert held(root) == 0


def test_what_cannot_be_held_goes_at_once(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(OSError, match="mmap"):
        kernel.hold(-1)
    monkeypatch.setattr(exchange, "hold", lambda _file: kernel.hold(-1))
    layer = committed(root)
    assert held(root) == 0
    layer.close()


def test_no_more_is_held_than_there_is_room_for(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "_HELD", 2)
    layer = committed(root)
    assert held(root) == 2
    layer.close()
