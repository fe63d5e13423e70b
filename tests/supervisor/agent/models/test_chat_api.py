"""Chat Completions over real HTTP, against a server that OpenAI's own client takes for one."""

import base64
import itertools
import json
from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Final

import msgspec
import pytest

from supervisor.agent.models.chat_api import FORMAT
from supervisor.agent.models.model import Block, ModelOptions, ModelRequest, Reply
from supervisor.agent.models.remote_model import RemoteModel
from supervisor.agent.models.server import NO_KEY
from supervisor.config.model_keys import Effort
from supervisor.journal.facts import ReplyOrigin
from tests.chat_server import DONE as END
from tests.chat_server import Call, ChatServer, called, chat_error, chat_reply, chunk, end, fault_in_chat
from tests.script_server import Response
from tests.supervisor.asked_model import KEY, Asked, any_of, asking_format
from tests.supervisor.model_requests import ASK, TOOL, medium, result, talk, text, user

if TYPE_CHECKING:
    import openai

DONE: Final = chat_reply("done")
A: Final = {"path": "a"}
FUNCTION: Final[Any] = {"name": "read_file", "description": "Read.", "parameters": {"type": "object"}}
PNG: Final = base64.b64encode(b"\x89PNG").decode()


def asking(*responses: Response, **options: Any) -> AbstractAsyncContextManager[Asked]:
    return asking_format(FORMAT, ChatServer(), *responses, **options)


async def body_of(request: ModelRequest = ASK) -> dict[str, Any]:
    async with asking(DONE) as asked:
        assert (await asked.reply(request)).text == "done"
    (body,) = asked.server.bodies
    return dict(body)


# the server is one -----------------------------------------------------------------------------------------


def official(server: ChatServer) -> "openai.OpenAI":
    import openai  # and not for all tests: it is large

    return openai.OpenAI(api_key=KEY, base_url=server.url, max_retries=0)


def test_the_official_client_reads_what_the_server_streams() -> None:
    calls: list[Call] = [("read_file", {"path": "a"}), ("read_file", '{"path": "é"}')]
    with (
        ChatServer([chat_reply(["he", "llo"], calls, ids=["x", "y"])]) as server,
        official(server) as client,
        client.chat.completions.stream(
            model="m",
            messages=[{"role": "user", "content": "hello"}],
            tools=[{"type": "function", "function": FUNCTION}],
            stream_options={"include_usage": True},
        ) as stream,
    ):
        found = stream.get_final_completion()
    (choice,) = found.choices
    assert (choice.message.content, choice.finish_reason) == ("hello", "tool_calls")
    uses = choice.message.tool_calls or []
    assert [(use.id, json.loads(use.function.arguments)["path"]) for use in uses] == [("x", "a"), ("y", "é")]
    assert found.usage is not None
    assert found.usage.completion_tokens == 5


def test_the_official_client_is_told_of_a_history_that_the_api_refuses() -> None:
    import openai

    call: Any = {"id": "x", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    messages: list[Any] = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "user", "content": "and?"},
    ]
    with (
        ChatServer([DONE]) as server,
        official(server) as client,
        pytest.raises(openai.BadRequestError, match="must be followed by answers"),
    ):
        client.chat.completions.create(model="m", messages=messages, stream=True)


async def test_our_request_is_one_that_the_official_client_makes() -> None:
    ours = await body_of(ModelRequest("Be brief.", [TOOL], [user()], 0, ModelOptions(77, "low", 0.5)))
    with ChatServer([DONE]) as server, official(server) as client:
        client.chat.completions.create(**ours)
    assert server.bodies == [ours]


# replies ---------------------------------------------------------------------------------------------------


ENDS: Final = pytest.mark.parametrize(
    "more", [{}, {"then": "reset"}, {"then": "hang"}], ids=["end", "reset", "silence"]
)


