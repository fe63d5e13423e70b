"""Chat Completions on the loopback, which plays a script and judges every request (`script_server.py`).

Rule: it takes what OpenAI takes and nothing else, so what it lets through is a valid history: calls are answered, all
of them and at once, by their ids; nothing is empty; the system speaks first.

    python -m tests.chat_server --script FILE [--repeat-last] [--unchecked] [--record FILE]
"""

import base64
import json
import re
import sys
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from tests.script_server import ScriptServer, fault_of, must, serve_as_program

Call = tuple[str, Mapping[str, Any] | str]
"""A tool's name and its arguments; a string goes as it is, complete JSON or not."""

USAGE: Final[Mapping[str, Any]] = {"prompt_tokens": 1, "completion_tokens": 5, "total_tokens": 6}
_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_KNOWN: Final = frozenset(
    {"model", "messages", "stream", "stream_options", "max_tokens", "max_completion_tokens", "tools", "temperature"}
    | {"reasoning_effort"}
)
EFFORTS: Final = frozenset({"none", "low", "medium", "high", "xhigh", "max"})
DONE: Final = "data: [DONE]\n\n"


# what a reply looks like -----------------------------------------------------------------------------------


def chunk(delta: Mapping[str, Any] | None = None, finish: str | None = None, **more: Any) -> str:
    """Return one event: a delta of the first choice, or a chunk without any choice."""
    choices = [] if delta is None else [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}]
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": ""}
    return f"data: {json.dumps({**head, 'choices': choices, **more}, ensure_ascii=False)}\n\n"


def called(index: int | None, call_id: str | None = None, name: str | None = None, arguments: Any = None) -> str:
    """Return a chunk with a piece of one call; what is None is not in it."""
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    piece = {"index": index, "id": call_id, "type": call_id and "function", "function": function}
    return chunk({"tool_calls": [{key: value for key, value in piece.items() if value is not None}]})


def end(finish: str | None = "stop", usage: Mapping[str, Any] = USAGE) -> str:
    return chunk({}, finish) + chunk(usage=usage) + DONE


def chat_reply(
    text: str | Sequence[str] = "",
    calls: Sequence[Call] = (),
    *,
    finish: str | None = None,
    usage: Mapping[str, Any] = USAGE,
    ids: Sequence[str] = (),
    thought: str = "",
) -> str:
    """Return a whole reply as OpenAI streams it. `text` given as a list streams in those pieces.

    Without `ids`, calls get ids that nobody else has.
    """
    pieces = [text] if isinstance(text, str) else list(text)
    names = [*ids, *(f"call_{uuid.uuid4().hex[:24]}" for _ in calls[len(ids) :])]
    events = [chunk({"role": "assistant", "content": None if calls else "", "refusal": None})]
    events += [chunk({"reasoning_content": thought})] if thought else []
    events += [chunk({"content": piece}) for piece in pieces if piece]
    for index, ((name, arguments), call_id) in enumerate(zip(calls, names, strict=True)):
        raw = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
        middle = len(raw) // 2
        events += [called(index, call_id, name, ""), *(called(index, arguments=each) for each in split(raw, middle))]
    return "".join(events) + end(finish or ("tool_calls" if calls else "stop"), usage)


def split(raw: str, at: int) -> Iterable[str]:
    return filter(None, (raw[:at], raw[at:]))


def chat_error(status: int, message: str, kind: str = "invalid_request_error", **headers: str) -> dict[str, Any]:
    """Return an error answer in OpenAI's shape; `retry_after="1"` becomes the header of that name."""
    return {
        "status": status,
        "headers": {name.replace("_", "-"): value for name, value in headers.items()},
        "body": json.dumps({"error": {"message": message, "type": kind, "param": None, "code": None}}),
    }


# what a request must look like -----------------------------------------------------------------------------


def fault_in_chat(body: Any) -> str | None:
    """Say what the API would refuse in this request, or None."""
    return fault_of(_judge, body)


def _judge(body: Any) -> None:
    must(isinstance(body, dict), "the body must be a JSON object")
    must(body.keys() <= _KNOWN, f"Unrecognized request argument supplied: {sorted(body.keys() - _KNOWN)}")
    must(isinstance(body.get("model"), str) and body["model"], "you must provide a model parameter")
    must(body.get("stream") is True, "stream: this server only streams")
    must(body.get("stream_options", {}).keys() <= {"include_usage"}, "stream_options: unknown")
    for name in ("max_tokens", "max_completion_tokens"):
        must(type(body.get(name, 1)) is int and body.get(name, 1) > 0, f"{name}: must be a positive integer")
    must(isinstance(body.get("temperature", 1.0), int | float), "temperature: must be a number")
    must(body.get("reasoning_effort", "low") in EFFORTS, "reasoning_effort: unknown")
    must("tools" not in body or body["tools"], "[] is too short - 'tools'")
    judge_functions([tool["function"] for tool in body.get("tools", []) if must_be(tool, "function")])
    must(isinstance(body.get("messages"), list) and body["messages"], "messages: at least one is required")
    _judge_messages(body["messages"])


