"""Another model is asked where the first one is down or over its limit: with a yes, or as configured; and only then."""

import base64
import json
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from supervisor.acp import extensions
from supervisor.journal.facts import ModelSwitched, Replied, TurnEnded, TurnSuspended
from tests.daemon_process import ASK, DaemonProcess, Lines, scripted
from tests.media_files import picture
from tests.messages_server import MessagesServer, error, reply, start, text_block
from tests.script_server import Response
from tests.supervisor.command import Strongroom, wait_until
from tests.supervisor.histories import fault_in_facts

DOWN: Final = error(529, "busy", "overloaded_error", x_should_retry="false")
LIMITED: Final = error(429, "slow down", "rate_limit_error", retry_after="3600")
UNTOLD: Final = error(429, "slow down", "rate_limit_error", x_should_retry="false")
REFUSED: Final = error(401, "no", "authentication_error")


def configured(process: Strongroom | DaemonProcess, folder: Path, server: MessagesServer, **waiting: Any) -> None:
    other = scripted(folder / "other.jsonl", *[{"text": "from the other"}] * 9)
    lines = [f"{name} = {json.dumps(value)}" for name, value in waiting.items()]
    process.configure("\n".join([f"model = ['m', '{other}']", "[waiting]", *lines, ""]))
    process.environment |= {"ANTHROPIC_API_KEY": "sk-ant-test", "ANTHROPIC_BASE_URL": server.url}


def between(process: DaemonProcess, first: MessagesServer, second: MessagesServer) -> None:
    """Let a process ask the first server, and unasked the second."""
    process.configure(
        "model = ['m', 'gw/x']\n[waiting]\nfallback = 'allow'\n[models.'gw/x']\nmax_tokens = 1234\n"
        f"[providers.gw]\nbase_url = '{second.url}'\nformat = 'messages'\n"
    )
    process.environment |= {"ANTHROPIC_API_KEY": "sk-ant-test", "ANTHROPIC_BASE_URL": first.url}


def bodies(server: MessagesServer) -> list[Any]:
    """Return the requests for a reply; whether it has models is asked, too."""
    return [request.body for request in server.requests if request.method == "POST"]


def texts(body: Any) -> list[str]:
    """Return what each block of a request says."""
    blocks = (block for message in body["messages"] for block in message["content"])
    return [str(block.get("text") or block.get("content") or block["input"]) for block in blocks]


def state(client: Lines, session: str) -> str:
    found = [each["state"] for each in client.status()["sessions"] if each["sessionId"] == session]
    return str(found[0]) if found else "closed"


def turn(result: Any) -> Any:
    return result["_meta"][extensions.TURN]


def asked(client: Lines, root: Path) -> tuple[str, int, dict[str, Any]]:
    session = client.new_session(root)
    number = client.begin_prompt(session, "go")
    return session, number, client.until(ASK)


@pytest.mark.parametrize("first", [DOWN, LIMITED], ids=["down", "over its limit"])
def test_a_person_is_asked_once_and_the_first_is_tried_again(
    daemon: DaemonProcess, root: Path, tmp_path: Path, first: Response
) -> None:
    with MessagesServer([first]) as server:
        configured(daemon, tmp_path, server)
        with daemon, daemon.client(_meta={extensions.CLIENT: True}) as client:
            session, number, question = asked(client, root)
            review = question["params"]["_meta"][extensions.REVIEW]
            assert review["stage"] == "switch"
            assert review["reason"].startswith("m gives no reply, so that scripted:")
            assert question["params"]["toolCall"]["title"] == "Ask another model"
            assert json.dumps(question["params"]["toolCall"]["content"]).count("gives no reply, so that") == 1
            client.allow(question)
            assert turn(client.result(number))["answer"] == "from the other"
            states = [each["params"] for each in client.heard if each.get("method") == extensions.TURN_STATE]
            assert [each.get("otherModel", "")[:8] for each in states[-3:]] == ["scripted", "scripted", ""]
            (status,) = client.status()["sessions"]
            assert (status["model"], status.get("otherModel", "")) == ("m", "")
            assert turn(client.prompt(session, "again"))["answer"] == "from the other"  # the first rests
    switched = daemon.facts_of(session, ModelSwitched)
    assert [fact.approved for fact in switched] == [True, None]
    assert len(server.requests) == 1
    assert fault_in_facts(daemon.sessions[session]) is None


def test_a_no_leaves_it_as_it_is_and_is_not_asked_again(daemon: DaemonProcess, root: Path, tmp_path: Path) -> None:
    with MessagesServer([DOWN, DOWN]) as server:
        configured(daemon, tmp_path, server)
        with daemon, daemon.client(_meta={extensions.CLIENT: True}) as client:
            session, number, question = asked(client, root)
            client.choose(question, "reject_once")
            assert client.answer(number)["error"]["data"]["kind"] == "overloaded"
            assert client.answer(client.begin_prompt(session, "again"))["error"]["data"]["kind"] == "overloaded"
    assert [fact.approved for fact in daemon.facts_of(session, ModelSwitched)] == [False]
    assert len(server.requests) == 2


