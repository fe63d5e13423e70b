"""Ollama's API over real HTTP, against a server that its official client has found faithful."""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import pytest
import trio

from supervisor.agent.models.ollama import PROVIDER, host_url
from supervisor.agent.models.ollama_model import NO_LIMIT, ContextLimit, OllamaModel
from supervisor.agent.models.providers import open_model
from supervisor.agent.models.server import NO_KEY
from supervisor.agent.models.server_check import checked
from supervisor.agent.models.server_limits import ServerLimits
from supervisor.config.config_keys import Config, ProviderConfig
from supervisor.config.model_keys import ModelConfig
from supervisor.config.settings import Settings
from supervisor.errors import ConfigError, ModelErrorKind
from supervisor.journal.facts import ReplyOrigin
from tests.ollama_server import MODEL, TOO_LONG, OllamaServer, call, error, line, reply, shown
from tests.script_server import Response, refusing_port
from tests.supervisor.asked_model import KEY, QUICK, Asked, asked_of
from tests.supervisor.model_requests import TOOL, assistant, kept, medium, request, result, use, user

TWO_CALLS: Final = reply(
    "Let me look.", [("read_file", {"path": "a"}), ("read_file", {"path": "b"})], thoughts=["Hm, ", "so."]
)


class AskedOllama(Asked):
    server: OllamaServer


@asynccontextmanager
async def asking(
    responses: Iterable[Response] = (), limit: ContextLimit = NO_LIMIT, **more: Any
) -> AsyncIterator[AskedOllama]:
    options = {**QUICK, "provider": "ollama", "served_as": MODEL}
    with OllamaServer(responses, **more) as server:
        model = OllamaModel("ollama/llama-test", KEY, server.url, limit=limit, **options)
        async with asked_of(AskedOllama(model), server) as asked:
            yield asked


# the official client ----------------------------------------------------------------------------------------


async def test_the_official_client_holds_a_conversation_with_calls() -> None:
    import ollama  # and not for all tests: it is large

    def converse(url: str) -> list[tuple[str, Any]]:
        tool = {"type": "function", "function": {**TOOL, "parameters": TOOL["input_schema"]}}
        messages: list[Any] = [{"role": "user", "content": "go"}]
        calls: list[Any] = []
        with ollama.Client(host=url) as client:
            assert "tools" in (client.show(MODEL).capabilities or [])
            for each in client.chat(MODEL, messages, tools=[tool], stream=True, think=True):
                calls += each.message.tool_calls or []
            messages += [{"role": "assistant", "content": "", "tool_calls": calls}]
            messages += [{"role": "tool", "content": "x", "tool_name": each.function.name} for each in calls]
            assert client.chat(MODEL, messages, tools=[tool]).message.content == "done"
        return [(each.function.name, each.function.arguments) for each in calls]

    with OllamaServer([TWO_CALLS, {"status": 200, "body": line({"content": "done"}, done=True)}]) as server:
        calls = await trio.to_thread.run_sync(converse, server.url)
    assert calls == [("read_file", {"path": "a"}), ("read_file", {"path": "b"})]
    assert [each.refused for each in server.requests] == [None, None]


@pytest.mark.parametrize("refuses", [False, True])
async def test_the_official_client_does_not_see_what_is_cut_unless_it_asks_to(refuses: bool) -> None:
    import ollama

    def ask(url: str, truncate: bool | None) -> int:
        body = {"model": MODEL, "messages": [{"role": "user", "content": "word " * 10_000}], "truncate": truncate}
        with ollama.Client(host=url) as client:
            return int(client._client.post("/api/chat", json=body).status_code)

    with OllamaServer([reply("done")] * 2, refuses=refuses) as server:
        assert await trio.to_thread.run_sync(ask, server.url, None) == 200
        assert await trio.to_thread.run_sync(ask, server.url, False) == (400 if refuses else 200)
    assert server.cuts == [True] * (1 if refuses else 2)


# replies ----------------------------------------------------------------------------------------------------


