"""A Messages API on the loopback, which plays a script and judges every request (`script_server.py`).

As a program, for command lines and benchmarks (prints its port, serves until its input ends or SIGTERM):

    python -m tests.messages_server --script FILE [--repeat-last] [--unchecked] [--record FILE]
"""

import base64
import json
import re
import sys
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from tests.script_server import Recorded, ScriptServer, fault_of, must, serve_as_program
from workers.wire.media_types import type_of

Call = tuple[str, Mapping[str, Any] | str]
"""A tool's name and its arguments; a string goes as it is, complete JSON or not."""

USAGE: Final[Mapping[str, int]] = {"input_tokens": 1, "output_tokens": 5}
_MAX_MARKS: Final = 4
_MOST_DATA: Final = {"image": 5 * 2**20, "document": 32_000_000}
"""Characters of base64; so many of a request, too (https://platform.claude.com/docs/en/build-with-claude/vision)."""
_ID: Final = re.compile(r"[a-zA-Z0-9_-]+")
_TOOL_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,128}")


# what a reply looks like -----------------------------------------------------------------------------------


def event(payload: Mapping[str, Any]) -> str:
    """Return one event as it stands in a stream."""
    return f"event: {payload['type']}\ndata: {json.dumps(payload, ensure_ascii=False)}\n\n"


def start(usage: Mapping[str, Any] = USAGE) -> str:
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "", "content": []}
    return event({"type": "message_start", "message": {**message, "stop_reason": None, "usage": {**usage}}})


def block(index: int, content_block: Mapping[str, Any], *deltas: Mapping[str, Any]) -> str:
    return "".join(
        [
            event({"type": "content_block_start", "index": index, "content_block": content_block}),
            *(event({"type": "content_block_delta", "index": index, "delta": delta}) for delta in deltas),
            event({"type": "content_block_stop", "index": index}),
        ]
    )


def text_block(index: int, *pieces: str) -> str:
    return block(index, {"type": "text", "text": ""}, *({"type": "text_delta", "text": p} for p in pieces))


def call_block(index: int, name: str, arguments: Mapping[str, Any] | str, call_id: str) -> str:
    raw = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    middle = len(raw) // 2
    return block(
        index,
        {"type": "tool_use", "id": call_id, "name": name, "input": {}},
        *({"type": "input_json_delta", "partial_json": piece} for piece in (raw[:middle], raw[middle:])),
    )


def end(stop_reason: str | None = "end_turn", usage: Mapping[str, Any] = USAGE) -> str:
    delta = {"stop_reason": stop_reason, "stop_sequence": None}
    output = {"output_tokens": usage.get("output_tokens", 0)}
    return event({"type": "message_delta", "delta": delta, "usage": output}) + event({"type": "message_stop"})


def reply(
    text: str | Sequence[str] = "",
    calls: Sequence[Call] = (),
    *,
    stop_reason: str | None = None,
    usage: Mapping[str, Any] = USAGE,
    ids: Sequence[str] = (),
) -> str:
    """Return a whole reply as event-stream text. `text` given as a list streams in those pieces.

    Without `ids`, calls get ids that nobody else has.
    """
    pieces = [text] if isinstance(text, str) else list(text)
    blocks = [text_block(0, *pieces)] if any(pieces) else []
    names = [*ids, *(f"toolu_{uuid.uuid4().hex}" for _ in calls[len(ids) :])]
    for (name, arguments), call_id in zip(calls, names, strict=True):
        blocks.append(call_block(len(blocks), name, arguments, call_id))
    reason = stop_reason or ("tool_use" if calls else "end_turn")
    return start(usage) + "".join(blocks) + end(reason, usage)


def error(status: int, message: str, kind: str = "api_error", **headers: str) -> dict[str, Any]:
    """Return an error answer in the API's shape; `retry_after="1"` becomes the header of that name."""
    return {
        "status": status,
        "headers": {name.replace("_", "-"): value for name, value in headers.items()},
        "body": json.dumps({"type": "error", "error": {"type": kind, "message": message}}),
    }


# what a request must look like -----------------------------------------------------------------------------


def fault_in(body: Any, headers: Mapping[str, str] = {}) -> str | None:
    """Say what the API would refuse in this request, or None; `headers` by lower-case name."""

    def judge(body: Any) -> None:
        _judge(body)
        _judge_thinking(body, headers.get("anthropic-beta", "").split(","))

    return fault_of(judge, body)


