"""Programs that [shell] does not list: a question where somebody is there, and no start where nobody is."""

from pathlib import Path
from typing import Any

import pytest

from supervisor.acp import extensions
from supervisor.journal.facts import CallStarted
from tests.daemon_process import ASK, DaemonProcess, Lines


@pytest.fixture(scope="module")
def tree(daemon: DaemonProcess) -> Path:
    root = daemon.folder / "tree"
    root.mkdir()
    (root / "a.txt").write_text("alpha\n")
    return root


def ran(client: Lines, session: str, option: str, command: str = "sed", *args: str) -> tuple[list[str], Any]:
    """Run a program, choosing that option; return the reasons of the questions, and the answer."""
    number, reasons = client.begin_tool(session, "exec_shell", command=command, args=args or ("p", "a.txt")), []
    while "method" in (message := client.read()) or message.get("id") != number:
        if message.get("method") == ASK:
            reasons.append(message["params"]["_meta"][extensions.REVIEW]["reason"])
            client.choose(message, option)
    return reasons, message["result"]["answer"]


ASKED = "sed is not among the `programs` of [shell]"
KIND = "command_not_allowed"


def test_a_yes_holds_as_long_as_it_says(daemon: DaemonProcess, client: Lines, tree: Path) -> None:
    def opened() -> str:
        return client.new_session(tree, profile="project", modelless=True)

    first = opened()
    reasons, answer = ran(client, first, "reject_once")
    assert (reasons, answer["error"]["kind"]) == ([ASKED], "denied")
    for option, asked in (("allow_once", True), ("allow_session", True), ("reject_once", False)):
        reasons, answer = ran(client, first, option)
        assert (reasons, answer["ok"]) == ([ASKED] * asked, True), answer
        assert answer["content"]["stdout"] == "alpha\nalpha\n"
    second = opened()
    for option, asked in (("allow_always", True), ("reject_once", False)):
        reasons, answer = ran(client, second, option)
        assert (reasons, answer["ok"]) == ([ASKED] * asked, True)
    assert ran(client, opened(), "reject_once")[0] == []
    assert ran(client, opened(), "reject_once", "awk", "1")[0] == [ASKED.replace("sed", "awk")]
    (rule,) = [fact.rule for fact in daemon.facts_of(second, CallStarted) if fact.rule is not None]
    assert (rule.programs, rule.starts) == (("sed",), True)
    lines = client.request(extensions.RULES_METHOD, {"sessionId": second})["lines"]
    assert any("sed may be started" in line for line in lines)


def test_a_start_is_no_leave_to_change_anything(client: Lines, tree: Path) -> None:
    session = client.new_session(tree, profile="project", modelless=True)
    reasons, _answer = ran(client, session, "reject_once", "tee", "b.txt")
    assert len(reasons) == 1
    number = client.begin_tool(session, "exec_shell", command="tee", args=["b.txt"])
    client.choose(client.until(ASK), "allow_session")
    question = client.until(ASK)
    assert question["params"]["_meta"][extensions.REVIEW]["stage"] == "effects"
    client.choose(question, "reject_once")
    assert client.answer(number)["result"]["answer"]["error"]["kind"] == "denied"
    assert not (tree / "b.txt").exists()


@pytest.mark.parametrize("command", ["/bin/sed", "../sed", "sed -n", "./a.txt", "", ".", "..", "s\0ed", "x" * 5000])
def test_what_is_no_program_s_name_is_no_question(client: Lines, tree: Path, command: str) -> None:
    session = client.new_session(tree, profile="project", modelless=True)
    reasons, answer = ran(client, session, "allow_once", command)
    assert (reasons, answer["error"]["kind"]) == ([], KIND)


@pytest.mark.parametrize("how", [{"attended": False}, {"origin": "call"}], ids=str)
def test_where_nobody_is_there_it_does_not_start(client: Lines, tree: Path, how: dict[str, Any]) -> None:
    session = client.new_session(tree, profile="project", modelless=True, **how)
    reasons, answer = ran(client, session, "allow_once", "awk", "1")
    assert (reasons, answer["error"]["kind"]) == ([], KIND)
    assert "`programs` of [shell]" in answer["error"]["message"]
