"""The Responses API over real HTTP, against a server that OpenAI's own client takes for one."""

import base64
import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Final

import msgspec
import pytest

from supervisor.agent.models.model import Block, ModelOptions, ModelRequest, Reply
from supervisor.agent.models.responses_api import FORMAT
from supervisor.config.model_keys import Effort
from supervisor.journal.facts import ReplyOrigin
from tests.chat_server import chat_error
from tests.responses_server import (
    ResponsesServer,
    call_item,
    event,
    fault_in_responses,
    message_item,
    reasoning_item,
    response,
    responses_reply,
    streamed,
)
from tests.script_server import Response
from tests.supervisor.asked_model import KEY, Asked, any_of, asking_format
from tests.supervisor.model_requests import ASK, TOOL, medium, result, talk, text, user

if TYPE_CHECKING:
    import openai

DONE: Final = responses_reply("done")
A: Final = {"path": "a"}
PNG: Final = base64.b64encode(b"\x89PNG").decode()


def asking(*responses: Response, **options: Any) -> AbstractAsyncContextManager[Asked]:
    return asking_format(FORMAT, ResponsesServer(), *responses, **options)


async def body_of(request: ModelRequest = ASK) -> dict[str, Any]:
    async with asking(DONE) as asked:
        assert (await asked.reply(request)).text == "done"
    (body,) = asked.server.bodies
    return dict(body)


# the server is one -----------------------------------------------------------------------------------------


def official(server: ResponsesServer) -> "openai.OpenAI":
    import openai  # and not for all tests: it is large

    return openai.OpenAI(api_key=KEY, base_url=server.url, max_retries=0)


def test_the_official_client_reads_what_the_server_streams() -> None:
    answer = responses_reply(["he", "llo"], [("read_file", A)], thought="hm well", ids=["x"])
    asked: Any = [{"type": "message", "role": "user", "content": "hello"}]
    with (
        ResponsesServer([answer]) as server,
        official(server) as client,
        client.responses.stream(model="m", input=asked, store=False) as stream,
    ):
        kinds = [each.type for each in stream]
        found = stream.get_final_response()
    assert found.output_text == "hello"
    assert [item.type for item in found.output] == ["reasoning", "message", "function_call"]
    assert {"response.reasoning_summary_text.delta", "response.function_call_arguments.delta"} <= set(kinds)
    assert found.usage is not None
    assert found.usage.output_tokens == 5


def test_the_official_client_is_told_of_a_history_that_the_api_refuses() -> None:
    import openai

    asked: Any = [{"type": "message", "role": "user", "content": "go"}, call_item("f", "{}", "x")]
    with (
        ResponsesServer([DONE]) as server,
        official(server) as client,
        pytest.raises(openai.BadRequestError, match="No tool output found"),
    ):
        client.responses.create(model="m", input=asked, store=False, stream=True)


async def test_our_request_is_one_that_the_official_client_makes() -> None:
    ours = await body_of(ModelRequest("Be brief.", [TOOL], [user()], 0, ModelOptions(77, "low", 0.5)))
    with ResponsesServer([DONE]) as server, official(server) as client:
        client.responses.create(**ours)
    assert server.bodies == [ours]


# replies ---------------------------------------------------------------------------------------------------


async def test_a_failed_response_is_asked_for_again() -> None:
    failed = event("response.failed", response=response("failed", error={"code": "server_error", "message": "oops"}))
    async with asking(failed, DONE) as asked:
        assert (await asked.reply()).text == "done"
    assert [(each.kind, "oops" in each.message) for each in asked.retries] == [("api_error", True)]


# requests --------------------------------------------------------------------------------------------------


async def test_the_request_says_what_was_asked() -> None:
    options = ModelOptions(77, "max", 0.5)
    assert await body_of(ModelRequest("Be brief.", [TOOL], [user("one")], 1, options, session="its-id")) == {
        "model": "m",
        "input": [{"type": "message", "role": "user", "content": "one"}],
        "instructions": "Be brief.",
        "stream": True,
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "reasoning": {"effort": "max", "summary": "auto"},
        "max_output_tokens": 77,
        "prompt_cache_key": "its-id",
        "tools": [
            {
                "type": "function",
                "name": "read_file",
                "description": "Read.",
                "parameters": TOOL["input_schema"],
                "strict": False,
            }
        ],
        "temperature": 0.5,
    }


