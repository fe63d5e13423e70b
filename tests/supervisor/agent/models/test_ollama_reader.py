"""Ollama's answers as pure data: any bytes, cut anywhere, and whatever a server makes of the format."""

import json
from functools import partial
from typing import Any, Final

import pytest

from supervisor.agent.models.json_body import JsonBodyDecoder
from supervisor.agent.models.model import Progress, TextDelta, ThoughtDelta, ToolUse
from supervisor.agent.models.ollama_api import FORMAT, ShowReader, shown_model
from supervisor.errors import ModelError
from tests.ollama_server import call, last, line, reply, shown
from tests.supervisor.read_streams import failure, whole

WHOLE: Final = reply(
    ["Let ", "me look: é😀"], [("read_file", {"path": "a"}), ("b", {})], thoughts=["Hm, ", "so."], ids=["i1"]
)
replied: Final = partial(whole, FORMAT)
failed: Final = partial(failure, FORMAT)


def test_thinking_text_and_calls_are_shown_and_kept() -> None:
    told: list[Progress] = []
    answer = replied(WHOLE, shown=told)
    assert [type(each) for each in told] == [ThoughtDelta] * 2 + [TextDelta] * 2
    assert answer.calls == [ToolUse("i1", "read_file", '{"path":"a"}'), ToolUse("", "b", "{}")]


def test_the_message_is_kept_as_it_came() -> None:
    origin = replied(WHOLE.replace('"prompt_eval_count": -1', '"prompt_eval_count": 77')).origin
    assert origin is not None
    calls = [call("read_file", {"path": "a"}, "i1"), call("b", {})]
    message = {"role": "assistant", "content": "Let me look: é😀", "thinking": "Hm, so.", "tool_calls": calls}
    assert origin.items == [{"message": message, "prompt_eval_count": 77}]


STOPS: Final = [("stop", "end_turn"), ("length", "max_tokens"), ("new", "new"), ("pause_turn", "end_turn")]


@pytest.mark.parametrize(("reason", "stop"), STOPS)
def test_it_says_why_the_model_stopped(reason: str, stop: str) -> None:
    assert replied(reply("a", reason=reason)).stop_reason == stop


FAILED: Final = {
    "an error": ('{"error": "model runner has unexpectedly stopped"}\n', "api_error"),
    "an error in the middle": (line({"content": "a"}) + '{"error": "an error was encountered"}\n', "api_error"),
    "an error with a status": ('{"error": "server busy", "status": 503}\n', "overloaded"),
    "a full context": ('{"error": "the input length exceeds the context length"}\n', "context_full"),
    "an error that says nothing": ('{"error": {}}\n', "api_error"),
    "a load": (last("load"), "api_error"),
    "an unload": (last("unload"), "api_error"),
    "no JSON": ("{\n", "bad_response"),
    "no object": ("7\n", "bad_response"),
    "no message": ('{"done": false}\n', "bad_response"),
    "a message that is none": ('{"message": 7}\n', "bad_response"),
    "a content that is none": (line({"content": 7}), "bad_response"),
    "thinking that is none": (line({"thinking": ["a"]}), "bad_response"),
    "calls that are none": (line({"tool_calls": {"a": 1}}), "bad_response"),
    "a call that is none": (line({"tool_calls": [7]}), "bad_response"),
    "a call without a name": (line({"tool_calls": [{"function": {"arguments": {}}}]}), "bad_response"),
    "too deep": (line({"content": "", "x": json.loads("[" * 70 + "]" * 70)}), "bad_response"),
}


@pytest.mark.parametrize(("text", "kind"), FAILED.values(), ids=FAILED)
def test_what_is_no_answer_is_an_error_with_a_kind(text: str, kind: str) -> None:
    assert failed(text).kind == kind


ODD: Final[dict[str, tuple[str, list[dict[str, Any]]]]] = {
    "nothing": (last(), []),
    "blanks": (line({"content": " \n"}) + last(), []),
    "a reason that is none": (line({"content": "a"}, done=True, done_reason=[7]), [{"type": "text", "text": "a"}]),
    "no message at the end": (line({"content": "a"}) + '{"done": true}\n', [{"type": "text", "text": "a"}]),
    "null": (line({"content": None, "tool_calls": None, "thinking": None}) + last(), []),
    "arguments as a text": (
        line({"tool_calls": [{"function": {"name": "a", "arguments": '{"x": 1}'}}]}) + last(),
        [{"type": "tool_use", "id": "", "name": "a", "input": {"x": 1}}],
    ),
    "arguments as no object": (
        line({"tool_calls": [{"function": {"name": "a", "arguments": [1]}}]}) + last(),
        [{"type": "tool_use", "id": "", "name": "a", "input": {}}],
    ),
    "an id that is none": (
        line({"tool_calls": [{"id": 7, "function": {"name": "a"}}]}) + last(),
        [{"type": "tool_use", "id": "", "name": "a", "input": {}}],
    ),
    "more after the end": (line({"content": "a"}) + last() + line({"content": "b"}), [{"type": "text", "text": "a"}]),
    "an error that is none": (line({"content": "a"}, error=None) + last(), [{"type": "text", "text": "a"}]),
    "blank lines": ("\n\r\n" + line({"content": "a"}) + "\n" + last(), [{"type": "text", "text": "a"}]),
}


@pytest.mark.parametrize(("text", "content"), ODD.values(), ids=ODD)
def test_odd_answers_are_read_all_the_same(text: str, content: list[dict[str, Any]]) -> None:
    assert replied(text).content == content


# what a model is ---------------------------------------------------------------------------------------------


def test_documents_are_the_same_wherever_their_bytes_are_cut() -> None:
    raw = json.dumps({"a": '{"\\" }', "b": [{}, "é"]}, ensure_ascii=False, indent=1).encode() + b"\n"
    for cut in range(len(raw)):
        decoder = JsonBodyDecoder()
        found = [*decoder.feed(raw[:cut]), *decoder.feed(raw[cut:] + b" [1]\n")]
        assert [json.loads(each.data) for each in found] == [json.loads(raw), [1]]


def test_what_a_server_tells_of_a_model_is_read() -> None:
    told = shown(40_960, ["completion", "tools"], parameters='stop "<|end|>"\nnum_ctx    16384\n')
    found = shown_model(told, 0)
    assert (found.window, found.floor, found.family) == (40_960, 16_384, "llama")
    assert (found.can("tools"), found.can("vision")) == (True, False)
    assert shown_model(told, 8000).window == 8000


@pytest.mark.parametrize(
    "told",
    [
        {},
        {"model_info": 7, "details": 7, "capabilities": "x", "parameters": 7},
        {"model_info": {"a.context_length": -1}},
    ],
)
def test_a_server_that_tells_nothing_of_a_model_is_taken_carefully(told: dict[str, Any]) -> None:
    found = shown_model(told, 0)
    assert found.window == 8192
    assert found.can("tools")


def test_an_error_in_place_of_a_model_is_one() -> None:
    (event,) = JsonBodyDecoder().feed(b'{"error": "no"}')
    with pytest.raises(ModelError, match="no"):
        ShowReader(lambda _: None).feed(event)