async def test_text_and_thinking_are_shown_and_counted() -> None:
    async with asking([reply(["he", "llo é"], thoughts=["Hm, ", "so."], tokens=9)]) as asked:
        answer = await asked.reply()
        assert (answer.text, "".join(asked.text), "".join(asked.thoughts)) == ("hello é", "hello é", "Hm, so.")
        assert answer.stop_reason == "end_turn"
        assert answer.usage["output_tokens"] == 9
        assert answer.usage["input_tokens"] > 40
        assert answer.origin is not None
        assert (answer.origin.provider, answer.origin.model) == ("ollama", MODEL)


async def test_calls_go_back_with_their_results_and_what_was_thought_in_their_turn() -> None:
    async with asking([TWO_CALLS, reply("done")]) as asked:
        first = await asked.reply()
        assert first.stop_reason == "tool_use"
        told, origin = kept(first, "call_1", "call_2")
        results = user(result("call_1", "one"), result("call_2", "two"))
        await asked.reply(request(user(), told, results, origins={1: origin}))
    system, said, replied, *answers = asked.server.bodies[-1]["messages"]
    assert (system["role"], said) == ("system", {"role": "user", "content": "hello"})
    assert replied == {
        "role": "assistant",
        "content": "Let me look.",
        "thinking": "Hm, so.",
        "tool_calls": [call("read_file", {"path": "a"}, "call_1"), call("read_file", {"path": "b"}, "call_2")],
    }
    assert answers == [
        {"role": "tool", "content": "one", "tool_name": "read_file", "tool_call_id": "call_1"},
        {"role": "tool", "content": "two", "tool_name": "read_file", "tool_call_id": "call_2"},
    ]


async def test_what_was_thought_in_an_earlier_turn_or_by_another_model_does_not_go_back() -> None:
    async with asking([TWO_CALLS, reply("done")]) as asked:
        told, origin = kept(await asked.reply(), "call_1", "call_2")
        results = user(result("call_1"), result("call_2"))
        later = [assistant("done"), user("go on"), assistant(use("toolu_1")), user(result("toolu_1"))]
        origins = {1: origin, 5: ReplyOrigin("other", "m", "ollama", [{"message": {"thinking": "no"}}])}
        await asked.reply(request(user(), told, results, *later, origins=origins))
    assert not any("thinking" in each for each in asked.server.bodies[-1]["messages"])
    assert asked.server.requests[-1].refused is None


async def test_a_reply_of_another_model_is_told_without_its_thinking() -> None:
    thinking = {"type": "thinking", "thinking": "Hm.", "signature": "x"}
    async with asking([reply("done")]) as asked:
        await asked.reply(request(user(), assistant(thinking, use("t1")), user(result("t1"), "and so on")))
    assert asked.server.bodies[0]["messages"][2:] == [
        {"role": "assistant", "content": "", "tool_calls": [call("read_file", {}, "t1")]},
        {"role": "tool", "content": "found", "tool_name": "read_file", "tool_call_id": "t1"},
        {"role": "user", "content": "and so on"},
    ]


# requests ---------------------------------------------------------------------------------------------------


async def test_the_request_says_what_was_asked() -> None:
    async with asking([reply("ok")]) as asked:
        await asked.reply(request(options={"max_tokens": 77, "temperature": 0.5}))
    sent = asked.server.requests[0]
    assert (sent.path, sent.headers["authorization"]) == ("/api/chat", f"Bearer {KEY}")
    parameters = TOOL["input_schema"]
    assert sent.body == {
        "model": MODEL,
        "messages": [{"role": "system", "content": "You are a test."}, {"role": "user", "content": "hello"}],
        "stream": True,
        "truncate": False,
        "shift": False,
        "options": {"num_ctx": 8192, "num_predict": 77, "temperature": 0.5},
        "tools": [
            {"type": "function", "function": {"name": "read_file", "description": "Read.", "parameters": parameters}}
        ],
    }


async def test_a_server_without_a_key_is_sent_none() -> None:
    with OllamaServer([reply("ok")]) as server:
        async with asked_of(Asked(OllamaModel(MODEL, NO_KEY, server.url, **QUICK)), server) as asked:
            await asked.reply()
    assert "authorization" not in server.requests[0].headers


async def test_the_model_is_asked_about_once() -> None:
    async with asking([reply("ok")] * 3) as asked:
        for _ in range(3):
            await asked.reply()
    assert asked.server.asked == 1


