"""Gemini's answers as pure data: any bytes, cut anywhere, and whatever a server makes of the format."""

import json
from functools import partial
from typing import Any, Final

import pytest

from supervisor.agent.models.event_stream import Event
from supervisor.agent.models.gemini_api import FORMAT
from supervisor.agent.models.gemini_reader import GeminiDecoder
from supervisor.agent.models.model import Reply
from supervisor.agent.models.retry import RETRIED
from supervisor.errors import ModelError
from tests.each_row import each_row
from tests.gemini_server import USAGE, call, chunk, event, reply
from tests.supervisor.read_streams import failure, read, whole

WHOLE: Final = reply(
    ["Let ", "me look: é😀"], [("read_file", {"path": "a"}), ("b", {})], signature="c2ln", thoughts=["Hm."], ids=["i1"]
)
BARE: Final = '{\n  "error": {"code": 503, "message": "a \\"quoted\\" } brace", "status": "UNAVAILABLE"}\n}\n'
replied: Final = partial(whole, FORMAT)
failed: Final = partial(failure, FORMAT)


def items(answer: Reply) -> list[dict[str, Any]]:
    assert answer.origin is not None
    return answer.origin.items


# whole answers ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("newline", ["\r\n", "\n", "\r"], ids=["CRLF", "LF", "CR"])
def test_an_answer_is_the_same_wherever_its_bytes_are_cut(newline: str) -> None:
    raw = WHOLE.replace("\r\n", newline).encode()
    answer = replied(raw)
    assert replied(*(raw[i : i + 1] for i in range(len(raw)))) == answer
    for cut in range(len(raw)):
        assert replied(raw[:cut], b"", raw[cut:]) == answer
    assert [block["type"] for block in answer.content] == ["text", "tool_use", "tool_use"]


def test_a_bare_error_is_the_same_wherever_its_bytes_are_cut() -> None:
    raw = (chunk([{"text": "a"}]) + BARE).encode()
    for cut in range(len(raw)):
        with pytest.raises(ModelError, match='a "quoted" } brace') as caught:
            read(FORMAT, raw[:cut], raw[cut:])
        assert caught.value.kind == "overloaded"


def test_a_list_of_answers_is_read_where_a_server_does_not_stream() -> None:
    events = [json.loads(line.removeprefix("data: ")) for line in WHOLE.splitlines() if line]
    assert replied(json.dumps(events, indent=1)) == replied(WHOLE)


def test_texts_are_joined_unless_one_is_signed() -> None:
    parts = [{"text": "a"}, {"text": "b"}, {"text": "c", "thoughtSignature": "cw=="}, {"text": "d"}, {"text": "e"}]
    answer = replied(chunk(parts, finish="STOP"))
    assert items(answer) == [{"text": "ab"}, {"text": "c", "thoughtSignature": "cw=="}, {"text": "de"}]
    assert answer.content == [{"type": "text", "text": "abcde"}]


def test_a_thought_goes_back_only_where_it_is_signed() -> None:
    signed = {"text": "b", "thought": True, "thoughtSignature": "cw=="}
    answer = replied(chunk([{"text": "a", "thought": True}, signed, {"text": "so"}], finish="STOP"))
    assert items(answer) == [signed, {"text": "so"}]
    assert answer.text == "so"


def test_what_only_gemini_knows_is_kept_as_it_came() -> None:
    code = {"executableCode": {"language": "PYTHON", "code": "1"}, "thoughtSignature": "cw=="}
    assert items(replied(chunk([code, {"text": "so"}], finish="STOP"))) == [code, {"text": "so"}]


STOPS: Final = {
    "STOP": "end_turn",
    "MAX_TOKENS": "max_tokens",
    "SAFETY": "refusal",
    "RECITATION": "refusal",
    "SPII": "refusal",
    "BLOCKLIST": "refusal",
    "PROHIBITED_CONTENT": "refusal",
    "LANGUAGE": "refusal",
    "IMAGE_SAFETY": "refusal",
    "SOMETHING_NEW": "something_new",
    "pause_turn": "end_turn",
}


