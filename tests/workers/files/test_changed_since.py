"""What counts as a change beneath the root since a moment, and what does not."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from tests.tool_calls import told
from workers.files.changed_since import changed_since
from workers.tool import ToolContext

CHANGES: Final[dict[str, tuple[Callable[[Path], object], str]]] = {
    "written deep below": (lambda root: (root / "a/b/file").write_text("x"), "yes"),
    "removed": (lambda root: (root / "a/b/file").unlink(), "yes"),
    "removed at the top": (lambda root: (root / "link").unlink(), "yes"),
    "renamed": (lambda root: (root / "a/b").rename(root / "c"), "yes"),
    "its mode alone": (lambda root: (root / "a/b/file").chmod(0o600), "yes"),
    "with the old time written back": (lambda root: os.utime(root / "a/b/file", (1, 1)), "yes"),
    "through a link, elsewhere": (lambda root: (root / "link").write_text("x"), "no"),
    "only read": (lambda root: (root / "a/b/file").read_text(), "no"),
}


@pytest.mark.parametrize(("change", "answer"), CHANGES.values(), ids=CHANGES)
def test_a_change_is_seen_by_the_time_of_its_inode(
    context: ToolContext, root: Path, tmp_path: Path, change: Callable[[Path], object], answer: str
) -> None:
    (root / "a/b").mkdir(parents=True)
    (root / "a/b/file").write_text("")
    (root / "link").symlink_to(tmp_path / "elsewhere")
    (root / os.fsdecode(b"\xff")).mkdir()
    began, clock = time.time(), tmp_path / "clock"
    clock.touch()
    while clock.stat().st_ctime <= began:  # it goes in steps
        clock.touch()
    change(root)
    assert told(changed_since, context, since=began) == (answer, "")