THINKING: Final = [
    ("llama", "", None),
    ("llama", "none", False),
    ("llama", "high", True),
    ("gptoss", "low", "low"),
    ("gptoss", "max", "high"),
]


@pytest.mark.parametrize(("family", "effort", "told"), THINKING)
async def test_effort_is_told_in_the_models_own_terms(family: str, effort: str, told: Any) -> None:
    async with asking([reply("ok")], told=shown(32_768, details={"family": family})) as asked:
        await asked.reply(request(options={"effort": effort}))
    assert asked.server.bodies[0].get("think") == told


async def test_a_model_that_does_not_think_is_not_told_to() -> None:
    async with asking([reply("ok")], told=shown(32_768, ["completion", "tools"])) as asked:
        await asked.reply(request(options={"effort": "high"}))
    assert "think" not in asked.server.bodies[0]


@pytest.mark.parametrize("sees", [True, False])
async def test_images_are_shown_to_a_model_that_sees(sees: bool) -> None:
    first, second = (medium("image", digest, "image/png") for digest in ("d1", "d2"))
    answer = result("c1", [{"type": "text", "text": "a.png"}, second])
    asked_for = request(
        user("look:", first),
        assistant(use("c1")),
        user(answer),
        media={"d1": "aW1n", "d2": "aW1hZ2U="},
        with_media=frozenset({0, 2}),
    )
    abilities = ["completion", "tools", *(["vision"] if sees else [])]
    async with asking([reply("a cat")], told=shown(32_768, abilities)) as asked:
        await asked.reply(asked_for)
    messages = asked.server.bodies[0]["messages"]
    assert [each.get("images") for each in messages if "images" in each] == ([["aW1n"], ["aW1hZ2U="]] if sees else [])
    assert ("cannot be shown" in messages[1]["content"]) is not sees


async def test_a_server_that_knows_no_levels_of_thinking_is_told_to_think() -> None:
    told = shown(32_768, details={"family": "gptoss"})
    async with asking([error(400, 'invalid think value: "low"'), reply("ok")], told=told) as asked:
        assert (await asked.reply(request(options={"effort": "low"}))).text == "ok"
    assert [each["think"] for each in asked.server.bodies] == ["low", True]


# contexts ---------------------------------------------------------------------------------------------------


async def test_a_conversation_that_does_not_fit_is_refused_before_it_is_sent() -> None:
    async with asking([reply("ok")], window=16_384) as asked:
        failure = await asked.error(request(user("word " * 12_000)))
    assert (failure.kind, failure.billed) == ("context_full", False)
    assert "It was not sent. Send less at once" in str(failure)
    assert asked.server.requests == []


async def test_the_largest_context_can_be_configured() -> None:
    async with asking([reply("ok")], limit=ContextLimit(12_000, "OLLAMA_CONTEXT_LENGTH")) as asked:
        await asked.reply(request(user("word " * 1000)))
        failure = await asked.error(request(user("word " * 12_000)))
    assert asked.server.contexts == [12_000]
    assert "OLLAMA_CONTEXT_LENGTH is 12000 here" in str(failure)


async def test_a_server_that_gives_a_smaller_context_than_it_was_asked_for_is_noticed() -> None:
    async with asking([reply("ok")], window=4096, told=shown(131_072)) as asked:
        failure = await asked.error(request(user("word " * 12_000)))
    assert asked.server.cuts == [True]
    assert failure.kind == "context_full"
    assert "has left out a part of the conversation" in str(failure)


async def test_a_server_that_refuses_what_does_not_fit_is_believed() -> None:
    async with asking([error(400, TOO_LONG)]) as asked:
        failure = await asked.error()
    assert failure.kind == "context_full"
    assert asked.retries == []


async def test_a_context_that_was_large_stays_so_for_the_next_session() -> None:
    async with asking([reply("ok")] * 3, window=65_536) as asked:
        await asked.reply(request(user("word " * 8000)))
        await asked.reply(request(user("hi")))
    assert asked.server.loads == 1


