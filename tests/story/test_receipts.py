"""What turns did, and what they only claim, as scripts and people read it: real commands, a real daemon."""

import json
from pathlib import Path
from typing import Any, Final

import pytest

from tests.forked import ForkedStrongroom
from tests.supervisor.command import Strongroom

TEST: Final = "import unittest\nclass Sum(unittest.TestCase):\n    def test_sum(self): self.assertEqual(1 + 1, {})\n"
WRITE: Final = {"tool": "write_file", "arguments": {"path": "note.md", "content": "A note.\n"}}


def run(command: str) -> dict[str, Any]:
    return {"tool": "run_cmd", "arguments": {"command": command}}


GOOD: Final = "cd good && python3 -m unittest"
SCRIPTS: Final[dict[str, tuple[list[dict[str, Any]], str, list[str]]]] = {
    "honest": ([run(GOOD)], "All tests pass: 1 passed.", []),
    "idle": ([], "I ran the tests, and all of them pass.", ["no test was run"]),
    "failed": ([run("cd bad && python3 -m unittest")], "All tests pass.", ["unittest failed"]),
    "piped": (
        [run(f"{GOOD} 2>&1 | tail -1")],
        "The suite is green.",
        ["the result of unittest is not known: its exit code is hidden by a pipe"],
    ),
    "refused": (
        [{"tool": "write_file", "arguments": {"path": "../out.md", "content": "x"}}],
        "I've updated `../out.md`.",
        ["the change of ../out.md was not made: it failed (path_escape)"],
    ),
    "written": ([WRITE], "I've written `note.md` and `other.md`.", ["other.md was not changed"]),
}
"""The calls of a turn, its answer, and why that is unproven."""


@pytest.fixture(scope="module")
def beside(tmp_path_factory: pytest.TempPathFactory) -> Strongroom:
    strongroom = ForkedStrongroom.beside_a_root(tmp_path_factory.mktemp("receipts"))
    for name, value in (("good", 2), ("bad", 3)):
        (strongroom.folder / "root" / name).mkdir()
        (strongroom.folder / "root" / name / f"test_{name}.py").write_text(TEST.format(value))
    return strongroom


def script(folder: Path, name: str) -> str:
    calls, answer, _why = SCRIPTS[name]
    lines = [{"calls": [call]} for call in calls] + [{"text": answer}]
    (folder / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return f"scripted:{folder / name}.jsonl"


def test_a_batch_marks_its_liars(beside: Strongroom) -> None:
    items = [{"id": name, "prompt": "Go on.", "model": script(beside.folder, name)} for name in SCRIPTS]
    (beside.folder / "items.jsonl").write_text("".join(json.dumps(item) + "\n" for item in items))
    done = beside.run(
        "batch", "items.jsonl", "--output", "-", "--concurrency", "3", "--root", "root", "--profile", "code"
    )
    results = {line["id"]: line for line in done.lines}
    assert {name: line["answer"] for name, line in results.items()} == {name: row[1] for name, row in SCRIPTS.items()}
    marks = {name: [each["why"] for each in line["receipt"].get("unproven", [])] for name, line in results.items()}
    assert marks == {name: row[2] for name, row in SCRIPTS.items()}
    assert results["honest"]["receipt"]["checks"][0] == {
        "call": "call_0_0",
        "runner": "unittest",
        "kind": "tests",
        "result": "passed",
        "where": "good",
        "passed": 1,
        "failed": 0,
    }
    assert results["written"]["receipt"]["changed"] == [{"path": "note.md", "what": "added"}]


def test_people_read_the_same_below_an_answer_and_in_the_history(beside: Strongroom) -> None:
    model = script(beside.folder, "failed")
    done = beside.run("-p", "Go on.", "--model", model, "--root", "root", "--profile", "code")
    lines = ["receipt: unittest in bad failed (1 of 1)", 'unproven: "All tests pass": unittest failed']
    assert (done.code, done.out.strip(), done.err.strip().splitlines()) == (0, "All tests pass.", lines)
    history = beside.run("history", [*beside.sessions][-1]).out
    assert all(f"({line})" in history for line in lines)
