"""Rules that ask or deny, whichever program makes the call: the whole daemon, its command line, and the next one."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from supervisor.journal.facts import CallDecided, CallEnded, TurnEnded, TurnStarted
from tests.daemon_process import DaemonProcess, scripted
from tests.forked import ForkedStrongroom
from tests.supervisor.command import Strongroom, wait_until
from tests.supervisor.histories import DONE, call, opening_fact

RULE: Final = '[[rules]]\ndecision = "{}"\nwrites = ["secret*"]\ndeletes = ["secret*"]\n'
WRITE: Final = ("write_file", '{"path": "secret", "content": "x"}')
TOUCH: Final = ("exec_shell", '{"command": "touch", "args": ["secret"]}')


@pytest.fixture
def strongroom(home: Path, root: Path) -> Strongroom:
    return ForkedStrongroom(home, root.parent)


def called(strongroom: Strongroom, decision: str, *given: str) -> str | None:
    strongroom.configure(RULE.format(decision))
    answer: dict[str, Any] = strongroom.run("call", *given, "--root", "root").json
    return None if answer["ok"] else str(answer["error"]["kind"])


def in_a_batch(strongroom: Strongroom, decision: str) -> str | None:
    strongroom.configure(RULE.format(decision))
    calls = [call("write_file", path="secret", content="x")]
    model = scripted(strongroom.folder / "model.jsonl", {"calls": calls}, DONE)
    assert strongroom.batch("go\n", model=model).code == 0
    ((made,),) = [each["tool_calls"] for each in strongroom.results]
    kind: str | None = made["error_kind"]
    return kind


def undone(strongroom: Strongroom, decision: str) -> str | None:
    """Take back what was written before there was the rule."""
    strongroom.configure("")
    assert strongroom.run("call", *WRITE, "--root", "root").json["ok"]
    strongroom.configure(RULE.format(decision))
    (session,) = strongroom.sessions
    (step,) = strongroom.run("undo", "--json", "--session-id", session).json["steps"]
    assert (strongroom.folder / "root/secret").exists() == (not step["ok"])
    (strongroom.folder / "root/secret").unlink(missing_ok=True)
    kind: str | None = step["kind"]
    return kind


Way = Callable[[Strongroom, str], str | None]
WAYS: Final[list[tuple[str, Way, str | None]]] = [
    ("a call", lambda room, decision: called(room, decision, *WRITE), "denied"),
    ("a call that is approved", lambda room, decision: called(room, decision, *WRITE, "--approve"), None),
    ("a command", lambda room, decision: called(room, decision, *TOUCH, "--profile", "project", "--approve"), None),
    ("a batch", in_a_batch, "denied"),
    ("an undo", undone, None),
]
"""What becomes of it where the rule asks; where it denies, all are denied."""


@pytest.mark.parametrize("decision", ["deny", "ask"])
@pytest.mark.parametrize(("way", "asked"), [row[1:] for row in WAYS], ids=[row[0] for row in WAYS])
def test_a_rule_holds_whoever_makes_the_call(
    strongroom: Strongroom, way: Way, asked: str | None, decision: str
) -> None:
    assert way(strongroom, decision) == ("denied" if decision == "deny" else asked)


@pytest.mark.parametrize("decision", ["deny", "ask"])
def test_a_rule_holds_for_a_turn_that_the_next_daemon_resumes(daemon: DaemonProcess, root: Path, decision: str) -> None:
    daemon.configure(RULE.format(decision))
    model = scripted(root.parent / "model.jsonl", {"calls": [call("write_file", path="secret", content="x")]}, DONE)
    opened = opening_fact(root, model, "project", "read_file", "write_file", attended=False)
    session = "20260101-000000-aaaaaaaaaaaa"
    daemon.record(session, opened, TurnStarted(1, "go"))
    daemon.start()
    with daemon.client() as client:
        wait_until(lambda: client.status() and daemon.facts_of(session, TurnEnded), lambda: daemon.log)
    assert [each.kind for each in daemon.facts_of(session, CallEnded)] == ["denied"]
    assert [(each.decision, bool(each.covered_by)) for each in daemon.facts_of(session, CallDecided)] == [
        (decision, True)
    ]
    assert not (root / "secret").exists()