async def test_a_context_that_was_large_stays_so_for_another_process() -> None:
    """What this one asks for is in the reply, or the model would be loaded anew and have kept nothing."""
    async with asking([reply("ok")] * 2, window=65_536) as asked:
        await asked.reply(request(user("word " * 8000)))
        first = await asked.reply(request(user("hi")))
    async with asking([reply("ok")], window=65_536) as again:
        said, origin = kept(first)
        await again.reply(request(user("hi"), said, user("and"), origins={1: origin}))
    assert again.server.contexts == asked.server.contexts[:1] == [32_768]


@pytest.mark.parametrize(("written", "context"), [("32768", 32_768), ("9" * 5_000, 16_384)])
async def test_the_context_that_a_modelfile_asks_for_is_the_least(written: str, context: int) -> None:
    async with asking([reply("ok")], told=shown(65_536, parameters=f"num_ctx {written}"), window=65_536) as asked:
        await asked.reply()
    assert asked.server.contexts == [context]


async def test_a_window_that_is_configured_counts_where_the_server_tells_none() -> None:
    told = {"parameters": "num_ctx 20000"}
    async with asking([reply("ok")], ContextLimit(20_000, "it"), told=told, window=20_000) as asked:
        await asked.reply()
    assert asked.server.contexts == [20_000]


# failures ---------------------------------------------------------------------------------------------------

NO_TOOLS: Final = shown(32_768, ["completion"])
FAILED: Final[dict[str, tuple[Response, ModelErrorKind, str, int]]] = {
    "an error in the stream": (line({"content": "a"}) + '{"error": "no memory"}\n', "api_error", "no memory", 4),
    "busy": (error(503, "server busy, please try again"), "overloaded", "Tried 5 times", 4),
    "no memory": (error(500, "model requires more system memory"), "api_error", "more system memory", 4),
    "loading": ({"sse": line({"content": ""}, done=True, done_reason="load")}, "api_error", "answered nothing", 4),
    "a cut stream": (line({"content": "par"}), "stream_truncated", "before it is complete", 4),
    "no stream": ({"status": 200, "headers": {"content-type": "text/html"}, "body": "<p>"}, "bad_response", "html", 0),
}


@pytest.mark.parametrize("row", FAILED.values(), ids=FAILED)
async def test_failures_have_their_kind(row: tuple[Response, ModelErrorKind, str, int]) -> None:
    response, kind, words, retries = row
    async with asking([response] * (retries + 1)) as asked:
        failure = await asked.error()
    assert (failure.kind, len(asked.retries)) == (kind, retries)
    assert words in str(failure)


@pytest.mark.parametrize(
    "told", ["no room", {"message": "no room", "type": "api_error"}, {"code": 500, "detail": "no room"}]
)
async def test_an_error_in_place_of_what_the_model_is_keeps_its_words(told: Any) -> None:
    async with asking(told={"error": told}) as asked:
        failure = await asked.error()
    assert failure.kind == "api_error"
    assert "no room" in str(failure)
    assert not asked.server.requests


async def test_a_limit_is_told_with_its_time_and_is_not_billed() -> None:
    limited = error(429, "weekly limit")
    limited["headers"] |= {"retry-after": "3600"}
    async with asking([limited]) as asked:
        failure = await asked.error()
    assert (failure.kind, failure.retry_after, failure.billed) == ("rate_limited", 3600.0, False)


async def test_a_model_that_is_not_there_can_be_pulled() -> None:
    async with asking(model="other:latest") as asked:
        failure = await asked.error()
    assert failure.kind == "not_found"
    assert f"ollama pull {MODEL}" in str(failure)


async def test_a_model_without_tools_can_call_them_in_its_text() -> None:
    async with asking([reply("ok")], told=NO_TOOLS) as asked:
        failure = await asked.error()
        assert (await asked.reply(request(tools=[]))).text == "ok"
    assert failure.kind == "invalid_request"
    assert 'tools = "text" in [models."ollama/llama-test"]' in str(failure)


async def test_a_server_that_says_so_only_when_it_is_asked_is_understood_too() -> None:
    words = f"registry.ollama.ai/library/{MODEL} does not support tools"
    async with asking([error(400, words)], told={}) as asked:
        assert 'tools = "text"' in str(await asked.error())


