"""Google's API over real HTTP, against a server that its official client has found faithful."""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
import trio

from supervisor.agent.models.gemini import PROVIDER
from supervisor.agent.models.gemini_api import FORMAT
from supervisor.agent.models.providers import open_model, secrets
from supervisor.agent.models.remote_model import RemoteModel
from supervisor.agent.models.server_check import checked
from supervisor.config.config_keys import Config
from supervisor.config.settings import Settings
from supervisor.errors import ConfigError, ModelErrorKind
from supervisor.journal.facts import ReplyOrigin
from tests.each_row import each_row
from tests.gemini_server import GeminiServer, call, chunk, error, event, reply
from tests.script_server import Response
from tests.supervisor.asked_model import KEY, QUICK, Asked, asked_of
from tests.supervisor.model_requests import assistant, kept, medium, request, result, use, user

if TYPE_CHECKING:
    from google import genai

SIGNATURE: Final = "c2lnbmF0dXJl"
TWO_CALLS: Final = reply(
    "Let me look.",
    [("read_file", {"path": "a"}), ("read_file", {"path": "b"})],
    signature=SIGNATURE,
    thoughts=["Hm."],
    ids=["f1", "f2"],
)


@asynccontextmanager
async def asking(responses: Iterable[Response], model: str = "gemini-3-test", **options: Any) -> AsyncIterator[Asked]:
    with GeminiServer(responses) as server:
        options = {**QUICK, "provider": "gemini", "served_as": model, **options}
        remote = RemoteModel(f"gemini/{model}", KEY, server.url, FORMAT, **options)
        async with asked_of(Asked(remote), server) as asked:
            yield asked


