"""The Responses API on the loopback, which plays a script and judges every request (`script_server.py`).

Rule: as in `chat_server.py`; besides, it keeps nothing, so items that it has sent come back whole: reasoning with what
it has encrypted and before the item that it led to, items with the ids that it gave them.

    python -m tests.responses_server --script FILE [--repeat-last] [--unchecked] [--record FILE]
"""

import itertools
import json
import sys
import uuid
from collections.abc import Mapping, Sequence
from typing import Any, Final

from tests.chat_server import EFFORTS, Call, ChatServer, judge_call, judge_data_url, judge_functions, must_be, split
from tests.script_server import fault_of, must, serve_as_program

USAGE: Final[Mapping[str, Any]] = {
    "input_tokens": 1,
    "input_tokens_details": {"cached_tokens": 0},
    "output_tokens": 5,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 6,
}
_KNOWN: Final = frozenset(
    {"model", "input", "instructions", "stream", "store", "include", "reasoning", "max_output_tokens", "tools"}
    | {"temperature", "prompt_cache_key"}
)


# what a reply looks like -----------------------------------------------------------------------------------


def event(kind: str, number: int = 0, /, **payload: Any) -> str:
    """Return one event as it stands in a stream."""
    told = {"type": kind, "sequence_number": number, **payload}
    return f"event: {kind}\ndata: {json.dumps(told, ensure_ascii=False)}\n\n"


def response(status: str, output: Sequence[Mapping[str, Any]] = (), **more: Any) -> dict[str, Any]:
    head = {"id": "resp_1", "object": "response", "created_at": 1, "model": "", "status": status, "tools": []}
    rest = {"parallel_tool_calls": True, "tool_choice": "auto", "error": None, "incomplete_details": None}
    return {**head, **rest, "output": list(output), "usage": None, **more}


def message_item(text: str, *, refusal: bool = False, item_id: str = "") -> dict[str, Any]:
    part: dict[str, Any] = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    part = {"type": "refusal", "refusal": text} if refusal else part
    name = item_id or f"msg_{uuid.uuid4().hex[:24]}"
    return {"id": name, "type": "message", "status": "completed", "role": "assistant", "content": [part]}


def call_item(name: str, arguments: Mapping[str, Any] | str, call_id: str) -> dict[str, Any]:
    raw = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    head = {"id": f"fc_{uuid.uuid4().hex[:24]}", "type": "function_call", "status": "completed"}
    return {**head, "call_id": call_id, "name": name, "arguments": raw}


def reasoning_item(summary: str, encrypted: str | None = "gAAAA") -> dict[str, Any]:
    parts = [{"type": "summary_text", "text": summary}] if summary else []
    head: dict[str, Any] = {"id": f"rs_{uuid.uuid4().hex[:24]}", "type": "reasoning", "summary": parts}
    return head if encrypted is None else {**head, "encrypted_content": encrypted}


def streamed(items: Sequence[Mapping[str, Any]], *, pieces: Sequence[str] = (), **ending: Any) -> str:
    """Return a whole reply of these items as OpenAI streams it; `ending` is of the response at its end."""
    numbers = itertools.count()
    events = [event(f"response.{name}", next(numbers), response=response("in_progress")) for name in _BEGINS]
    for index, item in enumerate(items):
        empty: dict[str, Any] = {"content": [], "arguments": "", "summary": [], "status": "in_progress"}
        bare = {**item, **{name: value for name, value in empty.items() if name in item}}
        place = {"output_index": index, "item_id": item["id"]}
        events.append(event("response.output_item.added", next(numbers), output_index=index, item=bare))
        events += [event(name, next(numbers), **place, **payload) for name, payload in _parts(item, pieces)]
        events.append(event("response.output_item.done", next(numbers), output_index=index, item=item))
    ending = {"status": "completed", "usage": USAGE, **ending}
    end = response(ending.pop("status"), items, **ending)
    return "".join([*events, event(f"response.{end['status']}", next(numbers), response=end)])


_BEGINS: Final = ("created", "in_progress")


