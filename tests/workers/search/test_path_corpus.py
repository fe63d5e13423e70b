"""The rows of the path corpora for the search tools, each against a real, confined worker on a root of its own."""

from pathlib import Path
from typing import Any

import pytest

from tests.workers.files import corpus
from tests.workers.search.shared import open_search
from workers.catalog import CATEGORIES

TOOLS = {tool.name for tool in CATEGORIES["search"].tools if tool.offered}


@pytest.mark.parametrize("row", corpus.rows(TOOLS, "paths.json", "more_paths.json", "search.json"), ids=corpus.title)
def test_a_row_ends_as_it_says(row: dict[str, Any], tmp_path: Path) -> None:
    place = corpus.Place(tmp_path / "t")
    then = ("search_files", {"query": "^alpha$", "glob": "a.txt"})
    after = corpus.play(row, place, lambda: open_search(place.root), then)
    assert after.text == '[{"path":"a.txt","line":1,"text":"alpha"}]'
