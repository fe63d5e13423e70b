"""Who is asked about a call, how often, and whose answer counts."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from supervisor.acp import extensions, jsonrpc
from supervisor.journal.facts import CallEnded
from tests.daemon_process import DaemonProcess, Lines, scripted
from tests.supervisor.histories import call

CONFIG: Final = """
[profiles.asking]
root = "."
tools = ["read_file", "write_file"]
ask = ["write_file"]
"""
YES: Final = {"outcome": {"outcome": "selected", "optionId": "allow_once"}}
NO_SUCH_METHOD: Final = {"code": jsonrpc.METHOD_NOT_FOUND, "message": "no such method"}
ASK: Final = "session/request_permission"


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaemonProcess]:
    folder = tmp_path_factory.mktemp("reviews")
    home = folder / "home"
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text(CONFIG)
    with DaemonProcess(home, folder) as running:
        yield running
    assert "internal error" not in running.log


@pytest.fixture
def model(tmp_path: Path) -> str:
    """A model that writes a file, which is asked about."""
    calls = [call("write_file", path="b.txt", content="x")]
    return scripted(tmp_path / "ask.jsonl", {"calls": calls}, {"text": "Done."})


def asked(client: Lines, root: Path, model: str) -> tuple[str, int, dict[str, Any]]:
    """Begin a turn and wait for its question; return the session, the prompt's id and the question."""
    session = client.new_session(root, model=model, profile="asking")
    prompt = client.begin_prompt(session, "go")
    return session, prompt, client.until(ASK)


def load(client: Lines, session: str) -> Any:
    return client.request("session/load", {"sessionId": session, "cwd": "/", "mcpServers": []})


def fail(client: Lines, question: dict[str, Any]) -> None:
    """Answer a question with an error, and make sure that it has arrived."""
    client.tell({"jsonrpc": "2.0", "id": question["id"], "error": NO_SUCH_METHOD})
    client.request(extensions.STATUS_METHOD, {})


def outcome(daemon: DaemonProcess, session: str) -> str:
    """Return how the session's only call ended."""
    (ended,) = [fact for fact in daemon.sessions[session] if isinstance(fact, CallEnded)]
    return ended.kind or "ok"


# --- whose answer counts ----------------------------------------------------------------------------------------------


def test_an_edit_by_a_client_that_did_not_say_that_it_edits_is_no_approval(
    daemon: DaemonProcess, model: str, root: Path
) -> None:
    with daemon.client() as client:
        session, prompt, question = asked(client, root, model)
        edit = {extensions.EDITED: {"path": "c.txt", "content": "edited"}}
        client.reply(question, {**YES, "_meta": edit})
        assert client.answer(prompt)["result"]["stopReason"] == "end_turn"
    assert outcome(daemon, session) == "denied"
    assert [path.name for path in root.iterdir()] == ["a.txt"]


def test_an_error_is_no_veto_where_another_client_can_answer(daemon: DaemonProcess, model: str, root: Path) -> None:
    with daemon.client() as owner, daemon.client() as other:
        session, prompt, question = asked(owner, root, model)
        load(other, session)
        fail(other, other.until(ASK))
        owner.reply(question, YES)
        assert owner.answer(prompt)["result"]["stopReason"] == "end_turn"
    assert outcome(daemon, session) == "ok"
    assert (root / "b.txt").read_text() == "x"


def test_an_error_is_no_veto_where_another_client_can_answer_later(
    daemon: DaemonProcess, model: str, root: Path
) -> None:
    with daemon.client() as owner, daemon.client() as other:
        session, prompt, question = asked(owner, root, model)
        load(other, session)
        question_of_the_other = other.until(ASK)
        fail(owner, question)
        other.reply(question_of_the_other, YES)
        assert owner.answer(prompt)["result"]["stopReason"] == "end_turn"
    assert outcome(daemon, session) == "ok"


def test_an_error_of_the_only_client_declines_the_call(daemon: DaemonProcess, model: str, root: Path) -> None:
    with daemon.client() as client:
        session, prompt, question = asked(client, root, model)
        fail(client, question)
        assert client.answer(prompt)["result"]["stopReason"] == "end_turn"
    assert outcome(daemon, session) == "denied"
    assert not (root / "b.txt").exists()


def test_errors_of_all_clients_decline_the_call(daemon: DaemonProcess, model: str, root: Path) -> None:
    with daemon.client() as owner, daemon.client() as other:
        session, prompt, question = asked(owner, root, model)
        load(other, session)
        fail(other, other.until(ASK))
        fail(owner, question)
        assert owner.answer(prompt)["result"]["stopReason"] == "end_turn"
    assert outcome(daemon, session) == "denied"


# --- who is asked when ------------------------------------------------------------------------------------------------


def test_who_loads_while_a_question_waits_is_shown_the_call_before_it_is_asked(
    daemon: DaemonProcess, model: str, root: Path
) -> None:
    with daemon.client() as owner, daemon.client() as other:
        session, prompt, question = asked(owner, root, model)
        load(other, session)
        late = other.until(ASK)
        number = late["params"]["toolCall"]["toolCallId"]
        assert number == question["params"]["toolCall"]["toolCallId"]
        shown = [each for each in other.updates(session) if each.get("toolCallId") == number]
        assert [(each["sessionUpdate"], each["status"], each["rawInput"]["path"]) for each in shown] == [
            ("tool_call", "in_progress", "b.txt"),  # as the journal has it: it has been rehearsed
            ("tool_call_update", "pending", "b.txt"),
        ]
        other.reply(late, YES)
        assert owner.answer(prompt)["result"]["stopReason"] == "end_turn"
    assert outcome(daemon, session) == "ok"


@pytest.mark.parametrize("knows_extensions", [True, False])
def test_a_client_is_asked_once_however_often_it_joins(
    daemon: DaemonProcess, model: str, root: Path, knows_extensions: bool
) -> None:
    with daemon.client(_meta={extensions.CLIENT: knows_extensions}) as client:
        session, prompt, question = asked(client, root, model)
        load(client, session)
        client.begin(extensions.CONTINUE_METHOD, {"sessionId": session})
        more = {"sessionId": session, "prompt": [{"type": "text", "text": "more"}]}
        assert client.refused("session/prompt", more)["data"]["kind"] == "busy"
        client.request("session/resume", {"sessionId": session, "cwd": "/"})
        load(client, session)
        client.reply(question, YES)
        assert client.answer(prompt)["result"]["stopReason"] == "end_turn"
        assert [each for each in client.heard if each.get("method") == ASK] == []
    assert outcome(daemon, session) == "ok"