def must_be(what: Any, kind: str) -> bool:
    must(isinstance(what, dict) and what.get("type") == kind, f"the type must be {kind!r}: {what}")
    return True


def judge_functions(functions: Sequence[Any]) -> None:
    for function in functions:
        must(_NAME.fullmatch(function["name"]), f"tools: bad name {function['name']!r}")
        must(isinstance(function["description"], str), "tools: the description must be a string")
        must(function["parameters"].get("type") == "object", "tools: parameters.type must be object")
    names = [function["name"] for function in functions]
    must(len(set(names)) == len(names), "tools: names must be unique")


def judge_call(where: str, call_id: Any, name: Any, arguments: Any, used: set[str]) -> str:
    """Judge one call of a history; return its id."""
    must(isinstance(call_id, str) and 0 < len(call_id) <= 64, f"{where}: {call_id!r} is not an id")
    must(call_id not in used, f"{where}: the id {call_id} is used twice")
    must(isinstance(name, str) and _NAME.fullmatch(name), f"{where}: {name!r} is not a name")
    must(isinstance(arguments, str) and isinstance(json.loads(arguments), dict), f"{where}: arguments are no object")
    used.add(call_id)
    return str(call_id)


def judge_data_url(url: Any, kind: str) -> None:
    head, _, data = url.partition(",")
    must(head.startswith(f"data:{kind}/") and head.endswith(";base64"), f"{url[:40]} is no data URL of {kind}")
    base64.b64decode(data, validate=True)


def _judge_messages(messages: list[Any]) -> None:
    used: set[str] = set()
    pending: list[str] = []
    for number, message in enumerate(messages):
        where = f"messages.{number}"
        role = message["role"]
        must(role in {"system", "user", "assistant", "tool"}, f"{where}: no role {role!r}")
        must(role != "system" or number == 0, f"{where}: the system speaks first")
        if role == "tool":
            must(message.keys() == {"role", "tool_call_id", "content"}, f"{where}: {sorted(message)}")
            must(message["tool_call_id"] in pending, f"{where}: answers no call that waits")
            pending.remove(message["tool_call_id"])
            must(isinstance(message["content"], str) and message["content"].strip(), f"{where}: empty")
            continue
        must(not pending, f"{where}: an assistant message with 'tool_calls' must be followed by answers to {pending}")
        if role == "assistant":
            pending = _judge_reply(where, message, used)
        else:
            must(message.keys() == {"role", "content"}, f"{where}: {sorted(message)}")
            _judge_content(where, message["content"])
    must(not pending, f"calls without an answer: {pending}")
    must(messages[-1]["role"] in {"user", "tool"}, "the last message must be the user's, or a tool's")


def _judge_reply(where: str, message: dict[str, Any], used: set[str]) -> list[str]:
    calls = message.get("tool_calls", [])
    must("tool_calls" not in message or calls, f"{where}: [] is too short - 'tool_calls'")
    if message["content"] is not None or not calls:
        must(isinstance(message["content"], str) and message["content"].strip(), f"{where}: content is empty")
    for name in message.keys() - {"role", "content", "tool_calls"}:
        must(name in {"reasoning_content", "reasoning", "reasoning_details"}, f"{where}: unknown {name}")
        must(isinstance(message[name], list if name == "reasoning_details" else str), f"{where}: bad {name}")
    functions = [(call["id"], call["function"]) for call in calls if must_be(call, "function")]
    return [judge_call(where, call_id, each["name"], each["arguments"], used) for call_id, each in functions]


def _judge_content(where: str, content: Any) -> None:
    if isinstance(content, str):
        must(content.strip(), f"{where}: content is empty")
        return
    must(isinstance(content, list) and content, f"{where}: content is empty")
    for part in content:
        match part:
            case {"type": "text", "text": str(text)}:
                must(text.strip(), f"{where}: a text is empty")
            case {"type": "image_url", "image_url": {"url": url}}:
                judge_data_url(url, "image")
            case {"type": "file", "file": {"filename": str(), "file_data": url}}:
                judge_data_url(url, "application")
            case _:
                must(False, f"{where}: no such part: {part}")


# the server ------------------------------------------------------------------------------------------------


class ChatServer(ScriptServer):
    """Plays its script as Chat Completions."""

    PATH = "/v1/chat/completions"

    @property
    def url(self) -> str:
        return f"{super().url}/v1"

    def fault_in(self, body: Any) -> str | None:
        return fault_in_chat(body)

    def error(self, status: int, message: str, kind: str, **headers: str) -> dict[str, Any]:
        return chat_error(status, message, kind, **headers)

    def reply(self, text: str) -> str:
        return chat_reply(text)


if __name__ == "__main__":
    sys.exit(serve_as_program(ChatServer))