@each_row(("sent", "stop"), STOPS.items())
def test_it_says_why_the_model_stopped(sent: str, stop: str) -> None:
    assert replied(chunk([{"text": "a"}], finish=sent)).stop_reason == stop


@pytest.mark.parametrize("reason", ["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "MALFORMED_RESPONSE", "OTHER"])
def test_a_reply_that_failed_is_asked_for_again(reason: str) -> None:
    assert failed(chunk([{"text": "a"}], finish=reason)).kind in RETRIED


# odd servers ------------------------------------------------------------------------------------------------


def candidate(value: Any) -> str:
    return event({"candidates": value, "usageMetadata": dict(USAGE)})


BAD: Final[dict[str, str]] = {
    "no JSON": "data: {\r\n\r\n",
    "no object": "data: 7\r\n\r\n",
    "a list of no objects": "[7]",
    "an error that says nothing": event({"error": {}}),
    "an error that is a text": event({"error": "no"}),
    "candidates that are none": candidate({}),
    "a candidate that is none": candidate([7]),
    "content that is none": candidate([{"content": [7]}]),
    "parts that are none": candidate([{"content": {"parts": {"text": "a"}}}]),
    "a part that is none": chunk([7]),  # type: ignore[list-item]
    "a call without a name": chunk([{"functionCall": {"args": {}}}]),
    "a call with an empty name": chunk([{"functionCall": {"name": ""}}]),
    "a call that is none": chunk([{"functionCall": 7}]),
    "arguments that are no object": chunk([{"functionCall": {"name": "a", "args": [1]}}]),
    "an id that is none": chunk([{"functionCall": {"name": "a", "id": 7}}]),
    "too deep": chunk([{"functionCall": {"name": "a", "args": json.loads('{"a":' * 70 + "1" + "}" * 70)}}]),
}


@each_row("text", BAD.values(), ids=BAD)
def test_what_is_not_the_format_is_an_error(text: str) -> None:
    assert failed(text).kind in {"bad_response", "api_error"}


ODD: Final[dict[str, tuple[str, list[dict[str, Any]]]]] = {
    "no parts": (chunk([], finish="STOP"), []),
    "no content": (candidate([{"finishReason": "STOP"}]), []),
    "null content": (candidate([{"finishReason": "STOP", "content": None}]), []),
    "no arguments": (
        chunk([{"functionCall": {"name": "a"}}], finish="STOP"),
        [{"type": "tool_use", "id": "", "name": "a", "input": {}}],
    ),
    "counts that are none": (
        chunk([{"text": "a"}], finish="STOP", usage={"promptTokenCount": -1}),
        [{"type": "text", "text": "a"}],
    ),
    "two candidates": (
        candidate([{"content": {"parts": [{"text": each}]}, "finishReason": "STOP"} for each in "ab"]),
        [{"type": "text", "text": "a"}],
    ),
    "an end with each part": (
        chunk([], finish="STOP") + chunk([{"text": "a"}], finish="STOP") + chunk([{"text": "b"}], finish="MAX_TOKENS"),
        [{"type": "text", "text": "ab"}],
    ),
    "an error that is none": (
        event({"error": None}) + chunk([{"text": "a"}], finish="STOP"),
        [{"type": "text", "text": "a"}],
    ),
    "an unknown event": (event({"new": 1}) + chunk([{"text": "a"}], finish="STOP"), [{"type": "text", "text": "a"}]),
}


@each_row(("text", "content"), ODD.values(), ids=ODD)
def test_odd_answers_are_read_all_the_same(text: str, content: list[dict[str, Any]]) -> None:
    assert replied(text).content == content


def test_the_usage_of_a_call_alone_counts_and_nothing_cached_is_a_count() -> None:
    counts = {"input_tokens": 1, "output_tokens": 5, "cache_read_input_tokens": 0}
    assert replied(chunk([call("a", {})], finish="STOP")).usage == counts


def test_a_decoder_knows_no_event_without_its_end() -> None:
    assert GeminiDecoder().feed(b"data: 1\n") == []
    assert GeminiDecoder().feed(b"data: 1\n\n") == [Event("", b"1")]
