"""Spans of a session: what the conventions have, what is left out, and that they come out the same each time."""

import json
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from supervisor.journal.facts import (
    CallEnded,
    CallStarted,
    Compacted,
    Fact,
    ModelRetried,
    ModelSwitched,
    Replied,
    ReplyOrigin,
    SessionChanged,
    TurnEnded,
    TurnStarted,
)
from supervisor.journal.journal import JournalEntry
from supervisor.reports.session_spans import SessionSpans, export_request
from tests.otlp_receiver import fault_in_spans, spans_of, told
from tests.supervisor.histories import opening_fact
from workers.wire.messages import Context

SECRET: Final = "the secret plan"
USAGE: Final = {
    "input_tokens": 5,
    "output_tokens": 7,
    "cache_read_input_tokens": 100,
    "cache_creation_input_tokens": 10,
}
CALL: Final = {"type": "tool_use", "id": "c1", "name": "read_file", "input": {"path": SECRET}}
SAID: Final[list[Fact]] = [
    opening_fact(Path("/x"), model="gemini-3-pro"),
    TurnStarted(1, SECRET),
    ModelRetried(1, 1, "overloaded", SECRET, 2.0),
    Replied(
        1,
        0,
        [{"type": "thinking", "thinking": SECRET}, {"type": "text", "text": SECRET}, CALL],
        "tool_use",
        USAGE,
        ReplyOrigin("gemini", "gemini-3-pro", "gemini", [{"text": SECRET}], "gemini-3-pro-001"),
        ms=500,
    ),
    CallStarted(1, "c1", "read_file", json.dumps({"path": SECRET}), False, "allow", SECRET),
    CallEnded(1, "c1", "read_file", False, SECRET, kind="not_found"),
    ModelSwitched(1, "gemini-3-pro", "claude-9", SECRET),
    Replied(1, 1, [{"type": "text", "text": SECRET}], "end_turn", {"input_tokens": 1, "output_tokens": 2}),
    TurnEnded(1, "ok", SECRET),
    SessionChanged("vault", "offline", Context("/x"), ()),
    TurnStarted(2, SECRET),
    TurnEnded(2, "error", "", kind="api_error", message=SECRET),
    CallStarted(0, "typed", "run_cmd", "{}", True, "allow", "", typed_by="console"),
    CallEnded(0, "typed", "run_cmd", True, SECRET),
]


def entries(facts: list[Fact] = SAID) -> list[JournalEntry]:
    return [JournalEntry(number, "s", 1000.0 + number, fact) for number, fact in enumerate(facts, 1)]


def spans(*, content: bool = False, of: list[JournalEntry] | None = None) -> list[dict[str, Any]]:
    fold = SessionSpans("s", content=content)
    body = json.loads(export_request([span for entry in of or entries() for span in fold.add(entry)]))
    assert fault_in_spans(body) is None
    return spans_of(body)


def test_a_turn_is_a_trace_of_its_requests_and_calls() -> None:
    found = spans()
    assert [each["name"] for each in found] == [
        "chat gemini-3-pro",
        "chat gemini-3-pro",
        "execute_tool read_file",
        "chat claude-9",
        "invoke_agent strongroom",
        "invoke_agent strongroom",
        "execute_tool run_cmd",
    ]
    assert [each["kind"] for each in found] == [3, 3, 1, 3, 1, 1, 1]
    first, second = found[:5], found[5:]
    assert len({each["spanId"] for each in found}) == len(found)
    assert {each["traceId"] for each in first} & {each["traceId"] for each in second} == set()
    assert {each["traceId"] for each in first} == {first[4]["traceId"]}
    assert [each.get("parentSpanId") for each in first] == [first[4]["spanId"]] * 4 + [None]
    assert [each.get("parentSpanId") for each in second] == [None, None]