@ENDS
async def test_a_reply_that_has_said_why_it_finished_needs_no_more(more: dict[str, str]) -> None:
    async with asking({"sse": chunk({"content": "all of it"}, "stop"), **more}, rest_timeout=0.05) as asked:
        assert (await asked.reply()).text == "all of it"
    assert asked.retries == []


async def test_what_a_reply_cost_is_waited_for_and_not_what_never_ends() -> None:
    late = (
        chunk({"content": "all"}, "stop")
        + chunk(usage={"prompt_tokens": 7, "completion_tokens": 2})
        + ": ping\n\n" * 99
    )
    async with asking({"sse": late, "gap": 0.1}, rest_timeout=0.5) as asked:
        assert (await asked.reply()).usage == {"input_tokens": 7, "output_tokens": 2}


async def test_a_server_that_does_not_stream_is_understood() -> None:
    whole = {"object": "chat.completion", "choices": [{"message": {"content": "x"}, "finish_reason": "stop"}]}
    async with asking({"status": 200, "body": json.dumps(whole)}) as asked:
        assert (await asked.reply()).text == "x"


async def test_an_error_with_a_status_that_says_all_is_well_is_told_in_its_words() -> None:
    body = json.dumps({"error": {"message": "no such model: CANARY", "code": "model_not_found"}})
    async with asking({"status": 200, "body": body.replace("CANARY", KEY)}) as asked:
        error = await asked.error()
    assert error.kind == "not_found"
    assert "no such model" in str(error)


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ({"status": 200, "headers": {"content-type": "text/html"}, "body": "<html>log in</html>"}, "bad_response"),
        (chat_error(429, "You exceeded your current quota", "insufficient_quota"), "permission"),
        (chat_error(400, "maximum context length is 5 tokens. However, you requested 9"), "context_full"),
        (chat_error(404, "The model `m` does not exist"), "not_found"),
        (chat_error(401, f"Incorrect API key provided: {KEY}"), "authentication"),
        ({"status": 400, "body": 'data: {"error": {"code": "context_length_exceeded"}}\n\n' + END}, "context_full"),
    ],
)
async def test_a_refusal_has_a_kind(answer: dict[str, Any], kind: str) -> None:
    async with asking(answer, answer) as asked:
        assert (await asked.error()).kind == kind


# requests --------------------------------------------------------------------------------------------------


async def test_the_request_says_what_was_asked() -> None:
    options = ModelOptions(77, "max", 0.5)
    assert await body_of(ModelRequest("Be brief.", [TOOL], [user("one")], 1, options)) == {
        "model": "m",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "one"}],
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_tokens": 77,
        "tools": [
            {
                "type": "function",
                "function": {"name": "read_file", "description": "Read.", "parameters": TOOL["input_schema"]},
            }
        ],
        "temperature": 0.5,
        "reasoning_effort": "max",
    }


@pytest.mark.parametrize(("effort", "said"), [("", None), ("none", "none"), ("low", "low"), ("high", "high")])
async def test_the_effort_is_said_where_one_was_chosen(effort: Effort, said: str | None) -> None:
    body = await body_of(ModelRequest("", [], [user()], 0, ModelOptions(effort=effort)))
    assert body.get("reasoning_effort") == said
    assert body.keys().isdisjoint({"tools", "temperature"})
    assert [message["role"] for message in body["messages"]] == ["user"]


async def test_results_stand_before_what_is_said_with_them() -> None:
    calls = [{"type": "tool_use", "id": name, "name": "f", "input": {"n": 1}} for name in ("c1", "c2")]
    again = talk([text("go")], Reply(calls, "tool_use", {}), [result("c1"), result("c2", ""), text("a"), text("b")])
    assert (await body_of(again))["messages"][2:] == [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": name, "type": "function", "function": {"name": "f", "arguments": '{"n":1}'}}
                for name in ("c1", "c2")
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "found"},
        {"role": "tool", "tool_call_id": "c2", "content": "(empty)"},
        {"role": "user", "content": "a\n\nb"},
    ]


