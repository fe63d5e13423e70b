"""Who is asked about a call, how often, and whose answer counts."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from threading import Barrier
from typing import Any, Final

import pytest

from supervisor.acp import extensions, jsonrpc
from supervisor.journal.facts import CallDecided, CallEnded
from tests.daemon_process import ASK, DaemonProcess, Lines, scripted
from tests.supervisor.histories import ASKING, DONE, call

CONFIG: Final = ASKING
NO_SUCH_METHOD: Final = {"code": jsonrpc.METHOD_NOT_FOUND, "message": "no such method"}


def fail(client: Lines, question: dict[str, Any]) -> None:
    """Answer a question with an error, and make sure that it has arrived."""
    client.tell({"jsonrpc": "2.0", "id": question["id"], "error": NO_SUCH_METHOD})
    client.status()


def outcome(daemon: DaemonProcess, session: str) -> str:
    """Return how the session's only call ended."""
    (ended,) = daemon.facts_of(session, CallEnded)
    return ended.kind or "ok"


# --- whose answer counts ----------------------------------------------------------------------------------------------


def test_an_edit_by_a_client_that_did_not_say_that_it_edits_is_no_approval(
    daemon: DaemonProcess, client: Lines, model: str, root: Path
) -> None:
    session, prompt, question = client.ask(root, model)
    client.choose(question, "allow_once", **{extensions.EDITED: {"path": "c.txt", "content": "edited"}})
    assert client.ends_turn(prompt)
    assert outcome(daemon, session) == "denied"
    assert [path.name for path in root.iterdir()] == ["a.txt"]


def test_an_error_is_no_veto_where_another_client_can_answer(daemon: DaemonProcess, model: str, root: Path) -> None:
    with daemon.client() as owner, daemon.client() as other:
        session, prompt, question = owner.ask(root, model)
        other.load(session)
        fail(other, other.until(ASK))
        owner.allow(question)
        assert owner.ends_turn(prompt)
    assert outcome(daemon, session) == "ok"
    assert (root / "b.txt").read_text() == "x"


def test_an_error_is_no_veto_where_another_client_can_answer_later(
    daemon: DaemonProcess, model: str, root: Path
) -> None:
    with daemon.client() as owner, daemon.client() as other:
        session, prompt, question = owner.ask(root, model)
        other.load(session)
        question_of_the_other = other.until(ASK)
        fail(owner, question)
        other.allow(question_of_the_other)
        assert owner.ends_turn(prompt)
    assert outcome(daemon, session) == "ok"


def test_an_error_of_the_only_client_declines_the_call(
    daemon: DaemonProcess, client: Lines, model: str, root: Path
) -> None:
    session, prompt, question = client.ask(root, model)
    fail(client, question)
    assert client.ends_turn(prompt)
    assert outcome(daemon, session) == "denied"
    assert not (root / "b.txt").exists()


def test_errors_of_all_clients_decline_the_call(daemon: DaemonProcess, model: str, root: Path) -> None:
    with daemon.client() as owner, daemon.client() as other:
        session, prompt, question = owner.ask(root, model)
        other.load(session)
        fail(other, other.until(ASK))
        fail(owner, question)
        assert owner.ends_turn(prompt)
    assert outcome(daemon, session) == "denied"


def test_of_answers_at_the_same_instant_one_counts_and_the_rest_answers_nothing_else(
    daemon: DaemonProcess, tmp_path: Path, root: Path
) -> None:
    writes = [{"calls": [call("write_file", path=path, content="x")]} for path in ("b.txt", "c.txt")]
    model = scripted(tmp_path / "two.jsonl", *writes, DONE)
    with ExitStack() as stack:
        owner, *others = (stack.enter_context(daemon.client()) for _ in range(6))
        session, prompt, question = owner.ask(root, model)
        asked = [(owner, question)]
        for other in others:
            other.load(session)
            asked.append((other, other.until(ASK)))
        together = Barrier(len(asked))

        def answer(number: int) -> None:
            client, question = asked[number]
            options = ["allow_once", "reject_once"]
            together.wait()
            for option in options[:: -1 if number % 2 else 1]:  # and each of them says yes and no
                client.choose(question, option)

        with ThreadPoolExecutor(len(asked)) as hands:
            list(hands.map(answer, range(len(asked))))
        question = owner.until(ASK)
        for client, late in asked:
            client.allow(late)
            client.status()  # it has arrived
        owner.choose(question, "reject_once")
        assert owner.ends_turn(prompt)
    first, second = daemon.facts_of(session, CallDecided)
    assert first.committed == (root / "b.txt").exists()
    assert not second.committed
    assert not (root / "c.txt").exists()


# --- who is asked when ------------------------------------------------------------------------------------------------


def test_who_loads_while_a_question_waits_is_shown_the_call_before_it_is_asked(
    daemon: DaemonProcess, model: str, root: Path
) -> None:
    with daemon.client() as owner, daemon.client() as other:
        session, prompt, question = owner.ask(root, model)
        other.load(session)
        late = other.until(ASK)
        number = late["params"]["toolCall"]["toolCallId"]
        assert number == question["params"]["toolCall"]["toolCallId"]
        shown = [each for each in other.updates(session) if each.get("toolCallId") == number]
        assert [(each["sessionUpdate"], each["status"], each["rawInput"]["path"]) for each in shown] == [
            ("tool_call", "in_progress", "b.txt"),  # as the journal has it: it has been rehearsed
            ("tool_call_update", "pending", "b.txt"),
        ]
        other.allow(late)
        assert owner.ends_turn(prompt)
    assert outcome(daemon, session) == "ok"


@pytest.mark.parametrize("knows_extensions", [True, False])
def test_a_client_is_asked_once_however_often_it_joins(
    daemon: DaemonProcess, model: str, root: Path, knows_extensions: bool
) -> None:
    with daemon.client(_meta={extensions.CLIENT: knows_extensions}) as client:
        session, prompt, question = client.ask(root, model)
        client.load(session)
        client.begin(extensions.CONTINUE_METHOD, {"sessionId": session})
        more = {"sessionId": session, "prompt": [{"type": "text", "text": "more"}]}
        assert client.refused("session/prompt", more)["data"]["kind"] == "busy"
        client.resume(session)
        client.load(session)
        client.allow(question)
        assert client.ends_turn(prompt)
        assert [each for each in client.heard if each.get("method") == ASK] == []
    assert outcome(daemon, session) == "ok"
