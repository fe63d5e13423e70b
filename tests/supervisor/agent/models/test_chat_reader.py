"""Chat Completions without a socket: what the servers that speak it send, each in its own way."""

import json
from typing import Any, Final

import pytest

from supervisor.agent.models.chat_api import FORMAT
from supervisor.agent.models.chat_calls import ArrivingCalls
from supervisor.agent.models.model import Progress, Reply, TextDelta, ThoughtDelta
from tests.chat_server import DONE, USAGE, called, chat_reply, chunk, end, fault_in_chat
from tests.each_row import each_row
from tests.supervisor.model_requests import text
from tests.supervisor.read_streams import failure, next_body, whole

A: Final = '{"path": "a"}'
B: Final = '{"path": "b"}'


def replied(answer: str, shown: list[Progress] | None = None) -> Reply:
    return whole(FORMAT, answer, shown=shown)


def calls_of(answer: str) -> list[tuple[str, str, str]]:
    return [(use.id, use.name, use.arguments) for use in replied(answer).calls]


def several(*entries: Any) -> str:
    return chunk({"tool_calls": list(entries)})


def entry(name: str | None = None, arguments: Any = None, **more: Any) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return {**more, "function": {key: value for key, value in function.items() if value is not None}}


# replies ---------------------------------------------------------------------------------------------------


def test_text_streams_and_is_kept_with_its_usage() -> None:
    shown: list[Progress] = []
    answer = replied(chat_reply(["he", "llo ", "café"]), shown)
    assert answer.content == [text("hello café")]
    assert (answer.stop_reason, answer.usage) == ("end_turn", {"input_tokens": 1, "output_tokens": 5})
    assert shown == [TextDelta("he"), TextDelta("llo "), TextDelta("café")]


def test_a_reply_that_its_blocks_say_whole_is_not_kept_twice() -> None:
    answer = replied(chat_reply("so:", [("read_file", '{"path":"a"}')], ids=["x"]))
    assert answer.origin is not None
    assert (answer.origin.format, answer.origin.items) == ("", [])


