"""An open session: who ends what, and who is told."""

import signal
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest

from supervisor.acp import extensions
from supervisor.journal.facts import CallEnded, Replied, SessionDeleted, TurnEnded, TurnStarted
from tests.daemon_process import ASK, DaemonProcess, Lines, named, release, scripted
from tests.messages_server import MessagesServer, reply, start, text_block
from tests.supervisor.command import wait_until
from tests.supervisor.histories import ASKING, call, fault_in_facts, opening_fact

CONFIG: Final = ASKING
WRITE: Final = call("write_file", path="b.txt", content="x")["arguments"]


def kinds(client: Lines, session: str) -> list[str]:
    return [each["sessionUpdate"] for each in client.updates(session)]


def workers(client: Lines, root: Path, state: str) -> list[int]:
    """Return the pids of the files workers on a root that are in a state, once there is one."""
    found: list[int] = []

    def are_there() -> bool:
        pools = client.status()["pools"]
        there = [pool["workers"] for pool in pools if (pool["root"], pool["category"]) == (str(root), "files")]
        found[:] = [worker["pid"] for each in there for worker in each if worker["state"] == state]
        return bool(found)

    wait_until(are_there)
    return found


# --- the end of a session, while a call of it waits or runs ----------------------------------------------------------

ENDS: Final = ["session/close", "session/delete"]


def assert_nothing_was_done(daemon: DaemonProcess, session: str, root: Path, method: str) -> None:
    assert [fact.kind for fact in daemon.facts_of(session, CallEnded)] == ["cancelled"]
    assert isinstance(daemon.sessions[session][-1], SessionDeleted) == (method == "session/delete")
    assert [path.name for path in root.iterdir()] == ["a.txt"]


def running_call(client: Lines, root: Path) -> tuple[str, int]:
    """Begin a call whose worker never answers; return its session, and the request's id."""
    session = client.new_session(root, profile="project", origin="call", modelless=True)
    client.hold_workers(root)
    number = client.begin_tool(session, "write_file", **WRITE)
    workers(client, root, "BUSY")
    return session, number


@pytest.mark.parametrize("method", ENDS)
def test_a_call_that_waits_for_a_person_ends_with_its_session(daemon: DaemonProcess, root: Path, method: str) -> None:
    with daemon.client(_meta={extensions.CLIENT: True}) as owner, daemon.client() as other:
        session = owner.new_session(root, profile="asking", origin="call", modelless=True)
        number = owner.begin_tool(session, "write_file", **WRITE)
        question = owner.until(ASK)
        other.request(method, {"sessionId": session})
        assert owner.answer(number)["error"]["data"]["kind"] == "cancelled"
        owner.allow(question)
        owner.status()  # so the late answer has arrived
    assert_nothing_was_done(daemon, session, root, method)


@pytest.mark.parametrize("method", ENDS)
def test_a_call_that_runs_ends_with_its_session(daemon: DaemonProcess, root: Path, method: str) -> None:
    with daemon.client() as owner, daemon.client() as other:
        session, number = running_call(owner, root)
        other.request(method, {"sessionId": session})
        assert owner.answer(number)["error"]["data"]["kind"] == "cancelled"
    assert_nothing_was_done(daemon, session, root, method)


@pytest.mark.parametrize("by", ["leaving", "cancelling"])
def test_a_delete_is_gone_through_with_when_nobody_waits_for_it(daemon: DaemonProcess, root: Path, by: str) -> None:
    with daemon.client() as owner, daemon.client() as other:
        session, number = running_call(owner, root)
        daemon.signal(signal.SIGSTOP)  # so that it gets all of it at once
        end = other.begin("session/delete", {"sessionId": session})
        if by == "leaving":
            other.close()
        else:
            other.notify("$/cancel_request", {"requestId": end})
        daemon.signal(signal.SIGCONT)
        assert owner.answer(number)["error"]["data"]["kind"] == "cancelled"
        assert owner.refused("session/resume", named(session))["data"]["kind"] == "not_found"  # once it is deleted
    assert_nothing_was_done(daemon, session, root, "session/delete")


# --- the end of a session, while it is loaded -------------------------------------------------------------------------


def long_session(daemon: DaemonProcess, root: Path) -> str:
    """Record a session whose history does not fit between the daemon and a client that does not read; return its id."""
    session = "20260101-000001-aaaaaaaaaaaa"
    said = [{"type": "text", "text": "z" * 300_000}]
    turns = [
        (TurnStarted(turn, "go"), Replied(turn, turn, said, "end_turn", {}), TurnEnded(turn, "ok", ""))
        for turn in range(1, 13)
    ]
    daemon.record(session, opening_fact(root), *(fact for turn in turns for fact in turn))
    return session


