"""OpenAI's Responses as a wire format.

Rule: the server keeps nothing (`store: false`), so what it needs to go on comes back with each request: the items of
its own replies, with their ids and their encrypted reasoning, as they were sent. Tools are not `strict`, which is the
default there: their schemas have optional properties. Source: https://platform.openai.com/docs/api-reference/responses
"""

from typing import Any, Final

from supervisor.agent.models.chat_api import function_of, openai_head
from supervisor.agent.models.event_stream import EventDecoder
from supervisor.agent.models.model import ModelRequest
from supervisor.agent.models.model_http import RequestHead
from supervisor.agent.models.response_items import response_items
from supervisor.agent.models.responses_adjustments import ADJUSTMENTS
from supervisor.agent.models.responses_reader import ResponsesReader
from supervisor.agent.models.server import Server
from supervisor.agent.models.wire_format import WireFormat


def _head(_http: object, server: Server, api_key: str, _model: str) -> RequestHead:
    """Return what requests begin with; the model stands in the body."""
    return openai_head(server, api_key, "responses")


def _body(request: ModelRequest, model: str, provider: str) -> dict[str, Any]:
    options = request.options
    reasoning = {"effort": options.effort} if options.effort else {}
    body: dict[str, Any] = {
        "model": model,
        "input": list(response_items(request, provider)),
        "stream": True,
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "reasoning": {**reasoning, "summary": "auto"},
        "max_output_tokens": options.max_tokens,
    }
    if request.session:  # requests with the same one go to the same machine, which has kept what they begin with
        body["prompt_cache_key"] = request.session
    if request.system:
        body["instructions"] = request.system
    if request.tools:
        body["tools"] = [{"type": "function", **function_of(tool), "strict": False} for tool in request.tools]
    if options.temperature is not None:
        body["temperature"] = options.temperature
    return body


FORMAT: Final = WireFormat(_head, _body, EventDecoder, ResponsesReader, ADJUSTMENTS)
