"""Spans to a server: each arrives, whoever is killed or down, and none is sent that was taken."""

import json
import math
import signal
import sqlite3
import time
from collections.abc import Callable, Iterator
from email.utils import formatdate
from pathlib import Path
from typing import Any, Final

import pytest

from supervisor.clients.otlp_server import OtlpServer, target_of
from supervisor.clients.trace_export import ExportCursor, TraceExport, export_traces
from supervisor.config.settings import Settings, load
from supervisor.errors import ConfigError, StrongroomError
from supervisor.journal.facts import CallEnded, Fact, ModelRetried, Replied, SessionDeleted, TurnEnded, TurnStarted
from supervisor.journal.journal import Journal, Position
from tests.otlp_receiver import TAKEN, OtlpReceiver, spans_of
from tests.script_server import refusing_port
from tests.supervisor.command import Strongroom, finished, wait_until
from tests.supervisor.histories import opening_fact
from tests.supervisor.reports.test_session_spans import SAID

TURN: Final = (TurnStarted(1, "go"), CallEnded(1, "c", "read_file", True, ""), TurnEnded(1, "ok", ""))

ENDING: Final = (ModelRetried, Replied, CallEnded, TurnEnded)
"""Facts that end a span."""


@pytest.fixture
def spoken(journal: Journal, settings: Settings) -> Settings:
    """A home with a session of seven spans, and one of two."""
    journal.append("s", *SAID)
    journal.append("t", opening_fact(Path("/x")), *TURN)
    return settings


@pytest.fixture
def receiver() -> Iterator[OtlpReceiver]:
    with OtlpReceiver() as server:
        yield server


def export(settings: Settings, receiver: OtlpReceiver, *answers: dict[str, Any]) -> int:
    """Send what a server has not got; its answers are these, and then that it has taken it."""
    receiver.add(*answers, TAKEN)
    target = target_of(settings, receiver.url)
    assert target is not None
    send = OtlpServer(target, 0.0, lambda _said: None).send
    cursor = ExportCursor(settings.traces_file, target.server.url)
    return export_traces(settings, None, send, cursor, follow=False, content=False)


def ids(receiver: OtlpReceiver) -> list[str]:
    return [span["spanId"] for span in receiver.spans]


def test_a_server_gets_each_span_once(spoken: Settings, journal: Journal, receiver: OtlpReceiver) -> None:
    assert export(spoken, receiver) == 9
    assert export(spoken, receiver) == 0
    journal.append("t", TurnStarted(2, "again"))
    assert export(spoken, receiver) == 0
    journal.append("t", TurnEnded(2, "ok", ""))
    assert export(spoken, receiver) == 1
    assert len(set(ids(receiver))) == len(ids(receiver)) == 10
    assert receiver.spans[-1]["startTimeUnixNano"] < receiver.spans[-1]["endTimeUnixNano"]
    assert [each.refused for each in receiver.requests] == [None, None]


def test_what_a_server_refuses_is_sent_the_next_time(spoken: Settings, receiver: OtlpReceiver) -> None:
    with pytest.raises(StrongroomError, match=r"refuses the spans \(400\): .*not today"):
        export(spoken, receiver, receiver.error(400, "not today", "x"))
    assert export(spoken, receiver) == 9
    assert ids(receiver)[:9] == ids(receiver)[9:]


@pytest.mark.parametrize("more", [(), TURN])
def test_a_journal_that_was_cut_back_is_sent_from_its_beginning(
    more: tuple[Fact, ...], spoken: Settings, journal: Journal, receiver: OtlpReceiver
) -> None:
    export(spoken, receiver)
    with sqlite3.connect(spoken.journal) as connection:
        connection.execute("DROP TRIGGER facts_last")
        connection.execute("DELETE FROM facts WHERE seq > 15")
    connection.close()
    journal.append("u", opening_fact(Path("/x")), *more)
    assert export(spoken, receiver) == (9 if more else 7)
    assert ids(receiver)[9:16] == ids(receiver)[:7]


def test_nothing_is_sent_of_a_row_that_was_changed(spoken: Settings, receiver: OtlpReceiver) -> None:
    with sqlite3.connect(spoken.journal) as connection:
        connection.execute("DROP TRIGGER facts_stay")
        connection.execute("UPDATE facts SET at = 1 WHERE seq = 4")
    connection.close()
    with pytest.raises(StrongroomError, match="Row 4 of the journal is not what was written"):
        export(spoken, receiver)
    assert receiver.requests == []


def test_a_deleted_session_is_left_out_unless_it_is_named(spoken: Settings, journal: Journal) -> None:
    journal.append("s", SessionDeleted())
    sent = list[bytes]()
    assert export_traces(spoken, None, sent.append, None, follow=False, content=False) == 2
    assert export_traces(spoken, "s", sent.append, None, follow=False, content=False) == 7


@pytest.mark.parametrize("after", range(18))
def test_an_export_that_begins_anywhere_makes_the_same_spans(after: int, spoken: Settings, journal: Journal) -> None:
    whole = TraceExport(journal, "", content=True).batch(Position()).spans
    rest = TraceExport(journal, "", content=True).batch(journal.position(after) or Position()).spans
    ended = [isinstance(entry.fact, ENDING) for entry in journal.everything()]
    assert rest == whole[sum(ended[:after]) :]


# servers that do not take them ------------------------------------------------------------------------------


