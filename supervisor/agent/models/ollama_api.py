"""Ollama's own chat API as a wire format, streaming lines of JSON, and what a server tells of a model.

Rule: pure. How large a context a request asks for is planned from the request alone and from what the server has told
of its model, so that the same conversation makes the same request again.

Source: https://github.com/ollama/ollama/blob/main/docs/api.md
"""

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from supervisor.agent.models.adjustment import row, without
from supervisor.agent.models.event_stream import Event, LineDecoder, json_object
from supervisor.agent.models.json_body import JsonBodyDecoder
from supervisor.agent.models.model import ModelRequest, Progress, Reply
from supervisor.agent.models.model_http import RequestHead
from supervisor.agent.models.ollama_context import UNKNOWN_WINDOW, ContextPlan, plan
from supervisor.agent.models.ollama_messages import CONTEXT, messages
from supervisor.agent.models.ollama_reader import OllamaReader
from supervisor.agent.models.server import NO_KEY, Server, below
from supervisor.agent.models.server_errors import reported_error
from supervisor.agent.models.wire_format import WireFormat
from supervisor.config.model_keys import Effort
from supervisor.errors import ModelError
from supervisor.journal.facts import ReplyOrigin

if TYPE_CHECKING:
    import httpx2

_LEVELS: Final[Mapping[Effort, str]] = {"low": "low", "medium": "medium", "high": "high", "max": "high"}
_IN_LEVELS: Final = frozenset({"gptoss", "gpt-oss"})
"""Families of models that think by levels; others only do or do not."""
_SET_CONTEXT: Final = re.compile(r"^num_ctx\s+(\d{1,9})\s*$", re.MULTILINE)


class ShownModel(NamedTuple):
    """What a server tells of a model."""

    window: int = UNKNOWN_WINDOW
    """Tokens that its context can hold."""
    told: bool = False
    """Whether the server says so."""
    floor: int = 0
    """The context that its Modelfile asks for; 0 where it does not."""
    abilities: frozenset[str] | None = None
    """"tools", "vision", "thinking", ...; None where the server does not say."""
    family: str = ""

    def can(self, ability: str) -> bool:
        """Say whether the model has an ability, as far as is known."""
        return self.abilities is None or ability in self.abilities


NOTHING_SHOWN: Final = ShownModel()


class PlannedRequest(ModelRequest, frozen=True):
    """A request with the JSON that it becomes, and the context that this asks for."""

    body: Mapping[str, Any] = {}
    planned: ContextPlan = ContextPlan(0, 0, 0)


def planned_request(
    request: ModelRequest, model: str, provider: str, shown: ShownModel = NOTHING_SHOWN, floor: int = 0
) -> PlannedRequest:
    """Return a request as it is sent.

    Args:
        request: what is asked.
        model: as the server calls it.
        provider: whose own replies go back as they came.
        shown: what the server has told of the model.
        floor: the context that the model has now, in tokens.

    Raises:
        ModelError: the conversation does not fit the model ("context_full"), or the model has no tool use.
    """
    if request.tools and not shown.can("tools"):
        raise ModelError("invalid_request", f"The model {model} does not support tools.", billed=False)
    told, counted = messages(request, provider, sees=shown.can("vision"))
    tools = [_declared(tool) for tool in request.tools]
    options = request.options
    planned = plan(told, tools, counted, wanted=options.max_tokens, window=shown.window, floor=max(floor, shown.floor))
    chosen: dict[str, Any] = {CONTEXT: planned.context, "num_predict": planned.reply}
    if options.temperature is not None:
        chosen["temperature"] = options.temperature
    body: dict[str, Any] = {
        "model": model,
        "messages": told,
        "stream": True,
        # Servers since 0.12.6 then refuse what does not fit, and do not make room in the middle of a reply.
        "truncate": False,
        "shift": False,
        "options": chosen,
    }
    if tools:
        body["tools"] = tools
    if options.effort and shown.can("thinking"):
        body["think"] = _thinking(options.effort, shown.family)
    given = {name: getattr(request, name) for name in ModelRequest.__struct_fields__}
    return PlannedRequest(**given, body=body, planned=planned)


