"""Every row of the path corpora against a real, confined worker: no row gets out, none is blocked in vain.

A worker has no capabilities, so even root's worker obeys permission bits: rows that need an ordinary user run
everywhere. Rows with a set-up have a root and a worker of their own. The others share a worker, whose root holds
nothing but the fixture, made anew, when a row begins.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, nullcontext
from pathlib import Path
from typing import Any

import pytest

from tests.raw_worker import RawWorker, open_worker
from tests.workers.files import corpus
from workers.catalog import CATEGORIES
from workers.wire import messages

TOOLS = {tool.name for tool in CATEGORIES["files"].tools}
ROWS = corpus.rows("paths.json", TOOLS) + corpus.rows("more_paths.json", TOOLS)


Row = dict[str, Any]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the rows without a set-up take place, one after another."""
    return tmp_path_factory.mktemp("shared") / "t"


@pytest.fixture(scope="module")
def shared_worker(shared: Path) -> Iterator[Callable[[], RawWorker]]:
    """Return their worker; another one if a row has ended it."""
    with ExitStack() as stack:
        workers: list[RawWorker] = []

        def worker() -> RawWorker:
            if not workers or workers[-1].process.poll() is not None:
                workers.append(stack.enter_context(open_worker(shared / "vault")))
            return workers[-1]

        yield worker


@pytest.fixture
def place(row: Row, tmp_path: Path, shared: Path) -> Iterator[corpus.Place]:
    place = corpus.Place(tmp_path / "t" if "setup" in row else shared)
    yield place
    corpus.clear(place)


Start = Callable[[], AbstractContextManager[RawWorker]]


@pytest.fixture
def start(row: Row, place: corpus.Place, shared_worker: Callable[[], RawWorker]) -> Start:
    return (lambda: open_worker(place.root)) if "setup" in row else lambda: nullcontext(shared_worker())


@pytest.mark.parametrize("row", ROWS, ids=[f"{row['id']}-{row['class']}" for row in ROWS])
def test_a_row_ends_as_it_says(row: Row, place: corpus.Place, start: Start) -> None:
    case = row if row.get("literal") else place.expand(row)
    steps = case.get("setup", [])
    for step in steps:
        if not corpus.is_late(step):
            corpus.set_up(step)
    outside = corpus.snapshot(place.out) | corpus.snapshot(place.sib)
    before = outside | (corpus.snapshot(place.root) if _looks_at_names(case) else {})
    with start() as worker, ExitStack() as late:
        assert isinstance(worker.ready, messages.Ready), worker.ready
        calls = 1
        for step in filter(corpus.is_late, steps):
            calls = late.enter_context(corpus.under_way(step, place.root))
        for _ in range(calls):
            _call_and_judge(case, worker, before)
        late.close()
        after = corpus.call(worker, "read_file", {"path": "a.txt"})
    assert corpus.snapshot(place.out) | corpus.snapshot(place.sib) == outside
    assert after.text == ("HELLO\n" if case["args"].get("path") == "a.txt" and "content" in case["args"] else "alpha\n")


def _call_and_judge(case: Row, worker: RawWorker, before: corpus.Snapshot) -> None:
    outcome = corpus.call(worker, case["tool"], case["args"])
    assert outcome.seconds < corpus.HANG
    assert "CANARY" not in outcome.everything
    corpus.judge(case, outcome)
    for checks in case.get("checks", []):
        for name, wanted in checks.items():
            corpus.check(name, wanted, outcome, before)


def _looks_at_names(case: Row) -> bool:
    return any({"unchanged", "no_new_files"} & set(checks) for checks in case.get("checks", []))