@pytest.mark.parametrize(("effort", "said"), [("", None), ("none", "none"), ("low", "low")])
async def test_the_effort_is_said_where_one_was_chosen(effort: Effort, said: str | None) -> None:
    body = await body_of(ModelRequest("", [], [user()], 0, ModelOptions(effort=effort)))
    assert body["reasoning"].get("effort") == said
    assert body.keys().isdisjoint({"tools", "temperature", "instructions"})


async def test_the_items_of_a_reply_come_back_with_their_results() -> None:
    items = [reasoning_item("hm"), message_item("so:"), call_item("read_file", '{ "path": "a"}', "x")]
    async with asking(streamed(items), DONE) as asked:
        first = await asked.reply()
        await asked.reply(talk([text("hello")], first, [result("x"), text("(noted)")]))
    assert asked.server.bodies[1]["input"] == [
        {"type": "message", "role": "user", "content": "hello"},
        *items,
        {"type": "function_call_output", "call_id": "x", "output": "found"},
        {"type": "message", "role": "user", "content": "(noted)"},
    ]


async def test_images_and_documents_are_put_in_also_in_results() -> None:
    image, pdf = medium("image", "d1", "image/png"), medium("document", "d2", "application/pdf")
    calls: list[Block] = [{"type": "tool_use", "id": name, "name": "f", "input": {}} for name in ("c1", "c2")]
    within = [result("c1", [text("one"), image]), result("c2", [text("two")]), medium("image", "d3", "image/png")]
    request = talk([image, pdf, text("look")], Reply(calls, "tool_use", {}), within)
    request = msgspec.structs.replace(request, media={"d1": PNG, "d2": PNG}, with_media=frozenset({0, 2}))
    items = (await body_of(request))["input"]
    shown = {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}", "detail": "auto"}
    assert items[0]["content"][0] == shown
    assert [part["type"] for part in items[0]["content"]] == ["input_image", "input_file", "input_text"]
    assert items[3]["output"] == [{"type": "input_text", "text": "one"}, shown]
    assert items[4]["output"] == "two"
    assert "not kept" in items[5]["content"]


async def test_replies_of_another_format_are_projected() -> None:
    thinking = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
    chat = ReplyOrigin("openai", "m", "chat", [{"reasoning_content": "hm"}])
    call = {"type": "tool_use", "id": "x", "name": "f" * 99, "input": {"n": 1}}
    again = talk(
        [text("go")],
        Reply([thinking, call], "tool_use", {}, origin=ReplyOrigin("anthropic", "claude")),
        [result("x", "")],
        Reply([text("a")], "end_turn", {}, origin=chat),
        [text("on")],
        Reply([thinking], "end_turn", {}),
        [text("on")],
    )
    items = [item for item in (await body_of(again))["input"] if item.get("role") != "user"]
    assert items == [
        {"type": "function_call", "call_id": "x", "name": "f" * 64, "arguments": '{"n":1}'},
        {"type": "function_call_output", "call_id": "x", "output": "(empty)"},
        {"type": "message", "role": "assistant", "content": "a"},
        {"type": "message", "role": "assistant", "content": "(no answer)"},
    ]


# servers and models that refuse something ---------------------------------------------------------------------


def named(name: str, words: str) -> Callable[[dict[str, Any]], str | None]:
    return lambda body: words if name in body else None


def within(name: str, words: str, value: object = None) -> Callable[[dict[str, Any]], str | None]:
    def dislike(body: dict[str, Any]) -> str | None:
        found = body.get("reasoning", {})
        return words if name in found and (value is None or found[name] == value) else None

    return dislike


