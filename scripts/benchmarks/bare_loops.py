"""Turns written by hand on the vendors' SDKs, one for each wire format, and what Strongroom has for the same server.

Rule: they do what a program must do and no more: read the stream, keep the history, answer calls with a text.
"""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, NamedTuple

from supervisor.agent.models import chat_api, messages_api, responses_api
from supervisor.agent.models.remote_model import RemoteModel
from supervisor.agent.models.wire_format import WireFormat
from tests.chat_server import chat_reply
from tests.messages_server import reply
from tests.responses_server import responses_reply

MODEL: Final = "claude-haiku-5-5"
PROMPT: Final = "Read the note until you know it."
Tools = Sequence[Mapping[str, Any]]
"""As the Messages API has them."""


class BareLoop(NamedTuple):
    """A format, its loopback server, and a loop on its vendor's SDK."""

    title: str
    server: str
    """The module that is the server."""
    base: str
    """What stands before the format's own paths."""
    reply: Callable[..., str]
    client: Callable[[str], AbstractAsyncContextManager[Any]]
    """Opens the SDK's client of a server."""
    run: Callable[[Any, Tools, str], Awaitable[int]]
    """Runs one turn with a client, tools, and the text that each call is answered with; returns its steps."""
    model: Callable[[str], RemoteModel]
    """Opens ours."""


def _anthropic(url: str) -> AbstractAsyncContextManager[Any]:
    import anthropic

    return anthropic.AsyncAnthropic(api_key="none", base_url=url, max_retries=0)


def _openai(url: str) -> AbstractAsyncContextManager[Any]:
    import openai

    return openai.AsyncOpenAI(api_key="none", base_url=url, max_retries=0)


async def _messages(client: Any, tools: Tools, result: str) -> int:
    messages: list[dict[str, Any]] = [{"role": "user", "content": PROMPT}]
    steps = 0
    while True:
        content: list[dict[str, Any]] = []
        stream = await client.messages.create(model=MODEL, max_tokens=8192, messages=messages, tools=tools, stream=True)
        async for event in stream:
            if event.type == "content_block_start":
                content.append(event.content_block.to_dict())
                raw = ""
            elif event.type == "content_block_delta" and event.delta.type == "text_delta":
                content[-1]["text"] += event.delta.text
            elif event.type == "content_block_delta":
                raw += event.delta.partial_json
            elif event.type == "content_block_stop" and content[-1]["type"] == "tool_use":
                content[-1]["input"] = json.loads(raw)
        messages.append({"role": "assistant", "content": content})
        uses = [block for block in content if block["type"] == "tool_use"]
        if not uses:
            return steps
        steps += 1
        results = [{"type": "tool_result", "tool_use_id": use["id"], "content": result} for use in uses]
        messages.append({"role": "user", "content": results})


async def _chat(client: Any, tools: Tools, result: str) -> int:
    messages: list[dict[str, Any]] = [{"role": "user", "content": PROMPT}]
    functions = [{"type": "function", "function": _function(tool)} for tool in tools]
    steps = 0
    while True:
        said: list[str] = []
        calls: list[dict[str, Any]] = []
        stream = await client.chat.completions.create(
            model=MODEL, messages=messages, tools=functions, stream=True, stream_options={"include_usage": True}
        )
        async for chunk in stream:
            for choice in chunk.choices:
                said.append(choice.delta.content or "")
                for piece in choice.delta.tool_calls or ():
                    if piece.id:
                        calls.append(piece.to_dict())
                    else:
                        calls[piece.index]["function"]["arguments"] += piece.function.arguments
        if not calls:
            return steps
        steps += 1
        for call in calls:
            json.loads(call["function"]["arguments"])
        messages.append({"role": "assistant", "content": "".join(said), "tool_calls": calls})
        messages += [{"role": "tool", "tool_call_id": call["id"], "content": result} for call in calls]


async def _responses(client: Any, tools: Tools, result: str) -> int:
    items: list[dict[str, Any]] = [{"type": "message", "role": "user", "content": PROMPT}]
    functions = [{"type": "function", **_function(tool), "strict": False} for tool in tools]
    steps = 0
    while True:
        stream = await client.responses.create(model=MODEL, input=items, tools=functions, stream=True, store=False)
        async for event in stream:
            if event.type == "response.completed":
                output = [item.to_dict() for item in event.response.output]
        items += output
        calls = [item for item in output if item["type"] == "function_call"]
        if not calls:
            return steps
        steps += 1
        for call in calls:
            json.loads(call["arguments"])
        items += [{"type": "function_call_output", "call_id": call["call_id"], "output": result} for call in calls]


def _function(tool: Mapping[str, Any]) -> dict[str, Any]:
    return {"name": tool["name"], "description": tool["description"], "parameters": tool["input_schema"]}


def _model(wire: WireFormat, provider: str = "bench") -> Callable[[str], RemoteModel]:
    return lambda url: RemoteModel(MODEL, "none", url, wire, provider=provider)


BARE_LOOPS: Final = (
    BareLoop(
        "agent step",
        "tests.messages_server",
        "",
        reply,
        _anthropic,
        _messages,
        _model(messages_api.FORMAT, "anthropic"),
    ),
    BareLoop("agent step by chat", "tests.chat_server", "/v1", chat_reply, _openai, _chat, _model(chat_api.FORMAT)),
    BareLoop(
        "agent step by responses",
        "tests.responses_server",
        "/v1",
        responses_reply,
        _openai,
        _responses,
        _model(responses_api.FORMAT),
    ),
)
