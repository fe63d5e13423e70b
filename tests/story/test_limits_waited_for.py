"""A limit of the model's server is waited for: over kill -9, until its time, a person's word, or another model."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from supervisor.acp import extensions
from supervisor.journal.facts import Replied, SessionChanged, TurnEnded, TurnSuspended
from tests.daemon_process import DaemonProcess, Lines, named
from tests.messages_server import MessagesServer, error, reply
from tests.supervisor.command import wait_until
from tests.supervisor.histories import fault_in_facts

LIMITED: Final = error(429, "slow down", "rate_limit_error", retry_after="3600")
SOON: Final = error(429, "slow down", "rate_limit_error", retry_after_ms="5100")


@pytest.fixture
def server(daemon: DaemonProcess) -> Iterator[MessagesServer]:
    """A server whose first answer is that a limit is reached."""
    with MessagesServer([LIMITED, reply("at last")]) as server:
        use(daemon, server)
        yield server


def use(daemon: DaemonProcess, server: MessagesServer) -> None:
    daemon.environment |= {"ANTHROPIC_API_KEY": "sk-ant-test", "ANTHROPIC_BASE_URL": server.url}


def begun(client: Lines, root: Path) -> tuple[str, int]:
    """Begin a turn that waits; return its session and the prompt."""
    session = client.new_session(root, model="m")
    number = client.begin_prompt(session, "go")
    wait_until(lambda: of_session(client, session)["state"] == "Suspended")
    return session, number


def of_session(client: Lines, session: str) -> Any:
    found = [each for each in client.status()["sessions"] if each["sessionId"] == session]
    return found[0] if found else {"state": "closed"}


def answer(result: Any) -> str:
    return str(result["_meta"][extensions.TURN]["answer"])


def test_a_person_sees_until_when_and_lets_it_ask_now(
    daemon: DaemonProcess, server: MessagesServer, root: Path
) -> None:
    with daemon, daemon.client() as client:
        session, number = begun(client, root)
        shown = of_session(client, session)["suspended"]
        assert shown["kind"] == "limit"
        assert "HTTP 429: slow down" in shown["why"]
        with daemon.client() as other:
            assert answer(other.prompt(session, "/go")) == "at last"
        assert answer(client.result(number)) == "at last"
    (fact,) = daemon.facts_of(session, TurnSuspended)
    assert shown["until"] == fact.until
    at = [entry.at for entry in daemon.entries if entry.fact == fact]
    assert 3590 < fact.until - at[0] <= 3600
    assert fault_in_facts(daemon.sessions[session]) is None


def test_a_killed_daemon_goes_on_waiting_until_the_same_moment(
    daemon: DaemonProcess, server: MessagesServer, root: Path
) -> None:
    daemon.start()
    with daemon.client() as client:
        session, _ = begun(client, root)
        daemon.crash()
    with daemon, daemon.client() as client:
        wait_until(lambda: of_session(client, session)["state"] == "Suspended")
        client.load(session)
        number = client.begin(extensions.CONTINUE_METHOD, {"sessionId": session})
        assert len(server.requests) == 1
        with daemon.client() as other:
            other.prompt(session, "/go")
        assert answer(client.result(number)) == "at last"
    assert len(server.requests) == 2
    assert len(daemon.facts_of(session, TurnSuspended)) == 1
    assert len(daemon.facts_of(session, Replied)) == 1


def test_a_server_that_asks_for_no_wait_is_given_some_seconds(daemon: DaemonProcess, root: Path) -> None:
    at_once = error(429, "slow down", "rate_limit_error", retry_after="0", x_should_retry="false")
    with MessagesServer([at_once], repeat_last=True) as server:
        use(daemon, server)
        with daemon, daemon.client() as client:
            session, _ = begun(client, root)
        assert len(server.requests) == 1
    (fact,) = daemon.facts_of(session, TurnSuspended)
    assert fact.until - fact.since >= 5.0


def test_what_no_wait_helps_is_not_waited_for(daemon: DaemonProcess, root: Path) -> None:
    with MessagesServer([error(401, "no", "authentication_error", retry_after="3600")]) as server:
        use(daemon, server)
        with daemon, daemon.client() as client:
            number = client.begin_prompt(client.new_session(root, model="m"), "go")
            assert client.answer(number)["error"]["data"]["kind"] == "authentication"


def test_it_goes_on_by_itself_when_its_time_has_come(daemon: DaemonProcess, root: Path) -> None:
    with MessagesServer([SOON, reply("at last")]) as server:
        use(daemon, server)
        with daemon, daemon.client() as client:
            session, number = begun(client, root)
            assert answer(client.result(number)) == "at last"
    assert len(daemon.facts_of(session, TurnSuspended)) == 1


def test_another_model_ends_the_wait(daemon: DaemonProcess, server: MessagesServer, root: Path) -> None:
    with daemon, daemon.client() as client:
        session, number = begun(client, root)
        option = {"sessionId": session, "configId": "model", "value": "offline"}
        client.request("session/set_config_option", option)
        assert client.result(number)["stopReason"] == "end_turn"
        assert len(server.requests) == 1
    assert [fact.model for fact in daemon.facts_of(session, SessionChanged)] == ["offline"]
    assert len(daemon.facts_of(session, TurnEnded)) == 1


def test_a_person_ends_it(daemon: DaemonProcess, server: MessagesServer, root: Path) -> None:
    with daemon, daemon.client() as client:
        session, number = begun(client, root)
        client.notify("session/cancel", named(session))
        assert client.result(number)["stopReason"] == "cancelled"
    assert [fact.status for fact in daemon.facts_of(session, TurnEnded)] == ["cancelled"]


def test_a_daemon_that_is_told_to_stop_leaves_it_waiting(
    daemon: DaemonProcess, server: MessagesServer, root: Path
) -> None:
    with daemon, daemon.client() as client:
        session, _ = begun(client, root)
    assert daemon.facts_of(session, TurnEnded) == []
    assert len(server.requests) == 1


def test_beyond_the_longest_wait_it_waits_for_a_persons_word(
    daemon: DaemonProcess, server: MessagesServer, root: Path
) -> None:
    daemon.configure("[waiting]\nlongest_s = 60\n")
    with daemon, daemon.client() as client:
        session = client.new_session(root, model="m")
        turn = client.prompt(session, "go")["_meta"][extensions.TURN]
        assert (turn["status"], turn["kind"]) == ("suspended", "limit")
        assert answer(client.prompt(session, "/go")) == "at last"
