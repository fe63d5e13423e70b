"""The event stream as pure data: any bytes, cut anywhere."""

import tracemalloc
from typing import Any, Final

import msgspec
import pytest

from supervisor.agent.models.event_stream import Event, EventDecoder, json_object
from supervisor.agent.models.messages_reader import MessagesReader
from supervisor.agent.models.model import Progress, Reply, TextDelta, ThoughtDelta, ToolUse
from supervisor.errors import ModelError
from tests.messages_server import block, call_block, end, event, reply, start, text_block


def decoded(*chunks: bytes) -> list[Event]:
    decoder = EventDecoder()
    return [each for chunk in chunks for each in decoder.feed(chunk)]


def accumulated(text: str, shown: list[Progress] | None = None) -> MessagesReader:
    accumulator = MessagesReader((shown if shown is not None else []).append)
    for each in decoded(text.encode()):
        accumulator.feed(each)
    return accumulator


def replied(text: str, shown: list[Progress] | None = None) -> Reply:
    accumulator = accumulated(text, shown)
    assert accumulator.complete
    return accumulator.reply()


def failed(text: str) -> ModelError:
    with pytest.raises(ModelError) as caught:
        accumulated(text)
    return caught.value


# lines -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"], ids=["LF", "CRLF", "CR"])
def test_events_are_the_same_wherever_the_bytes_are_cut(newline: str) -> None:
    text = "event: a\ndata: café 😀\n\n: comment\nid: 7\nretry: 10\nevent: b\ndata: 2\ndata: 3\n\n"
    raw = text.replace("\n", newline).encode()
    whole = [Event("a", "café 😀".encode()), Event("b", b"2\n3")]
    assert decoded(raw) == whole
    assert decoded(*(raw[i : i + 1] for i in range(len(raw)))) == whole
    for cut in range(len(raw)):
        assert decoded(raw[:cut], b"", raw[cut:]) == whole


EVENTS: Final[dict[str, tuple[bytes, list[Event]]]] = {
    "no name": (b"data: 1\n\n", [Event("", b"1")]),
    "no space": (b"data:1\n\n", [Event("", b"1")]),
    "two spaces": (b"data:  1\n\n", [Event("", b" 1")]),
    "no data": (b"event: x\n\n", []),
    "no colon": (b"data\n\n", [Event("", b"")]),
    "only blank lines": (b"\n\n\n", []),
    "a name ends with its event": (b"event: x\n\ndata: 1\n\n", [Event("", b"1")]),
    "no blank line at the end": (b"event: x\ndata: 1\n", []),
    "not UTF-8": (b"event: \xff\ndata: \xff\n\n", [Event("\ufffd", b"\xff")]),
    "what only Python calls a line end": (
        b"data: a\xe2\x80\xa8b\xc2\x85c\x0bd\n\n",
        [Event("", b"a\xe2\x80\xa8b\xc2\x85c\x0bd")],
    ),
}


@pytest.mark.parametrize(("raw", "events"), EVENTS.values(), ids=EVENTS)
def test_reads_events_as_the_standard_says(raw: bytes, events: list[Event]) -> None:
    assert decoded(raw) == events


HALVES: Final = {
    "first half": (rb'{"a": "x\ud83d"}', "x\ufffd"),
    "second half": (rb'{"a": "\uDE00x"}', "\ufffdx"),
    "first half before a letter": (rb'{"a": "\ud83d\u0041"}', "\ufffdA"),
    "halves the wrong way round": (rb'{"a": "\ude00\ud83d"}', "\ufffd\ufffd"),
    "beside a whole one": (rb'{"a": "\ud83d\ude00\ud83d"}', "😀\ufffd"),
    "no escape at all": (rb'{"a": "\\ud83d\ud83d"}', "\\ud83d\ufffd"),
    "half the bytes": (b'{"a": "caf\xc3"}', "caf\ufffd"),
}


@pytest.mark.parametrize(("raw", "text"), HALVES.values(), ids=HALVES)
def test_half_a_character_costs_no_reply(raw: bytes, text: str) -> None:
    assert json_object(Event("", raw)) == {"a": text}


@pytest.mark.parametrize("raw", [rb'{"a": "\ud83d"', rb'{"a": "\ud83d", "b": NaN}', rb'["\ud83d"]', b'{"a": "\xc3'])
def test_half_a_character_excuses_nothing_else(raw: bytes) -> None:
    with pytest.raises(ModelError, match="an event is not"):
        json_object(Event("", raw))