CALLS: Final[dict[str, tuple[str, list[tuple[str, str, str]]]]] = {
    "in pieces by index": (
        called(0, "x", "f", "") + called(0, arguments=A[:5]) + called(0, arguments=A[5:]),
        [("x", "f", A)],
    ),
    "two by index, mixed": (
        called(0, "x", "f", "") + called(1, "y", "g", "") + called(1, arguments=B) + called(0, arguments=A),
        [("x", "f", A), ("y", "g", B)],
    ),
    "the second index first": (called(1, "y", "g", B) + called(0, "x", "f", A), [("y", "g", B), ("x", "f", A)]),
    "pieces before the name": (called(0, arguments=A[:5]) + called(0, "x", "f", A[5:]), [("x", "f", A)]),
    "without an index, in pieces": (
        called(None, "x", "f", "") + called(None, arguments=A[:5]) + called(None, arguments=A[5:]),
        [("x", "f", A)],
    ),
    "without an index, by id": (
        called(None, "x", "f", "")
        + called(None, "y", "g", "")
        + called(None, "x", arguments=A)
        + called(None, "y")
        + called(None, "y", arguments=B),
        [("x", "f", A), ("y", "g", B)],
    ),
    "whole, without an index": (called(None, "x", "f", A) + called(None, "y", "f", B), [("x", "f", A), ("y", "f", B)]),
    "several in one delta": (
        several(entry("f", A, index=0, id="x"), entry("g", B, index=1, id="y")),
        [("x", "f", A), ("y", "g", B)],
    ),
    "several in one delta without an index": (
        several(entry("f", A, id="x"), entry("f", B, id="y")),
        [("x", "f", A), ("y", "f", B)],
    ),
    "several in one delta with neither": (several(entry("f", A), entry("f", B)), [("", "f", A), ("", "f", B)]),
    "several without arguments, with neither": (several(entry("f"), entry("f")), [("", "f", "{}"), ("", "f", "{}")]),
    "all with the index 0, other ids": (
        called(0, "x", "f", A) + called(0, "y", "f", B),
        [("x", "f", A), ("y", "f", B)],
    ),
    "all with the index 0, other ids, without arguments": (
        called(0, "x", "f", "") + called(0, "y", "f", ""),
        [("x", "f", "{}"), ("y", "f", "{}")],
    ),
    "all with the index 0, whole, one id": (
        called(0, "x", "f", A) + called(0, "x", "f", B),
        [("x", "f", A), ("x", "f", B)],
    ),
    "all with the index 0, without ids": (
        called(0, None, "f", A) + called(0, None, "g", B),
        [("", "f", A), ("", "g", B)],
    ),
    "an id that is made up for each piece": (
        called(0, "x", "f", "") + called(0, "y", arguments=A[:4]) + called(0, "z", arguments=A[4:]),
        [("x", "f", A)],
    ),
    "the name said again with each piece": (
        called(0, "x", "f", A[:4]) + called(0, "x", "f", A[4:6]) + called(0, "x", "f", A[6:]) + called(0, "x", "f", ""),
        [("x", "f", A)],
    ),
    "the name in pieces": (
        called(0, "x", "read_") + called(0, None, "file") + called(0, arguments=A),
        [("x", "read_file", A)],
    ),
    "an empty id": (called(0, "", "f", A), [("", "f", A)]),
    "an id that comes late": (called(0, None, "f", "") + called(0, "x", arguments=A), [("x", "f", A)]),
    "an id that is a number": (several(entry("f", A, index=0, id=7)), [("", "f", A)]),
    "an index that is a text": (several(entry("f", A, index="0", id="x")), [("x", "f", A)]),
    "arguments that are an object": (several(entry("f", {"path": "a"}, index=0, id="x")), [("x", "f", '{"path":"a"}')]),
    "no arguments": (called(0, "x", "f"), [("x", "f", "{}")]),
    "arguments that are null": (
        several({"index": 0, "id": "x", "function": {"name": "f", "arguments": None}}),
        [("x", "f", "{}")],
    ),
    "a function without its wrapper": (several({"id": "x", "name": "f", "arguments": A}), [("x", "f", A)]),
    "one that is no list": (chunk({"tool_calls": entry("f", A, id="x")}), [("x", "f", A)]),
    "the function call of old": (
        chunk({"function_call": {"name": "f", "arguments": ""}}) + chunk({"function_call": {"arguments": A}}),
        [("", "f", A)],
    ),
    "empty entries": (several({}, None, 5, entry("f", A, index=0, id="x"), {"index": 1}), [("x", "f", A)]),
    "braces in a text": (
        called(0, "x", "f", '{"path": "}') + called(0, "x", "f", '}"}'),
        [("x", "f", '{"path": "}}"}')],
    ),
}


@each_row(("answer", "calls"), CALLS.values(), ids=CALLS)
def test_tool_calls_are_told_apart(answer: str, calls: list[tuple[str, str, str]]) -> None:
    found = replied(answer + end("tool_calls"))
    assert [(use.id, use.name, use.arguments) for use in found.calls] == calls
    assert [block["input"] for block in found.content] == [json.loads(raw) for _, _, raw in calls]
    assert found.stop_reason == "tool_use"
    assert fault_in_chat(next_body(FORMAT, found)) is None


