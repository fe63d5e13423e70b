"""Google's generateContent as a wire format, streaming.

Rule: what a request says is made by pure parts: its conversation (`gemini_contents.py`), its tools (`gemini_schema.py`)
and, by the model's name, how it thinks.

Source: https://ai.google.dev/api/generate-content
"""

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlsplit

from supervisor.agent.models.adjustment import row
from supervisor.agent.models.gemini_contents import Part, contents, function_name, version_of
from supervisor.agent.models.gemini_reader import GeminiDecoder, GeminiReader
from supervisor.agent.models.gemini_schema import parameters
from supervisor.agent.models.model import ModelRequest
from supervisor.agent.models.model_http import RequestHead
from supervisor.agent.models.server import Server, below
from supervisor.agent.models.wire_format import WireFormat
from supervisor.config.model_keys import Effort

if TYPE_CHECKING:
    import httpx2

_VERSIONED: Final = re.compile(r"/v\d\w*/?$")
_THINKS_SINCE: Final = (2, 5)
_LEVELS_SINCE: Final = (3, 0)
_BUDGETS: Final[Mapping[Effort, int]] = {"none": 0, "low": 1024, "medium": 8192, "high": 24_576, "max": 24_576}
"""Tokens that Gemini 2.5 may think (https://ai.google.dev/gemini-api/docs/thinking)."""
_PRO_BUDGETS: Final[Mapping[Effort, int]] = {**_BUDGETS, "none": 128, "max": 32_768}
"""Of its Pro model, which cannot leave it."""
_LEVELS: Final[Mapping[Effort, str]] = {
    "none": "MINIMAL",
    "low": "LOW",
    "medium": "MEDIUM",
    "high": "HIGH",
    "max": "HIGH",
}
"""How much Gemini 3 thinks."""
_PRO_LEVELS: Final[Mapping[Effort, str]] = {**_LEVELS, "none": "LOW"}


def _without_thinking(body: dict[str, Any]) -> dict[str, Any]:
    """Return a body for a model that cannot be told how to think."""
    generation = body["generationConfig"]
    if "thinkingConfig" not in generation:
        return body
    return {**body, "generationConfig": {key: generation[key] for key in generation if key != "thinkingConfig"}}


def _without_ids(body: dict[str, Any]) -> dict[str, Any]:
    """Return a body without the ids of calls, which some gateways do not know: name and order say the same."""
    told = [{**content, "parts": [_without_id(part) for part in content["parts"]]} for content in body["contents"]]
    return body if told == body["contents"] else {**body, "contents": told}


def _without_id(part: Part) -> Part:
    found = next((key for key in ("functionCall", "functionResponse") if "id" in part.get(key, {})), None)
    if found is None:
        return part
    return {**part, found: {key: value for key, value in part[found].items() if key != "id"}}


def _head(_http: "httpx2.AsyncClient", server: Server, api_key: str, model: str) -> RequestHead:
    """Return the address of the model, and the key's header."""
    version = "" if _VERSIONED.search(urlsplit(server.url).path) else "v1beta/"
    place = model if "/" in model else f"models/{model}"
    url = below(server.url, f"{version}{quote(place)}:streamGenerateContent?alt=sse")
    headers = {"x-goog-api-key": api_key, "content-type": "application/json"}
    return RequestHead(url, headers | ({"authorization": server.authorization} if server.authorization else {}))


def _body(request: ModelRequest, model: str, provider: str) -> dict[str, Any]:
    version = version_of(model)
    options = request.options
    generation: dict[str, Any] = {"maxOutputTokens": options.max_tokens}
    if options.temperature is not None:
        generation["temperature"] = options.temperature
    if version >= _THINKS_SINCE:
        generation["thinkingConfig"] = _thinking(version, model, options.effort)
    body: dict[str, Any] = {"contents": contents(request, provider, model), "generationConfig": generation}
    if request.system:
        body["systemInstruction"] = {"parts": [{"text": request.system}]}
    if request.tools:
        body["tools"] = [{"functionDeclarations": _declarations(request.tools)}]
    return body


def _thinking(version: tuple[int, int], model: str, effort: Effort) -> dict[str, Any]:
    """Return how much a model thinks, and that it shows something of it."""
    pro = "-pro" in model
    if effort and version >= _LEVELS_SINCE:
        return {"includeThoughts": True, "thinkingLevel": (_PRO_LEVELS if pro else _LEVELS).get(effort, "HIGH")}
    if effort:
        budget = (_PRO_BUDGETS if pro else _BUDGETS).get(effort, _BUDGETS["high"])
        return {"thinkingBudget": budget} | ({"includeThoughts": True} if budget else {})
    return {"includeThoughts": True}


def _declarations(tools: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    declared = []
    for tool in tools:
        given = parameters(tool.get("input_schema") or {})
        told = {"name": function_name(tool["name"]), "description": tool.get("description", "")}
        declared.append(told | ({"parameters": given} if given else {}))
    return declared


ADJUSTMENTS: Final = (
    row(r"thinking.*(not supported|not enabled|out of range)", _without_thinking),
    row(r"unknown name \\?\"id\\?\"", _without_ids),
)
FORMAT: Final = WireFormat(_head, _body, GeminiDecoder, GeminiReader, ADJUSTMENTS)