def test_a_line_in_many_pieces_is_not_copied_with_each() -> None:
    piece, pieces = b"x" * 2**16, 256
    decoder = EventDecoder()
    decoder.feed(b"data: ")
    tracemalloc.start()
    most = 0
    for _ in range(pieces):
        before, _peak = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        assert decoder.feed(bytes(piece)) == []
        most = max(most, tracemalloc.get_traced_memory()[1] - before)
    tracemalloc.stop()
    assert most < 8 * len(piece)  # of the 256 that it holds at the end
    assert decoder.feed(b"\n\n") == [Event("", piece * pieces)]


@pytest.mark.parametrize("blank", ["", "\n ", "\r\n\r\n"])
def test_an_answer_that_is_one_json_object_is_an_event_as_a_whole(blank: str) -> None:
    raw = (blank + '{"error":\n\n {"message": "no",\r\n "data": "data: 1"}}\n').encode()
    for cut in range(len(raw)):
        decoder = EventDecoder()
        assert decoder.feed(raw[:cut]) == decoder.feed(raw[cut:]) == []
        (whole,) = decoder.end()
        assert json_object(whole) == {"error": {"message": "no", "data": "data: 1"}}


@pytest.mark.parametrize("raw", [b"", b"\n\n", b"data: 1\n", b"data: 1\n\n{", b"<html>"])
def test_the_end_of_a_stream_completes_no_event(raw: bytes) -> None:
    decoder = EventDecoder()
    decoder.feed(raw)
    assert decoder.end() == []


# replies ---------------------------------------------------------------------------------------------------


def test_text_streams_and_is_kept() -> None:
    shown: list[Progress] = []
    answer = replied(reply(["", "he", "llo ", "café"], usage={"input_tokens": 7, "output_tokens": 9}), shown)
    assert answer == Reply(
        [{"type": "text", "text": "hello café"}], "end_turn", {"input_tokens": 7, "output_tokens": 9}
    )
    assert shown == [TextDelta("he"), TextDelta("llo "), TextDelta("café")]


def test_text_that_comes_with_the_start_of_its_block_counts() -> None:
    shown: list[Progress] = []
    first = block(0, {"type": "text", "text": "he"}, {"type": "text_delta", "text": "llo"})
    assert replied(start() + first + end(), shown).text == "hello"
    assert shown == [TextDelta("he"), TextDelta("llo")]


NOT_PARSED: Final = {
    "none": "",
    "cut": '{"path":',
    "cut string": '{"path": "a.t',
    "list": "[1]",
    "number": "7",
    "surrogate": '{"a": "\\ud83d"}',
    "two": '{"a": 1} {"b": 2}',
    "deep": '{"a": ' + "[" * 70 + "]" * 70 + "}",
    "deeper": "[" * 100_000,
}


@pytest.mark.parametrize(
    ("raw", "parsed"),
    [('{"path": "a.txt"}', {"path": "a.txt"}), *((raw, {}) for raw in NOT_PARSED.values())],
    ids=["whole", *NOT_PARSED],
)
def test_keeps_arguments_as_the_model_wrote_them(raw: str, parsed: dict[str, Any]) -> None:
    answer = replied(reply(calls=[("read_file", raw)], ids=["t1"]))
    assert answer.calls == [ToolUse("t1", "read_file", raw or "{}")]
    assert answer.content == [{"type": "tool_use", "id": "t1", "name": "read_file", "input": parsed}]
    assert answer.stop_reason == "tool_use"


def test_parallel_calls_keep_their_order_and_even_equal_ids() -> None:
    answer = replied(reply("so:", [("a", {"n": 1}), ("b", {"n": 2}), ("a", {})], ids=["x", "y", "x"]))
    assert [(call.id, call.name) for call in answer.calls] == [("x", "a"), ("y", "b"), ("x", "a")]
    assert [kept["type"] for kept in answer.content] == ["text", "tool_use", "tool_use", "tool_use"]


def test_arguments_that_come_whole_with_the_start_are_taken() -> None:
    whole = block(0, {"type": "tool_use", "id": "t", "name": "n", "input": {"a": 1}})
    answer = replied(start() + whole + end("tool_use"))
    assert answer.calls == [ToolUse("t", "n", '{"a":1}')]
    assert answer.content[0]["input"] == {"a": 1}