def _judge(body: Any) -> None:
    must(isinstance(body, dict), "the body must be a JSON object")
    must(isinstance(body.get("model"), str) and body["model"], "model: required")
    must(type(body.get("max_tokens")) is int and body["max_tokens"] > 0, "max_tokens: must be a positive integer")
    must(body.get("stream") is True, "stream: this server only streams")
    must(isinstance(body.get("messages"), list) and body["messages"], "messages: at least one is required")
    _judge_tools(body.get("tools", []))
    if "system" in body:
        _judge_content("system", body["system"], {"text"})
    _judge_messages(body["messages"])
    marks = [marked for marked in _objects(body) if marked.get("cache_control") is not None]
    must(len(marks) <= _MAX_MARKS, f"at most {_MAX_MARKS} blocks may have cache_control, found {len(marks)}")
    for marked in marks:
        must(marked["cache_control"].get("type") == "ephemeral", "cache_control: type must be ephemeral")
        must(marked.get("type") not in _THOUGHTS, f"cache_control: not on a {marked.get('type')} block")


_THOUGHTS: Final = {"thinking", "redacted_thinking"}
_EFFORTS: Final = ("low", "medium", "high", "xhigh", "max")
_REFUSED: Final[Mapping[str, Sequence[str]]] = {
    "claude-haiku-4-5": ("adaptive", "between_tools", "effort"),
    "claude-sonnet-4-6": ("between_tools",),
    "claude-opus-4-8": ("enabled", "between_tools", "temperature"),
    "claude-haiku-5-5": ("enabled", "between_tools", "temperature"),
    "claude-sonnet-5-5": ("enabled", "disabled", "temperature"),
    "claude-opus-5-5": ("enabled", "disabled", "between_tools", "temperature"),
}
"""What some models answer 400 to: https://platform.claude.com/docs/en/build-with-claude/thinking-troubleshooting"""


def _judge_thinking(body: dict[str, Any], betas: Sequence[str]) -> None:
    thinking, config = body.get("thinking", {"type": "disabled"}), body.get("output_config", {})
    kind, effort = thinking.get("type"), config.get("effort", "high")
    refused = _REFUSED.get(body["model"], ())
    must(kind in ("enabled", "adaptive", "disabled", "between_tools"), f"thinking.type: {kind!r} is none")
    must("thinking" not in body or kind not in refused, f"thinking.type: {kind} is not supported by this model")
    must(effort in _EFFORTS, f"output_config.effort: {effort!r} is none")
    must("effort" not in config or "effort" not in refused, "output_config.effort: not supported by this model")
    off = "thinking" in body and kind in ("disabled", "between_tools")
    must(not off or effort not in ("xhigh", "max"), f"thinking.type: {kind} is not supported with effort {effort}")
    must(set(thinking) <= {"type", "budget_tokens", "display", "block_binding"}, "thinking: extra inputs")
    bound = "thinking-binding-controls-2026-08-01" in betas
    must(bound or "block_binding" not in thinking, "thinking.block_binding: extra inputs are not permitted")
    if "temperature" in body:
        must("temperature" not in refused, "temperature: not supported by this model")
        must(0 <= body["temperature"] <= 1, "temperature: must be from 0 to 1")
        must(kind not in ("enabled", "adaptive") or body["temperature"] == 1, "temperature: only 1 with thinking")
    if kind == "enabled":
        budget = thinking.get("budget_tokens")
        must(type(budget) is int and budget >= 1024, "thinking.budget_tokens: at least 1024")
        must(budget < body["max_tokens"], "max_tokens: must be greater than thinking.budget_tokens")
        _judge_open_loop(body["messages"])


def _judge_open_loop(messages: list[dict[str, Any]]) -> None:
    """A loop of tool calls is one turn of the assistant's, which begins with its thinking."""
    at = len(messages) - 1
    while at > 0 and isinstance(messages[at]["content"], list) and messages[at]["content"][0]["type"] == "tool_result":
        at -= 2
    if at < len(messages) - 1:
        first = messages[at + 1]["content"][0]["type"]
        must(first in _THOUGHTS, f"messages.{at + 1}: Expected `thinking` or `redacted_thinking`, but found `{first}`")


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    """Walk every block, tool and message; what a tool call was given is no such object."""
    if isinstance(value, dict):
        yield value
        for name, child in value.items():
            if name not in {"input", "input_schema", "cache_control"}:
                yield from _objects(child)
    elif isinstance(value, list):
        for child in value:
            yield from _objects(child)


def _judge_tools(tools: Any) -> None:
    must(isinstance(tools, list), "tools: must be a list")
    for tool in tools:
        must(_TOOL_NAME.fullmatch(tool.get("name", "")), f"tools: bad name {tool.get('name')!r}")
        must(tool.get("input_schema", {}).get("type") == "object", "tools: input_schema.type must be object")
    names = [tool["name"] for tool in tools]
    must(len(set(names)) == len(names), "tools: names must be unique")


