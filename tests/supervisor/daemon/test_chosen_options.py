"""How a model replies is chosen by a client, asked of the server, and remembered with the session."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from supervisor.acp import extensions
from supervisor.journal.facts import OptionChosen
from tests.daemon_process import DaemonProcess, Lines
from tests.messages_server import MessagesServer, reply

HAIKU: Final = "claude-haiku-5-5"
OLDER: Final = "claude-haiku-4-5"


@pytest.fixture
def server() -> Iterator[MessagesServer]:
    with MessagesServer([reply("done")], repeat_last=True) as server:
        yield server


@pytest.fixture
def daemon(home: Path, tmp_path: Path, server: MessagesServer) -> Iterator[DaemonProcess]:
    with DaemonProcess(home, tmp_path, ANTHROPIC_API_KEY="sk-test", ANTHROPIC_BASE_URL=server.url) as daemon:
        yield daemon


def choose(client: Lines, session: str, option: str, value: str | bool) -> dict[str, Any]:
    params = {"sessionId": session, "configId": option, "value": value}
    return current(client.request("session/set_config_option", params))


def current(result: dict[str, Any]) -> dict[str, Any]:
    return {each["id"]: each["currentValue"] for each in result["configOptions"]}


def asked(server: MessagesServer) -> tuple[int, Any, Any]:
    """Return what the last request said of its reply."""
    (*_, last) = server.requests
    assert last.refused is None
    return last.body["max_tokens"], last.body.get("output_config"), last.body.get("temperature")


def test_a_choice_counts_from_the_next_request_on_and_outlives_the_daemon(
    daemon: DaemonProcess, server: MessagesServer, root: Path
) -> None:
    with daemon.client() as client, daemon.client() as other:
        session = client.new_session(root, model=HAIKU)
        other.load(session)
        client.prompt(session, "one")
        assert asked(server) == (32_000, None, None)
        assert choose(client, session, "effort", "high")["effort"] == "high"
        choose(client, session, "max_tokens", "1234")
        client.prompt(session, "two")
        assert asked(server) == (1234, {"effort": "high"}, None)
        other.request(extensions.CONTINUE_METHOD, {"sessionId": session})
        told = [each for each in other.updates(session) if each["sessionUpdate"] == "config_option_update"]
        assert [current(each)["effort"] for each in told] == ["high", "high"]
        (status,) = client.status()["sessions"]
        assert status["options"] == {"effort": "high", "max_tokens": "1234"}
    daemon.crash()
    daemon.start()
    with daemon.client() as client:
        assert client.resume(session)["options"] == {"effort": "high", "max_tokens": "1234"}
        assert current(client.load(session))["effort"] == "high"
        client.prompt(session, "three")
        assert asked(server) == (1234, {"effort": "high"}, None)
        assert choose(client, session, "effort", "default")["effort"] == "default"
        client.prompt(session, "four")
        assert asked(server) == (1234, None, None)
    chosen = [(fact.option, fact.value) for fact in daemon.facts_of(session, OptionChosen)]
    assert chosen == [("effort", "high"), ("max_tokens", "1234"), ("effort", "")]


def test_another_model_offers_what_it_has(daemon: DaemonProcess, server: MessagesServer, root: Path) -> None:
    with daemon.client() as client:
        session = client.new_session(root, model=HAIKU)
        assert "temperature" not in choose(client, session, "effort", "xhigh")
        assert "temperature" in choose(client, session, "model", OLDER)
        choose(client, session, "temperature", "0.25")
        client.prompt(session, "one")
        assert asked(server) == (8_192, None, 0.25)
        assert [*choose(client, session, "model", "offline")] == ["model", "mode", "profile"]
        choose(client, session, "model", HAIKU)
        client.prompt(session, "two")
        assert asked(server) == (32_000, {"effort": "xhigh"}, None)


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("effort", "very", "The option effort is one of none, low"),
        ("max_tokens", "999999999", "from 1 to 128000"),
        ("temperature", "1", "has no option 'temperature'"),
        ("window", "1", "There is: model, mode, profile, effort, max_tokens, temperature"),
    ],
)
def test_what_cannot_be_chosen_is_refused_and_nothing_is_recorded(
    daemon: DaemonProcess, root: Path, option: str, value: str, words: str
) -> None:
    with daemon.client() as client:
        session = client.new_session(root, model=HAIKU)
        params = {"sessionId": session, "configId": option, "value": value}
        assert words in client.refused("session/set_config_option", params)["message"]
    assert daemon.facts_of(session, OptionChosen) == []


def test_a_client_that_can_show_a_switch_has_one_for_thinking(
    daemon: DaemonProcess, server: MessagesServer, root: Path
) -> None:
    able: dict[str, Any] = {"session": {"configOptions": {"boolean": {}}}}
    with daemon.client() as other, daemon.client() as client:
        client.request("initialize", {"protocolVersion": 1, "clientCapabilities": able})
        session = client.new_session(root, model=HAIKU)
        assert "thinking" not in current(other.load(session))
        seen = []
        choices: list[tuple[str, str | bool]]
        choices = [("thinking", False), ("thinking", False), ("thinking", True), ("effort", "high")]
        for option, value in choices:
            now = choose(client, session, option, value)
            client.prompt(session, "one")
            seen.append((now["thinking"], now["effort"], server.requests[-1].body["thinking"]["type"]))
        assert choose(client, session, "thinking", True)["effort"] == "high"
        assert "thinking" not in choose(client, session, "model", "offline")
        for option, wrong in [("thinking", True), ("thinking", "on"), ("mode", True)]:
            client.refused("session/set_config_option", {"sessionId": session, "configId": option, "value": wrong})
    off, on = (False, "none", "disabled"), (True, "default", "adaptive")
    assert seen == [off, off, on, (True, "high", "adaptive")]


def test_a_session_of_single_calls_has_no_options(daemon: DaemonProcess, root: Path) -> None:
    with daemon.client() as client:
        session = client.new_session(root, modelless=True)
        params = {"sessionId": session, "configId": "effort", "value": "high"}
        assert "has no option 'effort'" in client.refused("session/set_config_option", params)["message"]


def test_an_unknown_model_is_said_to_be_one(daemon: DaemonProcess, root: Path) -> None:
    with daemon.client() as client:
        (notice,) = client.opened(root, model="claude-unheard")["notices"]
        assert notice.startswith(
            "THE MODEL claude-unheard IS NOT KNOWN: it is counted on for a context of 32768 tokens"
        )
        assert "notices" not in client.opened(root, model=HAIKU)