def _parts(item: Mapping[str, Any], pieces: Sequence[str]) -> list[tuple[str, dict[str, Any]]]:
    """Return the events between an item's beginning and its end: their names, and what they say."""
    match item:
        case {"type": "function_call", "arguments": raw}:
            kind = "response.function_call_arguments"
            deltas = [(f"{kind}.delta", {"delta": each}) for each in split(raw, len(raw) // 2)]
            return [*deltas, (f"{kind}.done", {"name": item["name"], "arguments": raw})]
        case {"type": "reasoning", "summary": summary}:
            kind = "response.reasoning_summary"
            told: list[tuple[str, dict[str, Any]]] = []
            for at, part in enumerate(summary):
                place = {"summary_index": at}
                told.append((f"{kind}_part.added", {**place, "part": {**part, "text": ""}}))
                told += [(f"{kind}_text.delta", {**place, "delta": each}) for each in split(part["text"], 3)]
                told.append((f"{kind}_text.done", {**place, "text": part["text"]}))
                told.append((f"{kind}_part.done", {**place, "part": part}))
            return told
    told = []
    for at, part in enumerate(item["content"]):
        text = "text" if "text" in part else "refusal"
        kind, place = f"response.{part['type']}", {"content_index": at}
        more: dict[str, Any] = {"logprobs": []} if text == "text" else {}
        told.append(("response.content_part.added", {**place, "part": {**part, text: ""}}))
        told += [(f"{kind}.delta", {**place, **more, "delta": each}) for each in pieces or split(part[text], 2)]
        told.append((f"{kind}.done", {**place, **more, text: part[text]}))
        told.append(("response.content_part.done", {**place, "part": part}))
    return told


def responses_reply(
    text: str | Sequence[str] = "",
    calls: Sequence[Call] = (),
    *,
    usage: Mapping[str, Any] = USAGE,
    ids: Sequence[str] = (),
    thought: str = "",
) -> str:
    """Return a whole reply: a thought, a text, calls, as far as there are any. A list of texts streams in pieces."""
    pieces = [] if isinstance(text, str) else list(text)
    said = text if isinstance(text, str) else "".join(text)
    names = [*ids, *(f"call_{uuid.uuid4().hex[:24]}" for _ in calls[len(ids) :])]
    items = [reasoning_item(thought)] if thought else []
    items += [message_item(said)] if said else []
    items += [call_item(name, raw, call_id) for (name, raw), call_id in zip(calls, names, strict=True)]
    return streamed(items, pieces=pieces, usage=usage)


# what a request must look like -----------------------------------------------------------------------------


def fault_in_responses(body: Any) -> str | None:
    """Say what the API would refuse in this request, or None."""
    return fault_of(_judge, body)


def _judge(body: Any) -> None:
    must(isinstance(body, dict), "the body must be a JSON object")
    must(body.keys() <= _KNOWN, f"Unknown parameter: {sorted(body.keys() - _KNOWN)}")
    must(isinstance(body.get("model"), str) and body["model"], "Missing required parameter: 'model'.")
    must(body.get("stream") is True, "stream: this server only streams")
    must(body.get("store") is False, "store: this server keeps nothing")
    must(body.get("include", []) in ([], ["reasoning.encrypted_content"]), "include: unknown")
    must(body.get("reasoning", {}).keys() <= {"effort", "summary"}, "reasoning: unknown")
    effort = body.get("reasoning", {}).get("effort", "low")
    must(effort in EFFORTS, f"reasoning.effort: {effort!r} is none")
    must(type(body.get("max_output_tokens", 16)) is int, "max_output_tokens: must be an integer")
    must(isinstance(body.get("instructions", "x"), str) and body.get("instructions", "x"), "instructions: empty")
    tools = body.get("tools", [])
    for tool in tools:
        must_be(tool, "function")
        must(tool.get("strict") is False, "tools: a strict schema must require all properties")
    judge_functions(tools)
    must(isinstance(body.get("input"), list) and body["input"], "input: at least one is required")
    _judge_input(body["input"])


def _judge_input(items: list[Any]) -> None:
    used: set[str] = set()
    pending: list[str] = []
    ids = [item["id"] for item in items if item.get("id")]
    must(len(set(ids)) == len(ids), f"Duplicate item found with id {max(ids, key=ids.count, default='')}.")
    for number, item in enumerate(items):
        where = f"input.{number}"
        must(isinstance(item.get("id", "x"), str) and item.get("id", "x"), f"{where}: bad id")
        match item.get("type", "message"):
            case "function_call":
                pending.append(judge_call(where, item["call_id"], item["name"], item["arguments"], used))
            case "function_call_output":
                must(item["call_id"] in pending, f"{where}: No tool call found for {item['call_id']}.")
                pending.remove(item["call_id"])
                _judge_content(where, item["output"], "user")
            case "reasoning":
                _judge_reasoning(where, item, items[number + 1] if number + 1 < len(items) else {})
            case "message":
                must(not pending or item["role"] == "assistant", f"{where}: no output for {pending}")
                must(item["role"] in {"user", "assistant"}, f"{where}: no role {item['role']!r}")
                _judge_content(where, item["content"], item["role"])
            case other:
                must(False, f"{where}: no item {other!r}")
    must(not pending, f"No tool output found for function calls {pending}.")
    must(items[-1].get("type") == "function_call_output" or items[-1].get("role") == "user", "the last item is a reply")


def _judge_reasoning(where: str, item: Mapping[str, Any], after: Mapping[str, Any]) -> None:
    must(isinstance(item["summary"], list), f"{where}: summary is required")
    must(item.get("encrypted_content") or item.get("content"), f"{where}: Item not found: nothing is persisted.")
    led_to = after.get("type") in {"function_call", "reasoning"} or after.get("role") == "assistant"
    must(led_to, f"{where}: reasoning was provided without its required following item.")


def _judge_content(where: str, content: Any, role: str) -> None:
    if isinstance(content, str):
        must(content.strip(), f"{where}: content is empty")
        return
    must(isinstance(content, list) and content, f"{where}: content is empty")
    for part in content:
        match part:
            case {"type": "input_text", "text": str(text)} if role == "user":
                must(text.strip(), f"{where}: a text is empty")
            case {"type": "input_image", "image_url": url, "detail": "auto"} if role == "user":
                judge_data_url(url, "image")
            case {"type": "input_file", "filename": str(), "file_data": url} if role == "user":
                judge_data_url(url, "application")
            case {"type": "output_text", "text": str()} | {"type": "refusal", "refusal": str()} if role == "assistant":
                pass
            case _:
                must(False, f"{where}: no such part: {part}")


# the server ------------------------------------------------------------------------------------------------


class ResponsesServer(ChatServer):
    """Plays its script as the Responses API, below the same address and with the same errors."""

    PATH = "/v1/responses"

    def fault_in(self, body: Any) -> str | None:
        return fault_in_responses(body)

    def reply(self, text: str) -> str:
        return responses_reply(text)


if __name__ == "__main__":
    sys.exit(serve_as_program(ResponsesServer))
