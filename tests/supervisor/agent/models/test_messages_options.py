"""How much a model thinks, as the Messages API takes it: what one model wants, another refuses."""

from collections.abc import Mapping, Sequence
from contextlib import aclosing
from typing import Any, Final

import msgspec
import pytest
import trio

from supervisor.agent.models.messages_api import FORMAT, messages_model
from supervisor.agent.models.messages_options import BETA, beta_headers
from supervisor.agent.models.model import ModelOptions, ModelRequest
from supervisor.agent.models.model_catalog import entries
from supervisor.config.model_keys import Effort
from supervisor.journal.facts import ReplyOrigin
from tests.each_row import each_row
from tests.messages_server import MessagesServer, fault_in, reply
from tests.supervisor.command import HANG_GUARD

TOOL: Final = {"name": "read_file", "description": "Read.", "input_schema": {"type": "object", "properties": {}}}
ASKED: Final = {"role": "user", "content": [{"type": "text", "text": "hello"}]}
THOUGHT: Final = {"type": "thinking", "thinking": "Hm.", "signature": "s"}
ADAPTIVE: Final = {"type": "adaptive", "display": "summarized"}
BOUND: Final = {**ADAPTIVE, "block_binding": {"prefix_mismatch_behavior": "drop_block"}}
EFFORTS: Final[Sequence[Effort]] = ("", "none", "low", "medium", "high", "xhigh", "max")


def called(name: str, *before: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return a reply that calls a tool, and the call's result."""
    use = {"type": "tool_use", "id": name, "name": "read_file", "input": {}}
    result = {"type": "tool_result", "tool_use_id": name, "content": "x"}
    return [{"role": "assistant", "content": [*before, use]}, {"role": "user", "content": [result]}]


def body(model: str, options: ModelOptions, *messages: Mapping[str, Any]) -> dict[str, Any]:
    history = [dict(message) for message in messages or (ASKED,)]
    return FORMAT.body(ModelRequest("", [TOOL], history, 0, options), model, "anthropic")


def chosen(made: Mapping[str, Any]) -> dict[str, Any]:
    return {name: made[name] for name in ("thinking", "output_config", "temperature") if name in made}


BODIES: Final[list[tuple[str, ModelOptions, dict[str, Any]]]] = [
    ("claude-haiku-5-5", ModelOptions(), {"thinking": BOUND}),
    ("claude-haiku-5-5", ModelOptions(effort="max"), {"thinking": BOUND, "output_config": {"effort": "max"}}),
    ("claude-haiku-5-5", ModelOptions(effort="none"), {"thinking": {"type": "disabled"}}),
    ("claude-sonnet-5-5", ModelOptions(effort="none"), {"thinking": {"type": "between_tools"}}),
    ("claude-opus-5", ModelOptions(), {"thinking": ADAPTIVE}),
    ("claude-opus-5-5", ModelOptions(effort="none"), {"thinking": BOUND}),
    ("claude-opus-4-8", ModelOptions(), {}),
    ("claude-opus-4-8", ModelOptions(effort="low"), {"thinking": ADAPTIVE, "output_config": {"effort": "low"}}),
    ("claude-haiku-4-5", ModelOptions(), {}),
    ("claude-haiku-4-5", ModelOptions(effort="medium"), {"thinking": {"type": "enabled", "budget_tokens": 4096}}),
    ("claude-haiku-4-5", ModelOptions(1024, "max"), {}),
    ("claude-haiku-4-5", ModelOptions(temperature=0.5), {"temperature": 0.5}),
    ("claude-haiku-4-5", ModelOptions(temperature=2.0), {"temperature": 1.0}),
    (
        "claude-haiku-4-5",
        ModelOptions(effort="low", temperature=0.5),
        {"thinking": {"type": "enabled", "budget_tokens": 2048}},
    ),
    ("claude-haiku-5-5", ModelOptions(effort="none", temperature=0.5), {"thinking": {"type": "disabled"}}),
    ("llama", ModelOptions(), {}),
    ("llama", ModelOptions(effort="none", temperature=0.5), {"temperature": 0.5}),
    ("llama", ModelOptions(effort="high"), {"thinking": ADAPTIVE, "output_config": {"effort": "high"}}),
]


@each_row(("model", "options", "expected"), BODIES, ids=[f"{row[0]} {row[1]}" for row in BODIES])
def test_each_model_is_told_in_its_own_way(model: str, options: ModelOptions, expected: dict[str, Any]) -> None:
    assert chosen(body(model, options)) == expected


@pytest.mark.parametrize("model", [each.begins.partition("/")[2] for each in entries() if "anthropic/" in each.begins])
def test_no_choice_makes_a_request_that_its_model_refuses(model: str) -> None:
    histories = (
        [ASKED],
        [ASKED, *called("a")],
        [ASKED, *called("a", THOUGHT)],
        [ASKED, *called("a", THOUGHT), *called("b")],
        [ASKED, *called("a"), *called("b", THOUGHT)],
        [ASKED, *called("a"), {"role": "assistant", "content": [THOUGHT]}, ASKED],
    )
    for effort in EFFORTS:
        for longest in (1, 1_025, 2_048, 128_000):
            for temperature in (None, 0.0, 1.0, 2.0):
                for history in histories:
                    made = body(model, ModelOptions(longest, effort, temperature), *history)
                    assert fault_in(made, beta_headers(model)) is None, (effort, longest, temperature, history)


def test_a_loop_that_was_begun_without_thinking_is_ended_without_it() -> None:
    options = ModelOptions(effort="low")
    loop = [ASKED, *called("a"), *called("b")]
    assert "thinking" not in body("claude-haiku-4-5", options, *loop)
    ended = [*loop, {"role": "assistant", "content": [{"type": "text", "text": "done"}]}, ASKED]
    assert "thinking" in body("claude-haiku-4-5", options, *ended)
    assert "thinking" in body("claude-haiku-4-5", options, ASKED, *called("a", THOUGHT), *called("b"))


def test_a_loop_whose_thinking_is_another_provider_s_goes_on_without() -> None:
    history = [ASKED, *called("a", THOUGHT)]
    request = ModelRequest("", [TOOL], history, 0, ModelOptions(effort="low"), {1: ReplyOrigin("gateway", "m")})
    made = FORMAT.body(request, "claude-haiku-4-5", "anthropic")
    assert "thinking" not in made
    assert fault_in(made) is None
    assert "thinking" in FORMAT.body(request, "claude-haiku-4-5", "gateway")


def test_what_only_another_server_knows_is_not_sent() -> None:
    search = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}
    request = ModelRequest("", [TOOL], [ASKED, *called("a", search)], 0, origins={1: ReplyOrigin("gateway", "m")})
    sent = {who: FORMAT.body(request, "m", who)["messages"][1]["content"] for who in ("anthropic", "gateway")}
    assert [[block["type"] for block in each] for each in sent.values()] == [
        ["tool_use"],
        ["server_tool_use", "tool_use"],
    ]