def contents(asked: Asked) -> list[dict[str, Any]]:
    """Return what the last request had, which the server has taken."""
    assert [each.refused for each in asked.server.requests if each.refused] == []
    sent: list[dict[str, Any]] = asked.server.bodies[-1]["contents"]
    assert [each["role"] for each in sent] == ["user", "model"] * (len(sent) // 2) + ["user"]
    return sent


# the official client ----------------------------------------------------------------------------------------


def client(server: GeminiServer) -> "genai.Client":
    from google import genai  # and not for all tests: it is large
    from google.genai import types

    return genai.Client(api_key="k", http_options=types.HttpOptions(base_url=server.url))


async def test_the_official_client_holds_a_conversation_with_calls() -> None:
    from google.genai import types

    def converse(server: GeminiServer) -> list[Any]:
        tool = types.Tool(function_declarations=[types.FunctionDeclaration(name="read_file", description="Read.")])
        config = types.GenerateContentConfig(
            tools=[tool],
            system_instruction="Be brief.",
            automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
        )
        with client(server) as at:
            chat = at.chats.create(model="gemini-3-test", config=config)
            first = [part for each in chat.send_message_stream("go") for part in each.function_calls or []]
            answers: list[Any] = [
                types.Part(
                    function_response=types.FunctionResponse(id=each.id, name=each.name, response={"output": "x"})
                )
                for each in first
            ]
            said = "".join(each.text or "" for each in chat.send_message_stream(answers))
        return [[(each.name, each.args, each.id) for each in first], said]

    with GeminiServer([TWO_CALLS, reply(["do", "ne"], signature=SIGNATURE)]) as server:
        found = await trio.to_thread.run_sync(converse, server)
    assert found == [[("read_file", {"path": "a"}, "f1"), ("read_file", {"path": "b"}, "f2")], "done"]
    assert [each.refused for each in server.requests] == [None, None]


@pytest.mark.parametrize(
    ("response", "code"),
    [
        (error(429, "slow down", "RESOURCE_EXHAUSTED", delay="3s"), 429),
        (chunk([{"text": "a"}]) + '{\n  "error": {"code": 503, "message": "busy", "status": "UNAVAILABLE"}\n}\n', 503),
    ],
    ids=["a status", "bare JSON in the stream"],
)
async def test_the_official_client_sees_errors(response: Response, code: int) -> None:
    from google.genai import errors

    def ask(server: GeminiServer) -> int:
        with client(server) as at, pytest.raises(errors.APIError) as caught:
            list(at.models.generate_content_stream(model="gemini-3-test", contents="x"))
        return int(caught.value.code)

    with GeminiServer([response]) as server:
        assert await trio.to_thread.run_sync(ask, server) == code


# replies ----------------------------------------------------------------------------------------------------


async def test_text_and_thinking_are_shown_and_counted() -> None:
    usage = {"promptTokenCount": 100, "cachedContentTokenCount": 80, "candidatesTokenCount": 5, "thoughtsTokenCount": 7}
    async with asking([reply(["he", "llo é"], thoughts=["Hm, ", "so."], usage=usage)]) as asked:
        answer = await asked.reply()
    assert (answer.text, "".join(asked.text), "".join(asked.thoughts)) == ("hello é", "hello é", "Hm, so.")
    assert answer.stop_reason == "end_turn"
    assert answer.usage == {
        "input_tokens": 20,
        "cache_read_input_tokens": 80,
        "output_tokens": 12,
        "reasoning_tokens": 7,
    }
    assert answer.origin == ReplyOrigin("gemini", "gemini-3-test", "gemini", [{"text": "hello é"}])


async def test_parallel_calls_go_back_with_their_signature_and_their_results_in_order() -> None:
    async with asking([TWO_CALLS, reply("done")]) as asked:
        first = await asked.reply()
        assert first.stop_reason == "tool_use"
        told, origin = kept(first, "f1", "f2")
        await asked.reply(request(user(), told, user(result("f1"), result("f2", "no", ok=False)), origins={1: origin}))
    _, replied, answered = contents(asked)
    assert replied["parts"] == [
        {"text": "Let me look."},
        call("read_file", {"path": "a"}, SIGNATURE, "f1"),
        call("read_file", {"path": "b"}, "", "f2"),
    ]
    assert [each["functionResponse"] for each in answered["parts"]] == [
        {"id": "f1", "name": "read_file", "response": {"output": "found"}},
        {"id": "f2", "name": "read_file", "response": {"error": "no"}},
    ]


async def test_the_signature_of_a_text_goes_back_too() -> None:
    async with asking([reply("yes", signature=SIGNATURE), reply("done")]) as asked:
        told, origin = kept(await asked.reply())
        await asked.reply(request(user(), told, user("go on"), origins={1: origin}))
    assert contents(asked)[1]["parts"] == [{"text": "yes"}, {"text": "", "thoughtSignature": SIGNATURE}]


async def test_calls_without_ids_are_answered_by_name_and_order() -> None:
    async with asking([reply(calls=[("read_file", {})] * 2, signature=SIGNATURE), reply("done")]) as asked:
        first = await asked.reply()
        assert [each.id for each in first.calls] == ["", ""]
        told, origin = kept(first, "call_1", "call_2")
        await asked.reply(request(user(), told, user(result("call_1"), result("call_2")), origins={1: origin}))
    assert all("id" not in each["functionResponse"] for each in contents(asked)[2]["parts"])


@pytest.mark.parametrize("model", ["gemini-3-test", "gemini-flash-latest", "gemini-2.5-flash"])
async def test_a_reply_of_another_model_is_told_without_its_thinking(model: str) -> None:
    thinking = {"type": "thinking", "thinking": "Hm.", "signature": "x"}
    told = assistant(thinking, "so", use("toolu_1", path="a"), use("toolu_2", path="b"))
    origins = {1: ReplyOrigin("anthropic", "claude")}
    async with asking([reply("done")], model) as asked:
        await asked.reply(request(user(), told, user(result("toolu_1"), result("toolu_2")), origins=origins))
    parts = contents(asked)[1]["parts"]
    assert [next(iter(each)) for each in parts] == ["text", "functionCall", "functionCall"]
    signatures = [each.get("thoughtSignature") for each in parts]
    assert signatures == [None, None if "2.5" in model else "skip_thought_signature_validator", None]


async def test_what_one_gemini_has_signed_is_not_sent_to_another_provider_of_the_format() -> None:
    async with asking([reply("done")]) as asked:
        items = [call("read_file", {}, "b3RoZXJz", "f1")]
        origins = {1: ReplyOrigin("gateway", "gemini-3-test", "gemini", items)}
        await asked.reply(request(user(), assistant(use("f1")), user(result("f1")), origins=origins))
    assert contents(asked)[1]["parts"][0]["thoughtSignature"] == "skip_thought_signature_validator"


async def test_a_refused_prompt_is_a_refusal() -> None:
    async with asking([event({"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {}})]) as asked:
        assert (await asked.reply()).stop_reason == "refusal"


async def test_a_reply_that_has_said_why_it_ended_is_whole_without_its_cost() -> None:
    told = {"promptTokenCount": 100, "candidatesTokenCount": 1}
    begins = (chunk([{"text": "a"}], usage=told), chunk([{"text": "a"}], finish="STOP", usage=told))
    whole = [each + chunk([{"text": "ll"}], finish="STOP", usage=None) for each in begins]
    answers = [{"sse": each, **more} for each in whole for more in ({}, {"then": "hang"})]
    async with asking(answers, rest_timeout=0.05) as asked:
        for _ in answers:
            answer = await asked.reply()
            assert (answer.text, answer.usage) == ("all", {"input_tokens": 100, "cache_read_input_tokens": 0})
    assert asked.retries == []


async def test_a_server_that_says_with_each_part_why_it_ended_is_heard_to_its_end() -> None:
    parts = "".join(chunk([{"text": each}], finish="STOP") for each in "whole")
    async with asking([{"sse": parts, "gap": 0.3}], rest_timeout=1.0) as asked:
        assert (await asked.reply()).text == "whole"


# requests ---------------------------------------------------------------------------------------------------


async def test_the_request_says_what_was_asked() -> None:
    async with asking([reply("ok")]) as asked:
        await asked.reply(request(user("one"), options={"max_tokens": 77, "temperature": 0.5}))
    sent = asked.server.requests[0]
    assert sent.path == "/v1beta/models/gemini-3-test:streamGenerateContent?alt=sse"
    assert sent.headers["x-goog-api-key"] == KEY
    parameters = {
        "type": "OBJECT",
        "properties": {"path": {"type": "STRING"}, "limit": {"type": "INTEGER", "nullable": True}},
        "required": ["path"],
    }
    assert sent.body == {
        "contents": [{"role": "user", "parts": [{"text": "one"}]}],
        "systemInstruction": {"parts": [{"text": "You are a test."}]},
        "generationConfig": {"maxOutputTokens": 77, "temperature": 0.5, "thinkingConfig": {"includeThoughts": True}},
        "tools": [{"functionDeclarations": [{"name": "read_file", "description": "Read.", "parameters": parameters}]}],
    }


THINKING: Final = [
    ("gemini-3-flash", "none", {"includeThoughts": True, "thinkingLevel": "MINIMAL"}),
    ("gemini-3.1-pro-preview", "none", {"includeThoughts": True, "thinkingLevel": "LOW"}),
    ("gemini-3.1-pro-preview", "max", {"includeThoughts": True, "thinkingLevel": "HIGH"}),
    ("gemini-2.5-flash", "none", {"thinkingBudget": 0}),
    ("gemini-2.5-flash", "max", {"includeThoughts": True, "thinkingBudget": 24_576}),
    ("gemini-2.5-pro", "none", {"includeThoughts": True, "thinkingBudget": 128}),
    ("gemini-2.0-flash", "high", None),
    ("gemma-3-27b-it", "high", None),
]


@pytest.mark.parametrize(("model", "effort", "told"), THINKING)
async def test_effort_is_told_in_the_models_own_terms(model: str, effort: str, told: dict[str, Any] | None) -> None:
    async with asking([reply("ok")], model) as asked:
        await asked.reply(request(options={"effort": effort}))
    assert asked.server.bodies[0]["generationConfig"].get("thinkingConfig") == told


@pytest.mark.parametrize("path", ["/v1beta", "/v1beta/"])
async def test_a_base_url_may_name_the_version(path: str) -> None:
    with GeminiServer([reply("ok")]) as server:
        model = RemoteModel("m", KEY, server.url + path, FORMAT, served_as="gemini-3-test", **QUICK)
        async with asked_of(Asked(model), server) as asked:
            assert (await asked.reply()).text == "ok"


async def test_images_and_documents_go_inline_after_the_answers() -> None:
    image, document = medium("image", "d1", "image/png"), medium("document", "d2", "application/pdf")
    answer = result("c1", [{"type": "text", "text": "a.png"}, image])
    asked_for = request(
        user(document, "what is that?", medium("image", "gone", "image/gif")),
        assistant(use("c1")),
        user(answer),
        media={"d1": "aW1n", "d2": "cGRm"},
        with_media=frozenset({0, 2}),
    )
    async with asking([reply("a cat")]) as asked:
        await asked.reply(asked_for)
    first, _, last = contents(asked)
    assert first["parts"] == [
        {"inlineData": {"mimeType": "application/pdf", "data": "cGRm"}},
        {"text": "what is that?"},
        {"text": "(image: image/gif)"},
    ]
    assert last["parts"][0]["functionResponse"]["response"] == {"output": "a.png"}
    assert last["parts"][1] == {"inlineData": {"mimeType": "image/png", "data": "aW1n"}}


async def test_a_model_that_cannot_be_told_how_to_think_is_asked_without_it_from_then_on() -> None:
    refusal = error(400, "Thinking level is not supported for this model.", "INVALID_ARGUMENT")
    async with asking([refusal, reply("one"), reply("two")]) as asked:
        for text in ("one", "two"):
            assert (await asked.reply(request(options={"effort": "low"}))).text == text
    told = ["thinkingConfig" in each["generationConfig"] for each in asked.server.bodies]
    assert (told, asked.retries) == ([True, False, False], [])


async def test_a_gateway_that_knows_no_ids_is_asked_without_them() -> None:
    refusal = error(400, 'Invalid JSON payload received. Unknown name "id" at contents[1].parts[0]', "INVALID_ARGUMENT")
    async with asking([refusal, reply("done")]) as asked:
        await asked.reply(request(user(), assistant(use("t1")), user(result("t1"))))
    assert "id" not in contents(asked)[1]["parts"][0]["functionCall"]
    assert "id" not in contents(asked)[2]["parts"][0]["functionResponse"]


# failures ---------------------------------------------------------------------------------------------------

BAD_KEY: Final = error(400, "API key not valid. Please pass a valid API key.", "INVALID_ARGUMENT")
TOO_LONG: Final = error(
    400, "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).", "INVALID_ARGUMENT"
)
IN_STREAM: Final = '{"error": {"code": 503, "message": "busy", "status": "UNAVAILABLE"}}'
FAILED: Final[dict[str, tuple[Response, ModelErrorKind, str, int]]] = {
    "a bad key": (BAD_KEY, "authentication", "Check the API key", 0),
    "a full context": (TOO_LONG, "context_full", "send less", 0),
    "no such model": (error(404, "models/x is not found", "NOT_FOUND"), "not_found", "Check the model's name", 0),
    "overloaded": (error(503, "The model is overloaded.", "UNAVAILABLE"), "overloaded", "Tried 5 times", 4),
    "a limit that lasts": (
        error(429, "Quota.", "RESOURCE_EXHAUSTED", delay="3600s"),
        "rate_limited",
        "3600 seconds",
        0,
    ),
    "an error event": (event({"error": {"code": 500, "message": "Internal"}}), "api_error", "Internal", 4),
    "a bare error": (chunk([{"text": "a"}]) + IN_STREAM, "overloaded", "busy", 4),
    "a bare list": (f"[{IN_STREAM}]", "overloaded", "busy", 4),
    "a bad call": (chunk([], finish="MALFORMED_FUNCTION_CALL"), "api_error", "cannot read", 4),
    "a missed signature": (chunk([], finish="MISSING_THOUGHT_SIGNATURE"), "invalid_request", "signature", 0),
    "a cut stream": (chunk([{"text": "par"}]), "stream_truncated", "before it is complete", 4),
    "no stream": ({"status": 200, "headers": {"content-type": "text/html"}, "body": "<p>"}, "bad_response", "html", 0),
}


@pytest.mark.parametrize("row", FAILED.values(), ids=FAILED)
async def test_failures_have_their_kind(row: tuple[Response, ModelErrorKind, str, int]) -> None:
    response, kind, words, retries = row
    async with asking([response] * (retries + 1)) as asked:
        failure = await asked.error()
    assert (failure.kind, len(asked.retries)) == (kind, retries)
    assert words in str(failure)


async def test_the_delay_that_an_error_asks_for_is_kept() -> None:
    slow = error(429, "Quota.", "RESOURCE_EXHAUSTED", delay="0.25s")
    async with asking([slow, reply("ok")]) as asked:
        assert (await asked.reply()).text == "ok"
    assert [each.delay for each in asked.retries] == [0.25]


# names ------------------------------------------------------------------------------------------------------


def settings(**environment: str) -> Settings:
    return Settings(Config(), Path("/x/config.toml"), Path("/x"), environment)


@each_row("variable", ["GEMINI_API_KEY", "GOOGLE_API_KEY", "GEMINI_BASE_URL"])
@each_row("name", ["gemini-3-flash", "gemini/gemini-3-flash"])
def test_a_model_needs_a_key_or_a_server(name: str, variable: str) -> None:
    with pytest.raises(ConfigError, match="`strongroom login gemini` keeps one, or set GEMINI_API_KEY"):
        open_model(name, settings())
    model = open_model(name, settings(**{variable: "http://localhost:1"}))
    assert isinstance(model, RemoteModel)
    assert (model.name, model.served_as) == (name, "gemini-3-flash")


@pytest.mark.parametrize("variable", ["GEMINI_API_KEY", "GOOGLE_API_KEY"])
def test_doctor_asks_the_server_with_either_key(variable: str) -> None:
    with GeminiServer() as server:
        found = checked(PROVIDER, settings(GEMINI_BASE_URL=server.url, **{variable: "k"}))
    assert (found.verdict, [each.headers["x-goog-api-key"] for each in server.requests]) == ("ok", ["k"])


def test_both_keys_are_kept_out_of_logs() -> None:
    assert {"k1", "k2"} <= set(secrets(settings(GEMINI_API_KEY="k1", GOOGLE_API_KEY="k2")))
