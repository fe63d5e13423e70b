"""A tiny turn with a model, tried for real: what it tells of one that works, and of one that does not quite."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from supervisor.agent.models.model_facts import model_facts
from supervisor.agent.models.server_limits import ServerLimits
from supervisor.config.config_keys import Config
from supervisor.config.model_keys import ModelConfig
from supervisor.config.settings import Settings
from supervisor.doctor.model_trial import _context, _tokens, try_model
from supervisor.doctor.table import CheckResult
from tests.each_row import each_row
from tests.forked import ForkedStrongroom
from tests.messages_server import MessagesServer, error, reply
from tests.script_server import Response

HAIKU: Final = "claude-haiku-5-5"
SUM: Final = ("add_numbers", {"a": 17, "b": 25})
CALLED: Final = reply(calls=[SUM], usage={"input_tokens": 100, "output_tokens": 10, "cache_creation_input_tokens": 50})
TOLD: Final = reply("It is 42.", usage={"input_tokens": 20, "output_tokens": 5, "cache_read_input_tokens": 130})


def settings(url: str, **own: Any) -> Settings:
    config = Config(models={HAIKU: ModelConfig(**own)}) if own else Config()
    environment = {"ANTHROPIC_API_KEY": "sk-CANARY", "ANTHROPIC_BASE_URL": url}
    return Settings(config, Path("/x/config.toml"), Path("/x"), environment)


def tried(*responses: Response, name: str = HAIKU, **own: Any) -> tuple[Mapping[str, CheckResult], MessagesServer]:
    with MessagesServer(responses) as server:
        found = {each.subject: each for each in try_model(settings(server.url, **own), name)}
    assert "CANARY" not in str(found)
    return found, server


def test_a_model_that_does_as_it_is_told_is_well() -> None:
    found, server = tried(CALLED, TOLD)
    assert {subject: each.verdict for subject, each in found.items()} == dict.fromkeys(
        (f"model {HAIKU}", "tool call", "time", "tokens", "cache", "context"), "ok"
    )
    assert found[f"model {HAIKU}"].detail == "answered: It is 42."
    assert found["tool call"].detail == "one, well-formed"
    assert found["tokens"].detail == "120 in, 15 out, 130 from the cache, 50 into the cache; 0.000027 USD"
    assert found["cache"].detail == "130 tokens of the second request came from it"
    assert "request 1: " in found["time"].detail
    assert "request 2: " in found["time"].detail
    assert found["context"].detail.startswith("1,000,000 tokens (catalogue of 20")
    assert [request.refused for request in server.requests] == [None, None]
    assert server.bodies[1]["messages"][2]["content"][0]["content"] == "42"


CALLS: Final = [
    ([reply("42")], "it answered without calling the tool"),
    ([reply(calls=[("add_numbers", {"a": "17", "b": 25})]), TOLD], "not what the schema asks for"),
    ([reply(calls=[("add_numbers", '{"a": 17, "b"')]), TOLD], "not what the schema asks for"),
    ([reply(calls=[("add_numbers", {"a": 1, "b": 2})]), TOLD], "well-formed, but with a = 1, b = 2"),
    ([reply(calls=[("subtract", {})]), TOLD], "1 calls, of subtract"),
    ([reply(calls=[SUM, SUM]), TOLD], "2 calls, of add_numbers"),
]


@each_row(("responses", "words"), CALLS, ids=[row[1] for row in CALLS])
def test_an_odd_tool_call_is_told(responses: list[Response], words: str) -> None:
    found, _ = tried(*responses)
    assert found["tool call"].verdict == "degraded"
    assert words in found["tool call"].detail
    assert 'set tools = "text"' in found["tool call"].advice


def test_a_model_that_calls_again_is_told() -> None:
    found, _ = tried(CALLED, CALLED)
    assert found["tool result"].verdict == "degraded"


FAILURES: Final = [
    ([error(401, "bad key", "authentication_error")], "authentication: ", False),
    ([error(404, "no such model", "not_found_error")], "not_found: ", False),
    ([CALLED, error(400, "no", "invalid_request_error")], "invalid_request: ", True),
]


@pytest.mark.parametrize(("responses", "words", "called"), FAILURES, ids=[row[1] for row in FAILURES])
def test_a_model_that_fails_is_missing_and_what_was_seen_is_told(
    responses: list[Response], words: str, called: bool
) -> None:
    found, _ = tried(*responses)
    assert found[f"model {HAIKU}"].verdict == "missing"
    assert found[f"model {HAIKU}"].detail.startswith(words)
    assert ("tool call" in found) is called


def test_one_that_cannot_be_opened_is_missing() -> None:
    (result,) = try_model(Settings(Config(), Path("/x/config.toml"), Path("/x")), HAIKU)
    assert (result.verdict, "set ANTHROPIC_API_KEY" in result.detail) == ("missing", True)


def test_the_offline_model_counts_no_tokens() -> None:
    found = {each.subject: each for each in try_model(settings("http://127.0.0.1:1"), "offline")}
    assert found["model offline"].verdict == "ok"
    assert (found["tool call"].verdict, found["tokens"].verdict) == ("degraded", "degraded")


def test_tools_in_text_are_tried_as_such() -> None:
    written = reply('{"tool": "add_numbers", "a": 17, "b": 25}')
    found, server = tried(written, TOLD, tools="text")
    assert found["tool call"].verdict == "ok"
    assert all("tools" not in body for body in server.bodies)


def test_what_the_server_holds_is_compared_with_what_is_known() -> None:
    facts = model_facts(HAIKU, settings("http://127.0.0.1:1"))
    assert _context(facts, ServerLimits(window=4_096)).verdict == "degraded"
    assert _context(facts, ServerLimits(window=1_000_000)).detail == "its server holds 1,000,000 tokens"
    unknown = model_facts("llama", settings("http://127.0.0.1:1"))
    assert _context(unknown, ServerLimits()).verdict == "degraded"
    assert _context(unknown, ServerLimits(window=4_096)).verdict == "ok"
    assert _context(unknown, ServerLimits(window=8_192, told=False)).detail.startswith("8,192 tokens (assumed)")
    assert _tokens(facts, [{"input_tokens": 1}, {}]).verdict == "degraded"


def test_the_command_tries_it(home: Path, tmp_path: Path) -> None:
    with MessagesServer([CALLED, TOLD]) as server:
        strongroom = ForkedStrongroom(home, tmp_path, ANTHROPIC_API_KEY="sk-CANARY", ANTHROPIC_BASE_URL=server.url)
        done = strongroom.run("doctor", "--model", HAIKU)
    assert "answered: It is 42." in done.out
    assert "one, well-formed" in done.out
    assert "CANARY" not in done.out + done.err
    assert server.left == 0
