"""The command corpora where there are no namespaces: commands run in copies, and nothing gets out of these either.

Some of each class are tried, or all where EVERY_ROW is in the environment; of rows that are refused before anything
runs, which is decided without a worker, the first of each class. What ends otherwise than on an overlay stands in
`OTHERWISE`.
"""

import os
import sys
from collections.abc import Iterator, Mapping
from typing import Any, Final

import pytest

from tests.supervisor.daemon.test_absent_tools import PRELUDE as WITHOUT_NAMESPACES
from tests.workers.shell import corpus
from tests.workers.shell.corpus import Facts, Row, Scene
from tests.workers.shell.test_command_corpus import LINES, ROWS, Start, names, run, scene, starting

__all__ = ["scene"]
BEFORE: Final = (sys.executable, "-c", f"{WITHOUT_NAMESPACES}\nimport os, sys\nos.execv(sys.argv[1], sys.argv[1:])")


@pytest.fixture(scope="module")
def start(scene: Scene) -> Iterator[Start]:
    with starting(scene, BEFORE) as caller:
        yield caller


OTHERWISE: Final[Mapping[str, Mapping[str, Any]]] = {
    "D074": {"checks": [{"exit_code": 1}, {"stderr_contains": "/dev/shm/z': Permission denied"}]},
    "D102": {"checks": [{"exit_code": 1}, {"stderr_contains": "/tmp/1: Permission denied"}]},
    "D103": {"expect": "contain", "checks": [{"max_disk_mb": 70}]},
}
"""Rows that end otherwise: a command has the temporary files that TMPDIR names alone; where one file may be as large as
all that is written, either limit may be met first."""

MOST: Final = 6
"""Rows of a class that are tried."""
DECIDED: Final = ("command_not_allowed", "invalid_arguments")


def _tried() -> list[Row]:
    rows, seen = [], set[str]()
    for row in ROWS:
        decided = row["expect"] == "deny" and row["kind"][0] in DECIDED
        if not (decided and row["class"] in seen):
            rows.append({**row, **OTHERWISE.get(row["id"], {})})
            seen |= {row["class"]} if decided else set()
    return rows


def _some(rows: list[Row]) -> list[Row]:
    """Return rows of every class, from its first to its last."""
    if "EVERY_ROW" in os.environ:
        return rows
    classes: dict[str, list[Row]] = {}
    for row in rows:
        classes.setdefault(row["class"], []).append(row)
    return [row for each in classes.values() for row in each[:: -(-len(each) // MOST)]]


TRIED: Final = _some(_tried())
SOME_LINES: Final = _some(LINES)


@pytest.mark.parametrize("row", TRIED, ids=names(TRIED))
def test_a_row_ends_as_it_says(row: Row, scene: Scene, start: Start) -> None:
    if lacking := corpus.lacking(row):
        pytest.skip(f"not installed: {', '.join(lacking)}")
    caller = start(row.get("profile", "project"), row)
    case = scene.expand(row)
    answer = run(case, caller, scene, case.get("tool", "exec_shell"), corpus.arguments(case))
    corpus.judge(case, answer)
    corpus.check(Facts(scene, caller, answer, case))
    assert caller.call("list_directory", {"path": "."}).ok


@pytest.mark.parametrize("row", SOME_LINES, ids=names(SOME_LINES))
def test_a_line_is_contained_when_a_shell_reads_it(row: Row, scene: Scene, start: Start) -> None:
    caller = start("operator", row)
    case = scene.expand(row)
    answer = run(case, caller, scene, "run_cmd", {"command": case["line"]})
    corpus.check(Facts(scene, caller, answer, case))