def _judge_messages(messages: list[Any]) -> None:
    used: set[str] = set()
    pending: list[str] = []
    for number, message in enumerate(messages):
        where = f"messages.{number}"
        must(isinstance(message, dict) and set(message) == {"role", "content"}, f"{where}: needs role and content")
        role = "assistant" if number % 2 else "user"
        must(message["role"] == role, f"{where}: roles must alternate, starting with user")
        allowed = {"text", "tool_result", "image", "document"} if role == "user" else None
        _judge_content(where, message["content"], allowed)
        blocks = message["content"] if isinstance(message["content"], list) else []
        if role == "user":
            _judge_results(where, blocks, pending)
            pending = []
        else:
            pending = [_judge_use(where, one, used) for one in blocks if one["type"] == "tool_use"]
            must(all(one["type"] != "tool_result" for one in blocks), f"{where}: tool_result is for the user")
    must(messages[-1]["role"] == "user", "messages: the last one must be the user's")


def _judge_content(where: str, content: Any, allowed: set[str] | None) -> None:
    if isinstance(content, str):
        must(content.strip(), f"{where}: content must not be empty")
        return
    must(isinstance(content, list) and content, f"{where}: content must not be empty")
    for one in content:
        must(isinstance(one, dict) and isinstance(one.get("type"), str), f"{where}: a block needs a type")
        must(allowed is None or one["type"] in allowed, f"{where}: no place for a {one['type']} block")
        if one["type"] == "text":
            must(isinstance(one.get("text"), str), f"{where}: text must be a string")
            must(one["text"].strip(), f"{where}: text content blocks must contain non-whitespace text")
        if one["type"] == "thinking":
            signed = isinstance(one.get("thinking"), str) and isinstance(one.get("signature"), str)
            must(signed, f"{where}: thinking needs its text and its signature")
        if one["type"] in {"image", "document"}:
            _judge_source(where, one)


def _judge_source(where: str, shown: dict[str, Any]) -> None:
    """Check that an image or a document is one, by how it begins and ends."""
    source = shown["source"]
    must(set(source) == {"type", "media_type", "data"} and source["type"] == "base64", f"{where}: a base64 source")
    types = {"document": ["application/pdf"], "image": ["image/png", "image/jpeg", "image/gif", "image/webp"]}
    must(source["media_type"] in types[shown["type"]], f"{where}: no {source['media_type']} in a {shown['type']}")
    data = base64.b64decode(source["data"], validate=True)
    must(type_of(data) == source["media_type"], f"{where}: the data are no {source['media_type']}")
    must(len(source["data"]) <= _MOST_DATA[shown["type"]], f"{where}: more data than an image or a document may have")


def _judge_use(where: str, use: dict[str, Any], used: set[str]) -> str:
    name = use.get("id", "")
    must(isinstance(name, str) and _ID.fullmatch(name), f"{where}: tool_use.id {name!r} is not an id")
    must(name not in used, f"{where}: `tool_use` ids must be unique, {name} is not")
    must(_TOOL_NAME.fullmatch(use.get("name", "")), f"{where}: tool_use.name {use.get('name')!r} is not a name")
    must(isinstance(use.get("input"), dict), f"{where}: tool_use.input must be an object")
    used.add(name)
    return str(name)


def _judge_results(where: str, blocks: list[dict[str, Any]], pending: list[str]) -> None:
    kinds = [one["type"] for one in blocks]
    results = [one for one in blocks if one["type"] == "tool_result"]
    must("tool_result" not in kinds[len(results) :], f"{where}: tool_result blocks must come first")
    answered = [one.get("tool_use_id") for one in results]
    for name in pending:
        must(
            name in answered,
            f"{where}: `tool_use` ids were found without `tool_result` blocks immediately after: {name}",
        )
    for answer in answered:
        must(answer in pending, f"{where}: unexpected `tool_use_id` found in `tool_result` blocks: {answer}")
    must(len(set(answered)) == len(answered), f"{where}: each tool_use must have a single result")
    for one in results:
        content = one.get("content", "")
        must(content or one.get("is_error") is not True, f"{where}: content cannot be empty if is_error is true")
        if content:
            _judge_content(where, content, {"text", "image", "document"})


# the server ------------------------------------------------------------------------------------------------


class MessagesServer(ScriptServer):
    """Plays its script as the Messages API."""

    PATH = "/v1/messages"

    def fault_in(self, body: Any) -> str | None:
        return fault_in(body)

    def fault_in_request(self, request: Recorded) -> str | None:
        return fault_in(request.body, request.headers)

    def error(self, status: int, message: str, kind: str, **headers: str) -> dict[str, Any]:
        return error(status, message, kind, **headers)

    def reply(self, text: str) -> str:
        return reply(text)


if __name__ == "__main__":
    sys.exit(serve_as_program(MessagesServer))
