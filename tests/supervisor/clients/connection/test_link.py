"""A client's end of a connection, with a daemon at the other end that is played here."""

import socket
from collections.abc import Iterator
from concurrent.futures import Future
from typing import Any, Final

import pytest

from supervisor.acp import extensions, jsonrpc
from supervisor.clients.connection.link import Link
from supervisor.clients.connection.link_events import ConnectionLost, LinkEvent
from supervisor.errors import DaemonLost, DaemonRefused
from tests.daemon_process import Lines
from tests.supervisor.command import HANG_GUARD

REVIEW: Final = {"tool": "write_file", "arguments": "{}", "reason": ""}
ASKED: Final = {
    "sessionId": "s",
    "toolCall": {"toolCallId": "c"},
    "options": [{"optionId": "allow_once", "name": "Run it", "kind": "allow_once"}],
    "_meta": {extensions.REVIEW: REVIEW},
}
STATE: Final = {"sessionId": "s", "state": "Thinking", "turn": 1}


class Ear:
    """Keeps what it hears; raises where it is told to."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.breaks = False

    def hear(self, event: LinkEvent) -> None:
        self.heard.append(event.why if isinstance(event, ConnectionLost) else type(event).__name__)
        if self.breaks:
            raise ZeroDivisionError


class Played:
    """A link to a daemon that says what a test wants it to say."""

    def __init__(self) -> None:
        theirs, self._ours = socket.socketpair()
        self._ours.settimeout(HANG_GUARD)
        self.ear = Ear()
        self.link = Link(theirs, self.ear.hear)
        self.daemon = Lines(self._ours)

    def ask(self) -> "Future[bytes]":
        return self.link.submit("x", {})

    def answers(self) -> bool:
        """Say whether the link still takes what is said to it, and an answer at last."""
        future = self.ask()
        self.grant(self.daemon.until("x"))
        return future.result(HANG_GUARD) == b"{}"

    def grant(self, request: dict[str, Any]) -> None:
        self.daemon.reply(request, {})

    def request(self, params: Any) -> None:
        self.daemon.tell({"jsonrpc": "2.0", "id": "ask-1", "method": "session/request_permission", "params": params})

    def told(self) -> dict[str, Any]:
        """Return the client's answer to `request`."""
        return self.daemon.answer("ask-1")  # type: ignore[arg-type]


@pytest.fixture
def played() -> Iterator[Played]:
    each = Played()
    yield each
    each.link.close()
    each.daemon.close()


def test_a_request_that_nobody_waits_for_any_more_keeps_no_other_from_its_end(played: Played) -> None:
    first, second = played.ask(), played.ask()
    assert first.cancel()
    played.daemon.close()
    with pytest.raises(DaemonLost, match="The daemon"):
        second.result(HANG_GUARD)


@pytest.mark.parametrize("method", ["session/update", extensions.TURN_STATE, "$/cancel_request", "_strongroom/newer"])
def test_a_notification_that_cannot_be_understood_is_ignored(played: Played, method: str) -> None:
    wrong: list[Any] = [{"sessionId": 7}, [], {"sessionId": "s", "update": {"sessionUpdate": "newer"}}, "\ud800"]
    for params in wrong:
        played.daemon.notify(method, params)
    assert played.answers()
    assert played.ear.heard == []


UNREADABLE: Final[list[Any]] = [
    {"sessionId": 7},
    {key: value for key, value in ASKED.items() if key != "_meta"},
    {**ASKED, "_meta": {extensions.REVIEW: {}}},
]


@pytest.mark.parametrize("params", UNREADABLE, ids=["a wrong type", "no review", "half a review"])
def test_a_question_that_cannot_be_understood_is_answered_with_an_error(played: Played, params: Any) -> None:
    played.request(params)
    assert played.told()["error"]["code"] == jsonrpc.INVALID_PARAMS
    assert played.answers()
    assert played.ear.heard == []


def test_a_listener_that_fails_is_told_what_comes_next(played: Played) -> None:
    played.ear.breaks = True
    for _ in range(2):
        played.daemon.notify(extensions.TURN_STATE, STATE)
        assert played.answers()
    assert played.ear.heard == ["TurnState", "TurnState"]


def test_a_question_that_a_listener_fails_at_is_answered_with_an_error(played: Played) -> None:
    played.ear.breaks = True
    played.request(ASKED)
    assert played.told()["error"]["data"]["kind"] == "internal"
    assert played.answers()
    assert played.ear.heard == ["PermissionPrompt"]


def test_the_loss_is_told_of_a_connection_that_was_good_for_something(played: Played) -> None:
    assert played.answers()
    played.daemon.close()
    played.link._reader.join(HANG_GUARD)
    assert played.ear.heard == ["The daemon has closed the connection."]
    with pytest.raises(DaemonLost):
        played.link.request("x", {}, dict)


def test_whoever_is_not_let_in_is_told_why_and_the_listener_nothing(played: Played) -> None:
    error = jsonrpc.fault(jsonrpc.INVALID_REQUEST, "1024 clients are connected.", "too_many_clients")
    played.daemon.send(jsonrpc.failure(None, error))
    played.daemon.close()
    with pytest.raises(DaemonRefused, match="1024 clients") as caught:
        played.link.introduce("test", "0")
    assert caught.value.kind == "too_many_clients"
    assert played.ear.heard == []
