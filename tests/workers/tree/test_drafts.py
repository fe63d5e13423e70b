"""Drafts, where others sweep while one is made."""

import os
from pathlib import Path

import pytest

from workers.tree.drafts import TAKEN, create_draft, is_draft


class Place:
    """A directory in which sweeps take the first few drafts between their making and their lock."""

    def __init__(self, path: Path, sweeps: int) -> None:
        self.path, self.left = path, sweeps

    def create(self, name: str) -> int:
        draft = os.open(self.path / name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        if self.left:
            self.left -= 1
            os.unlink(self.path / name)
        return draft

    def remove(self, name: str) -> None:
        (self.path / name).unlink(missing_ok=True)


def test_of_drafts_that_sweeps_took_none_is_used_or_left_open(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    place = Place(tmp_path, 3)
    name, draft = create_draft(place.create, place.remove)
    assert os.fstat(draft).st_nlink == 1
    assert os.listdir(tmp_path) == [name]
    assert is_draft(name)
    os.close(draft)

    with pytest.raises(OSError, match="others took each draft") as caught:
        create_draft(Place(tmp_path, 99).create, place.remove)
    assert caught.value.filename == TAKEN
    assert os.listdir(tmp_path) == [name]
    assert len(os.listdir("/proc/self/fd")) == before
