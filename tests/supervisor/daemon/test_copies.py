"""Where no namespaces can be made, commands are rehearsed in copies: offered, named, asked about, committed, undone."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from supervisor.acp import extensions
from tests.daemon_process import ASK, DaemonProcess, Lines, scripted
from tests.supervisor.daemon.test_absent_tools import PRELUDE as WITHOUT_NAMESPACES
from tests.supervisor.histories import DONE, call
from tests.workers.test_plan_workers import seen

PRELUDE: Final = WITHOUT_NAMESPACES
GIT: Final = ("git", "-c", "user.name=a", "-c", "user.email=a@b")


@pytest.fixture(scope="module")
def root(stopped: DaemonProcess) -> Path:
    root = stopped.folder / "root"
    root.mkdir()
    (root / "a.txt").write_text("alpha\n")
    for arguments in (("init", "-q"), ("add", "a.txt"), ("commit", "-qm", "first")):
        subprocess.run([*GIT, *arguments], cwd=root, check=True)
    return root


@pytest.fixture(scope="module")
def client(daemon: DaemonProcess) -> Iterator[Lines]:
    with daemon.client() as lines:
        yield lines


def committed(client: Lines, root: Path, *commands: str) -> tuple[str, list[dict[str, Any]]]:
    """Run command lines that a model wants, with a yes to each question; return the session and the questions."""
    replies = [{"calls": [call("run_cmd", command=each)]} for each in commands]
    model = scripted(root.parent / "model.jsonl", *replies, DONE)
    session = client.new_session(root, model=model, profile="operator")
    number = client.begin_prompt(session, "go")
    asked = []
    for _ in commands:
        client.allow(client.until(ASK))  # the text
        asked.append(client.until(ASK))
        client.allow(asked[-1])
    assert client.ends_turn(number)
    return session, asked


def undo(client: Lines, session: str) -> Any:
    return client.request(extensions.UNDO_METHOD, {"sessionId": session, "scope": "session"})


def test_the_tool_is_offered_and_the_session_says_what_it_is(client: Lines, root: Path) -> None:
    facts = client.opened(root, profile="operator", model="offline")
    assert "run_cmd" in facts["tools"]
    (notice,) = facts["notices"]
    assert notice.startswith("COMMANDS RUN IN COPIES of the root")
    workers = [each for pool in client.status()["pools"] if pool["category"] == "shell" for each in pool["workers"]]
    assert any("copy" in each.get("enforced", ()) for each in workers), workers


def test_the_review_names_the_copy_and_what_was_committed_is_undone(client: Lines, root: Path) -> None:
    session, (asked,) = committed(client, root, "echo more >> a.txt; mkdir d; echo beta > d/b.txt")
    effects = asked["params"]["_meta"][extensions.REVIEW]["effects"]
    assert effects["rehearsedIn"].startswith("ran in a copy of the root without a network")
    assert ((root / "a.txt").read_text(), (root / "d/b.txt").read_text()) == ("alpha\nmore\n", "beta\n")
    assert "problem" not in json.dumps(undo(client, session))
    assert ((root / "a.txt").read_text(), (root / "d").exists()) == ("alpha\n", False)


def test_a_commit_is_undone_though_git_has_looked_at_it_since(client: Lines, root: Path) -> None:
    head = subprocess.check_output(["git", "rev-parse", "HEAD"], cwd=root)
    line = "echo new > n.txt; git add -A; git -c user.name=a -c user.email=a@b commit -qm second"
    session, _ = committed(client, root, line)
    assert subprocess.check_output(["git", "rev-parse", "HEAD"], cwd=root) != head
    subprocess.run(["git", "status"], cwd=root, check=True, stdout=subprocess.DEVNULL)
    answer = undo(client, session)
    assert subprocess.check_output(["git", "rev-parse", "HEAD"], cwd=root) == head, answer
    assert subprocess.check_output(["git", "status", "--porcelain"], cwd=root) == b""
    assert not (root / "n.txt").exists()


def test_nothing_of_a_copy_is_left(daemon: DaemonProcess, root: Path) -> None:
    assert list((daemon.home / "copies").glob("*")) == []


def test_plan_mode_changes_nothing_in_copies_either(client: Lines, root: Path) -> None:
    before = seen(root)
    session = client.new_session(root, profile="code", modelless=True, mode="plan")
    answer = client.call(session, "run_cmd", command="echo more >> a.txt; rm -rf .git; cat a.txt")
    assert answer["ok"], answer
    assert answer["content"]["stdout"] == "alpha\nmore\n"
    assert "would have changed" in answer["note"]
    written = client.call(session, "write_file", path="b.txt", content="beta\n")
    assert written["error"]["kind"] == "denied"
    assert seen(root) == before