def test_a_session_that_is_closed_while_it_is_loaded_is_open_if_the_load_was_good(
    daemon: DaemonProcess, root: Path
) -> None:
    session = long_session(daemon, root)
    with daemon.client() as slow, daemon.client() as other:
        number = slow.begin("session/load", named(session))
        slow.heard.append(slow.read())  # it has begun
        other.request("session/close", {"sessionId": session})
        answer = slow.answer(number)
        if "error" in answer:
            assert answer["error"]["data"]["kind"] not in ("", "internal")
            slow.load(session)
        assert slow.prompt(session, "hello")["stopReason"] == "end_turn"


# --- who may cancel a turn, and who is told of what -------------------------------------------------------------------


def test_a_client_that_stops_waiting_for_a_turn_does_not_cancel_it(
    daemon: DaemonProcess, model: str, root: Path
) -> None:
    with daemon.client() as owner, daemon.client() as other:
        session, prompt, question = owner.ask(root, model)
        other.resume(session)
        number = other.begin(extensions.CONTINUE_METHOD, {"sessionId": session})
        other.notify("$/cancel_request", {"requestId": number})
        assert other.answer(number)["error"]["data"]["kind"] == "cancelled"
        owner.allow(question)
        assert owner.ends_turn(prompt)
    assert (root / "b.txt").read_text() == "x"
    assert [fact.status for fact in daemon.facts_of(session, TurnEnded)] == ["ok"]


def test_everybody_is_told_the_options_that_a_new_profile_brings(daemon: DaemonProcess, root: Path) -> None:
    with daemon.client() as owner, daemon.client() as other:
        session = owner.new_session(root, model="offline")
        other.load(session)
        owner.request("session/set_config_option", {"sessionId": session, "configId": "profile", "value": "asking"})
        for client in (owner, other):
            assert client.request(extensions.CONTINUE_METHOD, {"sessionId": session}) is None  # all of it has arrived
            (options,) = [each for each in client.updates(session) if each["sessionUpdate"] == "config_option_update"]
            assert {each["id"]: each["currentValue"] for each in options["configOptions"]} == {
                "model": "offline",
                "mode": "edits",
                "profile": "asking",
            }


def test_who_wants_to_be_told_nothing_gets_answers_alone(daemon: DaemonProcess, root: Path) -> None:
    wants = {extensions.CLIENT: True, extensions.ANSWERS_ONLY: True}
    with daemon.client(_meta=wants) as asker, daemon.client() as other:
        session = asker.new_session(root, model="offline")
        other.load(session)
        assert asker.prompt(session, "read a.txt")["stopReason"] == "end_turn"
        assert other.request(extensions.CONTINUE_METHOD, {"sessionId": session}) is None  # all of it has arrived
        assert (asker.heard, "agent_message_chunk" in kinds(other, session)) == ([], True)


def test_the_error_that_ends_a_turn_is_the_asker_s_answer_and_a_thought_for_all_others(
    daemon: DaemonProcess, root: Path, tmp_path: Path
) -> None:
    failing = scripted(tmp_path / "fails.jsonl", {"fault": "rate_limited"})
    with ExitStack() as stack:
        asker, other, late = (stack.enter_context(daemon.client()) for _ in range(3))
        session = asker.new_session(root, model=failing)
        other.load(session)
        answer = asker.answer(asker.begin_prompt(session, "go"))
        assert answer["error"]["data"]["kind"] == "rate_limited"
        late.load(session)
        for client in (asker, other, late):
            assert client.request(extensions.CONTINUE_METHOD, {"sessionId": session}) is None
        assert [kinds(client, session).count("agent_thought_chunk") for client in (asker, other, late)] == [0, 1, 1]
        (thought,) = [each for each in other.updates(session) if each["sessionUpdate"] == "agent_thought_chunk"]
        assert "rate_limited" in thought["content"]["text"]


# --- messages ---------------------------------------------------------------------------------------------------------


def test_a_message_that_came_after_retries_has_the_same_id_when_it_is_loaded(
    daemon: DaemonProcess, root: Path, tmp_path: Path
) -> None:
    model = scripted(tmp_path / "late.jsonl", {"fault": "overloaded", "times": 2, "text": "Done."}, {"text": "Again."})
    with daemon.client() as asker, daemon.client() as late:
        session = asker.new_session(root, model=model)
        for _ in range(2):
            assert asker.prompt(session, "go")["stopReason"] == "end_turn"
        late.load(session)
        said = {number: text for number, text in late.messages(session).items() if text != "go"}
        assert list(said.values()) == ["Done.", "Again."]
        assert said == asker.messages(session)


