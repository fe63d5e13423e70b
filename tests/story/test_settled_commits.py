"""A commit that was killed with its daemon: whatever opens its root next finds what became of it, and records its end.

Where nothing was made, and its turn goes on, the call is rehearsed again, and committed as it was decided.
"""

import os
from itertools import count
from pathlib import Path
from typing import Final

import pytest

from supervisor.journal.facts import CallDecided, CallEnded, CallStarted, TurnEnded
from tests.daemon_process import DaemonProcess, scripted
from tests.supervisor.command import Strongroom, wait_until
from tests.supervisor.histories import DONE, call, fault_in_facts
from tests.workers.restore.test_settlement import CASES, NUMBER, Killed, begun


@pytest.fixture
def halfway(tmp_path: Path) -> Killed:
    """A commit that was killed when some of its names were changed."""
    for number in count(1):
        (tmp_path / str(number)).mkdir()
        killed = Killed(tmp_path / str(number), *CASES["two names exchanged for others"])
        assert killed.commit(number)
        names = {each.name for each in killed.root.iterdir()}
        if begun(killed.root) and {"b", "c"} <= names and "a" not in names:
            break
    return killed


def test_a_call_without_a_daemon_takes_back_what_the_last_one_left_half_done(halfway: Killed) -> None:
    story = Strongroom(halfway.base / "home", halfway.base)
    read = ("call", "read_file", '{"path": "b"}', "--root", "root")
    story.run(*read)
    (session,) = story.sessions
    story.record(
        session,
        CallStarted(0, "call_7", "exec_shell", "{}", True, "allow", "a test", rehearsed=True),
        CallDecided(0, "call_7", "allow", "a test", True, halfway.effects, number=NUMBER),
    )
    story.run(*read)
    assert halfway.look() == halfway.before
    (ended,) = [each for each in story.facts_of(session, CallEnded) if each.call == "call_7"]
    assert (ended.ok, ended.kind) == (False, "worker_crashed")
    assert "Nothing was changed" in ended.content
    assert not [each for each in os.listdir(halfway.root) if each.startswith(".")]


PLAN: Final = """
[[faults]]
category = "shell"
fault = "hang"
at = "{at}"
"""


@pytest.mark.parametrize(("at", "commits"), [("committed", 1), ("decided", 2)], ids=["made", "not made"])
def test_a_turn_goes_on_with_what_became_of_a_commit(
    daemon: DaemonProcess, root: Path, tmp_path: Path, at: str, commits: int
) -> None:
    daemon.plan = tmp_path / "plan.toml"
    daemon.plan.write_text(PLAN.format(at=at))
    daemon.start()
    model = scripted(tmp_path / "model.jsonl", {"calls": [call("run_cmd", command="cp a.txt b.txt; echo said")]}, DONE)
    with daemon.client() as client:
        session = client.new_session(root, model=model, profile="code", attended=False)
        client.begin_prompt(session, "go")
        made = root / "b.txt" if at == "committed" else root
        wait_until(lambda: made.exists() and daemon.facts_of(session, CallDecided), lambda: daemon.log)
        daemon.crash()
    daemon.plan = None
    daemon.start()
    wait_until(lambda: daemon.facts_of(session, TurnEnded), lambda: daemon.log)
    (ended,) = daemon.facts_of(session, CallEnded)
    assert ended.ok, ended.content
    assert "said" in ended.content
    assert (root / "b.txt").read_bytes() == (root / "a.txt").read_bytes()
    assert [each.committed for each in daemon.facts_of(session, CallDecided)] == [True] * commits
    assert fault_in_facts(daemon.sessions[session]) is None
