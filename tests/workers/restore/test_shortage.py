"""An undo that finds no descriptor says so, and not that what was kept is gone."""

import os
from pathlib import Path

import pytest

from tests.workers.commit.children import in_child, refuse_descriptors
from workers.errors import ToolError
from workers.restore.restorer import Restorer
from workers.tree.root import Root


def test_a_shortage_of_descriptors_is_not_taken_for_a_missing_pack(tmp_path: Path) -> None:
    (tmp_path / "a.pack").touch()
    scratch = tmp_path / "scratch"
    scratch.mkdir()

    def undone() -> str:
        directory = os.open(tmp_path, os.O_RDONLY)
        place = os.open(scratch, os.O_RDONLY)
        engine = Restorer(directory, place, place)
        refuse_descriptors()
        with pytest.raises(ToolError) as caught:
            engine.undo(Root(directory, 0o022), "a.pack", force=False)
        return caught.value.kind

    assert in_child(undone) == (0, "resource_limit")