def test_another_is_shown_what_it_can_see_itself(daemon: DaemonProcess, root: Path) -> None:
    with MessagesServer([DOWN]) as server, MessagesServer([reply("blind")]) as other:
        blind = f'[providers.blind]\nformat = "messages"\nbase_url = "{other.url}"\n'
        daemon.configure(f'model = ["m", "blind/m"]\n{blind}[models.m]\nimages = true\n[waiting]\nfallback = "allow"\n')
        daemon.environment |= {"ANTHROPIC_API_KEY": "sk-ant-test", "ANTHROPIC_BASE_URL": server.url}
        image = {"type": "image", "data": base64.b64encode(picture()).decode(), "mimeType": "image/png"}
        with daemon, daemon.client() as client:
            session = client.new_session(root)
            client.request("session/prompt", {"sessionId": session, "prompt": [image]})
            for model in ("m", "blind/m", "blind/m", "m"):
                option = {"sessionId": session, "configId": "model", "value": model}
                offered = client.request("session/set_config_option", option)["configOptions"][0]["options"]
            said = client.updates(session)
        assert [each["value"] for each in offered][:2] == ["m", "blind/m"]
        assert [each["type"] for each in server.requests[0].body["messages"][0]["content"]] == ["image"]
        (sent,) = (
            each.body for each in other.requests if each.method == "POST"
        )  # it is asked which models it has, too
        (words,) = sent["messages"][0]["content"]
        assert "this model cannot see images" in words["text"]
        notices = [each["content"]["text"] for each in said if each["sessionUpdate"] == "agent_thought_chunk"]
        assert sum("The model blind/m is not shown images" in each for each in notices) == 2  # asked, and chosen


def test_as_configured_it_is_asked_without_a_question_also_in_a_batch(
    strongroom: Strongroom, root: Path, tmp_path: Path
) -> None:
    with MessagesServer([LIMITED]) as server:
        configured(strongroom, tmp_path, server, fallback="allow")
        done = strongroom.run(*strongroom.batch_of("one\ntwo", model="m"))
    assert done.code == 0, done.err
    assert [each["answer"] for each in strongroom.results] == ["from the other"] * 2
    assert len(server.requests) == 1


@pytest.mark.parametrize("first", [DOWN, UNTOLD], ids=["down", "over a limit of unknown length"])
def test_nobody_there_is_no_yes_and_an_item_that_has_waited_enough_is_taken_up_again(
    strongroom: Strongroom, root: Path, tmp_path: Path, first: Response
) -> None:
    with MessagesServer([first, reply("at last")]) as server:
        configured(strongroom, tmp_path, server, batch_longest_s=0)
        batch = strongroom.batch_of("one", model="m")
        assert strongroom.run(*batch).code == 1
        assert [(each["status"], each["error"]["kind"]) for each in strongroom.results] == [("suspended", "limit")]
        assert strongroom.run(*batch, "--resume").code == 0
    assert [(each["status"], each["answer"]) for each in strongroom.results] == [("ok", "at last")]
    assert not any(isinstance(fact, ModelSwitched) for fact in strongroom.facts)


def test_what_another_model_would_not_help_is_not_switched(strongroom: Strongroom, root: Path, tmp_path: Path) -> None:
    with MessagesServer([REFUSED]) as server:
        configured(strongroom, tmp_path, server, fallback="allow")
        assert strongroom.run(*strongroom.batch_of("one", model="m")).code == 1
    assert not any(isinstance(fact, ModelSwitched) for fact in strongroom.facts)
    assert [each["error"]["kind"] for each in strongroom.results] == ["authentication"]


@pytest.mark.parametrize("second", [DOWN, REFUSED], ids=["down as well", "with a wrong key"])
def test_where_no_other_replies_the_first_ones_limit_is_waited_for(
    daemon: DaemonProcess, root: Path, second: Response
) -> None:
    with MessagesServer([LIMITED, reply("its own")]) as server, MessagesServer([second]) as other:
        between(daemon, server, other)
        with daemon, daemon.client() as client:
            session = client.new_session(root)
            number = client.begin_prompt(session, "go")
            wait_until(lambda: state(client, session) == "Suspended")
            client.prompt(session, "/go")
            assert turn(client.result(number))["answer"] == "its own"
    (fact,) = daemon.facts_of(session, TurnSuspended)
    assert "HTTP 429" in fact.why
    assert fact.until - fact.since > 3000
    assert (len(bodies(server)), len(bodies(other))) == (2, 1)
    assert fault_in_facts(daemon.sessions[session]) is None


def _leaves(client: Lines, _question: Any) -> None:
    client.connection.shutdown(socket.SHUT_WR)


