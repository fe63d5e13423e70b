"""A limit of the model's server is waited for: over kill -9, until its time, a person's word, or another model."""

import socket
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from supervisor.acp import extensions
from supervisor.journal.facts import Replied, SessionChanged, TurnEnded, TurnSuspended
from tests.daemon_process import DaemonProcess, Lines, named
from tests.forked import ForkedStrongroom
from tests.messages_server import MessagesServer, error, reply
from tests.script_server import Recorded
from tests.supervisor.command import Strongroom, finished, wait_until
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


def test_one_that_is_stopping_already_leaves_it_waiting_too(daemon: DaemonProcess, root: Path) -> None:
    def stop(_request: Recorded) -> None:
        daemon.terminate()
        wait_until(lambda: "stopping" in daemon.log)

    daemon.configure("[daemon]\ndrain_s = 0.2\n")
    with MessagesServer([LIMITED], on_request=stop) as server:
        use(daemon, server)
        with daemon, daemon.client() as client:
            session = client.new_session(root, model="m")
            client.begin_prompt(session, "go")
            wait_until(lambda: daemon.facts_of(session, TurnSuspended))
    assert len(daemon.facts_of(session, TurnSuspended)) == 1
    assert daemon.facts_of(session, TurnEnded) == []


def test_beyond_the_longest_wait_it_waits_for_a_persons_word(
    daemon: DaemonProcess, server: MessagesServer, root: Path
) -> None:
    daemon.configure("[waiting]\nlongest_s = 60\n")
    with daemon, daemon.client() as client:
        session = client.new_session(root, model="m")
        turn = client.prompt(session, "go")["_meta"][extensions.TURN]
        assert (turn["status"], turn["kind"]) == ("suspended", "limit")
        assert answer(client.prompt(session, "/go")) == "at last"


# batches --------------------------------------------------------------------------------------------------------------


def test_a_batch_that_waits_for_hours_goes_on_after_kill_9_of_it_and_of_the_daemon(
    daemon: DaemonProcess, server: MessagesServer, root: Path
) -> None:
    command = ForkedStrongroom(daemon.home, daemon.folder, **daemon.environment)
    arguments = command.batch_of("one\ntwo", model="m", root=str(root))
    daemon.start()
    killed = command.start(*arguments)
    wait_until(lambda: any(isinstance(fact, TurnSuspended) for fact in daemon.facts))
    killed.kill()
    finished(killed)
    daemon.crash()
    assert command.results == []
    server.add(reply("and two"))
    with daemon, daemon.client() as client:
        resumed = command.start(*arguments, "--resume")
        (session,) = [name for name in daemon.sessions if daemon.facts_of(name, TurnSuspended)]
        wait_until(lambda: of_session(client, session)["state"] == "Suspended")
        assert len(server.requests) == 1
        client.load(session)
        client.request(extensions.CONTINUE_METHOD, {"sessionId": session, "go": True})
        done = finished(resumed)
        assert (done.code, done.err.count("waiting until ")) == (0, 1)
    assert [(each["id"], each["answer"]) for each in command.results] == [("1", "at last"), ("2", "and two")]
    assert len(server.requests) == 3
    assert len(daemon.facts_of(session, TurnSuspended)) == 1
    assert command.run("verify").code == 0


ITEMS: Final = 50
AT_ONCE: Final = 8
HOLDS: Final = 3


class Gate(MessagesServer):
    """Holds `HOLDS` requests at once, later `AT_ONCE`, and refuses those beyond. It never ends."""

    def __init__(self) -> None:
        super().__init__([{"sse": reply("yes"), "gap": 0.01}], repeat_last=True)
        self.holds, self.busy = HOLDS, 0
        self.arrived: list[tuple[int, int]] = []
        """How many were under way when a request came, that one too, and how many it held."""

    def play(self, connection: socket.socket, request: Recorded, response: Mapping[str, Any]) -> bool:
        with self._lock:
            self.busy += 1
            self.arrived.append((self.busy, self.holds))
            taken = self.busy <= self.holds
            if sum(busy <= holds for busy, holds in self.arrived) == ITEMS // 2:
                self.holds = AT_ONCE
        try:
            limit = error(429, "slow down", "rate_limit_error", retry_after_ms="50")
            return super().play(connection, request, response if taken else limit)
        finally:
            with self._lock:
                self.busy -= 1


def test_a_batch_makes_fewer_requests_at_once_where_a_limit_is_reached_and_more_again(
    strongroom: Strongroom, root: Path
) -> None:
    with Gate() as server:
        strongroom.environment |= {"ANTHROPIC_API_KEY": "sk-ant-test", "ANTHROPIC_BASE_URL": server.url}
        items = "\n".join(["go"] * ITEMS)
        done = strongroom.run(*strongroom.batch_of(items, "--concurrency", str(AT_ONCE), model="m"))
    assert done.code == 0, done.err
    refused = sum(busy > holds for busy, holds in server.arrived)
    assert 0 < refused < 2 * AT_ONCE  # at the first moment and now and then; else every third one is
    assert max(busy for busy, holds in server.arrived if holds == AT_ONCE) > HOLDS
