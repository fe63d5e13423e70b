"""The rows of the path corpora for the search tools, each against a real, confined worker on a root of its own."""

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.workers.files import corpus
from tests.workers.search.shared import open_search
from workers.catalog import CATEGORIES

TOOLS = {tool.name for tool in CATEGORIES["search"].tools}
ROWS = [row for file in ("paths.json", "more_paths.json", "search.json") for row in corpus.rows(file, TOOLS)]


def test_there_are_rows_for_each_tool() -> None:
    assert {row["tool"] for row in ROWS} == TOOLS


@pytest.mark.parametrize("row", ROWS, ids=[f"{row['id']}-{row['class']}" for row in ROWS])
def test_a_row_ends_as_it_says(row: dict[str, Any], tmp_path: Path) -> None:
    place = corpus.Place(tmp_path / "t")
    case = row if row.get("literal") else place.expand(row)
    steps = case.get("setup", [])
    for step in steps:
        if not corpus.is_late(step):
            corpus.set_up(step)
    outside = corpus.snapshot(place.out) | corpus.snapshot(place.sib)
    with open_search(place.root) as worker, ExitStack() as late:
        calls = 1
        for step in filter(corpus.is_late, steps):
            calls = late.enter_context(corpus.under_way(step, place.root))
        for _ in range(calls):
            outcome = corpus.call(worker, case["tool"], case["args"])
            assert outcome.seconds < corpus.HANG
            assert "CANARY" not in outcome.everything
            corpus.judge(case, outcome)
            for checks in case.get("checks", []):
                for name, wanted in checks.items():
                    corpus.check(name, wanted, outcome, outside)
        late.close()
        after = corpus.call(worker, "search_files", {"query": "^alpha$", "glob": "a.txt"})
    corpus.clear(place)
    assert after.text == '[{"path":"a.txt","line":1,"text":"alpha"}]'
