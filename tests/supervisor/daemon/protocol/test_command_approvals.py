"""Commands that people are asked about: as a text, then by their effects; what they decide is what happens."""

import json
from pathlib import Path
from typing import Any, Final

import pytest

from supervisor.acp import extensions
from supervisor.daemon.protocol.approval_request import PendingApproval
from supervisor.daemon.protocol.tool_calls import awaiting_approval
from supervisor.display.command_text import as_arguments
from supervisor.journal.facts import CallDecided, CallEnded, CallStarted, RuleRevoked, effective
from supervisor.tools.approval import ApprovalDecision, ApprovalQuestion
from tests.daemon_process import ASK, DaemonProcess, Lines, scripted
from tests.supervisor.histories import DONE, call

CORPUS: Final = Path(__file__).parents[3] / "corpus" / "commands.json"
CONFIG: Final = """
[profiles.asking]
root = "."
tools = ["exec_shell"]
ask = ["exec_shell"]

[profiles.rehearsing]
root = "."
tools = ["exec_shell"]
"""

Row = dict[str, Any]
ROWS: Final[dict[str, Row]] = {
    row["id"]: row for row in json.loads(CORPUS.read_text())["cases"] if row["class"] == "review"
}


@pytest.fixture(scope="module")
def project(daemon: DaemonProcess) -> Path:
    """A root that all share, for they agree about its files."""
    root = daemon.folder / "project"
    (root / "d").mkdir(parents=True)
    (root / "d" / "b.txt").write_text("beta\n")
    return root


class Turn:
    """A turn whose model wants commands, and a person who is asked about them."""

    def __init__(self, daemon: DaemonProcess, client: Lines, root: Path, profile: str, *commands: list[str]) -> None:
        replies = [{"calls": [call("exec_shell", command=argv[0], args=argv[1:])]} for argv in commands]
        model = scripted(root.parent / "model.jsonl", *replies, DONE)
        self._daemon = daemon
        self.client = client
        self.session = client.new_session(root, model=model, profile=profile)
        self._prompt = client.begin_prompt(self.session, "go")

    def asked(self, stage: extensions.Stage) -> dict[str, Any]:
        """Wait for a question."""
        question = self.client.until(ASK)
        assert question["params"]["_meta"][extensions.REVIEW].get("stage", "call") == stage
        return question

    def wait(self) -> None:
        """Wait for the turn's end."""
        assert "error" not in self.client.answer(self._prompt)

    def ended(self) -> CallEnded:
        """Wait for the turn's end; return that of its only call."""
        self.wait()
        (ended,) = self._daemon.facts_of(self.session, CallEnded)
        return ended

    def edit(self, question: dict[str, Any], argv: dict[str, Any]) -> None:
        self.client.choose(question, "allow_once", **{extensions.EDITED: argv})


def shown(question: dict[str, Any]) -> str:
    """Return all that a client without extensions shows of a call."""
    tool_call = question["params"]["toolCall"]
    blocks = [block["content"]["text"] for block in tool_call["content"] if block["type"] == "content"]
    return "\n".join([tool_call["title"], *blocks])


# --- the rows of the corpus -------------------------------------------------------------------------------------------

EDITS: Final = [
    ("C087", lambda row: {"command": row["edited"][0], "args": row["edited"][1:]}),
    ("C088", lambda row: json.loads(as_arguments(row["edited_line"]))),
]


@pytest.mark.parametrize(("row", "edit"), [(ROWS[number], edit) for number, edit in EDITS], ids=["C087", "C088"])
def test_an_edited_command_is_judged_anew(daemon: DaemonProcess, project: Path, row: Row, edit: Any) -> None:
    with daemon.client(_meta={extensions.CLIENT: True}) as client:
        turn = Turn(daemon, client, project, "asking", row["proposed"])
        turn.edit(turn.asked("call"), edit(row))
        assert turn.ended().kind in row["kind"]


def test_a_rejected_command_never_runs(daemon: DaemonProcess, client: Lines, project: Path) -> None:
    row = ROWS["C089"]
    turn = Turn(daemon, client, project, "asking", row["proposed"])
    client.allow(turn.asked("call"))
    client.choose(turn.asked("effects"), "reject_once")
    assert turn.ended().kind in row["kind"]
    assert (project / "d" / "b.txt").exists()


def test_no_answer_is_no_approval(daemon: DaemonProcess, client: Lines, project: Path) -> None:
    row = ROWS["C090"]
    turn = Turn(daemon, client, project, "rehearsing", row["proposed"])
    turn.asked("effects")
    client.notify("session/cancel", {"sessionId": turn.session})
    assert turn.ended().kind in row["kind"]
    assert (project / "d" / "b.txt").exists()


def test_two_who_approve_let_it_run_once(daemon: DaemonProcess, project: Path) -> None:
    row = ROWS["C091"]
    with daemon.client() as client, daemon.client() as other:
        turn = Turn(daemon, client, project, "asking", row["proposed"])
        first = turn.asked("call")
        other.load(turn.session)
        for stage in ("call", "effects"):
            question = first if stage == "call" else turn.asked("effects")
            client.allow(question)
            other.allow(other.until(ASK))
        assert turn.ended().ok
    committed = [fact.committed for fact in daemon.facts_of(turn.session, CallDecided)]
    assert committed.count(True) == row["checks"][0]["runs"]
    assert (project / "r.txt").exists()


