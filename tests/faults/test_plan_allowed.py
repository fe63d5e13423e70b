"""Faults happen where the command line asks for them, loudly, and nowhere else."""

import os
from pathlib import Path
from typing import Final

import pytest

from supervisor.config.fault_plan import FaultPlan
from supervisor.journal.facts import FaultsAllowed
from supervisor.journal.journal import open_journal
from supervisor.session.resources import announce_faults
from tests.raw_worker import open_worker
from tests.supervisor.command import Done, Strongroom, finished
from workers.wire import messages

PLAN: Final = '[[faults]]\ncategory = "files"\ntool = "read_file"\ntimes = 2\nfault = "exit"\n'
SAID: Final = "warning: FAULT INJECTION IS ON: workers fail as {plan} (1 fault, seed 0) says"


@pytest.fixture
def plan(tmp_path: Path, root: Path) -> Path:
    file = tmp_path / "plan.toml"
    file.write_text(PLAN)
    return file


def batch(strongroom: Strongroom, plan: Path) -> Done:
    return strongroom.batch("read a.txt\n", "--faults", plan.name)


def test_a_batch_with_a_plan_has_its_faults_says_so_and_records_it(strongroom: Strongroom, plan: Path) -> None:
    done = batch(strongroom, plan)
    assert done.err.startswith(SAID.format(plan=plan))
    (result,) = strongroom.results
    assert [each["error_kind"] for each in result["tool_calls"]] == ["worker_crashed"]
    (allowed,) = [fact for fact in strongroom.facts if isinstance(fact, FaultsAllowed)]
    assert (allowed.plan, allowed.seed, len(allowed.digest)) == (str(plan), 0, 64)
    assert strongroom.verdict.problem == ""


def test_a_wrong_plan_starts_nothing(strongroom: Strongroom, plan: Path) -> None:
    plan.write_text(PLAN.replace("exit", "exot"))
    done = batch(strongroom, plan)
    assert (done.code, "`fault` of number 1 of `faults` is 'exot'; did you mean 'exit'?" in done.err) == (2, True)
    assert not strongroom.has_done_anything


def test_a_pipe_is_no_plan_and_is_not_waited_for(strongroom: Strongroom, plan: Path) -> None:
    plan.unlink()
    os.mkfifo(plan)
    done = batch(strongroom, plan)
    assert (done.code, f"The fault plan {plan} cannot be read: it is not a regular file." in done.err) == (2, True)


def test_a_plan_whose_name_is_not_unicode_is_recorded_with_its_bytes_written_out(tmp_path: Path) -> None:
    with open_journal(tmp_path / "journal.db") as journal:
        announce_faults(FaultPlan(tmp_path / "\udcff.toml", "", 0, ()), journal)
        (entry,) = journal.everything()
    assert isinstance(entry.fact, FaultsAllowed)
    assert entry.fact.plan == f"{tmp_path}/\\xff.toml"


def test_a_daemon_with_a_plan_shows_it_and_a_batch_with_one_keeps_away(strongroom: Strongroom, plan: Path) -> None:
    with strongroom.start("-v", "daemon", "--faults", plan.name) as process:
        try:
            assert process.stderr
            said = [next(line for line in process.stderr if b"listening" in line or b"FAULT" in line) for _ in "ab"]
            assert SAID.format(plan=plan).partition(":")[2] in said[0].decode()
            shown = strongroom.run("status").out
            done = batch(strongroom, plan)
        finally:
            process.terminate()
            finished(process)
    expected = f"Fault injection is on workers fail as {plan} (1 fault, seed 0) says so far: nothing"
    assert "".join(shown.split()).startswith("".join(expected.split()))  # a long path is broken anywhere
    assert (done.code, "A daemon runs in this home, and its workers are others' too" in done.err) == (2, True)
    assert not (strongroom.folder / "out.jsonl").exists()


def test_a_worker_that_was_not_told_of_faults_takes_a_call_with_one_for_a_breach(root: Path) -> None:
    with open_worker(root) as worker:
        assert worker.propose("read_file", {"path": "a.txt"}, fault=messages.Fault("print_stdout", "call")) is None
        assert worker.process.wait() == 1