FINISHES: Final[dict[str, tuple[str, str, str]]] = {
    "stop": (chunk({"content": "x"}) + end("stop"), "end_turn", "x"),
    "length": (chunk({"content": "x"}) + end("length"), "max_tokens", "x"),
    "a filter": (chunk({"content": "x"}) + end("content_filter"), "refusal", "x"),
    "null": (chunk({"content": "x"}) + end(None), "end_turn", "x"),
    "eos": (chunk({"content": "x"}) + end("eos"), "end_turn", "x"),
    "in capitals": (chunk({"content": "x"}) + end("LENGTH"), "max_tokens", "x"),
    "Mistral's length": (chunk({"content": "x"}) + end("model_length"), "max_tokens", "x"),
    "calls without any": (chunk({"content": "x"}) + end("tool_calls"), "end_turn", "x"),
    "stop with calls": (called(0, "x", "f", A) + end("stop"), "tool_use", ""),
    "null with calls": (called(0, "x", "f", A) + end(None), "tool_use", ""),
    "function_call": (called(0, "x", "f", A) + end("function_call"), "tool_use", ""),
    "length with calls": (called(0, "x", "f", A[:5]) + end("length"), "max_tokens", ""),
    "a refusal": (chunk({"refusal": "I "}) + chunk({"refusal": "won't"}) + end("stop"), "refusal", "I won't"),
    "a refusal and a text": (chunk({"refusal": "no"}) + chunk({"content": "x"}) + end("stop"), "end_turn", "x"),
    "no [DONE]": (chunk({"content": "x"}) + chunk({}, "stop"), "end_turn", "x"),
    "[DONE] without a line end": (chunk({"content": "x"}) + chunk({}, "stop") + "data: [DONE]", "end_turn", "x"),
    "[DONE] alone": (chunk({"content": "x"}) + DONE, "end_turn", "x"),
    "with the last piece": (chunk({"content": "x"}, "stop") + DONE, "end_turn", "x"),
}


@each_row(("answer", "stop", "said"), FINISHES.values(), ids=FINISHES)
def test_a_reply_ends_as_its_server_says(answer: str, stop: str, said: str) -> None:
    found = replied(answer)
    assert (found.stop_reason, found.text) == (stop, said)


TEXTS: Final[dict[str, tuple[str, list[Progress]]]] = {
    "without a space after data:": (chunk({"content": "x"}).replace("data: ", "data:") + end(), [TextDelta("x")]),
    "with CRLF": (chat_reply("x").replace("\n", "\r\n"), [TextDelta("x")]),
    "with comments": (": OPENROUTER PROCESSING\n\n" + chat_reply("x") + ": bye\n\n", [TextDelta("x")]),
    "with named events": ("event: message\n" + chat_reply("x"), [TextDelta("x")]),
    "with empty data": ("data:\n\ndata: \n\n" + chat_reply("x"), [TextDelta("x")]),
    "in parts": (
        chunk({"content": [text("he"), {"type": "output_text", "text": "llo"}, "!", {"type": "reference"}]}) + end(),
        [TextDelta("he"), TextDelta("llo"), TextDelta("!")],
    ),
    "Mistral's thinking": (
        chunk({"content": [{"type": "thinking", "thinking": [text("hm")]}]}) + chunk({"content": "x"}) + end(),
        [ThoughtDelta("hm"), TextDelta("x")],
    ),
    "DeepSeek's thinking": (
        chunk({"content": None, "reasoning_content": "hm"})
        + chunk({"content": "x", "reasoning_content": None})
        + end(),
        [ThoughtDelta("hm"), TextDelta("x")],
    ),
    "vLLM's thinking, twice": (
        chunk({"reasoning": "hm", "reasoning_content": "hm"}) + chunk({"content": "x"}) + end(),
        [ThoughtDelta("hm"), TextDelta("x")],
    ),
    "OpenRouter's thinking": (
        chunk({"reasoning": "hm", "reasoning_details": [{"type": "reasoning.text", "text": "hm"}]})
        + chunk({"reasoning_details": [{"type": "reasoning.summary", "summary": "so"}]})
        + chunk({"content": "x"})
        + end(),
        [ThoughtDelta("hm"), ThoughtDelta("so"), TextDelta("x")],
    ),
    "other choices": (
        "data: "
        + json.dumps({"choices": [{"index": 1, "delta": {"content": "no"}}]})
        + "\n\n"
        + "data: "
        + json.dumps({"choices": [{"index": 1, "delta": {"content": "no"}}, {"delta": {"content": "x"}}]})
        + "\n\n"
        + end(),
        [TextDelta("x")],
    ),
    "other roles": (chunk({"role": "user", "content": "x"}) + chunk({"role": "tool"}) + end(), [TextDelta("x")]),
    "odd values": (
        chunk({"content": 5, "tool_calls": 7, "function_call": [], "reasoning_content": {}, "refusal": []})
        + chunk({"content": "x"})
        + "data: {}\n\n"
        + 'data: {"choices": [null, 5]}\n\n'
        + 'data: {"choices": [{"delta": null}]}\n\n'
        + 'data: {"choices": [{"finish_reason": 7}], "usage": [1]}\n\n'
        + end(),
        [TextDelta("x")],
    ),
    "whole, in an event": (
        "data: "
        + json.dumps({"choices": [{"message": {"role": "assistant", "content": "x"}, "finish_reason": "stop"}]})
        + "\n\n",
        [TextDelta("x")],
    ),
    "whole, and no stream at all": (
        json.dumps({"object": "chat.completion", "choices": [{"message": {"content": "x"}}], "usage": USAGE}, indent=2),
        [TextDelta("x")],
    ),
}