REPLIED: Final = Reply(
    [{"type": "tool_use", "id": "x", "name": "read_file", "input": A}],
    "tool_use",
    {},
    origin=ReplyOrigin("openai", "m", "responses", [reasoning_item("hm"), call_item("read_file", '{"path":"a"}', "x")]),
)
HISTORY: Final = msgspec.structs.replace(
    talk([text("go")], REPLIED, [result("x")]), options=ModelOptions(8192, "max", 0.2), session="s"
)

REFUSALS: Final[dict[str, tuple[Callable[[dict[str, Any]], str | None], int]]] = {
    "reasoning of another server": (
        lambda body: (
            "The encrypted content gAAA... could not be verified."
            if any(item["type"] == "reasoning" for item in body["input"])
            else None
        ),
        1,
    ),
    "reasoning that was not kept": (
        lambda body: (
            "Item with id 'rs_1' not found. Items are not persisted when `store` is set to false."
            if any(item["type"] == "reasoning" or "id" in item for item in body["input"])
            else None
        ),
        1,
    ),
    "encrypted content": (named("include", "Encrypted content is not supported with this model."), 1),
    "a summary": (within("summary", "Unsupported parameter: 'reasoning.summary' is not supported with this model."), 1),
    "a summary without a passport": (
        within("summary", "Your organization must be verified to generate reasoning summaries."),
        1,
    ),
    "the highest effort": (within("effort", "Unsupported value: 'max' is not supported", "max"), 1),
    "any effort": (within("effort", "Unsupported parameter: 'reasoning.effort' is not supported with this model."), 3),
    "any reasoning": (named("reasoning", "Unknown parameter: reasoning"), 1),
    "temperature": (named("temperature", "Unsupported parameter: 'temperature' is not supported with this model."), 1),
    "a limit": (named("max_output_tokens", "max_output_tokens is too large: 8192"), 1),
    "a key of the cache": (named("prompt_cache_key", "Unknown parameter: 'prompt_cache_key'."), 1),
    "strict": (lambda body: "tools.0.strict: Extra inputs" if "strict" in body["tools"][0] else None, 1),
    "store": (named("store", "Unknown parameter: 'store'."), 1),
}


@pytest.mark.parametrize(("dislike", "times"), REFUSALS.values(), ids=REFUSALS)
async def test_what_a_server_refuses_is_left_out_and_that_is_remembered(
    dislike: Callable[[dict[str, Any]], str | None], times: int
) -> None:
    async with asking_format(FORMAT, ResponsesServer(judge=dislike), DONE, DONE) as asked:
        assert (await asked.reply(HISTORY)).text == "done"
        assert len(asked.server.requests) == 1 + times
        assert (await asked.reply(HISTORY)).text == "done"
    assert len(asked.server.requests) == 2 + times
    assert asked.server.bodies[-2] == asked.server.bodies[-1]
    assert asked.retries == []


async def test_all_that_a_server_refuses_is_left_out_one_after_the_other() -> None:
    dislikes = [dislike for dislike, _ in REFUSALS.values()]
    async with asking_format(FORMAT, ResponsesServer(judge=any_of(dislikes)), DONE) as asked:
        assert (await asked.reply(HISTORY)).text == "done"
    body = asked.server.bodies[-1]
    assert body.keys() == {"model", "input", "instructions", "stream", "tools"}
    assert [item["type"] for item in body["input"]] == ["message", "function_call", "function_call_output"]


async def test_a_history_without_its_reasoning_is_one_that_the_api_takes() -> None:
    async with asking_format(FORMAT, ResponsesServer(judge=REFUSALS["reasoning of another server"][0]), DONE) as asked:
        await asked.reply(HISTORY)
    assert fault_in_responses(asked.server.bodies[-1]) is None
    assert "id" not in json.dumps(asked.server.bodies[-1]["input"][1]).replace("call_id", "")


async def test_a_model_that_is_not_there_is_told() -> None:
    refused = chat_error(404, "The model `m` does not exist or you do not have access to it.")
    async with asking(refused) as asked:
        assert (await asked.error()).kind == "not_found"
    assert len(asked.server.requests) == 1