def _declared(tool: Mapping[str, Any]) -> dict[str, Any]:
    told = {"name": tool["name"], "description": tool.get("description", ""), "parameters": tool.get("input_schema")}
    return {"type": "function", "function": told}


def _thinking(effort: Effort, family: str) -> bool | str:
    if effort == "none":
        return False
    return _LEVELS.get(effort, "high") if family in _IN_LEVELS else True


def _plain_thinking(body: dict[str, Any]) -> dict[str, Any]:
    """Return a body for a server that knows no levels of thinking."""
    return {**body, "think": True} if isinstance(body.get("think"), str) else body


def _head(_http: "httpx2.AsyncClient", server: Server, api_key: str, _model: str) -> RequestHead:
    return _head_of("api/chat", server, api_key)


def _body(request: ModelRequest, model: str, provider: str) -> dict[str, Any]:
    """Return the request's JSON; one that is not planned is for a model of which nothing is known."""
    planned = request if isinstance(request, PlannedRequest) else planned_request(request, model, provider)
    return dict(planned.body)


class ShowReader:
    """Takes one document."""

    def __init__(self, _show: Callable[[Progress], None]) -> None:
        self._told: dict[str, Any] = {}
        self.started = self.stopped = self.complete = False

    def feed(self, event: Event) -> None:
        """Take the answer.

        Raises:
            ModelError: it is no JSON object, or an error.
        """
        told = json_object(event)
        if told.get("error") is not None:
            raise reported_error(told)
        if not self.complete:
            self._told, self.started, self.complete = told, True, True

    def reply(self) -> Reply:
        """Return the answer as the item of a reply."""
        return Reply([], "end_turn", {}, [], ReplyOrigin("", "", "show", [self._told]))


def _head_of(path: str, server: Server, api_key: str) -> RequestHead:
    """Return what requests of a path begin with."""
    headers = {"content-type": "application/json"}
    if server.authorization or api_key != NO_KEY:
        headers["authorization"] = server.authorization or f"Bearer {api_key}"
    return RequestHead(below(server.url, path), headers)


def shown_model(told: Mapping[str, Any], cap: int) -> ShownModel:
    """Return what a server's answer tells of a model; `cap` is the largest context to ask for, 0 for the model's."""
    details, info = told.get("details"), told.get("model_info")
    family = details.get("family") if isinstance(details, dict) else ""
    sizes = [
        value
        for name, value in (info.items() if isinstance(info, dict) else ())
        if name.endswith(".context_length") and type(value) is int and value > 0
    ]
    window = min(filter(None, (max(sizes, default=0), cap)), default=UNKNOWN_WINDOW)
    parameters = told.get("parameters")
    wanted = _SET_CONTEXT.search(parameters) if isinstance(parameters, str) else None
    abilities = told.get("capabilities")
    known = frozenset(map(str, abilities)) if isinstance(abilities, list) and abilities else None
    floor, kind = int(wanted[1]) if wanted else 0, family if isinstance(family, str) else ""
    return ShownModel(window, bool(sizes), floor, known, kind)


ADJUSTMENTS: Final = (
    row("does not support thinking", partial(without, "think")),
    row("invalid think value|think must be a boolean", _plain_thinking),
)
FORMAT: Final = WireFormat(
    _head, _body, LineDecoder, OllamaReader, ADJUSTMENTS, content_type="application/x-ndjson", answers="lines of JSON"
)
SHOW: Final = WireFormat(
    lambda _http, server, api_key, _model: _head_of("api/show", server, api_key),
    lambda _request, model, _provider: {"model": model},
    JsonBodyDecoder,
    ShowReader,
    content_type="application/json",
    answers="JSON",
)
"""The question what a model is: any request asks it, and the reply's one item answers."""
