"""A batch that is killed at every instant, and taken up again until it is done.

Whatever the instant: no result is lost or doubled, no effect happens twice, what was to be committed and nobody saw end
is said to be unknown, the journal is whole, the histories are valid, and no process is left.
"""

import json
import os
import random
import signal
import subprocess
from collections.abc import Collection
from pathlib import Path
from typing import Final

import pytest

from supervisor.journal.facts import CallEnded, SessionOpened, TurnStarted
from tests.supervisor.command import Done, Family, Strongroom, children, finished, last_family, workers
from tests.supervisor.histories import MARK, Line, call, fault_in_facts

APPENDS: Final = 14
"""How often this batch writes to the journal when nobody disturbs it."""


FIRST: Final[list[Line]] = [
    {"text": "I mark.", "calls": [MARK]},
    {"calls": [call("write_file", path="two.txt", content="two"), call("read_file", path="log.txt")]},
    {"text": "first done"},
]
SECOND: Final[list[Line]] = [{"text": "second done"}]


@pytest.fixture
def story(strongroom: Strongroom, root: Path) -> Strongroom:
    (root / "log.txt").write_text("begin|end")
    items = []
    for name, lines in (("first", FIRST), ("second", SECOND)):
        file = strongroom.folder / f"{name}.jsonl"
        file.write_text("\n".join(map(json.dumps, lines)))
        items.append(json.dumps({"id": name, "prompt": f"do {name}", "model": f"scripted:{file}"}))
    (strongroom.folder / "in").write_text("\n".join(items))
    return strongroom


ARGUMENTS: Final = ("batch", "in", "--output", "out.jsonl", "--root", "root")


def killed(story: Strongroom, when: str, number: int, *options: str) -> Done:
    return story.run(*ARGUMENTS, *options, program=("tests.supervisor.dying", when, str(number)))


def assert_nothing_is_lost_or_doubled(story: Strongroom, kinds: Collection[str | None] = ()) -> None:
    answers = [(each["id"], each["status"], each["answer"]) for each in story.results]
    assert answers == [(name, "ok", f"{name} done") for name in ("first", "second")]
    sessions = story.sessions
    for result in story.results:
        facts = sessions[result["session"]]
        assert fault_in_facts(facts) is None
        assert [fact.text for fact in facts if isinstance(fact, TurnStarted)] == [f"do {result['id']}"]
    origins = [fact.origin for facts in sessions.values() for fact in facts if isinstance(fact, SessionOpened)]
    assert len(set(origins)) == len(origins) == 2
    outcomes = [fact for facts in sessions.values() for fact in facts if isinstance(fact, CallEnded)]
    of_changes = {outcome.kind for outcome in outcomes if outcome.tool != "read_file"}
    assert of_changes <= {None, "worker_crashed", *kinds}  # what was in doubt was settled
    log = (story.folder / "root" / "log.txt").read_text()
    marked = next(outcome for outcome in outcomes if outcome.tool == "edit_file")
    assert log.count("|one") == marked.ok
    written = next(outcome for outcome in outcomes if outcome.tool == "write_file")
    assert (story.folder / "root" / "two.txt").exists() == written.ok
    assert story.verdict.problem == ""


def test_undisturbed_it_writes_so_often(story: Strongroom) -> None:
    assert killed(story, "before", APPENDS + 1).code == 0
    assert killed(story, "after", 1, "--resume").code == 0
    assert_nothing_is_lost_or_doubled(story)


INSTANTS: Final = [
    *(("after", number) for number in (1, 4, 5, 6, 8, 10, 13, APPENDS)),
    *(("before", number) for number in (1, 5, 6, 9, 11)),
    *(("line", number) for number in (1, 2)),
    *(("lined", number) for number in (1, 2)),
]
"""After facts of every kind (`test_daemon_crash` takes each of a turn), and before those that follow an act: nothing
yet, the mark's rehearsal, its commit, two of the other calls. Before and after each line of the output."""


@pytest.mark.parametrize(("when", "number"), INSTANTS)
def test_killed_at_an_instant_it_goes_on(story: Strongroom, when: str, number: int) -> None:
    died = killed(story, when, number)
    assert died.code == -signal.SIGKILL
    assert last_family(died.err).is_gone()
    assert story.verdict.problem == ""
    assert story.run(*ARGUMENTS, "--resume").code == 0
    assert_nothing_is_lost_or_doubled(story)


@pytest.mark.parametrize("number", [2, 5])
def test_a_daemon_that_is_killed_ends_the_batch_which_then_goes_on(story: Strongroom, number: int) -> None:
    died = killed(story, "lost", number)
    assert (died.code, died.out) == (1, "")
    assert died.err.splitlines()[-1].endswith("Run the same command with --resume to resume the batch.")
    assert "Traceback" not in died.err
    assert last_family(died.err).is_gone()
    assert story.run(*ARGUMENTS, "--resume").code == 0
    assert_nothing_is_lost_or_doubled(story)


def test_killed_after_every_third_fact_of_each_life_it_gets_done(story: Strongroom) -> None:
    deaths = 0
    while (done := killed(story, "after", 3, "--resume")).code == -signal.SIGKILL:
        assert last_family(done.err).is_gone()
        deaths += 1
    assert deaths >= APPENDS // 3 - 1
    assert story.run(*ARGUMENTS, "--resume").code == 0
    assert_nothing_is_lost_or_doubled(story)


@pytest.mark.parametrize("seed", range(2))
def test_killed_at_any_time_it_goes_on(story: Strongroom, seed: int) -> None:
    process = story.start(*ARGUMENTS)
    try:
        process.wait(random.Random(seed).uniform(0.15, 0.6))
    except subprocess.TimeoutExpired:
        left = Family(children(process.pid))
        process.kill()
        finished(process)
        assert left.is_gone()
    finished(process)
    assert story.run(*ARGUMENTS, "--resume").code == 0
    assert_nothing_is_lost_or_doubled(story)


def test_a_killed_batch_can_be_looked_at(story: Strongroom) -> None:
    killed(story, "before", 6)  # the mark is made, its outcome is not recorded
    assert story.run("verify").code == 0
    (session,) = [each for each in story.run("sessions", "--json").json if each["state"] == "open"]
    text = story.run("history", session["session"]).out
    assert "edit_file" in text
    assert text.endswith("(open: this turn has no end)\n")
    story.run(*ARGUMENTS, "--resume")
    text = story.run("history", session["session"]).out
    assert "Edited log.txt at line 1" in text, "what the commit had to say was kept before it"
    assert "outcome_unknown" not in text
    assert "(interrupted, and resumed)" in text
    assert "no end" not in text
    assert story.results[0]["tool_calls"][0]["ok"]


@pytest.mark.parametrize(("number", "kinds"), [(4, {None, "worker_crashed"}), (5, {None, "worker_crashed"})])
def test_a_worker_killed_in_the_middle_of_a_call_costs_that_call_at_most(
    story: Strongroom, number: int, kinds: set[str | None]
) -> None:
    with story.start(*ARGUMENTS, program=("tests.supervisor.dying", "hang", str(number))) as process:
        assert process.stderr
        assert process.stderr.readline() == b"hung\n"
        for pid in workers(process.pid):
            os.kill(pid, signal.SIGKILL)
        assert finished(process).code == 0
    kind = story.results[0]["tool_calls"][0]["error_kind"]
    assert kind in kinds  # whether it has seen what it was sent nobody knows
    assert ("|one" in (story.folder / "root" / "log.txt").read_text()) == (kind is None)
    assert_nothing_is_lost_or_doubled(story, kinds)