def test_interleaved_blocks_are_told_apart_by_index() -> None:
    def opened(index: int) -> str:
        return event({"type": "content_block_start", "index": index, "content_block": {"type": "text", "text": ""}})

    def delta(index: int, text: str) -> str:
        return event({"type": "content_block_delta", "index": index, "delta": {"type": "text_delta", "text": text}})

    mixed = opened(0) + opened(1) + delta(1, "B") + delta(0, "A") + delta(1, "b") + delta(9, "?")
    assert [kept["text"] for kept in replied(start() + mixed + end()).content] == ["A", "Bb"]


def test_thinking_is_shown_and_kept_with_its_signature() -> None:
    shown: list[Progress] = []
    thinking = block(
        0,
        {"type": "thinking", "thinking": "", "signature": ""},
        {"type": "thinking_delta", "thinking": ""},
        {"type": "thinking_delta", "thinking": "Let me "},
        {"type": "thinking_delta", "thinking": "see."},
        {"type": "signature_delta", "signature": "c2ln"},
    )
    redacted = block(1, {"type": "redacted_thinking", "data": "xyz"})
    answer = replied(start() + thinking + redacted + text_block(2, "ok") + end(), shown)
    assert answer.content == [
        {"type": "thinking", "thinking": "Let me see.", "signature": "c2ln"},
        {"type": "redacted_thinking", "data": "xyz"},
        {"type": "text", "text": "ok"},
    ]
    assert shown == [ThoughtDelta("Let me "), ThoughtDelta("see."), TextDelta("ok")]
    assert answer.text == "ok"


def test_citations_are_gathered() -> None:
    cited = block(
        0,
        {"type": "text", "text": "", "citations": None},
        {"type": "text_delta", "text": "x"},
        {"type": "citations_delta", "citation": {"type": "char_location", "cited_text": "a"}},
        {"type": "citations_delta", "citation": {"type": "char_location", "cited_text": "b"}},
    )
    kept = replied(start() + cited + end()).content[0]
    assert [citation["cited_text"] for citation in kept["citations"]] == ["a", "b"]


def test_unknown_parts_of_the_api_are_ignored_or_kept() -> None:
    strange = (
        event({"type": "brand_new_event", "anything": [1]})
        + "event: ping\ndata: not even JSON\n\n"
        + 'event: ping\ndata: {"type": "ping"}\n\n'
        + "data: {}\n\n"
        + block(0, {"type": "hologram", "depth": 3}, {"type": "hologram_delta", "x": 1})
        + block(1, {"type": "text", "text": ""}, {"type": "sparkle_delta"}, {"type": "text_delta", "text": "x"})
        + block(
            2,
            {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}},
            {"type": "input_json_delta", "partial_json": '{"query": "q"}'},
        )
    )
    answer = replied(start() + strange + end())
    assert answer.content == [
        {"type": "hologram", "depth": 3},
        {"type": "text", "text": "x"},
        {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "q"}},
    ]
    assert answer.calls == []


def test_events_without_a_name_count() -> None:
    bare = "".join(f"{line}\n" for line in reply("hello").splitlines() if not line.startswith("event:"))
    assert replied(bare).text == "hello"


def test_blank_text_is_not_kept_as_the_api_would_not_take_it_back() -> None:
    answer = replied(start() + text_block(0) + text_block(1, " \n") + call_block(2, "t", {}, "id") + end())
    assert [kept["type"] for kept in answer.content] == ["tool_use"]
    assert replied(start() + end()).content == []


@pytest.mark.parametrize("stray", [{"type": "text"}, {"type": "text", "text": 7}, {"type": "text", "text": None}])
def test_a_text_block_without_text_is_not_kept(stray: dict[str, Any]) -> None:
    assert replied(start() + block(0, stray) + end()).content == []
    told = replied(start() + block(0, stray, {"type": "text_delta", "text": "x"}) + end())
    assert told.content == [{"type": "text", "text": "x"}]


def test_usage_is_merged_and_only_counts_count() -> None:
    opening: dict[str, Any] = {
        "input_tokens": 3,
        "output_tokens": 1,
        "cache_read_input_tokens": 100,
        "cache_creation": {"ephemeral_5m_input_tokens": 5},
        "service_tier": "standard",
        "inference_geo": None,
        "flag": True,
    }
    answer = replied(start(opening) + text_block(0, "x") + end(usage={"output_tokens": 42}))
    assert answer.usage == {"input_tokens": 3, "output_tokens": 42, "cache_read_input_tokens": 100}


