"""OpenAI's Chat Completions as a wire format, for every server that speaks it: most do, each with oddities of its own.

Rule: a request has only what nearly all servers take, so neither `strict` nor `parallel_tool_calls`; what some of them
refuse nevertheless is a row of `chat_adjustments.py`. Sources: https://platform.openai.com/docs/api-reference/chat,
https://platform.openai.com/docs/api-reference/authentication
"""

from collections.abc import Mapping
from typing import Any, Final

from supervisor.agent.models.chat_adjustments import ADJUSTMENTS
from supervisor.agent.models.chat_messages import chat_messages
from supervisor.agent.models.chat_reader import ChatReader
from supervisor.agent.models.event_stream import EventDecoder
from supervisor.agent.models.model import ModelRequest
from supervisor.agent.models.model_http import RequestHead
from supervisor.agent.models.server import NO_KEY, Server, below
from supervisor.agent.models.wire_format import WireFormat
from supervisor.version import VERSION


def openai_head(server: Server, api_key: str, path: str) -> RequestHead:
    """Return the URL and the headers of requests to a path below the server's address.

    A name and a password in the address take the place of the key, as both go into one header.
    """
    key = "" if api_key == NO_KEY else f"Bearer {api_key}"
    headers = {"Content-Type": "application/json", "User-Agent": f"strongroom/{VERSION}"}
    if authorization := server.authorization or key:
        headers["Authorization"] = authorization
    return RequestHead(below(server.url, path), headers)


def _head(_http: object, server: Server, api_key: str, _model: str) -> RequestHead:
    """Return what requests begin with; the model stands in the body."""
    return openai_head(server, api_key, "chat/completions")


def _body(request: ModelRequest, model: str, provider: str) -> dict[str, Any]:
    options = request.options
    body: dict[str, Any] = {
        "model": model,
        "messages": list(chat_messages(request, provider)),
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_tokens": options.max_tokens,
    }
    if request.tools:
        body["tools"] = [{"type": "function", "function": function_of(tool)} for tool in request.tools]
    if options.temperature is not None:
        body["temperature"] = options.temperature
    if options.effort:
        body["reasoning_effort"] = options.effort
    return body


def function_of(tool: Mapping[str, Any]) -> dict[str, Any]:
    """Return a tool as OpenAI describes functions."""
    return {"name": tool["name"], "description": tool["description"], "parameters": tool["input_schema"]}


FORMAT: Final = WireFormat(_head, _body, EventDecoder, ChatReader, ADJUSTMENTS)