async def test_images_and_documents_are_put_in_and_those_of_results_come_after_all_of_them() -> None:
    image, pdf, lost = medium("image", "d1", "image/png"), medium("document", "d2", "application/pdf"), "d3"
    calls: list[Block] = [{"type": "tool_use", "id": name, "name": "f", "input": {}} for name in ("c1", "c2")]
    within = [result("c1", [text("one"), image]), result("c2", [pdf]), medium("image", lost, "image/png"), text("so?")]
    request = talk([image, text("look")], Reply(calls, "tool_use", {}), within)
    request = msgspec.structs.replace(request, media={"d1": PNG, "d2": PNG}, with_media=frozenset({0, 2}))
    messages = (await body_of(request))["messages"]
    shown = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}
    assert messages[1]["content"] == [shown, text("look")]
    assert [message["content"] for message in messages[3:5]] == ["one", "(see below)"]
    assert [part["type"] for part in messages[5]["content"]] == ["text", "image_url", "text", "file", "text", "text"]
    assert messages[5]["content"][3]["file"]["file_data"] == f"data:application/pdf;base64,{PNG}"


async def test_thinking_of_another_format_is_not_sent() -> None:
    thinking = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
    origin = ReplyOrigin("anthropic", "claude")
    first = Reply([thinking, text("x")], "end_turn", {}, origin=origin)
    other = ReplyOrigin("openai", "m", "responses", [{"type": "reasoning", "reasoning_content": "no"}])
    again = talk([text("go")], first, [text("on")], Reply([thinking], "end_turn", {}, origin=other), [text("on")])
    replies = [message for message in (await body_of(again))["messages"] if message["role"] == "assistant"]
    assert replies == [{"role": "assistant", "content": "x"}, {"role": "assistant", "content": "(no answer)"}]


async def test_the_key_is_sent_and_nothing_where_there_is_none() -> None:
    async with asking(DONE) as asked:
        await asked.reply()
        bare = RemoteModel("m", NO_KEY, asked.server.url, FORMAT, provider="own")
        asked.server.add(DONE, DONE)
        await bare.reply(ASK, lambda _: None)
        at = asked.server.url.replace("//", "//me:pass@").replace("/v1", "/v1?api-version=1")
        both = RemoteModel("m", KEY, at.replace("/v1?", "/a/v1/?"), FORMAT, provider="own")
        await both.reply(ASK, lambda _: None)
        for model in (bare, both):
            await model.aclose()
    first, second, third = asked.server.requests
    assert first.headers["authorization"] == f"Bearer {KEY}"
    assert "authorization" not in second.headers
    assert third.headers["authorization"].startswith("Basic ")
    assert third.path == "/a/v1/chat/completions?api-version=1"
    assert {request.headers["content-type"] for request in asked.server.requests} == {"application/json"}


# servers that refuse something --------------------------------------------------------------------------------


def named(name: str, words: str) -> Callable[[dict[str, Any]], str | None]:
    return lambda body: words if name in body else None


def some(words: str, is_bad: Callable[[dict[str, Any]], bool]) -> Callable[[dict[str, Any]], str | None]:
    return lambda body: words if any(is_bad(message) for message in body["messages"]) else None


def pairs(first: str, second: str, words: str) -> Callable[[dict[str, Any]], str | None]:
    def dislike(body: dict[str, Any]) -> str | None:
        roles = [message["role"] for message in body["messages"]]
        return words if (first, second) in itertools.pairwise(roles) else None

    return dislike


def is_reply(message: dict[str, Any]) -> bool:
    return bool(message["role"] == "assistant")


def ids_of(message: dict[str, Any]) -> Iterable[str]:
    return [message.get("tool_call_id", "abcdefghi"), *(call["id"] for call in message.get("tool_calls", []))]


THOUGHT: Final = Reply(
    [{"type": "tool_use", "id": "call_1", "name": "read_file", "input": A}],
    "tool_use",
    {},
    origin=ReplyOrigin("openai", "m", "chat", [{"reasoning_content": "hm"}]),
)
PLAIN: Final = Reply([text("x")], "end_turn", {})
HISTORY: Final = msgspec.structs.replace(
    talk([text("go")], THOUGHT, [result("call_1"), text("(noted)")], PLAIN, [text("on")]),
    options=ModelOptions(8192, "max", 0.2),
)

