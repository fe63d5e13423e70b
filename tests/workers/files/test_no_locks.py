"""On a file system that does not lock, a write says so, and leaves nothing: no text, no draft, no descriptor."""

import errno
import fcntl
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.workers.commit.children import in_child, refuse_locks
from tests.workers.files.test_proposal import seen, writing
from workers.errors import ToolError
from workers.tool import ToolContext

CALLS: list[tuple[str, int | None]] = [
    ("any lock", None),
    ("the lock of a draft", fcntl.LOCK_EX | fcntl.LOCK_NB),
    ("the lock against sweeps", fcntl.LOCK_SH | fcntl.LOCK_NB),
]


def written(context: ToolContext, path: str, refuse: Callable[[], None]) -> str:
    """Write a file after another one, before which the directory was swept; return why it failed, and what is open."""
    writing(context, "first").commit()
    proposal = writing(context, path)
    before = len(os.listdir("/proc/self/fd"))
    refuse()
    try:
        proposal.commit()
    except ToolError as error:
        return f"{error.kind}: {error.message} {len(os.listdir('/proc/self/fd')) - before}"
    return "written"


@pytest.mark.parametrize("path", ["f", "new"])
@pytest.mark.parametrize("how", [row[1] for row in CALLS], ids=[row[0] for row in CALLS])
def test_a_write_without_locks_fails_and_leaves_nothing(
    context: ToolContext, root: Path, how: int | None, path: str
) -> None:
    (root / "f").write_text("old\n")
    told = "internal: Nothing was written: the file system there does not lock files (ENOLCK). Write elsewhere. 0"
    assert in_child(lambda: written(context, path, lambda: refuse_locks(errno.ENOLCK, how))) == (0, told)
    assert {Path(name).name for name in seen(root)} == {root.name, "f", "first"}
    assert (root / "f").read_text() == "old\n"