def test_half_a_sentence_of_a_cancelled_turn_is_said_once_and_known_to_the_model_as_cut(
    home: Path, tmp_path: Path, root: Path
) -> None:
    half = {"sse": start() + text_block(0, "Half a sen"), "then": "hang"}
    nothing = {"sse": start(), "then": "hang"}
    with ExitStack() as stack:
        server = stack.enter_context(MessagesServer([half, nothing, reply("tence.")]))
        environment = {"ANTHROPIC_API_KEY": "sk-test", "ANTHROPIC_BASE_URL": server.url}
        daemon = stack.enter_context(DaemonProcess(home, tmp_path, **environment))
        owner, other = (stack.enter_context(daemon.client()) for _ in range(2))
        session = owner.new_session(root, model="claude-test")
        prompt = owner.begin_prompt(session, "one")
        while "Half a sen" not in owner.messages(session).values():
            owner.heard.append(owner.read())
        owner.notify("session/cancel", {"sessionId": session})
        assert owner.answer(prompt)["result"]["stopReason"] == "cancelled"
        prompt = owner.begin_prompt(session, "two")
        while kinds(owner, session).count("session_info_update") < 2:  # the turn has begun
            owner.heard.append(owner.read())
        other.load(session)
        assert list(other.messages(session).values()) == ["one", "Half a sen", "two"]
        owner.notify("session/cancel", {"sessionId": session})
        assert owner.answer(prompt)["result"]["stopReason"] == "cancelled"
        daemon.crash()
        daemon.start()
        with daemon.client() as later:
            later.load(session)
            assert list(later.messages(session).values()) == ["one", "Half a sen", "two"]
            assert later.prompt(session, "go on")["stopReason"] == "end_turn"
        assert [each.refused for each in server.requests] == [None] * 3
        _, cut, *_ = server.requests[-1].body["messages"]
        assert cut["content"][0]["text"].startswith("Half a sen\n\n(This reply was cut here: cancelled.")


# --- models and workers -----------------------------------------------------------------------------------------------


def test_the_page_where_a_missing_key_is_made_is_offered_once_to_clients_that_open_pages(
    daemon: DaemonProcess, root: Path
) -> None:
    with daemon.client(elicitation={"url": {}}) as able, daemon.client(elicitation={"form": {}}) as other:
        other.new_session(root)
        session = able.new_session(root)
        offer = able.until("elicitation/create")
        assert (offer["params"]["mode"], offer["params"]["sessionId"]) == ("url", session)
        assert offer["params"]["url"] == "https://console.anthropic.com/settings/keys"
        able.reply(offer, {"action": "decline"})
        able.new_session(root)
        able.new_session(root, model="offline")
        for client in (able, other):
            client.status()
            assert [each for each in client.heard if each.get("method") == "elicitation/create"] == []
        assert able.prompt(session, "list *")["stopReason"] == "end_turn"


def test_a_model_that_fails_to_warm_up_costs_its_turns_and_not_the_daemon(
    home: Path, tmp_path: Path, root: Path
) -> None:
    environment = {"ANTHROPIC_API_KEY": "x", "SSL_CERT_FILE": "/nonexistent"}
    with DaemonProcess(home, tmp_path, **environment) as daemon, daemon.client() as client:
        session = client.new_session(root, model="claude-x")
        error = client.answer(client.begin_prompt(session, "go"))["error"]
        assert error["data"]["kind"]
        assert client.prompt(client.new_session(root, model="offline"), "hello")["stopReason"] == "end_turn"
        assert daemon.process.poll() is None
    assert fault_in_facts(daemon.sessions[session]) is None


def test_workers_are_not_stopped_under_a_session_that_has_just_taken_them(
    daemon: DaemonProcess, tmp_path: Path
) -> None:
    with daemon.client() as client, daemon.client() as other:
        roots = [tmp_path / f"root-{number}" for number in range(9)]
        sessions = []
        for root in roots:
            root.mkdir()
            (root / "a.txt").write_text("hello\n")
            sessions.append(client.new_session(root, profile="project", modelless=True))
        held = client.hold_workers(roots[0])
        for session in sessions[:-1]:
            client.request("session/delete", {"sessionId": session})
        end = client.begin("session/close", {"sessionId": sessions[-1]})
        wait_until(lambda: str(roots[0]) not in {pool["root"] for pool in other.status()["pools"]})
        taken = [other.new_session(root, profile="project", modelless=True) for root in roots[1:4]]
        release(held)  # nobody waits for ever for one that does not end
        assert "result" in client.answer(end)
        assert [other.call(each, "read_file", path="a.txt")["ok"] for each in taken] == [True] * 3
