"""What turns did, and what they only claim, as scripts and people read it: real commands, a real daemon."""

import json
from pathlib import Path
from typing import Any, Final

import pytest

from supervisor.journal.facts import CallEnded, CallStarted, Replied, TurnEnded
from tests.daemon_process import DaemonProcess, scripted
from tests.forked import ForkedStrongroom
from tests.supervisor.command import Strongroom, wait_until
from tests.supervisor.histories import fault_in_facts

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
    return scripted(folder / f"{name}.jsonl", *({"calls": [call]} for call in calls), {"text": answer})


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


# --- checks -----------------------------------------------------------------------------------------------------------


def written(text: str) -> dict[str, Any]:
    return {"calls": [{"tool": "write_file", "arguments": {"path": f"{text}.txt", "content": text}}]}


DONE: Final = {"text": "Done."}
CHECKED: Final[dict[str, tuple[str, list[dict[str, Any]], str, str]]] = {
    "passes": ("test -e one.txt && touch left.txt", [written("one"), DONE], "ok", ""),
    "mended": ("test -e two.txt", [written("other"), DONE, written("two"), {"text": "Mended."}], "ok", ""),
    "given up": ("echo why; exit 3", [written("three"), DONE, {"text": "I cannot."}], "error", "exit code 3\nwhy"),
    "fails twice": ("false", [written("four"), DONE, written("five"), DONE], "error", "exit code 1"),
    "nothing changed": ("false", [DONE], "ok", ""),
}
"""A check, the model's replies, and how the turn ends: its status, and the end of its message."""


def test_a_turn_that_changes_something_ends_well_only_if_its_check_passes(beside: Strongroom) -> None:
    items = [
        {"id": name, "prompt": "Go on.", "check": check, "model": scripted(beside.folder / f"{name}.jsonl", *replies)}
        for name, (check, replies, _status, _message) in CHECKED.items()
    ]
    (beside.folder / "checked.jsonl").write_text("".join(json.dumps(item) + "\n" for item in items))
    done = beside.run("batch", "checked.jsonl", "--output", "-", "--root", "root", "--profile", "code")
    results = {line["id"]: line for line in done.lines}
    assert {name: line["status"] for name, line in results.items()} == {name: row[2] for name, row in CHECKED.items()}
    errors = {name: line["error"] for name, line in results.items() if "error" in line}
    assert {error["kind"] for error in errors.values()} == {"check_failed"}
    assert all(error["message"].endswith(CHECKED[name][3]) for name, error in errors.items())
    told = {name: sum(bool(fact.check_failed) for fact in replies_of(beside, line)) for name, line in results.items()}
    assert told == {"passes": 0, "mended": 1, "given up": 1, "fails twice": 1, "nothing changed": 0}
    assert not (beside.folder / "root" / "left.txt").exists(), "nothing of a check is kept"
    assert [call["tool"] for call in results["passes"]["tool_calls"]] == ["write_file"]
    assert results["mended"]["receipt"]["checks"][-1]["result"] == "passed"


def replies_of(strongroom: Strongroom, line: dict[str, Any]) -> list[Replied]:
    return [fact for fact in strongroom.sessions[line["session"]] if isinstance(fact, Replied)]


def test_a_turn_that_was_killed_in_its_check_is_checked_again(daemon: DaemonProcess, root: Path) -> None:
    daemon.home.mkdir(0o700)
    (daemon.home / "config.toml").write_text('[profiles.code]\ncheck = "test -e go || tail -f /dev/null"\n')
    strongroom = Strongroom(daemon.home, daemon.folder)
    model = scripted(daemon.folder / "checked.jsonl", written("six"), DONE)
    with daemon:
        with daemon.client() as client:
            session = client.new_session(root, profile="code", model=model)
            client.begin_prompt(session, "go")
            wait_until(lambda: any(fact.check for fact in strongroom.facts_of(session, CallStarted)))
            daemon.crash()
        (root / "go").touch()
        daemon.start()
        wait_until(lambda: bool(strongroom.facts_of(session, TurnEnded)))
    facts = strongroom.sessions[session]
    (end,) = [fact for fact in facts if isinstance(fact, TurnEnded)]
    checks = [fact for fact in facts if isinstance(fact, CallStarted) and fact.check]
    ends = {fact.call: fact.kind for fact in facts if isinstance(fact, CallEnded)}
    assert (end.status, [ends[check.call] for check in checks]) == ("ok", ["cancelled", None])
    assert fault_in_facts(facts) is None
