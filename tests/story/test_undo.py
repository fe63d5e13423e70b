"""Undo of what calls have changed: by the command, over the protocol, in conflict, by force, and back again.

The change is made by a scripted model in the real daemon, and the daemon is killed at the worst moments.
"""

import os
import stat
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from supervisor.acp import extensions
from supervisor.journal.facts import CallDecided, CallEnded, SessionDeleted
from tests.daemon_process import DaemonProcess, Lines, scripted
from tests.forked import ForkedStrongroom
from tests.supervisor.command import Strongroom, wait_until
from tests.supervisor.histories import call, opening_fact

Tree = dict[str, tuple[int, bytes | str]]

DYING: Final = """
import os, signal
from supervisor.journal.facts import CallDecided, decode
from supervisor.journal.journal import Journal
begin, commit, worst = Journal.begin, Journal.commit, False

def begun(self, appends):
    global worst
    appends = list(appends)
    new = [decode(body) for _, bodies in appends for body in bodies]
    worst = any(isinstance(fact, CallDecided) and (fact.undoes or not {undo}) for fact in new)
    if worst and {when!r} == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    begin(self, appends)

def committed(self):
    commit(self)
    if worst:
        os.kill(os.getpid(), signal.SIGKILL)

Journal.begin, Journal.commit = begun, committed
"""


@pytest.fixture
def strongroom(home: Path, root: Path) -> Strongroom:
    return ForkedStrongroom(home, root)


def tree(root: Path) -> Tree:
    """Everything beneath the root: permissions, and content or target."""
    found: Tree = {}
    for path in sorted(root.rglob("*")):
        mode = stat.S_IMODE(path.lstat().st_mode)
        link, file = path.is_symlink(), path.is_file()
        found[str(path.relative_to(root))] = mode, os.readlink(path) if link else path.read_bytes() if file else b""
    return found


def talk(client: Lines, session: str, text: str) -> None:
    """Run a turn, and say yes to what is asked; meanwhile nothing can be undone."""
    number = client.begin_prompt(session, text)
    while True:
        message = client.read()
        if message.get("method") == "session/request_permission":
            assert client.refused(extensions.UNDO_METHOD, {"sessionId": session})["data"]["kind"] == "busy"
            client.allow(message)
        if "method" not in message and message.get("id") == number:
            assert "error" not in message, message
            return


def undo(client: Lines, session: str, **params: Any) -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = client.request(extensions.UNDO_METHOD, {"sessionId": session, **params})["steps"]
    return steps


class Changed(NamedTuple):
    """A session that has changed the root in two turns, and the root before, between and after them."""

    session: str
    before: Tree
    written: Tree
    removed: Tree


@pytest.fixture
def changed(daemon: DaemonProcess, tmp_path: Path, root: Path) -> Changed:
    """The daemon that made the changes was killed."""
    (root / "d" / "deep").mkdir(parents=True)
    (root / "d" / "deep" / "run.sh").write_bytes(b"#!/bin/sh\n\x00\xff")
    (root / "d" / "deep" / "run.sh").chmod(0o750)
    (root / "d" / "link").symlink_to("deep/run.sh")
    model = scripted(
        tmp_path / "script.jsonl",
        {"calls": [call("write_file", path="a.txt", content="one\n")]},
        {"text": "written"},
        {"calls": [call("edit_file", path="a.txt", old="one", new="two")]},
        {"calls": [call("exec_shell", command="rm", args=["-rf", "d"])]},
        {"text": "removed"},
        {"text": "I see"},
    )
    trees = [tree(root)]
    daemon.start()
    with daemon.client() as client:
        session = client.new_session(root, profile="project", root=str(root), model=model)
        for text in ("write", "go on"):
            talk(client, session, text)
            trees.append(tree(root))
        daemon.crash()
    assert "d" not in trees[-1]
    return Changed(session, *trees)


