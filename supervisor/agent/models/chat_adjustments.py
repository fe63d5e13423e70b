"""Adjustments of requests that servers refuse: what each has been seen to refuse, and what it is sent in its place.

Rule: pure, and a row each; a request that was refused is made again with the first row that matches what the server
says and that changes the request, after those that come before it: which messages there are, then what is in them. It
stays the same conversation. Rows are those of public reports.
"""

import hashlib
from collections.abc import Callable
from functools import partial
from typing import Final

from supervisor.agent.models.adjustment import Json, of_usual_length, row, without
from supervisor.agent.models.chat_reader import RETURNED

_CALLS: Final = "(The tools are called.)"
"""Stands where a reply calls tools and says nothing, and the server wants a text."""
_SEEN: Final = "(The results are here.)"
"""Stands between results and what the person says."""
_TOO_LONG: Final = r"max_(completion_)?tokens|maximum context length|in the completion"


def _without_longest(body: Json) -> Json:
    return without("max_tokens", without("max_completion_tokens", body))


def _renamed_longest(body: Json) -> Json:
    if "max_tokens" not in body:
        return body
    return {"max_completion_tokens" if name == "max_tokens" else name: value for name, value in body.items()}


def _lower_effort(effort: str, lower: str, body: Json) -> Json:
    return {**body, "reasoning_effort": lower} if body.get("reasoning_effort") == effort else body


def _each(change: Callable[[Json], Json], body: Json) -> Json:
    """Change messages, each by itself."""
    changed = [change(message) for message in body["messages"]]
    same = all(new is old for new, old in zip(changed, body["messages"], strict=True))
    return body if same else {**body, "messages": changed}


def _with_thoughts(message: Json) -> Json:
    if message["role"] != "assistant" or "reasoning_content" in message:
        return message
    return {**message, "reasoning_content": ""}


def _without_thoughts(message: Json) -> Json:
    if message.keys().isdisjoint(RETURNED):
        return message
    return {name: value for name, value in message.items() if name not in RETURNED}


def _with_text(message: Json) -> Json:
    return {**message, "content": _CALLS} if message["content"] is None else message


def _with_short_ids(message: Json) -> Json:
    """Give calls ids of nine letters and digits, the same for the same id."""
    if "tool_call_id" in message:
        return {**message, "tool_call_id": _short(message["tool_call_id"])}
    if "tool_calls" in message:
        return {**message, "tool_calls": [{**call, "id": _short(call["id"])} for call in message["tool_calls"]]}
    return message


def _short(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()[:9]


def _with_system_said_by_user(body: Json) -> Json:
    first, *rest = body["messages"]
    if first["role"] != "system" or not rest:
        return body
    said = rest[0]["content"]
    parts = [{"type": "text", "text": said}] if isinstance(said, str) else said
    joined = f"{first['content']}\n\n{said}" if isinstance(said, str) else None
    told = joined or [{"type": "text", "text": first["content"]}, *parts]
    return {**body, "messages": [{**rest[0], "content": told}, *rest[1:]]}


def _with_answered_results(body: Json) -> Json:
    messages: list[Json] = []
    for message in body["messages"]:
        if messages and messages[-1]["role"] == "tool" and message["role"] == "user":
            messages.append({"role": "assistant", "content": _SEEN})
        messages.append(message)
    return body if len(messages) == len(body["messages"]) else {**body, "messages": messages}


ADJUSTMENTS: Final = (
    # Mistral, and what runs its models
    row(r"length of 9\b", partial(_each, _with_short_ids)),
    row(r"after role '?tool|roles must alternate", _with_answered_results),
    # templates of Gemma, OpenAI's o1-mini
    row(
        r"\brole\b.{0,60}\bsystem\b|\bsystem\b.{0,20}\b(role|message|prompt)|developer instruction",
        _with_system_said_by_user,
    ),
    # DeepSeek: every reply of a conversation with tool calls, also one that another model wrote
    row(r"missing.{0,4}reasoning_content|reasoning_content.{0,60}must be passed back", partial(_each, _with_thoughts)),
    # DeepSeek of old, Groq, Cerebras: none of it
    row(r"\breasoning(_content|_details)?\b", partial(_each, _without_thoughts)),
    # older vLLM, Mistral, gateways
    row(r"stream_options|include_usage", partial(without, "stream_options")),
    # OpenAI's reasoning models
    row(r"max_completion_tokens", _renamed_longest),
    # more than the model has, or than its context has room for; full contexts are refused again
    row(_TOO_LONG, _without_longest, unbounded=True),
    row(_TOO_LONG, of_usual_length),
    # OpenAI's reasoning models
    row(r"\btemperature\b", partial(without, "temperature")),
    # models with fewer efforts, and with none
    row(r"reasoning[_.]effort|\bmax\b", partial(_lower_effort, "max", "xhigh")),
    row(r"reasoning[_.]effort|\bxhigh\b", partial(_lower_effort, "xhigh", "high")),
    row(r"reasoning[_.]effort", partial(without, "reasoning_effort")),
    # servers that want a text with every message
    row(r"\bcontent\b", partial(_each, _with_text)),
)
