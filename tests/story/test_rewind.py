"""Going back to a turn: `show` of a file, `fork` of a conversation, and `rewind` of both, with the real daemon.

A scripted model writes one file in two turns.
"""

from pathlib import Path
from typing import Any

import pytest

from scripts.random_histories import histories
from supervisor.acp import extensions
from tests.daemon_process import DaemonProcess, Lines, scripted
from tests.forked import ForkedStrongroom
from tests.story.test_undo import DYING
from tests.supervisor.command import Strongroom
from tests.supervisor.histories import call


@pytest.fixture
def strongroom(home: Path, root: Path) -> Strongroom:
    return ForkedStrongroom(home, root)


def said(client: Lines, session: str) -> list[str]:
    """What a client is told of a conversation when it loads it: the lines of the person."""
    client.heard.clear()
    client.load(session)
    return [
        each["content"]["text"] for each in client.updates(session) if each["sessionUpdate"] == "user_message_chunk"
    ]


@pytest.fixture
def talked(daemon: DaemonProcess, tmp_path: Path, root: Path) -> str:
    """A session with two turns, each of which has written the file, and one that has not."""
    model = scripted(
        tmp_path / "script.jsonl",
        {"calls": [call("write_file", path="n.txt", content="one\n")]},
        {"text": "written"},
        {"calls": [call("edit_file", path="n.txt", old="one", new="two")]},
        {"text": "edited"},
        *({"text": f"more {number}"} for number in range(9)),
    )
    daemon.start()
    with daemon.client() as client:
        session = client.new_session(root, profile="project", root=str(root), model=model)
        for text in ("write", "edit", "and?"):
            client.prompt(session, text)
    return session


def test_a_file_is_shown_as_it_was_and_what_is_gone_is_said(
    daemon: DaemonProcess, talked: str, strongroom: Strongroom, root: Path
) -> None:
    assert strongroom.run("show", "n.txt@0").code == 1
    assert strongroom.run("show", "n.txt@1").out == "one\n"
    assert strongroom.run("show", "n.txt@3", "--session", talked[-6:]).out == "two\n"
    (root / "n.txt").write_text("mine\n")
    assert strongroom.run("show", "n.txt@1", "--diff").out.splitlines()[-2:] == ["-one", "+mine"]
    gone = strongroom.run("show", "n.txt@2")
    assert (gone.code, gone.out) == (1, "")
    assert "others have written over it" in gone.err


def test_a_fork_goes_on_alone_from_a_turn_of_a_session_that_is_deleted_then(
    daemon: DaemonProcess, talked: str, strongroom: Strongroom, root: Path
) -> None:
    made = strongroom.run("fork", f"{talked[-6:]}@1", "--json").json["session"]
    with daemon.client() as client:
        client.request("session/delete", {"sessionId": talked})
        assert said(client, made) == ["write"]
        client.prompt(made, "go on")
        assert said(client, made) == ["write", "go on"]
    daemon.end()
    messages: list[dict[str, Any]] = strongroom.run("history", made, "--format", "anthropic").json
    assert [each["role"] for each in messages] == ["user", "assistant"] * 4
    assert strongroom.run("undo", "--session-id", made).code == 1  # what the other session did is undone there
    assert strongroom.run("verify").code == 0


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_daemon_that_is_killed_when_a_rewinding_is_decided_leaves_talk_and_files_as_they_were_together(
    daemon: DaemonProcess, talked: str, strongroom: Strongroom, root: Path, when: str
) -> None:
    daemon.end()
    daemon.prelude = DYING.format(when=when, undo=True)
    daemon.start()
    assert (strongroom.run("rewind", f"{talked}@1", "--yes").code, daemon.wait()) == (1, -9)
    daemon.prelude = ""
    daemon.start()
    with daemon.client() as client:
        back = (root / "n.txt").read_text() == "one\n"
        assert said(client, talked) == (["write"] if back else ["write", "edit", "and?"])
    assert strongroom.run("rewind", f"{talked}@1", "--yes").code == 0
    assert (root / "n.txt").read_text() == "one\n"
    daemon.end()
    assert strongroom.run("verify").code == 0


def test_random_histories_lose_nothing_that_a_person_wrote(tmp_path: Path) -> None:
    assert histories(tmp_path, 40, 1) > 40


def test_talk_and_files_go_back_and_come_again_and_what_others_changed_stays(
    daemon: DaemonProcess, talked: str, strongroom: Strongroom, root: Path
) -> None:
    before = strongroom.facts
    looked = strongroom.run("rewind", f"{talked}@1", "--dry-run", "--json").json
    assert (looked["turns"], looked["done"]) == ([2, 3], False)
    assert looked["changes"] == [{"path": "n.txt", "what": "modified"}]
    assert (strongroom.facts, (root / "n.txt").read_text()) == (before, "two\n")
    result = strongroom.run("rewind", f"{talked}@1", "--yes", "--json").json
    assert (result["done"], (root / "n.txt").read_text()) == (True, "one\n")
    with daemon.client() as client:
        assert said(client, talked) == ["write"]
        client.prompt(talked, "anew")
        assert said(client, talked) == ["write", "anew"]
        again = client.request(extensions.REWIND_METHOD, {"sessionId": talked, "turn": 3})
        assert (again["turns"], again["again"], (root / "n.txt").read_text()) == ([4], [2, 3], "two\n")
        assert said(client, talked) == ["write", "edit", "and?"]
        undone = client.request(extensions.UNDO_METHOD, {"sessionId": talked, "calls": [again["call"]]})["steps"]
        assert (undone[0]["ok"], (root / "n.txt").read_text()) == (True, "one\n")
        assert said(client, talked) == ["write", "anew"]
        (root / "n.txt").write_text("mine\n")
        left = client.request(extensions.REWIND_METHOD, {"sessionId": talked, "turn": 0})
        assert ([each["path"] for each in left["left"]], left["changes"]) == (["n.txt"], [])
        assert (said(client, talked), (root / "n.txt").read_text()) == ([], "mine\n")
    daemon.end()
    history = strongroom.run("history", talked).out
    assert "(turn 4, rewound)" in history
    assert strongroom.run("verify").code == 0