def test_the_last_change_is_undone_by_the_command_and_that_undo_and_a_turn_over_the_protocol(
    daemon: DaemonProcess, changed: Changed, strongroom: Strongroom, root: Path
) -> None:
    (step,) = strongroom.run("undo", "--json").json["steps"]
    assert (step["ok"], step["tool"], step["title"]) == (True, "exec_shell", "exec_shell rm -rf d")
    assert tree(root) == changed.written | {"a.txt": (changed.written["a.txt"][0], b"two\n")}
    old = daemon.home / "kept" / "of-long-ago"
    old.touch()
    os.utime(old, (0, 0))
    daemon.start()
    with daemon.client() as client:
        client.resume(changed.session)
        (again,) = undo(client, changed.session, calls=[step["undo"]])
        assert (again["ok"], tree(root)) == (True, changed.removed)
        turn = undo(client, changed.session, scope="turn")
        assert ([each["tool"] for each in turn], tree(root)) == (["exec_shell", "edit_file"], changed.written)
    daemon.end()
    assert not old.exists()
    assert f"undone by {turn[0]['undo']}" in strongroom.run("why", step["call"]).out


def test_a_change_by_somebody_else_is_a_conflict_and_not_lost_by_force_and_the_model_is_told(
    daemon: DaemonProcess, changed: Changed, strongroom: Strongroom, root: Path
) -> None:
    session = changed.session
    daemon.start()
    with daemon.client() as client:
        client.resume(session)
        assert all(each["ok"] for each in undo(client, session, scope="turn"))
        (root / "a.txt").write_text("mine\n")
        (refused,) = undo(client, session)
        assert (refused["ok"], refused["kind"]) == (False, "conflict")
        assert (root / "a.txt").read_text() == "mine\n"
        (forced,) = undo(client, session, force=True)
        assert (forced["ok"], forced["changes"]) == (True, [{"path": "a.txt", "what": "modified"}])
        assert tree(root) == changed.before
        assert undo(client, session) == []
        client.prompt(session, "/undo")  # as an editor sends it
        assert client.updates(session)[-1]["content"]["text"] == "There is nothing to undo."
        (mine,) = undo(client, session, calls=[forced["undo"]])
        assert (mine["ok"], (root / "a.txt").read_text()) == (True, "mine\n")
        talk(client, session, "and now?")
    daemon.end()
    told = strongroom.run("history", session, "--format", "anthropic").json[-2]
    assert "the person undid earlier changes, of: " in told["content"][0]["text"]


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_daemon_that_is_killed_when_an_undo_is_decided_does_it_once(
    daemon: DaemonProcess, strongroom: Strongroom, root: Path, when: str
) -> None:
    strongroom.run("call", "write_file", '{"path": "a.txt", "content": "new"}', "--root", str(root))
    daemon.patch = DYING.format(when=when, undo=True)
    daemon.start()
    lost = strongroom.run("undo")
    assert (lost.code, daemon.wait()) == (1, -9)
    if when == "before":
        assert (root / "a.txt").read_text() == "new"
    decided = [fact for fact in daemon.facts if isinstance(fact, CallDecided) and fact.undoes]
    assert [fact.reason for fact in decided] == ["a person takes back call_1"] * (when == "after")

    done = strongroom.run("undo")
    assert (done.code, (root / "a.txt").read_text()) == (0, "hello\n")
    assert strongroom.run("undo").code == 1
    ends = [fact.ok for fact in daemon.facts if isinstance(fact, CallEnded) and fact.tool == "undo"]
    assert ends == [False] * (when == "after") + [True]  # what was decided and not begun has ended as undone


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_pack_of_a_call_that_nobody_decided_about_or_of_a_deleted_session_goes_with_the_next_daemon(
    daemon: DaemonProcess, strongroom: Strongroom, root: Path, when: str
) -> None:
    daemon.patch = DYING.format(when=when, undo=False)
    daemon.start()
    lost = strongroom.run("call", "write_file", '{"path": "a.txt", "content": "new"}', "--root", str(root))
    assert (lost.code, daemon.wait()) == (1, -9)
    (pack,) = (daemon.home / "kept").glob("[!.]*.*")
    os.utime(pack, (0, pack.stat().st_mtime - 3600))
    daemon.record("cut", opening_fact(root), SessionDeleted())
    (other := pack.with_name("cut.c.1")).touch()
    daemon.patch = ""
    daemon.start()
    removed = when == "before"
    with daemon.client() as client:  # it looks when it has begun to listen
        wait_until(
            lambda: (
                client.status()
                and not other.exists()
                and (not pack.exists() if removed else stat.S_IMODE(pack.stat().st_mode) == stat.S_IRUSR)
            )
        )
    daemon.end()
    assert ("never decided about" in daemon.log) == removed