def _knows_no_questions(client: Lines, question: Any) -> None:
    client.tell({"jsonrpc": "2.0", "id": question["id"], "error": {"code": -32601, "message": "no such method"}})


def _cancels_it(client: Lines, question: Any) -> None:
    client.reply(question, {"outcome": {"outcome": "cancelled"}})


@pytest.mark.parametrize("goes", [_leaves, _knows_no_questions, _cancels_it])
def test_who_cannot_answer_suspends_the_turn_and_another_is_asked_again(
    daemon: DaemonProcess, root: Path, tmp_path: Path, goes: Callable[[Lines, Any], None]
) -> None:
    with MessagesServer([DOWN, DOWN]) as server:
        configured(daemon, tmp_path, server)
        with daemon:
            with daemon.client(_meta={extensions.CLIENT: True}) as client:
                session, number, question = asked(client, root)
                goes(client, question)
                assert turn(client.result(number))["status"] == "suspended"
            with daemon.client(_meta={extensions.CLIENT: True}) as client:
                client.load(session)
                number = client.begin_prompt(session, "/go")
                client.allow(client.until(ASK))
                assert turn(client.result(number))["answer"] == "from the other"
    assert [fact.approved for fact in daemon.facts_of(session, ModelSwitched)] == [True]
    (fact,) = daemon.facts_of(session, TurnSuspended)
    assert "HTTP 529" in fact.why
    assert fact.why.endswith("/go asks again, /model asks another one.")


def test_a_question_comes_back_after_kill_9(daemon: DaemonProcess, root: Path, tmp_path: Path) -> None:
    with MessagesServer([DOWN, DOWN]) as server:
        configured(daemon, tmp_path, server)
        daemon.start()
        with daemon.client() as client:
            session, _, _ = asked(client, root)
            daemon.crash()
        with daemon, daemon.client() as client:
            client.load(session)
            number = client.begin(extensions.CONTINUE_METHOD, {"sessionId": session})
            client.allow(client.until(ASK))
            assert turn(client.result(number))["answer"] == "from the other"
    assert [fact.approved for fact in daemon.facts_of(session, ModelSwitched)] == [True]
    assert fault_in_facts(daemon.sessions[session]) is None
    assert Strongroom(daemon.home, daemon.folder).run("verify").code == 0


def test_a_switched_turn_goes_on_after_kill_9_where_it_was_and_nothing_is_paid_twice(
    daemon: DaemonProcess, root: Path
) -> None:
    (root / "log.txt").write_text("one")
    edit = ("edit_file", {"path": "log.txt", "old": "one", "new": "one|two"})
    half = {"sse": start() + text_block(0, "All d"), "then": "hang"}
    with MessagesServer([DOWN]) as server, MessagesServer([reply("I edit.", [edit]), half, reply("Done.")]) as other:
        between(daemon, server, other)
        daemon.start()
        with daemon.client() as client:
            session = client.new_session(root)
            client.begin_prompt(session, "go")
            while "All d" not in client.messages(session).values():
                client.heard.append(client.read())
            daemon.crash()
        with daemon:
            wait_until(lambda: daemon.facts_of(session, TurnEnded))
        assert [body["max_tokens"] for body in bodies(other)] == [1234] * 3
        before, after = (texts(body) for body in bodies(other)[1:])
        assert after[: len(before)] == before
        assert [each[:5] for each in after[len(before) :]] == ["All d", "(The "]  # what was read, and that it goes on
        assert len(server.requests) == 1
    assert (root / "log.txt").read_text() == "one|two"
    assert [fact.answer for fact in daemon.facts_of(session, TurnEnded)] == ["Done."]
    assert (len(daemon.facts_of(session, ModelSwitched)), len(daemon.facts_of(session, Replied))) == (1, 2)
    assert fault_in_facts(daemon.sessions[session]) is None
    assert Strongroom(daemon.home, daemon.folder).run("verify").code == 0


def test_a_server_that_answers_with_another_model_is_told_of_once_and_recorded(
    daemon: DaemonProcess, root: Path
) -> None:
    other = reply("done").replace('"model": ""', '"model": "claude-other"')
    with MessagesServer([other], repeat_last=True) as server:
        daemon.environment |= {"ANTHROPIC_API_KEY": "sk-test", "ANTHROPIC_BASE_URL": server.url}
        with daemon, daemon.client() as client:
            session = client.new_session(root, model="claude-haiku-4-5")
            for _ in range(2):
                client.prompt(session, "go")
            said = [each for each in client.updates(session) if "has answered" in str(each.get("content"))]
    assert [each["content"]["text"].strip() for each in said] == [
        "(anthropic/claude-haiku-4-5 was asked; its server says that claude-other has answered.)"
    ]
    answered = [fact.origin.answering for fact in daemon.facts_of(session, Replied) if fact.origin is not None]
    assert answered == ["claude-other"] * 2
