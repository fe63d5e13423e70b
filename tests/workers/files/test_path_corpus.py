"""Every row of the path corpora against a real, confined worker: no row gets out, none is blocked in vain.

A worker has no capabilities, so even root's worker obeys permission bits: rows that need an ordinary user run
everywhere. Rows with a set-up have a root and a worker of their own. The others share a worker, whose root holds
nothing but the fixture, made anew, when a row begins. None lies on a disk, which takes a tenth of a millisecond to make
each of the tens of thousands of files.
"""

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from tests.doors import shared_workers
from tests.raw_worker import RawWorker, open_worker
from tests.workers.commit.conftest import without_a_disk
from tests.workers.files import corpus
from workers.catalog import CATEGORIES

TOOLS = {tool.name for tool in CATEGORIES["files"].tools if "path" in tool.args.__struct_fields__ or tool.subject}


Row = dict[str, Any]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where the rows without a set-up take place, one after another."""
    with without_a_disk(tmp_path_factory.mktemp("shared")) as place:
        yield place / "t"


@pytest.fixture
def apart(tmp_path: Path) -> Iterator[Path]:
    """Where one row takes place."""
    with without_a_disk(tmp_path) as place:
        yield place / "t"


@pytest.fixture(scope="module")
def shared_worker(shared: Path) -> Iterator[Callable[[], RawWorker]]:
    """Return their worker; another one if a row has ended it."""
    yield from shared_workers(lambda: open_worker(shared / "vault"))


@pytest.mark.parametrize("row", corpus.rows(TOOLS, "paths.json", "more_paths.json"), ids=corpus.title)
def test_a_row_ends_as_it_says(row: Row, shared: Path, shared_worker: Callable[[], RawWorker], apart: Path) -> None:
    alone = "setup" in row
    place = corpus.Place(apart if alone else shared)
    start = (lambda: open_worker(place.root)) if alone else lambda: nullcontext(shared_worker())
    after = corpus.play(row, place, start, ("read_file", {"path": "a.txt"}))
    arguments = row["args"]
    assert after.text == ("HELLO\n" if arguments.get("path") == "a.txt" and "content" in arguments else "alpha\n")
