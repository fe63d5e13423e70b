"""A place that commands which see the machine see, and a root in it."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    """A directory that commands see."""
    for parent in ("/srv", "/opt", str(Path(__file__).parents[4])):
        if os.access(parent, os.W_OK) and not parent.startswith(("/home/", "/root/", "/tmp/", str(Path.home()) + "/")):
            place = Path(tempfile.mkdtemp(prefix="strongroom-test-", dir=parent))
            break
    else:
        pytest.skip("this user can write nowhere but where commands do not see it")
    yield place
    shutil.rmtree(place)


@pytest.fixture(scope="module")
def root(place: Path) -> Path:
    (place / "root").mkdir()
    (place / "root" / "a.txt").write_text("alpha\n")
    return place / "root"
