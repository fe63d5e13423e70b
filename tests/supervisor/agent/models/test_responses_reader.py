"""The Responses API without a socket: what servers send, in order and out of it."""

import json
import re
from typing import Any, Final

import pytest

from supervisor.agent.models.model import Progress, Reply, TextDelta, ThoughtDelta, ToolUse
from supervisor.agent.models.responses_api import FORMAT
from tests.responses_server import (
    call_item,
    event,
    fault_in_responses,
    message_item,
    reasoning_item,
    response,
    responses_reply,
    streamed,
)
from tests.supervisor.model_requests import text
from tests.supervisor.read_streams import failure, next_body, whole

A: Final = '{"path": "a"}'


def replied(answer: str, shown: list[Progress] | None = None) -> Reply:
    return whole(FORMAT, answer, shown=shown)


def added(index: int, item: dict[str, Any]) -> str:
    return event("response.output_item.added", output_index=index, item=item)


def done(index: int, item: dict[str, Any]) -> str:
    return event("response.output_item.done", output_index=index, item=item)


def completed(*items: dict[str, Any], **more: Any) -> str:
    return event("response.completed", response=response("completed", items, **more))


def input_after(*answers: str, provider: str = "someone") -> list[dict[str, Any]]:
    """Return the items of the next request that are not the user's."""
    body = next_body(FORMAT, *map(replied, answers), provider=provider)
    assert fault_in_responses(body) is None
    return [item for item in body["input"] if item.get("role") != "user" and item["type"] != "function_call_output"]


# replies ---------------------------------------------------------------------------------------------------


def test_text_thinking_and_calls_are_shown_and_kept() -> None:
    shown: list[Progress] = []
    calls = [("read_file", A), ("write_file", '{"path": "b"}')]
    answer = replied(responses_reply(["he", "llo"], calls, ids=["x", "y"], thought="hm well"), shown)
    assert answer.content == [
        text("hello"),
        {"type": "tool_use", "id": "x", "name": "read_file", "input": {"path": "a"}},
        {"type": "tool_use", "id": "y", "name": "write_file", "input": {"path": "b"}},
    ]
    assert answer.calls == [ToolUse("x", "read_file", A), ToolUse("y", "write_file", '{"path": "b"}')]
    counts = {"input_tokens": 1, "output_tokens": 5, "cache_read_input_tokens": 0}
    assert (answer.stop_reason, answer.usage) == ("tool_use", counts)
    assert shown == [ThoughtDelta("hm "), ThoughtDelta("well"), TextDelta("he"), TextDelta("llo")]


def test_parts_of_a_summary_are_paragraphs() -> None:
    item = reasoning_item("one")
    item["summary"].append({"type": "summary_text", "text": "two"})
    shown: list[Progress] = []
    replied(streamed([item, message_item("x")]), shown)
    assert "".join(each.text for each in shown if isinstance(each, ThoughtDelta)) == "one\n\ntwo"


def test_a_comment_between_calls_keeps_its_place() -> None:
    answer = replied(streamed([call_item("f", A, "x"), message_item("and"), call_item("g", A, "y")]))
    assert [block["type"] for block in answer.content] == ["tool_use", "text", "tool_use"]


STOPS: Final[dict[str, tuple[str, str]]] = {
    "text": (streamed([message_item("x")]), "end_turn"),
    "a call": (streamed([call_item("f", A, "x")]), "tool_use"),
    "cut": (
        streamed([message_item("x")], status="incomplete", incomplete_details={"reason": "max_output_tokens"}),
        "max_tokens",
    ),
    "cut in a call": (
        streamed([call_item("f", '{"p', "x")], status="incomplete", incomplete_details={"reason": "max_output_tokens"}),
        "max_tokens",
    ),
    "a filter": (
        streamed([message_item("x")], status="incomplete", incomplete_details={"reason": "content_filter"}),
        "refusal",
    ),
    "incomplete for no reason": (streamed([message_item("x")], status="incomplete"), "max_tokens"),
    "a refusal": (streamed([message_item("I won't", refusal=True)]), "refusal"),
    "a refusal and a text": (streamed([message_item("no", refusal=True), message_item("x")]), "end_turn"),
    "nothing": (streamed([]), "end_turn"),
}


@pytest.mark.parametrize(("answer", "stop"), STOPS.values(), ids=STOPS)
def test_a_reply_ends_as_its_server_says(answer: str, stop: str) -> None:
    assert replied(answer).stop_reason == stop
    assert fault_in_responses(next_body(FORMAT, replied(answer))) is None