@each_row(("answer", "shown"), TEXTS.values(), ids=TEXTS)
def test_text_and_thinking_are_shown_as_they_come(answer: str, shown: list[Progress]) -> None:
    seen: list[Progress] = []
    found = replied(answer, seen)
    assert seen == shown
    assert found.text == "".join(each.text for each in shown if isinstance(each, TextDelta))
    assert found.usage in ({}, {"input_tokens": 1, "output_tokens": 5})
    assert fault_in_chat(next_body(FORMAT, found)) is None


COUNTS: Final[dict[str, tuple[dict[str, Any], dict[str, int]]]] = {
    "OpenAI": (
        {
            "prompt_tokens": 100,
            "completion_tokens": 20,
            "prompt_tokens_details": {"cached_tokens": 60, "audio_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 7},
        },
        {"input_tokens": 40, "output_tokens": 20, "cache_read_input_tokens": 60, "reasoning_tokens": 7},
    ),
    "DeepSeek": (
        {"prompt_tokens": 100, "completion_tokens": 20, "prompt_cache_hit_tokens": 64, "prompt_cache_miss_tokens": 36},
        {"input_tokens": 36, "output_tokens": 20, "cache_read_input_tokens": 64},
    ),
    "Moonshot": (
        {"prompt_tokens": 100, "completion_tokens": 20, "cached_tokens": 50},
        {"input_tokens": 50, "output_tokens": 20, "cache_read_input_tokens": 50},
    ),
    "OpenRouter": (
        {
            "prompt_tokens": 100,
            "completion_tokens": 20,
            "prompt_tokens_details": {"cached_tokens": 30, "cache_write_tokens": 50},
            "cost": 0.1,
        },
        {"input_tokens": 20, "output_tokens": 20, "cache_read_input_tokens": 30, "cache_creation_input_tokens": 50},
    ),
    "xAI, and Gemini's Chat Completions": (
        {
            "prompt_tokens": 100,
            "completion_tokens": 20,
            "total_tokens": 180,
            "completion_tokens_details": {"reasoning_tokens": 60},
        },
        {"input_tokens": 100, "output_tokens": 80, "reasoning_tokens": 60},
    ),
    "nothing was cached": (
        {"prompt_tokens": 100, "completion_tokens": 20, "prompt_tokens_details": {"cached_tokens": 0}},
        {"input_tokens": 100, "output_tokens": 20, "cache_read_input_tokens": 0},
    ),
    "more cached than there was": (
        {"prompt_tokens": 10, "completion_tokens": 1, "cached_tokens": 50},
        {"input_tokens": 0, "output_tokens": 1, "cache_read_input_tokens": 50},
    ),
    "odd values": (
        {"prompt_tokens": True, "completion_tokens": -4, "prompt_tokens_details": 5, "completion_tokens_details": []},
        {"input_tokens": 0, "output_tokens": 0},
    ),
}


@each_row(("usage", "counts"), COUNTS.values(), ids=COUNTS)
def test_tokens_are_counted_by_one_name(usage: dict[str, Any], counts: dict[str, int]) -> None:
    assert replied(chunk({"content": "x"}) + end(usage=usage)).usage == counts


def test_usage_within_the_last_chunk_of_a_choice_counts_and_null_takes_nothing_back() -> None:
    last = chunk({}, "stop", usage={"prompt_tokens": 3, "completion_tokens": 4})
    assert replied(chunk({"content": "x"}, usage=None) + last + chunk(usage=None) + DONE).usage == {
        "input_tokens": 3,
        "output_tokens": 4,
    }


# what goes back --------------------------------------------------------------------------------------------


def sent_back(*answers: str, provider: str = "someone") -> list[dict[str, Any]]:
    body = next_body(FORMAT, *map(replied, answers), provider=provider)
    assert fault_in_chat(body) is None
    return [message for message in body["messages"] if message["role"] == "assistant"]


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
def test_thinking_goes_back_by_the_name_that_it_came_with(name: str) -> None:
    answer = chunk({name: "h"}) + chunk({name: "m"}) + called(0, "x", "f", A) + end()
    (message,) = sent_back(answer)
    assert message[name] == "hm"
    assert message["tool_calls"] == [{"id": "x", "type": "function", "function": {"name": "f", "arguments": A}}]


def test_thinking_that_is_empty_goes_back_too() -> None:
    (message,) = sent_back(chunk({"reasoning_content": ""}) + called(0, "x", "f", A) + end())
    assert message["reasoning_content"] == ""


def test_thinking_stays_with_the_provider_that_it_came_from() -> None:
    (message,) = sent_back(chunk({"reasoning_content": "hm", "content": "x"}) + end(), provider="another")
    assert message == {"role": "assistant", "content": "x"}


def test_reasoning_details_are_put_together_and_go_back() -> None:
    pieces = [
        {"type": "reasoning.text", "text": "h", "index": 0, "format": "anthropic-claude-v1", "id": None},
        {"type": "reasoning.text", "text": "m", "index": 0},
        {"type": "reasoning.text", "signature": "sig", "index": 0},
        {"type": "reasoning.encrypted", "data": "AA", "index": 1},
        {"type": "reasoning.encrypted", "data": "BB", "index": 1},
    ]
    answer = "".join(chunk({"reasoning": "", "reasoning_details": [piece]}) for piece in pieces)
    (message,) = sent_back(answer + chunk({"content": "x"}) + end())
    assert message["reasoning_details"] == [
        {"type": "reasoning.text", "text": "hm", "index": 0, "format": "anthropic-claude-v1", "signature": "sig"},
        {"type": "reasoning.encrypted", "data": "AA", "index": 1},
        {"type": "reasoning.encrypted", "data": "BB", "index": 1},
    ]
    assert "reasoning" not in message


def test_arguments_go_back_as_they_were_written_and_what_is_none_does_not() -> None:
    odd = ['{ "path":\t"a" }', '{"path":', "[1]", "7", "", "{" * 3000]
    (message,) = sent_back("".join(called(i, f"c{i}", "f", raw) for i, raw in enumerate(odd)) + end())
    raws = [call["function"]["arguments"] for call in message["tool_calls"]]
    assert raws == [odd[0], "{}", "{}", "{}", "{}", "{}"]


def test_what_a_server_says_besides_of_a_call_goes_back() -> None:
    signed = {"extra_content": {"google": {"thought_signature": "sig"}}}
    answer = replied(several({"index": 0, "id": "x", "function": {"name": "f", "arguments": A}, **signed}) + end())
    (call,) = next(each for each in next_body(FORMAT, answer)["messages"] if each.get("tool_calls"))["tool_calls"]
    assert call["extra_content"] == signed["extra_content"]


def test_ids_and_names_go_back_as_the_conversation_has_them() -> None:
    answer = chunk({"reasoning_content": "hm"}) + called(0, "x", "../f", A) + called(1, "x", "n" * 99, A) + end()
    first, second = sent_back(answer, answer)
    calls = [(call["id"], call["function"]["name"]) for call in first["tool_calls"] + second["tool_calls"]]
    assert [name for _, name in calls] == ["___f", "n" * 64] * 2
    assert len({call for call, _ in calls}) == 4


def test_a_reply_with_nothing_to_say_can_be_sent_again() -> None:
    assert sent_back(chunk({"content": " \n"}) + end(), chunk({"reasoning_content": "hm"}) + end())[0] == {
        "role": "assistant",
        "content": "(no answer)",
    }


def test_very_many_calls_go_back_as_far_as_they_were_kept() -> None:
    (message,) = sent_back("".join(called(i, f"c{i}", "f", A) for i in range(2000)) + end())
    assert 0 < len(message["tool_calls"]) < 2000


# faults ----------------------------------------------------------------------------------------------------


ERRORS: Final[dict[str, tuple[str, str, str]]] = {
    "in the stream": (
        'data: {"error": {"message": "busy", "type": "server_error", "code": null}}\n\n',
        "api_error",
        "busy",
    ),
    "OpenRouter's, with a choice": (
        'data: {"error": {"code": 502, "message": "busy"}, "choices": [{"delta": {}, "finish_reason": "error"}]}\n\n',
        "api_error",
        "busy",
    ),
    "of a choice": (
        'data: {"choices": [{"error": {"code": 429, "message": "busy"}, "finish_reason": "error"}]}\n\n',
        "rate_limited",
        "busy",
    ),
    "by its event": ('event: error\ndata: {"message": "busy"}\n\n', "api_error", "busy"),
    "of vLLM of old": ('data: {"object": "error", "message": "busy", "code": 400}\n\n', "invalid_request", "busy"),
    "a text": ('data: {"error": "busy"}\n\n', "api_error", "busy"),
    "and no stream at all": (
        '{"error": {"message": "busy", "code": "context_length_exceeded"}}',
        "context_full",
        "busy",
    ),
    "as a finish reason": (chunk({"content": "x"}, "error"), "api_error", "error"),
    "DeepSeek's": (chunk({"content": "x"}, "insufficient_system_resource"), "overloaded", "resource"),
    "no JSON": ("data: {\n\n", "bad_response", "JSON"),
    "no object": ("data: [1]\n\n", "bad_response", "object"),
    "no choices": ('data: {"choices": {}}\n\n', "bad_response", "list"),
    "nothing but an end": (DONE, "bad_response", "its end"),
    "a call without a name": (called(0, "x", None, A) + end(), "bad_response", "name"),
}


@each_row(("answer", "kind", "words"), ERRORS.values(), ids=ERRORS)
def test_an_error_has_a_kind(answer: str, kind: str, words: str) -> None:
    error = failure(FORMAT, answer)
    assert error.kind == kind
    assert words in str(error)


def test_pieces_without_end_that_say_their_name_again_are_not_looked_at_each_time() -> None:
    calls = ArrivingCalls()
    calls.take(entry("f", '{"a": "', index=0, id="x"))
    for _ in range(2000):
        calls.take(entry("f", '\\"}', index=0))
    (call,) = calls._calls
    assert call.looks == 16
    assert call.raw == '{"a": "' + '\\"}' * 2000


def test_a_name_in_pieces_without_end_is_none() -> None:
    named = replied("".join(called(0, None, f"n{number}") for number in range(2000)) + end())
    assert len(named.calls[0].name) < 200
