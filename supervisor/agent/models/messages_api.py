"""Anthropic's Messages API as a wire format, for Claude or whatever else speaks it.

Rule: the conversation's own blocks are those of this API, so that nothing is copied but what is marked for the cache.
Source: https://docs.anthropic.com/en/api/messages
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from supervisor.agent.models.adjustment import Json, row, without
from supervisor.agent.models.anthropic_sdk import request_head
from supervisor.agent.models.event_stream import EventDecoder
from supervisor.agent.models.inline_contents import inlined
from supervisor.agent.models.messages_options import THOUGHTS, beta_headers, reply_parameters
from supervisor.agent.models.messages_reader import MessagesReader
from supervisor.agent.models.model import CONTENTS, NO_ANSWER, Block, Message, ModelRequest
from supervisor.agent.models.model_http import RequestHead
from supervisor.agent.models.remote_model import RemoteModel
from supervisor.agent.models.server import Server
from supervisor.agent.models.wire_format import WireFormat

if TYPE_CHECKING:
    import httpx2

_CACHED: Final[Mapping[str, Any]] = {"type": "ephemeral"}
_COMMON: Final = frozenset({"text", "tool_use", "tool_result", *CONTENTS})
"""Blocks that every server of this API takes."""
_NO_TOOL: Final[Mapping[str, Any]] = {
    "name": "no_tool",
    "description": "No tool can be called now.",
    "input_schema": {"type": "object", "properties": {}},
}
"""Stands in where no tool is offered any more: the API refuses a history with calls in it and no tools."""


def _without(dropped: Callable[[Block], bool], message: Message) -> Message:
    """Return a reply without some of its blocks; a message that has none of them stays itself."""
    content = message["content"]
    if message["role"] != "assistant" or isinstance(content, str) or not any(map(dropped, content)):
        return message
    kept = [block for block in content if not dropped(block)]
    return {**message, "content": kept or [{"type": "text", "text": NO_ANSWER}]}


def _is_thinking(block: Block) -> bool:
    return block["type"] in THOUGHTS


def _is_its_own(block: Block) -> bool:
    return block["type"] not in _COMMON


def _adjusted(dropped: Callable[[Block], bool], body: Json) -> Json:
    """Leave out what was thought, or all that is the server's own.

    A loop of tool calls goes on without thinking then, as a budget wants it at its beginning.
    """
    messages = [_without(dropped, message) for message in body["messages"]]
    if all(new is old for new, old in zip(messages, body["messages"], strict=True)):
        return body
    budget = body.get("thinking", {}).get("type") == "enabled"
    return {**(without("thinking", body) if budget else body), "messages": messages}


ADJUSTMENTS: Final = (
    # thinking whose signature was lost, or is of another account: such a conversation would never go on
    row(
        r"thinking\b.{0,60}(signature|cannot be modified)|signature.{0,20}\bthinking",
        partial(_adjusted, _is_thinking),
        lasting=False,
    ),
    # blocks that a server sends and does not take back, or not without another
    row(r"expected tags|block type|server_tool_use|\w_tool_result", partial(_adjusted, _is_its_own), lasting=False),
)


def messages_model(name: str, api_key: str, base_url: str, **options: Any) -> RemoteModel:
    """Return the model called `name` of a server with `/v1/messages` below its address; `options` are RemoteModel's."""
    return RemoteModel(name, api_key, base_url, FORMAT, **options)


def _head(http: "httpx2.AsyncClient", server: Server, api_key: str, model: str) -> RequestHead:
    """Return the SDK's headers, and those that the model's thinking needs; the model itself stands in the body."""
    made = request_head(http, server, api_key)
    return made._replace(headers={**made.headers, **beta_headers(model)})


def _body(request: ModelRequest, model: str, provider: str) -> dict[str, Any]:
    """Return the request's JSON, with marks: up to there the provider keeps it for the next step."""
    messages = _without_foreign_blocks(request, provider)
    wanted = reply_parameters(request.options, model, messages)
    if not wanted.takes_thinking:
        messages = [_without(_is_thinking, message) for message in messages]
    body: dict[str, Any] = {
        "model": model,
        **wanted.members,
        "stream": True,
        "messages": _with_marks(inlined(request, messages), _last_request_end(request, model, provider)),
    }
    tools = list(request.tools)
    if request.system:
        # tools come before the system prompt in what is cached, so this mark covers both
        body["system"] = [{"type": "text", "text": request.system, "cache_control": _CACHED}]
    elif tools:
        tools[-1] = {**tools[-1], "cache_control": _CACHED}
    if tools:
        body["tools"] = tools
    elif any(map(_has_calls, request.messages)):
        body |= {"tools": [_NO_TOOL], "tool_choice": {"type": "none"}}
    return body


def _last_request_end(request: ModelRequest, model: str, provider: str) -> int:
    """Return the index of the last message of this model's request before; where it had none, of anyone's."""
    for index, origin in reversed([*request.origins.items()]):
        if origin.provider == provider and origin.model == model:
            return index - 1
    return len(request.messages) - 3


def _with_marks(messages: Sequence[Message], before: int) -> list[Message]:
    """Return the messages with two blocks marked for the cache; the caller's own stay as they are.

    The last, for the next request, and the last of the request `before`: the provider looks for what it has kept only
    20 blocks back from a mark, and one step may have more results than that, or another model have made many.
    """
    marked = list(messages)
    for at in {len(marked) - 1, before}:
        content = marked[at]["content"] if at >= 0 else None
        if isinstance(content, list) and content and (last := content[-1])["type"] not in THOUGHTS:
            marked[at] = {**marked[at], "content": [*content[:-1], {**last, "cache_control": _CACHED}]}
    return marked


def _without_foreign_blocks(request: ModelRequest, provider: str) -> Sequence[Message]:
    """Return the messages without what only the server knows that sent it, such as its thinking: others refuse it."""
    foreign = [
        index
        for index, origin in request.origins.items()
        if origin.provider != provider and any(map(_is_its_own, request.messages[index]["content"]))
    ]
    if not foreign:
        return request.messages
    messages = list(request.messages)
    for index in foreign:
        messages[index] = _without(_is_its_own, messages[index])
    return messages


def _has_calls(message: Message) -> bool:
    """Say whether a message calls tools; one that is a text alone does not."""
    content = message["content"]
    return isinstance(content, list) and any(block["type"] == "tool_use" for block in content)


FORMAT: Final = WireFormat(_head, _body, EventDecoder, MessagesReader, ADJUSTMENTS)