def test_a_refusal_is_what_the_model_says() -> None:
    assert replied(STOPS["a refusal"][0]).text == "I won't"


ODD: Final[dict[str, tuple[str, str]]] = {
    "no name beside its type": (
        "".join(f"{line}\n" for line in responses_reply("x").splitlines() if not line.startswith("event:")),
        "x",
    ),
    "no type beside its name": (
        event("response.completed", response=response("completed", [message_item("x")])).replace(
            '"type": "response.completed", ', ""
        ),
        "x",
    ),
    "an end alone": (completed(message_item("x")), "x"),
    "an end without items": (done(0, message_item("x")) + completed(), "x"),
    "items in another order": (done(1, message_item("y")) + done(0, message_item("x")) + completed(), "xy"),
    "an item that was not said to be done": (
        added(0, {"id": "m", "type": "message", "role": "assistant", "content": []})
        + event("response.output_text.delta", output_index=0, delta="x")
        + completed(),
        "x",
    ),
    "pieces alone": (event("response.output_text.delta", output_index=0, delta="x") + completed(), "x"),
    "[DONE] after it": (responses_reply("x") + "data: [DONE]\n\n", "x"),
    "[DONE] before it": ("data: [DONE]\n\n" + responses_reply("x"), "x"),
    "a type that is none": (completed({"type": []}, {"type": {}}, message_item("x")), "x"),
    "unknown events and items": (
        event("response.brand_new.delta", delta="no", output_index=7)
        + event("keepalive")
        + "data: {}\n\n"
        + streamed([message_item("x")]).replace("response.in_progress", "response.queued")
        + event("error", message="late"),
        "x",
    ),
    "no stream at all": (json.dumps(response("completed", [message_item("x")]), indent=1), "x"),
    "a whole response in an event": ("data: " + json.dumps(response("completed", [message_item("x")])) + "\n\n", "x"),
    "usage that is none": (completed(message_item("x"), usage={"input_tokens": "1", "output_tokens_details": 5}), "x"),
    "usage whose details are none": (completed(message_item("x"), usage={"input_tokens_details": True}), "x"),
}


@pytest.mark.parametrize(("answer", "said"), ODD.values(), ids=ODD)
def test_other_servers_are_understood(answer: str, said: str) -> None:
    assert replied(answer).text == said


def test_a_whole_response_is_shown() -> None:
    shown: list[Progress] = []
    replied(ODD["no stream at all"][0], shown)
    assert shown == [TextDelta("x")]


def test_a_call_whose_item_is_not_said_to_be_done_has_its_pieces() -> None:
    item = {**call_item("f", "", "x"), "status": "in_progress"}
    begun = added(0, item) + event("response.function_call_arguments.delta", output_index=0, delta=A[:5])
    more = event("response.function_call_arguments.delta", output_index=0, delta=A[5:])
    told = event("response.function_call_arguments.done", output_index=0, arguments=A)
    assert replied(begun + more + completed()).calls == [ToolUse("x", "f", A)]
    assert replied(begun + told + completed()).calls == [ToolUse("x", "f", A)]


def test_tokens_are_counted_by_one_name() -> None:
    usage = {
        "input_tokens": 100,
        "input_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 30},
        "output_tokens": 20,
        "output_tokens_details": {"reasoning_tokens": 7},
    }
    assert replied(responses_reply("x", usage=usage)).usage == {
        "input_tokens": 10,
        "output_tokens": 20,
        "cache_read_input_tokens": 60,
        "cache_creation_input_tokens": 30,
        "reasoning_tokens": 7,
    }


# what goes back --------------------------------------------------------------------------------------------


def test_items_go_back_as_they_were_sent() -> None:
    items = [reasoning_item("hm"), message_item("so:"), reasoning_item(""), call_item("f", '{ "n": 1}', "x")]
    items[1]["phase"] = "commentary"
    assert input_after(streamed(items)) == items


def test_items_stay_with_the_provider_that_they_came_from() -> None:
    items = [reasoning_item("hm"), message_item("so:"), call_item("f", '{ "n": 1}', "x")]
    assert input_after(streamed(items), provider="another") == [
        {"type": "message", "role": "assistant", "content": "so:"},
        {"type": "function_call", "call_id": "x", "name": "f", "arguments": '{"n":1}'},
    ]


def test_reasoning_without_what_it_led_to_is_left_out() -> None:
    assert input_after(streamed([message_item("x", item_id="m"), reasoning_item("hm")]))[0]["id"] == "m"
    (alone,) = input_after(streamed([reasoning_item("hm")]))[:1]
    assert alone == {"type": "message", "role": "assistant", "content": "(no answer)"}