def waited(settings: Settings, url: str, patience_s: float = math.inf) -> tuple[list[float], list[str], OtlpServer]:
    target = target_of(settings, url)
    assert target is not None
    waits, said = list[float](), list[str]()
    return waits, said, OtlpServer(target, patience_s, said.append, waits.append)


def test_a_server_that_takes_no_spans_now_is_asked_again_when_it_says(
    settings: Settings, receiver: OtlpReceiver
) -> None:
    date = formatdate(time.time() + 3600, usegmt=True)
    receiver.add(
        {"connect": "refused"},
        receiver.error(503, "", "x", retry_after="7"),
        receiver.error(429, "", "x", retry_after=date),
        receiver.error(502, "", "x", retry_after="soon"),
        {"status": 200, "body": '{"partialSuccess": {"rejectedSpans": "2", "errorMessage": "too\\u001b old"}}'},
    )
    waits, said, server = waited(settings, receiver.url)
    server.send(b'{"resourceSpans": []}')
    assert waits == [1.0, 7.0, 300.0, 8.0]
    assert said[0].endswith("; it is asked again in 1 s")
    assert "cannot be reached" in said[0]
    assert said[1:4] == [
        f"{receiver.url} takes no spans now (503); it is asked again in 7 s",
        f"{receiver.url} takes no spans now (429); it is asked again in 300 s",
        f"{receiver.url} takes no spans now (502); it is asked again in 8 s",
    ]
    assert said[4] == rf"{receiver.url} has not taken 2 spans of this request: too\x1b old"


def test_a_server_that_is_down_is_waited_for_within_bounds(settings: Settings) -> None:
    with refusing_port() as port:
        waits, _said, server = waited(settings, f"http://127.0.0.1:{port}", 100.0)
        with pytest.raises(StrongroomError, match="the same command goes on there"):
            server.send(b"{}")
    assert waits == [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]


ADDRESSES: Final[list[tuple[dict[str, str], str | None, str | None]]] = [
    ({}, None, None),
    ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://a:1"}, "-", None),
    ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://a:1"}, None, "http://a:1/v1/traces"),
    ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://a:1/x/"}, None, "http://a:1/x/v1/traces"),
    ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://b/y"}, None, "http://b/y"),
    ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://b/y"}, "https://c?k=v", "https://c/v1/traces?k=v"),
    ({}, "http://u:p@c/v1/traces", "http://c/v1/traces"),
]


@pytest.mark.parametrize(("environment", "given", "url"), ADDRESSES)
def test_the_address_is_the_given_one_or_the_environments(
    environment: dict[str, str], given: str | None, url: str | None, home: Path
) -> None:
    target = target_of(load({"STRONGROOM_HOME": str(home), **environment}), given)
    assert (target and target.server.url) == url


def test_headers_come_from_the_environment_and_the_address(home: Path, receiver: OtlpReceiver) -> None:
    given = {"OTEL_EXPORTER_OTLP_HEADERS": "api-key=a%20b, x=1"}
    settings = load({"STRONGROOM_HOME": str(home), **given})
    receiver.add(TAKEN)
    waited(settings, receiver.url.replace("//", "//u:p@"))[2].send(b'{"resourceSpans": []}')
    headers = receiver.requests[0].headers
    assert (headers["api-key"], headers["x"], headers["authorization"]) == ("a b", "1", "Basic dTpw")
    assert headers["content-type"] == "application/json"
    for wrong in ("a=%0d%0a", "é=1"):
        with pytest.raises(ConfigError, match="must look like"):
            target_of(load({"STRONGROOM_HOME": str(home), "OTEL_EXPORTER_OTLP_HEADERS": wrong}), receiver.url)


# the command ------------------------------------------------------------------------------------------------


def following(strongroom: Strongroom, receiver: OtlpReceiver) -> Any:
    return strongroom.start("traces", "--follow", "--endpoint", receiver.url)


def until(receiver: OtlpReceiver, holds: Callable[[], bool]) -> None:
    wait_until(holds, lambda: receiver.requests)


def test_an_export_that_is_killed_loses_no_span_and_ends_when_it_is_told_to(
    strongroom: Strongroom, receiver: OtlpReceiver
) -> None:
    strongroom.configure("")
    strongroom.record("s", *SAID)
    receiver.add({"sse": "", "then": "hang"}, *[TAKEN] * 3)
    killed = following(strongroom, receiver)
    until(receiver, lambda: len(receiver.spans) == 7)
    killed.kill()
    finished(killed)
    going = following(strongroom, receiver)
    until(receiver, lambda: len(receiver.spans) == 14)
    strongroom.record("t", opening_fact(Path("/x")), *TURN)
    until(receiver, lambda: len(receiver.spans) == 16)
    going.send_signal(signal.SIGTERM)
    done = finished(going)
    assert (done.code, done.err) == (0, "")
    assert receiver.spans[:7] == receiver.spans[7:14]
    assert len(set(ids(receiver))) == 9


def test_without_an_endpoint_spans_are_lines_of_json(strongroom: Strongroom) -> None:
    strongroom.configure("")
    strongroom.run("traces").assert_refused("There is no journal yet")
    strongroom.record("s", *SAID)
    (line,) = strongroom.run("traces").lines
    assert len(spans_of(line)) == 7
    assert strongroom.run("traces", "s", "--endpoint", "-").lines == [line]
    assert "plan" not in json.dumps(line)
    assert "the secret plan" in strongroom.run("traces", "--content").out
    strongroom.run("traces", "nobody").assert_refused("No session 'nobody'")
    strongroom.run("traces", "--endpoint", "ftp://x").assert_refused("must look like")