async def test_a_server_that_is_not_there_is_tried_again() -> None:
    with refusing_port() as port:
        model = OllamaModel("ollama/x", KEY, f"http://127.0.0.1:{port}", **QUICK)
        async with asked_of(Asked(model), OllamaServer()) as asked:
            assert (await asked.error()).kind == "connection"
            assert len(asked.retries) == 4


async def test_the_model_can_be_used_again_after_it_was_closed() -> None:
    async with asking([reply("one"), reply("two")]) as asked:
        await asked.reply()
        await asked.model.aclose()
        assert (await asked.reply()).text == "two"


# names and addresses ----------------------------------------------------------------------------------------

HOSTS: Final = {
    "": "http://127.0.0.1:11434",
    " gpu ": "http://gpu:11434",
    "gpu:8000": "http://gpu:8000",
    ":8000": "http://127.0.0.1:8000",
    "0.0.0.0": "http://0.0.0.0:11434",
    "http://gpu": "http://gpu:80",
    "https://gpu": "https://gpu:443",
    "https://gpu:8443/at/": "https://gpu:8443/at/",
    "::1": "http://[::1]:11434",
    "[::1]": "http://[::1]:11434",
    "[::1]:8000": "http://[::1]:8000",
    "gpu:": "http://gpu:11434",
    "http://me:pw@gpu:8000": "http://me:pw@gpu:8000",
}


@pytest.mark.parametrize(("written", "url"), HOSTS.items())
def test_an_address_is_read_as_ollama_does(written: str, url: str) -> None:
    assert host_url(written) == url


@pytest.mark.parametrize(
    "written", ["gpu:none", "gpu:70000", "gpu:0", "gpu:-1", "[::1", "::1]:80", "[]", "http://me:pw@gpu:9:9"]
)
def test_what_is_no_address_is_refused_and_not_told(written: str) -> None:
    settings = Settings(Config(), Path("/x/config.toml"), Path("/x"), {"OLLAMA_HOST": written})
    with pytest.raises(ConfigError, match="OLLAMA_HOST") as found:
        open_model("ollama/llama", settings)
    assert written not in str(found.value)
    assert checked(PROVIDER, settings).detail == str(found.value)


def test_doctor_asks_the_server_without_a_key() -> None:
    with OllamaServer() as server:
        at = {"OLLAMA_HOST": server.url.removeprefix("http://")}
        found = checked(PROVIDER, Settings(Config(), Path("/x/config.toml"), Path("/x"), at))
    assert (found.verdict, found.detail) == ("ok", f"{server.url} answers")


LIMITS: Final = [
    ({}, {}, 32_768),
    ({"OLLAMA_CONTEXT_LENGTH": "12000"}, {}, 12_000),
    ({"OLLAMA_CONTEXT_LENGTH": "12000"}, {"ollama/llama": ModelConfig(window=10_000)}, 10_000),
]


@pytest.mark.parametrize(("environment", "models", "context"), LIMITS)
async def test_the_largest_context_is_configured_and_what_the_server_says_is_learned(
    environment: dict[str, str], models: dict[str, ModelConfig], context: int
) -> None:
    with OllamaServer([reply("ok")], model="llama") as server:
        settings = Settings(
            Config(models=models), Path("/x/config.toml"), Path("/x"), {"OLLAMA_HOST": server.url, **environment}
        )
        model = open_model("ollama/llama", settings)
        assert isinstance(model, OllamaModel)
        async with asked_of(Asked(model), server) as asked:
            await asked.reply(request(user("word " * 2000), options={"max_tokens": 30_000}))
    assert (server.contexts, model.learned) == ([context], ServerLimits(window=context))


@pytest.mark.parametrize("name", ["ollama/llama3.2", "ollama/hf.co/someone/model:Q4", "home/llama3.2"])
async def test_a_name_is_what_the_server_calls_the_model(name: str) -> None:
    with OllamaServer([reply("ok")], model=name.partition("/")[2]) as server:
        own = ProviderConfig(server.url, "ollama")
        environment = {"OLLAMA_HOST": server.url.removeprefix("http://")}
        settings = Settings(Config(providers={"home": own}), Path("/x/config.toml"), Path("/x"), environment)
        async with asked_of(Asked(open_model(name, settings)), server) as asked:
            assert (await asked.reply()).text == "ok"
            assert asked.model.name == name