def test_reasoning_that_the_server_has_not_given_away_is_left_out_and_so_are_the_ids_that_hang_on_it() -> None:
    first, *_ = input_after(streamed([reasoning_item("hm", None), call_item("f", A, "x")]))
    assert first == {key: value for key, value in call_item("f", A, "x").items() if key != "id"}


def test_reasoning_in_plain_text_goes_back() -> None:
    item = {**reasoning_item("", None), "content": [{"type": "reasoning_text", "text": "hm"}]}
    assert input_after(streamed([item, message_item("x")]))[0] == item


def test_ids_and_names_go_back_as_the_conversation_has_them() -> None:
    answer = streamed([call_item("../f", A, "x"), call_item("n" * 99, A, "x"), call_item("g", A, "")])
    calls = input_after(answer, answer)
    assert [call["name"] for call in calls] == ["___f", "n" * 64, "g"] * 2
    assert len({call["call_id"] for call in calls}) == 6


@pytest.mark.parametrize("raw", ['{"path":', "[1]", "", "7"])
def test_arguments_that_are_no_object_do_not_go_back(raw: str) -> None:
    assert input_after(streamed([call_item("f", raw, "x")]))[0]["arguments"] == "{}"


def test_very_many_calls_go_back_as_far_as_they_were_kept() -> None:
    items = [item for n in range(1000) for item in (reasoning_item("hm"), call_item("f", A, f"c{n}"))]
    assert 0 < len(input_after(completed(*items))) < 2000


def test_what_is_no_message_goes_back_as_the_text_that_it_has() -> None:
    odd = {**message_item("x"), "id": 5, "role": "user"}
    odd["content"] = [*odd["content"], {"type": "output_audio"}, 7]
    assert input_after(completed(odd))[0] == {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "x", "annotations": []}],
    }


@pytest.mark.parametrize("odd", ["", None, 7, []])
def test_an_id_that_is_none_does_not_go_back(odd: object) -> None:
    assert "id" not in input_after(completed({**message_item("x"), "id": odd}))[0]


def test_items_of_tools_that_nobody_asked_for_are_not_kept() -> None:
    search = {"id": "ws_1", "type": "web_search_call", "status": "completed"}
    assert [item["type"] for item in input_after(completed(search, message_item("x")))] == ["message"]


# faults ----------------------------------------------------------------------------------------------------

FAILED: Final = {"code": "rate_limit_exceeded", "message": "slow down"}
ERRORS: Final[dict[str, tuple[str, str, str]]] = {
    "an error": (event("error", code="server_error", message="oops", param=None), "api_error", "oops"),
    "an error in its wrapper": (event("error", error={"code": "server_error", "message": "oops"}), "api_error", "oops"),
    "a failure": (event("response.failed", response=response("failed", error=FAILED)), "rate_limited", "slow down"),
    "a failure without words": (event("response.failed", response=response("failed")), "api_error", "failed"),
    "a full context": (
        event(
            "response.failed", response=response("failed", error={"code": "context_length_exceeded", "message": "m"})
        ),
        "context_full",
        "m",
    ),
    "cancelled": (event("response.cancelled", response=response("cancelled")), "api_error", "cancelled"),
    "a status that is none": (completed(message_item("x")).replace('"completed"', '["no"]'), "api_error", "no"),
    "completed, with an error": (completed(message_item("x"), error=FAILED), "rate_limited", "slow down"),
    "an error and no stream": ('{"error": {"message": "no", "code": "invalid_api_key"}}', "authentication", "no"),
    "no JSON": ("data: {\n\n", "bad_response", "JSON"),
    "no object": ("data: [1]\n\n", "bad_response", "object"),
    "an end without a response": (event("response.completed", response=None), "bad_response", "completed"),
    "a call without a name": (completed({**call_item("f", A, "x"), "name": None}), "bad_response", "name"),
}


@pytest.mark.parametrize(("answer", "kind", "words"), ERRORS.values(), ids=ERRORS)
def test_an_error_has_a_kind(answer: str, kind: str, words: str) -> None:
    error = failure(FORMAT, answer)
    assert error.kind == kind
    assert words in str(error)


def always(answer: str) -> str:
    """Return an answer with ids that are the same in each run."""
    return re.sub(r"_[0-9a-f]{24}", "_1", answer)


def test_no_id_goes_back_twice_however_often_a_server_gives_it() -> None:
    twice = always(completed(*[call_item("f", A, "x")] * 2))
    assert [item.get("id") for item in input_after(twice, twice)] == ["fc_1", None, None, None]
