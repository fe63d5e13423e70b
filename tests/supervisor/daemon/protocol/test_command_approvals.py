"""Commands that people are asked about: as a text, then by their effects; what they decide is what happens."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from supervisor.acp import extensions, schema
from supervisor.daemon.protocol.approval_request import PendingApproval
from supervisor.display.command_text import as_arguments
from supervisor.journal.facts import CallDecided, CallEnded, CallStarted, effective
from supervisor.tools.approval import ApprovalDecision, ApprovalQuestion
from tests.daemon_process import DaemonProcess, Lines, scripted
from tests.supervisor.histories import call

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
ASK: Final = "session/request_permission"
YES: Final = {"outcome": {"outcome": "selected", "optionId": "allow_once"}}
NO: Final = {"outcome": {"outcome": "selected", "optionId": "reject_once"}}

Row = dict[str, Any]
ROWS: Final[dict[str, Row]] = {
    row["id"]: row for row in json.loads(CORPUS.read_text())["cases"] if row["class"] == "review"
}


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaemonProcess]:
    folder = tmp_path_factory.mktemp("commands")
    home = folder / "home"
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text(CONFIG)
    with DaemonProcess(home, folder) as running:
        yield running
    assert "internal error" not in running.log


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
        model = scripted(root.parent / "model.jsonl", *replies, {"text": "Done."})
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
        (ended,) = self.facts(CallEnded)
        found: CallEnded = ended
        return found

    def facts(self, kind: type[Any]) -> list[Any]:
        return [fact for fact in self._daemon.sessions[self.session] if isinstance(fact, kind)]


def edited(argv: dict[str, Any]) -> dict[str, Any]:
    return {**YES, "_meta": {extensions.EDITED: argv}}


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
        client.reply(turn.asked("call"), edited(edit(row)))
        assert turn.ended().kind in row["kind"]


def test_a_rejected_command_never_runs(daemon: DaemonProcess, project: Path) -> None:
    row = ROWS["C089"]
    with daemon.client() as client:
        turn = Turn(daemon, client, project, "asking", row["proposed"])
        client.reply(turn.asked("call"), YES)
        client.reply(turn.asked("effects"), NO)
        assert turn.ended().kind in row["kind"]
    assert (project / "d" / "b.txt").exists()


def test_no_answer_is_no_approval(daemon: DaemonProcess, project: Path) -> None:
    row = ROWS["C090"]
    with daemon.client() as client:
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
        other.request("session/load", {"sessionId": turn.session, "cwd": "/", "mcpServers": []})
        for stage in ("call", "effects"):
            question = first if stage == "call" else turn.asked("effects")
            client.reply(question, YES)
            other.reply(other.until(ASK), YES)
        assert turn.ended().ok
    assert len([fact for fact in turn.facts(CallDecided) if fact.committed]) == row["checks"][0]["runs"]
    assert (project / "r.txt").exists()


def test_of_two_answers_the_first_counts() -> None:
    started = CallStarted(1, "c", "exec_shell", "{}", True, "ask", "")
    shown = schema.ToolCall(tool_call_id="c", title="exec_shell")
    question = PendingApproval("s", ApprovalQuestion(started, "call", "why"), shown)
    question.decide(ApprovalDecision(approved=False, by="first"))
    question.decide(ApprovalDecision(approved=True, by="second"))
    assert question.decision == ApprovalDecision(approved=False, by="first")


HIDING: Final = {"C092": "\\u202e/cte", "C093": " blanks] -la'", "C094": "a\\x1b[1A\\x1b[2Kb"}


@pytest.mark.parametrize(("number", "seen"), HIDING.items(), ids=HIDING)
def test_what_would_hide_in_a_review_is_seen(daemon: DaemonProcess, project: Path, number: str, seen: str) -> None:
    with daemon.client() as client:
        turn = Turn(daemon, client, project, "asking", ROWS[number]["proposed"])
        question = turn.asked("call")
        assert seen in shown(question)
        assert not set("\u202e\x1b") & set(shown(question))
        client.reply(question, NO)
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
        client.reply(first, edited({"command": "touch", "args": ["second.txt"]}))
        second = turn.asked("effects")
        assert [each["path"] for each in second["params"]["_meta"][extensions.REVIEW]["effects"]["changes"]] == [
            "second.txt"
        ]
        client.reply(first, YES)
        client.request(extensions.STATUS_METHOD, {})
        assert not (project / "second.txt").exists()
        client.reply(second, YES)
        assert turn.ended().ok
    assert (project / "second.txt").exists()
    assert not (project / "first.txt").exists()
    started = turn.facts(CallStarted)
    assert [json.loads(effective(each))["args"] for each in started] == [["first.txt"], ["second.txt"]]
    assert [(each.committed, each.edited is not None) for each in turn.facts(CallDecided)] == [
        (False, True),
        (True, False),
    ]


def test_a_yes_for_the_session_covers_the_next_one(daemon: DaemonProcess, project: Path) -> None:
    with daemon.client() as client:
        turn = Turn(daemon, client, project, "rehearsing", ["touch", "s.txt"], ["rm", "s.txt"], ["touch", "s.txt"])
        question = turn.asked("effects")
        longer = next(each for each in question["params"]["options"] if each["optionId"] == "allow_session")
        assert "s.txt" in longer["name"]
        client.reply(question, {"outcome": {"outcome": "selected", "optionId": "allow_session"}})
        client.reply(turn.asked("effects"), YES)  # of the deletion, which the rule does not cover
        turn.wait()  # without another question
    decided = turn.facts(CallDecided)
    assert [(each.decision, each.scope) for each in decided] == [("ask", "session"), ("ask", "once"), ("allow", "once")]
    assert (project / "s.txt").exists()