def test_a_span_has_what_the_conventions_ask_for() -> None:
    retried, reply, call, switched, turn, failed, typed = spans()
    assert told(reply) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "gcp.gemini",
        "gen_ai.conversation.id": "s",
        "gen_ai.request.model": "gemini-3-pro",
        "gen_ai.response.model": "gemini-3-pro-001",
        "gen_ai.response.finish_reasons": {"values": [{"stringValue": "tool_use"}]},
        "gen_ai.usage.input_tokens": "115",
        "gen_ai.usage.output_tokens": "7",
        "gen_ai.usage.cache_read.input_tokens": "100",
        "gen_ai.usage.cache_creation.input_tokens": "10",
    }
    assert (reply["startTimeUnixNano"], reply["endTimeUnixNano"]) == ("1003500000000", "1004000000000")
    assert (told(retried)["error.type"], retried["status"]) == ("overloaded", {"code": 2})
    assert (retried["startTimeUnixNano"], retried["endTimeUnixNano"]) == ("1002000000000", "1003000000000")
    assert told(call) == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.conversation.id": "s",
        "gen_ai.tool.name": "read_file",
        "gen_ai.tool.call.id": "c1",
        "gen_ai.tool.type": "function",
        "error.type": "not_found",
    }
    assert told(switched)["gen_ai.request.model"] == "claude-9"
    assert told(turn)["gen_ai.usage.input_tokens"] == "116"
    assert (turn["startTimeUnixNano"], turn["endTimeUnixNano"]) == ("1002000000000", "1009000000000")
    assert told(failed)["gen_ai.request.model"] == "offline"
    assert told(failed)["error.type"] == "api_error"
    assert typed["status"] == {}


def test_a_request_for_a_summary_is_one_of_its_turn() -> None:
    asked = Compacted(2, 3, 10, 10, "near", summary=SECRET, model="small", usage=USAGE, ms=250, failure="nonsense")
    alone = msgspec.structs.replace(asked, model="", usage={})
    facts = [*SAID[:11], alone, asked, TurnEnded(2, "ok", "")]
    summary, turn = spans(of=entries(facts))[-2:]
    assert (summary["name"], summary["parentSpanId"]) == ("chat small", turn["spanId"])
    assert (summary["startTimeUnixNano"], summary["endTimeUnixNano"]) == ("1012750000000", "1013000000000")
    assert (told(summary)["gen_ai.usage.input_tokens"], told(summary)["error.type"]) == ("115", "nonsense")
    assert told(turn)["gen_ai.usage.input_tokens"] == "115"
    assert SECRET in told(spans(content=True, of=entries(facts))[-2])["gen_ai.output.messages"]


def test_nothing_that_was_said_is_in_a_span_unless_that_is_wanted() -> None:
    assert SECRET not in json.dumps(spans())
    _retried, reply, call, _switched, turn, *_ = map(told, spans(content=True))
    (message,) = json.loads(reply["gen_ai.output.messages"])
    use = {"type": "tool_call", "id": "c1", "name": "read_file", "arguments": {"path": SECRET}}
    said = {"type": "text", "content": SECRET}
    assert message == {"role": "assistant", "parts": [said, use], "finish_reason": "tool_use"}
    assert (call["gen_ai.tool.call.arguments"], call["gen_ai.tool.call.result"]) == (
        json.dumps({"path": SECRET}),
        SECRET,
    )
    assert json.loads(turn["gen_ai.input.messages"]) == [{"role": "user", "parts": [said]}]


@pytest.mark.parametrize("after", range(len(SAID)))
def test_whoever_goes_on_makes_the_same_spans(after: int) -> None:
    """What was before is given to the fold again, as an export does that begins there."""
    fold = SessionSpans("s", content=True)
    known = [span for entry in entries()[:after] for span in fold.add(entry)]
    fold = SessionSpans("s", content=True)
    again = [span for entry in entries()[:after] for span in fold.add(entry)]
    assert again == known
    rest = [span for entry in entries()[after:] for span in fold.add(entry)]
    assert spans_of(json.loads(export_request([*known, *rest]))) == spans(content=True)


def test_a_clock_that_was_set_back_makes_no_span_that_ends_before_it_begins() -> None:
    back = [entry if entry.seq < 6 else JournalEntry(entry.seq, "s", 500.0, entry.fact) for entry in entries()]
    assert len(spans(of=back)) == 7