@pytest.mark.parametrize(("calls", "reason"), [((), "end_turn"), ((("t", "{}"),), "tool_use")], ids=["text", "call"])
def test_a_missing_stop_reason_is_the_obvious_one(calls: tuple[tuple[str, str], ...], reason: str) -> None:
    blocks = "".join(call_block(i, name, raw, "id") for i, (name, raw) in enumerate(calls))
    assert replied(start() + blocks + end(None)).stop_reason == reason


def test_nothing_counts_after_the_end() -> None:
    late = event({"type": "error", "error": {"type": "api_error", "message": "late"}})
    assert replied(reply("x") + late + "data: {\n\n").text == "x"


def test_a_reply_is_complete_with_message_stop_only() -> None:
    whole = reply("some text", [("tool", {"a": 1})])
    events = whole.split("\n\n")[:-1]
    for count in range(len(events)):
        assert not accumulated("".join(f"{each}\n\n" for each in events[:count])).complete


# faults ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        ({"type": "overloaded_error", "message": "Overloaded"}, "overloaded", "Overloaded"),
        ({"type": "api_error", "message": "oops"}, "api_error", "oops"),
        ({"type": "rate_limit_error", "message": "slow"}, "rate_limited", "slow"),
        ({"type": "invalid_request_error", "message": "no"}, "invalid_request", "no"),
        ({"type": "never_seen_error", "message": "new"}, "api_error", "new"),
        ({"message": "no type"}, "api_error", "no type"),
        ("just text", "api_error", "just text"),
        (None, "api_error", "without a message"),
    ],
)
def test_an_error_event_is_typed(error: Any, kind: str, message: str) -> None:
    caught = failed(start() + event({"type": "error", "error": error}))
    assert caught.kind == kind
    assert message in str(caught)


def test_an_error_event_may_have_its_type_in_its_name_alone() -> None:
    assert failed('event: error\ndata: {"error": {"message": "busy"}}\n\n').kind == "api_error"
    assert failed('data: {"error": {"message": "slow down", "code": 429}}\n\n').kind == "rate_limited"


@pytest.mark.parametrize(
    "odd",
    [
        "data: {not json}\n\n",
        "data: \n\n",
        "data: [1]\n\n",
        "data: null\n\n",
        "data: " + "[" * 100_000 + "\n\n",
        'data: {"type": "x", "deep": ' + "[" * 70 + "]" * 70 + "}\n\n",
        event({"type": "message_stop"}),
        event({"type": "message_start"}),
        event({"type": "message_start", "message": "hello"}),
        event({"type": "message_delta"}),
        event({"type": "message_delta", "delta": None}),
        event({"type": "content_block_start"}),
        event({"type": "content_block_start", "index": "0", "content_block": {"type": "text"}}),
        event({"type": "content_block_start", "index": 0, "content_block": {"text": "x"}}),
        event({"type": "content_block_start", "index": 0, "content_block": None}),
        event({"type": "content_block_delta", "index": 0}),
        event({"type": "content_block_delta", "index": None, "delta": {}}),
        block(0, {"type": "tool_use", "name": "n", "input": {}}),
        block(0, {"type": "tool_use", "id": "", "name": "n", "input": {}}),
        block(0, {"type": "tool_use", "id": "t", "name": None, "input": {}}),
    ],
)
def test_a_stream_that_is_not_this_api_is_a_bad_response(odd: str) -> None:
    assert failed(odd).kind == "bad_response"


def test_odd_values_in_known_places_are_ignored() -> None:
    odd = (
        event({"type": []})
        + block(0, {"type": "text", "text": ""}, {"type": "text_delta", "text": 5}, {"type": "text_delta"}, {})
        + block(1, {"type": "thinking", "thinking": "t"}, {"type": "citations_delta", "citation": "c"})
        + event({"type": "message_delta", "delta": {"stop_reason": 7}, "usage": [1]})
    )
    answer = replied(start() + odd + end())
    assert answer.content == [{"type": "thinking", "thinking": "t"}]


def test_whatever_is_kept_can_be_written_as_json_again() -> None:
    answer = replied(reply("x", [("t", '{"a": "\\u0000\\ud83d\\ude00"}')]))
    assert msgspec.json.decode(msgspec.json.encode(answer.content)) == answer.content