REFUSALS: Final[dict[str, tuple[Callable[[dict[str, Any]], str | None], int]]] = {
    "stream_options": (named("stream_options", "Unrecognized request argument supplied: stream_options"), 1),
    "stream_options of FastAPI": (named("stream_options", "body.stream_options: Extra inputs are not permitted"), 1),
    "max_tokens": (
        named("max_tokens", "'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."),
        1,
    ),
    "both limits": (
        lambda body: (
            "max_completion_tokens or max_tokens is too large" if any("max_" in name for name in body) else None
        ),
        2,
    ),
    "a limit that the context has no room for": (
        named(
            "max_tokens",
            "This model's maximum context length is 8192 tokens. However, you requested 9000 (808 in the messages, "
            "8192 in the completion).",
        ),
        1,
    ),
    "temperature": (named("temperature", "Unsupported value: 'temperature' does not support 0.2 with this model."), 1),
    "the highest effort": (
        lambda body: (
            "Unsupported value: 'reasoning_effort' does not support 'max'"
            if body.get("reasoning_effort") == "max"
            else None
        ),
        1,
    ),
    "the two highest efforts": (
        lambda body: (
            "Unsupported value: 'reasoning_effort' does not support that"
            if body.get("reasoning_effort") in {"max", "xhigh"}
            else None
        ),
        2,
    ),
    "any effort": (named("reasoning_effort", "Unrecognized request argument supplied: reasoning_effort"), 3),
    "thinking": (
        some("property 'reasoning_content' is unsupported", lambda message: "reasoning_content" in message),
        1,
    ),
    "a reply without thinking": (
        some(
            "The `reasoning_content` in the thinking mode must be passed back to the API.",
            lambda message: is_reply(message) and "reasoning_content" not in message,
        ),
        1,
    ),
    "a reply without thinking, in older words": (
        some(
            "Missing `reasoning_content` field in the assistant message at message index 2.",
            lambda message: is_reply(message) and "reasoning_content" not in message,
        ),
        1,
    ),
    "content that is null": (
        some("messages.1.content: Input should be a valid string", lambda message: message["content"] is None),
        1,
    ),
    "ids that are not Mistral's": (
        some(
            "Tool call id was call_1 but must be a-z, A-Z, 0-9, with a length of 9.",
            lambda message: any(len(each) != 9 or not each.isalnum() for each in ids_of(message)),
        ),
        1,
    ),
    "a user after a tool": (pairs("tool", "user", "Unexpected role 'user' after role 'tool'"), 1),
    "a system prompt": (some("System role not supported", lambda message: message["role"] == "system"), 1),
    "a system prompt, in o1's words": (
        some(
            "Unsupported value: 'messages[0].role' does not support 'system' with this model.",
            lambda message: message["role"] == "system",
        ),
        1,
    ),
}


@pytest.mark.parametrize("status", [400, 422])
@pytest.mark.parametrize(("dislike", "times"), REFUSALS.values(), ids=REFUSALS)
async def test_what_a_server_refuses_is_left_out_and_that_is_remembered(
    dislike: Callable[[dict[str, Any]], str | None], times: int, status: int
) -> None:
    async with asking_format(FORMAT, ChatServer(judge=dislike, refusal=status), DONE, DONE) as asked:
        assert (await asked.reply(HISTORY)).text == "done"
        assert len(asked.server.requests) == 1 + times
        assert (await asked.reply(HISTORY)).text == "done"
    assert len(asked.server.requests) == 2 + times
    assert asked.server.bodies[-2] == asked.server.bodies[-1]
    assert asked.retries == []
    assert fault_in_chat(asked.server.bodies[-1]) is None