def test_of_two_answers_the_first_counts() -> None:
    started = CallStarted(1, "c", "exec_shell", "{}", True, "ask", "")
    question = PendingApproval("s", *awaiting_approval(ApprovalQuestion(started, "call", "why"), "/root"))
    question.decide(ApprovalDecision(approved=False, by="first"))
    question.decide(ApprovalDecision(approved=True, by="second"))
    assert question.decision == ApprovalDecision(approved=False, by="first")


HIDING: Final = {"C092": "\\u202e/cte", "C093": " blanks] -la'", "C094": "a\\x1b[1A\\x1b[2Kb"}


@pytest.mark.parametrize(("number", "seen"), HIDING.items(), ids=HIDING)
def test_hidden_characters_of_a_command_are_seen(
    daemon: DaemonProcess, client: Lines, project: Path, number: str, seen: str
) -> None:
    turn = Turn(daemon, client, project, "asking", ROWS[number]["proposed"])
    question = turn.asked("call")
    assert seen in shown(question)
    assert not set("\u202e\x1b") & set(shown(question))
    client.choose(question, "reject_once")
    assert turn.ended().kind == "denied"


def test_every_row_of_the_class_is_here() -> None:
    assert set(ROWS) == {*(number for number, _ in EDITS), "C089", "C090", "C091", *HIDING}


# --- effects ----------------------------------------------------------------------------------------------------------


def test_an_edited_command_is_rehearsed_anew_and_a_late_answer_to_the_first_question_counts_for_nothing(
    daemon: DaemonProcess, project: Path
) -> None:
    with daemon.client(_meta={extensions.CLIENT: True}) as client:
        turn = Turn(daemon, client, project, "rehearsing", ["touch", "first.txt"])
        first = turn.asked("effects")
        turn.edit(first, {"command": "touch", "args": ["second.txt"]})
        second = turn.asked("effects")
        assert [each["path"] for each in second["params"]["_meta"][extensions.REVIEW]["effects"]["changes"]] == [
            "second.txt"
        ]
        client.allow(first)
        client.status()
        assert not (project / "second.txt").exists()
        client.allow(second)
        assert turn.ended().ok
    assert (project / "second.txt").exists()
    assert not (project / "first.txt").exists()
    started = daemon.facts_of(turn.session, CallStarted)
    assert [json.loads(effective(each))["args"] for each in started] == [["first.txt"], ["second.txt"]]
    assert [(each.committed, each.edited is not None) for each in daemon.facts_of(turn.session, CallDecided)] == [
        (False, True),
        (True, False),
    ]


def test_a_yes_for_the_session_covers_the_next_one(daemon: DaemonProcess, client: Lines, project: Path) -> None:
    turn = Turn(daemon, client, project, "rehearsing", ["touch", "s.txt"], ["rm", "s.txt"], ["touch", "s.txt"])
    question = turn.asked("effects")
    longer = next(each for each in question["params"]["options"] if each["optionId"] == "allow_session")
    assert "s.txt" in longer["name"]
    client.choose(question, "allow_session")
    client.allow(turn.asked("effects"))  # of the deletion, which the rule does not cover
    turn.wait()  # without another question
    decided = daemon.facts_of(turn.session, CallDecided)
    assert [(each.decision, each.scope) for each in decided] == [("ask", "session"), ("ask", "once"), ("allow", "once")]
    assert (project / "s.txt").exists()


def said(client: Lines, session: str, prompt: str) -> str:
    """Prompt with a command of ours, and return what it answers."""
    client.prompt(session, prompt)
    text: str = client.updates(session)[-1]["content"]["text"]
    return text


def test_a_rule_for_the_session_is_listed_and_revoked_in_it(
    daemon: DaemonProcess, client: Lines, project: Path
) -> None:
    turn = Turn(daemon, client, project, "rehearsing", ["touch", "session.txt"])
    client.choose(turn.asked("effects"), "allow_session")
    turn.wait()
    assert ", for this session: touch may add or change session.txt and delete nothing" in said(
        client, turn.session, "/rules"
    )
    other = client.new_session(project, model="offline", profile="rehearsing")
    assert "session.txt" not in said(client, other, "/rules")
    revoked = client.request(extensions.RULES_METHOD, {"sessionId": turn.session, "revoke": "1"})
    assert revoked["lines"][0].startswith("revoked: touch may add or change session.txt")
    assert "session.txt" not in said(client, turn.session, "/rules")
    (fact,) = daemon.facts_of(turn.session, RuleRevoked)
    (decided,) = daemon.facts_of(turn.session, CallDecided)
    assert fact.call == decided.call
    assert client.refused(extensions.RULES_METHOD, {"sessionId": turn.session, "revoke": "1"})["message"] == (
        "No rule '1' here that a person made. /rules lists them."
    )


def test_a_rule_for_the_session_ends_with_its_profile(daemon: DaemonProcess, client: Lines, project: Path) -> None:
    turn = Turn(daemon, client, project, "rehearsing", ["touch", "p.txt"])
    client.choose(turn.asked("effects"), "allow_session")
    turn.wait()
    model = client.request(
        "session/set_config_option", {"sessionId": turn.session, "configId": "model", "value": "offline"}
    )
    assert model
    assert "p.txt" in said(client, turn.session, "/rules")  # another model is no other profile
    for profile in ("asking", "rehearsing"):
        chosen = {"sessionId": turn.session, "configId": "profile", "value": profile}
        client.request("session/set_config_option", chosen)
    assert "p.txt" not in said(client, turn.session, "/rules")
