"""A suspended turn in the daemon: shown everywhere, kept over kill -9, and gone on with at a word, or ended."""

import json
from pathlib import Path
from typing import Any, Final

import pytest

from supervisor.acp import extensions
from supervisor.journal.facts import CallEnded, Replied, TurnEnded, TurnResumed, TurnSuspended
from tests.daemon_process import DaemonProcess, Lines, named, scripted
from tests.supervisor.command import Strongroom, wait_until
from tests.supervisor.histories import call, fault_in_facts, script

READ: Final = {"calls": [call("read_file", path="a.txt")]}
DONE: Final = {"text": "All done."}
LOOP: Final = [READ] * 7 + [DONE]
TIMES: Final = 5


@pytest.fixture
def model(tmp_path: Path) -> str:
    """A model that repeats itself five times, and after that twice more."""
    return scripted(tmp_path / "loop.jsonl", *LOOP)


def summary(result: Any) -> Any:
    return result["_meta"][extensions.TURN]


def suspended(client: Lines, root: Path, model: str) -> str:
    """Let a turn be suspended; return its session."""
    session = client.new_session(root, model=model)
    result = client.prompt(session, "go")
    assert (result["stopReason"], summary(result)["status"]) == ("max_turn_requests", "suspended")
    assert summary(result)["kind"] == "loop"
    return session


def of_session(client: Lines, session: str) -> Any:
    return next(each for each in client.status()["sessions"] if each["sessionId"] == session)


def said(client: Lines, session: str) -> list[str]:
    chunks = [each for each in client.updates(session) if each["sessionUpdate"].endswith("_chunk")]
    return [each["content"]["text"] for each in chunks]


def test_a_client_is_told_of_it_in_words_and_in_a_type(daemon: DaemonProcess, root: Path, model: str) -> None:
    with daemon, daemon.client(_meta={extensions.CLIENT: True}) as client:
        session = suspended(client, root, model)
        said = [each for each in client.updates(session) if extensions.SUSPENDED in each.get("_meta", {})]
        states = [each["params"] for each in client.heard if each.get("method") == extensions.TURN_STATE]
        history = client.resume(session)
    (chunk,) = said
    assert chunk["sessionUpdate"] == "agent_thought_chunk"
    assert "goes round in circles" in chunk["content"]["text"]
    assert chunk["_meta"][extensions.SUSPENDED]["kind"] == "loop"
    assert states[-1]["state"] == "Suspended"
    assert states[-1]["suspended"]["why"] == chunk["_meta"][extensions.SUSPENDED]["why"]
    assert (history["state"], history["suspended"]["kind"]) == ("suspended", "loop")


def test_status_sessions_history_and_why_show_it(daemon: DaemonProcess, root: Path, model: str) -> None:
    command = Strongroom(daemon.home, daemon.folder)
    with daemon, daemon.client() as client:
        session = suspended(client, root, model)
        shown = of_session(client, session)
        assert (shown["state"], shown["suspended"]["kind"]) == ("Suspended", "loop")
        assert "suspended: The model goes round in circles" in command.run("status").out
        typed = client.prompt(session, "/status")
        assert typed["stopReason"] == "end_turn"
        assert any("suspended: The model" in text for text in said(client, session))
    assert command.run("sessions", "--json").json[-1]["state"] == "suspended"
    assert "(suspended: The model goes round in circles" in command.run("history", session).out
    (one, *_) = [fact.call for fact in daemon.facts_of(session, CallEnded)]
    assert "turn     suspended: The model goes round in circles" in command.run("why", one, "--session", session).out


def test_it_survives_kill_9_and_goes_on_at_a_word(daemon: DaemonProcess, root: Path, model: str) -> None:
    daemon.start()
    with daemon.client() as client:
        session = suspended(client, root, model)
        daemon.crash()
    with daemon, daemon.client() as client:
        wait_until(lambda: session in [each["sessionId"] for each in client.status()["sessions"]])
        client.load(session)
        still = client.request(extensions.CONTINUE_METHOD, {"sessionId": session})
        assert summary(still)["status"] == "suspended"
        assert len(daemon.facts_of(session, Replied)) == TIMES
        done = client.prompt(session, "/go")
        assert (done["stopReason"], summary(done)["answer"]) == ("end_turn", "All done.")
    facts = daemon.sessions[session]
    assert len(daemon.facts_of(session, TurnSuspended)) == 1
    assert len(daemon.facts_of(session, CallEnded)) == len(LOOP) - 1
    assert [fact.by != "" for fact in daemon.facts_of(session, TurnResumed)] == [True]
    assert fault_in_facts(facts) is None


def test_the_daemon_stops_at_once_and_leaves_it_suspended(daemon: DaemonProcess, root: Path, model: str) -> None:
    with daemon, daemon.client() as client:
        session = suspended(client, root, model)
    assert daemon.facts_of(session, TurnEnded) == []
    assert Strongroom(daemon.home, daemon.folder).run("sessions", "--json").json[-1]["state"] == "suspended"


def test_a_person_ends_it(daemon: DaemonProcess, root: Path, model: str) -> None:
    with daemon, daemon.client() as client:
        session = suspended(client, root, model)
        client.notify("session/cancel", named(session))
        wait_until(lambda: of_session(client, session)["state"] == "Input")
        (end,) = daemon.facts_of(session, TurnEnded)
        assert client.prompt(session, "/go")["stopReason"] == "end_turn"
        assert "No turn is suspended." in said(client, session)
    assert end.status == "cancelled"
    assert fault_in_facts(daemon.sessions[session]) is None


def test_closing_its_session_leaves_it_suspended(daemon: DaemonProcess, root: Path, model: str) -> None:
    with daemon, daemon.client() as client:
        session = suspended(client, root, model)
        client.request("session/close", {"sessionId": session})
        assert client.resume(session)["state"] == "suspended"
        assert summary(client.prompt(session, "/go"))["answer"] == "All done."


def test_a_batch_says_which_item_is_suspended_and_takes_it_up_again(strongroom: Strongroom, root: Path) -> None:
    script(strongroom.folder, *LOOP)
    model = f"scripted:{strongroom.folder / 'script.jsonl'}"
    other = scripted(strongroom.folder / "other.jsonl", DONE)
    items = "\n".join(map(json.dumps, [{"id": 1, "prompt": "loop"}, {"id": 2, "prompt": "go", "model": other}]))
    batch = strongroom.batch_of(items, model=model)
    assert strongroom.run(*batch).code == 1
    assert [(each["id"], each["status"]) for each in strongroom.results] == [(2, "ok"), (1, "suspended")]
    assert strongroom.results[1]["error"]["kind"] == "loop"
    assert strongroom.run(*batch, "--resume").code == 0
    assert [(each["id"], each["status"]) for each in strongroom.results] == [(2, "ok"), (1, "ok")]
    assert strongroom.asked.count("loop") == 1
    assert len(strongroom.results[1]["tool_calls"]) == len(LOOP) - 1
