"""A commit that was killed with its daemon: whatever opens its root next finds it taken back, and its end recorded."""

import os
from itertools import count
from pathlib import Path

import pytest

from supervisor.journal.facts import CallDecided, CallEnded, CallStarted
from tests.supervisor.command import Strongroom
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