ODD: Final = {"type": "hologram"}
REFUSALS: Final = (
    (THOUGHT, "messages.1.content.0: Invalid `signature` in `thinking` block"),
    (THOUGHT, "messages.1.content.0.thinking.signature: Field required"),
    (THOUGHT, "`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified."),
    (ODD, "messages.1.content.0: Input tag 'hologram' found using 'type' does not match any of the expected tags"),
)


@pytest.mark.parametrize(("odd", "refusal"), REFUSALS)
async def test_a_conversation_goes_on_without_what_its_server_does_not_take_back(odd: Any, refusal: str) -> None:
    def judge(body: Any) -> str | None:
        has_it = any(block["type"] == odd["type"] for message in body["messages"] for block in message["content"])
        return refusal if has_it else fault_in(body)

    poisoned = [ASKED, *called("a", odd)]
    options = ModelOptions(effort="low")
    with MessagesServer([reply("done")] * 3, judge=judge) as server, trio.fail_after(HANG_GUARD):
        async with aclosing(messages_model("claude-haiku-4-5", "sk-key", server.url)) as asked:
            for messages in (poisoned, poisoned, [ASKED]):
                await asked.reply(ModelRequest("", [TOOL], messages, 0, options), lambda _: None)
    assert [bool(request.refused) for request in server.requests] == [True, False, True, False, False]
    assert "thinking" in server.bodies[-1]  # of another conversation


def test_what_was_thought_stays_out_where_thinking_is_switched_off() -> None:
    history = [ASKED, *called("a", THOUGHT), {"role": "assistant", "content": [THOUGHT]}, ASKED]
    before = msgspec.json.encode(history)
    made = body("claude-haiku-5-5", ModelOptions(effort="none"), *history)
    assert "thinking" not in {block["type"] for message in made["messages"] for block in message["content"]}
    assert fault_in(made, beta_headers("claude-haiku-5-5")) is None
    assert msgspec.json.encode(history) == before
    kept = body("claude-haiku-5-5", ModelOptions(), *history)
    assert [block["type"] for block in kept["messages"][1]["content"]] == ["thinking", "tool_use"]


BETAS: Final = [
    ("claude-haiku-5-5", "thinking-binding-controls-2026-08-01"),
    ("claude-haiku-4-5", "interleaved-thinking-2025-05-14"),
    ("claude-opus-5", None),
    ("llama", None),
]


@pytest.mark.parametrize(("model", "beta"), BETAS)
async def test_a_beta_is_asked_for_where_the_model_needs_it(model: str, beta: str | None) -> None:
    with MessagesServer([reply("done")]) as server, trio.fail_after(HANG_GUARD):
        asked = messages_model(model, "sk-key", server.url)
        request = ModelRequest("", [TOOL], [ASKED], 0, ModelOptions(effort="low"))
        await asked.reply(request, lambda _: None)
        await asked.aclose()
    (seen,) = server.requests
    assert seen.headers.get(BETA) == beta
    assert seen.refused is None


@pytest.mark.parametrize(
    ("thinking", "refused"),
    [
        ({"type": "enabled", "budget_tokens": 1_024}, ""),
        ({"type": "adaptive", "display": "summarized"}, ""),
        ({"type": "disabled"}, ""),
        ({"type": "enabled", "budget_tokens": 2_048}, "max_tokens: must be greater"),
        ({"type": "enabled", "budget_tokens": 100}, "at least 1024"),
        ({"type": "often"}, "thinking.type"),
        ({"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}, "block_binding"),
    ],
)
def test_the_official_client_s_forms_are_taken_and_others_are_not(thinking: Any, refused: str) -> None:
    import anthropic  # and not for all tests: it is large

    with MessagesServer([reply("done")]) as server, anthropic.Anthropic(api_key="k", base_url=server.url) as client:
        tell = client.messages.stream(
            model="m", max_tokens=2_048, messages=[{"role": "user", "content": "a"}], thinking=thinking
        )
        if refused:
            with pytest.raises(anthropic.BadRequestError, match=refused), tell:
                pass
        else:
            with tell as stream:
                assert stream.get_final_text() == "done"
