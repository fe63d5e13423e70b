"""Modes over a real socket, in a source tree: what is asked about, what is made, and that plan mode changes nothing."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from supervisor.acp import extensions
from supervisor.journal.facts import CallDecided, CallEnded, ModeChanged
from tests.daemon_process import ASK, DaemonProcess, Lines, scripted
from tests.supervisor.histories import DONE, call
from tests.workers.test_plan_workers import Seen, seen

CONFIG: Final = """
[[rules]]
decision = "deny"
writes = ["secret/**"]
"""

RUN: Final = "run_cmd"
GIT: Final = "git -c user.name=a -c user.email=b"
Row = tuple[str, dict[str, str], str, str]
ROWS: Final[dict[str, Row]] = {
    # what is changed -> tool, arguments, what becomes of it in `edits` and in `ask`
    "nothing": (RUN, {"command": "cat a.py; echo x > /tmp/y"}, "made", "made"),
    "a tracked file": (RUN, {"command": "echo 1 >> a.py"}, "made", "asked"),
    "a new file": (RUN, {"command": "mkdir -p n/m && echo 1 > n/m/b.py"}, "made", "asked"),
    "a new program": (RUN, {"command": "printf '#!/bin/sh\\n' > go.sh && chmod +x go.sh"}, "made", "asked"),
    "what git ignores": (RUN, {"command": "echo 1 > build/o.txt; rm build/p.txt"}, "made", "asked"),
    "an untracked file deleted": (RUN, {"command": "rm u.txt"}, "made", "asked"),
    "a tracked file deleted": (RUN, {"command": "rm a.py"}, "asked", "asked"),
    "a tracked file moved": (RUN, {"command": "mv a.py moved.py"}, "asked", "asked"),
    "a tracked file replaced": (RUN, {"command": "rm a.py && mkdir a.py"}, "asked", "asked"),
    "a tracked directory deleted": (RUN, {"command": "rm -r d"}, "asked", "asked"),
    "all deleted": (RUN, {"command": "rm -rf -- * .g*; true"}, "asked", "asked"),
    "a commit": (RUN, {"command": f"echo 2 >> a.py; {GIT} commit -qam m"}, "made", "asked"),
    "a file untracked": (RUN, {"command": "git rm -q --cached a.py"}, "asked", "asked"),
    "an index made anew": (RUN, {"command": "printf x > .git/index"}, "asked", "asked"),
    "a file staged": (RUN, {"command": "echo 1 > s.py; git add s.py"}, "made", "asked"),
    "a repository around a tracked file": (
        RUN,
        {"command": "mkdir d/.git; echo 'ref: refs/heads/x' > d/.git/HEAD; mkdir d/.git/refs d/.git/objects"},
        "asked",
        "asked",
    ),
    "a branch deleted": (RUN, {"command": "git update-ref -d HEAD"}, "asked", "asked"),
    "another branch checked out": (RUN, {"command": "git switch -q other"}, "made", "asked"),
    "a new branch of another": (RUN, {"command": "git switch -q -c new other"}, "made", "asked"),
    "a new branch of a new commit": (
        RUN,
        {"command": f"git switch -q --detach; git rm -qr d; {GIT} commit -qm x; git switch -qc n"},
        "asked",
        "asked",
    ),
    "the same, and a file deleted": (RUN, {"command": "rm a.py; git switch -q other"}, "asked", "asked"),
    "a branch without a commit": (RUN, {"command": "git switch -q --orphan new"}, "asked", "asked"),
    "a branch renamed": (RUN, {"command": "git branch -m other another"}, "made", "asked"),
    "another branch deleted": (RUN, {"command": "git branch -qD other"}, "asked", "asked"),
    "a stash popped": (RUN, {"command": "git stash pop -q"}, "made", "asked"),
    "a stash dropped": (RUN, {"command": "git stash drop -q"}, "asked", "asked"),
    "logs of references emptied": (RUN, {"command": "git reflog expire --expire=now --all"}, "asked", "asked"),
    "an object deleted": (RUN, {"command": "rm -f $(find .git/objects -type f | head -1)"}, "asked", "asked"),
    "a hook": (RUN, {"command": "echo echo > .git/hooks/pre-commit"}, "asked", "asked"),
    "what an editor obeys": (RUN, {"command": "mkdir .vscode; echo {} > .vscode/tasks.json"}, "asked", "asked"),
    "a link that leads outside": (RUN, {"command": "ln -s /etc/passwd l"}, "asked", "asked"),
    "a special file": (RUN, {"command": "mkfifo f"}, "asked", "asked"),
    "what a rule denies": (RUN, {"command": "mkdir secret; echo 1 > secret/x"}, "denied", "denied"),
    "a file written": ("write_file", {"path": "a.py", "content": "z = 1\n"}, "made", "asked"),
    "a file made": ("write_file", {"path": "q/new.py", "content": "z = 1\n"}, "made", "asked"),
    "a file edited": ("edit_file", {"path": "a.py", "old": "a = 1", "new": "a = 2"}, "made", "asked"),
    "a name with a dot that nobody knows": (RUN, {"command": "echo 1 > .unknown"}, "made", "asked"),
    "the same, written": ("write_file", {"path": ".unknown", "content": "1"}, "made", "asked"),
    "what a test run obeys": (RUN, {"command": "echo 1 > conftest.py"}, "asked", "asked"),
    "the same, by a file tool": ("write_file", {"path": "conftest.py", "content": "1"}, "asked", "asked"),
    "what a rule denies, written": ("write_file", {"path": "secret/x", "content": "1"}, "denied", "denied"),
}


def git(tree: Path, *arguments: str) -> None:
    subprocess.run(["git", "-C", str(tree), "-c", "user.name=a", "-c", "user.email=b", *arguments], check=True)


@pytest.fixture(scope="module")
def tree(daemon: DaemonProcess) -> Path:
    """A repository that all share; each test leaves it as it was."""
    root = daemon.folder / "tree"
    (root / "d").mkdir(parents=True)
    (root / "build").mkdir()
    (root / "a.py").write_text("a = 1\n")
    (root / "d" / "b.py").write_text("b = 1\n")
    (root / ".gitignore").write_text("build/\n")
    (root / "build" / "p.txt").write_text("built\n")
    git(root, "init", "-q")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "first")
    git(root, "checkout", "-qb", "other")
    git(root, "rm", "-qr", "d")
    git(root, "commit", "-qm", "without d")
    git(root, "checkout", "-q", "-")
    (root / "a.py").write_text("a = 1\na = 3\n")
    git(root, "stash", "-q")
    (root / "u.txt").write_text("untracked\n")
    return root


@pytest.fixture(scope="module")
def calling(daemon: DaemonProcess, tree: Path) -> Iterator[tuple[Lines, str]]:
    """A client with a session of single calls in that tree."""
    with daemon.client() as lines:
        yield lines, lines.new_session(tree, profile="code", modelless=True)


def set_mode(client: Lines, session: str, mode: str) -> None:
    client.request("session/set_mode", {"sessionId": session, "modeId": mode})


def outcome(client: Lines, session: str, tool: str, arguments: dict[str, str]) -> tuple[str, Any]:
    """Run a call, and say no where a person is asked; return what became of it, and its answer."""
    number, asked = client.begin_tool(session, tool, **arguments), False
    while "method" in (message := client.read()) or message.get("id") != number:
        if message.get("method") == ASK:
            asked = True
            client.choose(message, "reject_once")
    answer = message["result"]["answer"]
    denied = not answer["ok"] and answer["error"]["kind"] == "denied"
    return "asked" if asked else "denied" if denied else "made", answer


@pytest.mark.parametrize("mode", ["edits", "ask"])
@pytest.mark.parametrize("name", ROWS)
def test_what_a_mode_asks_about(calling: tuple[Lines, str], tree: Path, name: str, mode: str) -> None:
    client, session = calling
    tool, arguments, *wanted = ROWS[name]
    before = seen(tree)
    set_mode(client, session, mode)
    found, answer = outcome(client, session, tool, arguments)
    assert found == wanted[mode == "ask"], answer
    if found == "made" and seen(tree) != before:
        undone = client.request(extensions.UNDO_METHOD, {"sessionId": session})
        assert undone["steps"][0]["ok"], undone
    assert contents(seen(tree)) == contents(before)


TAKEN_OUT: Final = (
    "git checkout -q other; git rm -qr a.py",
    "git checkout -qb new; git rm -qr d; rm -rf d",
    "git symbolic-ref HEAD refs/heads/other; git read-tree --empty; rm -r *",
)


@pytest.mark.parametrize("command", [*TAKEN_OUT, "git checkout -q other"])
def test_beside_a_change_of_branch_what_it_keeps_is_not_deleted_unasked(daemon: DaemonProcess, command: str) -> None:
    root = daemon.folder / f"taken-{len(command)}"
    (root / "d/e").mkdir(parents=True)
    for name in ("a.py", "d/b.py", "d/e/c.py", "d.py"):
        (root / name).write_text(f"{name}\n")
    for words in ("init -q", "add .", "commit -qm first", "checkout -qb other", "rm -qr d", "commit -qm without"):
        git(root, *words.split())
    git(root, "checkout", "-q", "-")
    with daemon.client() as client:
        session = client.new_session(root, profile="code", modelless=True)
        asked = outcome(client, session, RUN, {"command": command})[0] == "asked"
    assert asked is (command in TAKEN_OUT)
    assert (root / "a.py").exists()


@pytest.mark.parametrize(
    ("name", "command"), [("d/b.py", "git checkout -qf other"), ("sub/c.py", "git switch -q other; rm sub/c.py")]
)
def test_a_change_of_branch_deletes_unasked_only_what_its_index_had(
    daemon: DaemonProcess, name: str, command: str
) -> None:
    root = daemon.folder / name.replace("/", "-")
    for each in ("d", "sub"):
        (root / each).mkdir(parents=True)
    (root / "d/b.py").write_text("b = 1\n")
    (root / "sub/c.py").write_text("c = 1\n")
    (root / ".gitignore").write_text("sub/\n")
    git(root, "init", "-q")
    git(root, "add", "d", ".gitignore")
    git(root, "commit", "-qm", "first")
    git(root, "checkout", "-qb", "other")
    git(root, "rm", "-qr", "d")
    git(root, "commit", "-qm", "without d")
    git(root, "checkout", "-q", "-")
    git(root / "sub", "init", "-q")
    git(root / "sub", "add", "c.py")
    (root / name).write_text("an edit that nobody has committed\n")
    with daemon.client() as client:
        session = client.new_session(root, profile="code", modelless=True)
        assert outcome(client, session, RUN, {"command": command})[0] == "asked"
    assert (root / name).read_text() == "an edit that nobody has committed\n"


def contents(found: Seen) -> dict[str, tuple[object, object]]:
    return {path: (of[0], of[-1]) for path, of in found.items()}


@pytest.mark.parametrize("name", ROWS)
def test_plan_mode_changes_nothing(calling: tuple[Lines, str], tree: Path, name: str) -> None:
    client, session = calling
    tool, arguments, *_ = ROWS[name]
    before = seen(tree)
    set_mode(client, session, "plan")
    found, answer = outcome(client, session, tool, arguments)
    assert found in ("made", "denied")
    assert seen(tree) == before
    told = json.dumps(answer)
    assert ("would have changed" in told) == (name != "nothing")
    if tool == RUN:
        assert answer["ok"], "what it printed is of use"


def test_an_undo_changes_nothing_in_plan_mode(calling: tuple[Lines, str], tree: Path) -> None:
    client, session = calling
    set_mode(client, session, "edits")
    assert outcome(client, session, "write_file", {"path": "u.txt", "content": "new\n"})[0] == "made"
    before = seen(tree)
    set_mode(client, session, "plan")
    (step,) = client.request(extensions.UNDO_METHOD, {"sessionId": session})["steps"]
    assert not step["ok"]
    assert "plan mode" in step["message"]
    assert seen(tree) == before
    set_mode(client, session, "edits")
    (step,) = client.request(extensions.UNDO_METHOD, {"sessionId": session})["steps"]
    assert step["ok"]
    assert (tree / "u.txt").read_text() == "untracked\n"


def test_a_yes_that_comes_after_the_switch_changes_nothing(calling: tuple[Lines, str], tree: Path) -> None:
    client, session = calling
    set_mode(client, session, "edits")
    before = seen(tree)
    number = client.begin_tool(session, RUN, command="rm a.py; echo gone")
    question = client.until(ASK)
    set_mode(client, session, "plan")
    client.allow(question)
    answer = client.answer(number)["result"]["answer"]
    assert answer["ok"]
    assert answer["content"]["stdout"] == "gone\n"
    assert "would have changed 1 file:\n  D  a.py" in answer["note"]
    assert seen(tree) == before


def test_plan_mode_is_there_once_what_is_being_committed_is(
    daemon: DaemonProcess, calling: tuple[Lines, str], tree: Path
) -> None:
    client, session = calling
    set_mode(client, session, "ask")
    before = seen(tree)
    with daemon.client() as other:
        number = client.begin_tool(session, "write_file", path="u.txt", content="new\n")
        question = client.until(ASK)
        workers = [each["pid"] for pool in client.status()["pools"] for each in pool["workers"]]
        for pid in workers:
            os.kill(pid, signal.SIGSTOP)
        client.allow(question)
        client.status()  # by now the daemon waits for the worker
        switch = other.begin("session/set_mode", {"sessionId": session, "modeId": "plan"})
        other.status()
        early = [each for each in other.heard if each.get("id") == switch]
        for pid in workers:
            os.kill(pid, signal.SIGCONT)
        assert other.answer(switch)["result"] == {}
        after = seen(tree)
    assert (early, client.answer(number)["result"]["answer"]["ok"]) == ([], True)
    assert contents(seen(tree)) == contents(after) != contents(before)
    set_mode(client, session, "edits")
    client.request(extensions.UNDO_METHOD, {"sessionId": session})


def test_a_call_that_began_in_plan_mode_stays_planned(calling: tuple[Lines, str], tree: Path) -> None:
    client, session = calling
    set_mode(client, session, "plan")
    before = seen(tree)
    number = client.begin_tool(session, RUN, command="sleep 0.5; rm u.txt")
    while not any(
        worker["state"].lower() == "busy"
        for pool in client.status()["pools"]
        if pool["category"] == "shell (plan)"
        for worker in pool["workers"]
    ):
        pass
    set_mode(client, session, "edits")
    answer = client.answer(number)["result"]["answer"]
    assert answer["ok"], answer
    assert "would have changed 1 file:\n  D  u.txt" in answer["note"]
    assert seen(tree) == before


def test_what_plan_mode_would_have_changed_is_told_in_few_words(calling: tuple[Lines, str], tree: Path) -> None:
    client, session = calling
    set_mode(client, session, "plan")
    commit = outcome(client, session, RUN, {"command": f"echo 2 >> a.py; {GIT} commit -qam m"})[1]["note"]
    assert "would have changed git: commit " in commit
    assert "git keeps for itself" in commit
    assert "objects/" not in commit
    files = 't=$(seq 99); for n in $(seq 3000); do echo "$t" > $n; done'
    many = outcome(client, session, RUN, {"command": files})[1]["note"]
    assert "would have changed 3000 files:\n  A  ./...  3000 names" in many
    assert many.endswith(" more lines")
    assert len(many) < 21_000


def test_a_mode_holds_from_the_next_call_of_a_turn_on_and_after_a_crash(
    daemon: DaemonProcess, tree: Path, tmp_path: Path
) -> None:
    calls = [{"calls": [call(RUN, command=f"echo {n} > u.txt; rm a.py")]} for n in range(2)]
    before = seen(tree)
    with daemon.client() as client:
        model = scripted(tmp_path / "model.jsonl", *calls, DONE)
        session = client.new_session(tree, model=model, profile="code", mode="ask")
        prompt = client.begin_prompt(session, "go")
        question = client.until(ASK)
        set_mode(client, session, "plan")  # while a turn runs and a person is asked
        client.choose(question, "reject_once")
        assert client.ends_turn(prompt), "the second call was not asked about"
        assert seen(tree) == before
        kinds = [(each.ok, each.kind) for each in daemon.facts_of(session, CallEnded)]
        assert kinds == [(True, None), (True, None)], "of both the output is of use"
        assert [each.committed for each in daemon.facts_of(session, CallDecided)] == [False, False]
    daemon.crash()
    daemon.start()
    with daemon.client() as client:
        assert client.resume(session)["mode"] == "plan"
        loaded = client.load(session)
        assert loaded["modes"]["currentModeId"] == "plan"
    assert [fact.mode for fact in daemon.facts_of(session, ModeChanged)] == ["plan"]


def test_a_daemon_that_is_killed_in_plan_mode_has_changed_nothing(daemon: DaemonProcess, tree: Path) -> None:
    before = seen(tree)
    with daemon.client() as client:
        session = client.new_session(tree, profile="code", modelless=True, mode="plan")
        client.begin_tool(session, RUN, command="echo x > a.py; sleep 60")
        while not [pool for pool in client.status()["pools"] if pool["category"] == "shell (plan)"]:
            pass
        os.kill(daemon.pid, signal.SIGKILL)
        daemon.wait()
    assert seen(tree) == before
    daemon.start()
    assert seen(tree) == before


@pytest.mark.parametrize("mode", ["", "Plan", "vault", "plan\0", "p" * 1000])
def test_another_mode_is_refused_and_nothing_changes(client: Lines, tree: Path, mode: str) -> None:
    session = client.new_session(tree, profile="code", modelless=True)
    set_mode(client, session, "ask")
    refused = client.refused("session/set_mode", {"sessionId": session, "modeId": mode})
    assert "There is: ask, edits, plan" in refused["message"]
    assert client.load(session)["modes"]["currentModeId"] == "ask"


def test_a_session_without_a_profile_is_of_the_directory(daemon: DaemonProcess, client: Lines, tree: Path) -> None:
    found = client.opened(tree / "d", model="offline")
    assert (found["profile"], found["root"]) == ("code", os.path.realpath(tree))
    (daemon.folder / "plain").mkdir()
    assert client.opened(daemon.folder / "plain", model="offline")["profile"] == "vault"
    assert client.opened(tree, model="offline", origin="call")["profile"] == "vault", "scripts name what they want"


def test_a_plan_is_shown_and_kept(daemon: DaemonProcess, client: Lines, tree: Path, tmp_path: Path) -> None:
    steps = [{"content": "Read.", "status": "completed"}, {"content": "Mend.", "priority": "high"}]
    replies = [{"calls": [call("plan", entries=each)]} for each in (steps, [{"content": ""}])]
    session = client.new_session(tree, model=scripted(tmp_path / "m.jsonl", *replies, DONE), profile="code")
    client.prompt(session, "go")
    wanted = [
        {"content": "Read.", "priority": "medium", "status": "completed"},
        {"content": "Mend.", "priority": "high", "status": "pending"},
    ]
    plans = [update["entries"] for update in client.updates(session) if update["sessionUpdate"] == "plan"]
    assert plans == [wanted], "the second one is none"
    assert [each.kind for each in daemon.facts_of(session, CallEnded)] == [None, "invalid_arguments"]
    client.heard.clear()
    client.load(session)
    assert [each["entries"] for each in client.updates(session) if each["sessionUpdate"] == "plan"] == [wanted]


@pytest.mark.parametrize("late", [False, True], ids=["in plan mode", "switched while it is asked"])
def test_nothing_runs_on_the_real_system_in_plan_mode(daemon: DaemonProcess, tree: Path, late: bool) -> None:
    before = seen(tree)
    with daemon.client(_meta={extensions.CLIENT: True}) as client:
        session = client.new_session(tree, profile="operator", modelless=True, mode="edits" if late else "plan")
        number = client.begin_tool(session, RUN, command="echo x > outside.txt; echo done")
        question = client.until(ASK)
        assert question["params"]["_meta"][extensions.REVIEW].get("escalation", False) == late
        if late:
            set_mode(client, session, "plan")
        client.choose(question, "allow_once", **{extensions.UNCONFINED: True})
        answer = client.answer(number)["result"]["answer"]
    assert answer["error"]["kind"] == "denied"
    assert seen(tree) == before