async def test_all_that_a_server_refuses_is_left_out_one_after_the_other() -> None:
    dislikes = [dislike for dislike, _ in REFUSALS.values()]
    dislikes = [each for each in dislikes if each is not REFUSALS["thinking"][0]]  # no server wants both
    async with asking_format(FORMAT, ChatServer(judge=any_of(dislikes)), DONE) as asked:
        assert (await asked.reply(HISTORY)).text == "done"
    assert len(asked.server.requests) < 15


async def test_a_reply_that_a_budget_counts_keeps_its_limit_also_where_others_have_lost_it() -> None:
    longest, counted = [], msgspec.structs.replace(HISTORY, counted=True)

    def judge(body: dict[str, Any]) -> str | None:
        longest.append(body.get("max_tokens"))
        return "max_tokens is too large" if (longest[-1] or 0) > 5000 else None

    async with asking_format(FORMAT, ChatServer(judge=judge), DONE, DONE, DONE) as asked:
        for each in (HISTORY, counted, counted):
            assert (await asked.reply(each)).text == "done"
    assert longest == [8192, None, 8192, 4096, 4096]


async def test_a_refusal_of_what_was_not_sent_is_told() -> None:
    async with asking_format(FORMAT, ChatServer(judge=lambda _: "temperature and reasoning_effort: no")) as asked:
        error = await asked.error()
    assert error.kind == "invalid_request"
    assert "temperature and reasoning_effort: no" in str(error)
    assert len(asked.server.requests) == 1


async def test_what_did_not_help_is_not_remembered() -> None:
    words = "maximum context length is 5 tokens"
    async with asking_format(
        FORMAT, ChatServer(judge=lambda body: words if len(body["messages"]) > 2 else None), DONE
    ) as asked:
        assert (await asked.error(HISTORY)).kind == "context_full"
        assert (await asked.reply()).text == "done"
    assert ["max_tokens" in body for body in asked.server.bodies] == [True, False, True]


async def test_a_system_prompt_goes_into_a_first_line_with_an_image() -> None:
    image = medium("image", "d1", "image/png")
    request = msgspec.structs.replace(talk([image]), media={"d1": PNG}, with_media=frozenset({0}))
    dislike = REFUSALS["a system prompt"][0]
    async with asking_format(FORMAT, ChatServer(judge=dislike), DONE) as asked:
        await asked.reply(request)
    (message,) = asked.server.bodies[-1]["messages"]
    assert [part["type"] for part in message["content"]] == ["text", "image_url"]


async def test_calls_are_answered_by_their_short_ids() -> None:
    async with asking_format(FORMAT, ChatServer(judge=REFUSALS["ids that are not Mistral's"][0]), DONE) as asked:
        await asked.reply(HISTORY)
    messages = asked.server.bodies[-1]["messages"]
    assert messages[2]["tool_calls"][0]["id"] == messages[3]["tool_call_id"] != "call_1"


async def test_requests_are_the_same_byte_for_byte_for_another_model_object() -> None:
    answer = chat_reply("so", [("read_file", '{ "path": "a" }')], thought="hm", ids=["x"])
    sent = []
    for _ in range(2):
        async with asking(answer, DONE) as asked:
            reply = await asked.reply()
            await asked.reply(talk([text("hello")], reply, [result("x")]))
        sent.append(json.dumps(asked.server.bodies))
    assert sent[0] == sent[1]


async def test_a_refused_request_costs_no_retry_and_a_retry_keeps_what_was_learnt() -> None:
    dislike = REFUSALS["stream_options"][0]
    async with asking_format(FORMAT, ChatServer(judge=dislike), chat_error(503, "busy", "server_error"), DONE) as asked:
        assert (await asked.reply()).text == "done"
    assert [each.kind for each in asked.retries] == ["overloaded"]


async def test_a_call_without_an_id_gets_one_from_the_conversation_and_not_from_the_wire() -> None:
    async with asking(called(0, "", "read_file", "{}") + end("tool_calls")) as asked:
        (use,) = (await asked.reply()).calls
    assert use.id == ""
