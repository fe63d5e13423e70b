"""Ollama's API on the loopback: real HTTP/1.1 on a real socket, playing a script, judging and cutting every request.

Rule: as `tests/script_server.py`, whose scripts these are; but it also does to a conversation what Ollama does to one
that does not fit: it leaves out the oldest messages, and if that is not enough the beginning of the prompt, its tools
first; and counts what is left. What it has cut stands in `cuts`, so that a test can see what a client cannot.

Source: https://github.com/ollama/ollama/blob/main/server/prompt.go

In a test, whatever its event loop (the server lives in threads):

    with OllamaServer([reply("hello")], window=8192) as server:
        ... server.url, server.requests, server.cuts ...
"""

import base64
import json
import socket
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from tests.script_server import Recorded, Response, ScriptServer, fault_of, must, serve_as_program

Call = tuple[str, Mapping[str, Any]]
MODEL: Final = "llama-test:latest"
DEFAULT_CONTEXT: Final = 4096
_UNCOUNTED: Final = '"prompt_eval_count": -1'
_KEPT: Final = 4
"""Tokens at the beginning of a prompt that are left when it is cut."""
_BODY: Final = {
    *("model", "messages", "stream", "format", "keep_alive", "tools", "options", "think", "truncate", "shift"),
    *("logprobs", "top_logprobs", "_debug_render_only"),
}
_MESSAGE: Final = {"role", "content", "thinking", "images", "tool_calls", "tool_name", "tool_call_id"}
_THINKS: Final = (True, False, "low", "medium", "high", "max")
TOO_LONG: Final = (
    "the prompt is longer than the context length currently available to the model; shorten the prompt, adjust the "
    "context length in settings, or use a model with a longer context length"
)


# what a reply looks like -----------------------------------------------------------------------------------


def line(message: Mapping[str, Any], **more: Any) -> str:
    told = {"model": MODEL, "created_at": "2026-11-01T00:00:00Z", "message": {"role": "assistant", **message}}
    return json.dumps({**told, "done": False, **more}, ensure_ascii=False) + "\n"


def last(reason: str = "stop", tokens: int = 5) -> str:
    """Return the line that ends an answer; the server fills in what it has read."""
    counts = {"total_duration": 1, "load_duration": 1, "prompt_eval_count": -1, "eval_count": tokens}
    return line({"content": ""}, done=True, done_reason=reason, **counts)


def call(name: str, arguments: Mapping[str, Any], call_id: str = "") -> dict[str, Any]:
    """Return a call as it stands in a message."""
    return ({"id": call_id} if call_id else {}) | {"function": {"name": name, "arguments": dict(arguments)}}


def reply(
    text: str | Sequence[str] = "",
    calls: Sequence[Call] = (),
    *,
    thoughts: Sequence[str] = (),
    ids: Sequence[str] = (),
    reason: str = "stop",
    tokens: int = 5,
) -> str:
    """Return a whole answer; each call comes whole, in a line of its own."""
    pieces = [text] if isinstance(text, str) else list(text)
    told = [line({"content": "", "thinking": each}) for each in thoughts]
    told += [line({"content": each}) for each in pieces if each]
    for number, (name, arguments) in enumerate(calls):
        sent = call(name, arguments, ids[number] if number < len(ids) else "")
        told.append(line({"content": "", "tool_calls": [sent]}))
    return "".join([*told, last(reason, tokens)])


def error(status: int, message: str) -> dict[str, Any]:
    return {"status": status, "headers": {"content-type": "application/json"}, "body": json.dumps({"error": message})}


def shown(
    window: int, abilities: Sequence[str] = ("completion", "tools", "thinking", "vision"), **more: Any
) -> dict[str, Any]:
    """Return what the server tells of a model."""
    return {
        "modelfile": "# {}",
        "template": "{{ .Messages }}",
        "details": {"format": "gguf", "family": "llama", "parameter_size": "8.0B"},
        "model_info": {"general.architecture": "llama", "llama.context_length": window, "llama.embedding_length": 4096},
        "capabilities": list(abilities),
        **more,
    }


# what a request must look like -----------------------------------------------------------------------------


def fault_in(body: Any) -> str | None:
    """Say what the API would refuse in this request, or None."""
    return fault_of(_judge, body)


def _judge(body: Any) -> None:
    must(isinstance(body, dict), "the body must be a JSON object")
    must(set(body) <= _BODY, f"unknown names {sorted(set(body) - _BODY)}")
    must(isinstance(body["messages"], list) and body["messages"], "messages: at least one is required")
    must(body.get("think", True) in _THINKS, "think: invalid think value")
    options = body.get("options") or {}
    for name in ("num_ctx", "num_predict"):
        must(name not in options or type(options[name]) is int, f'option "{name}" must be of type integer')
    must(options.get("num_ctx", 1) > 0, "num_ctx must be positive")
    for tool in body.get("tools") or []:
        must(tool["type"] == "function" and tool["function"]["name"], "tools: must be functions with names")
        parameters = tool["function"]["parameters"]
        must(parameters.get("type") == "object" and isinstance(parameters.get("properties"), dict), "tools: parameters")
    pending: list[str] = []
    for number, message in enumerate(body["messages"]):
        where = f"messages.{number}"
        must(set(message) <= _MESSAGE, f"{where}: unknown names {sorted(message)}")
        must(message["role"] in {"system", "user", "assistant", "tool"}, f"{where}: {message['role']} is no role")
        must(isinstance(message.get("content", ""), str), f"{where}: content must be a string")
        for image in message.get("images") or []:
            base64.b64decode(image, validate=True)
        if message["role"] == "tool":
            must(pending and message.get("tool_name") == pending[0], f"{where}: answers no call")
            pending.pop(0)
            continue
        must(not pending, f"{where}: calls without an answer before it: {pending}")
        for each in message.get("tool_calls") or []:
            must(isinstance(each["function"]["arguments"], dict), f"{where}: arguments must be an object")
            pending.append(each["function"]["name"])
    must(not pending, f"calls without an answer: {pending}")


# the server ------------------------------------------------------------------------------------------------


def quarter(text: str) -> int:
    """Return about how many tokens a text has in most tokenizers."""
    return len(text.encode()) // 4 + 1


class OllamaServer(ScriptServer):
    """Plays answers in order to whoever asks, with a model that holds `window` tokens.

    Args:
        responses: the script.
        window: tokens that the model can hold.
        tokens: counts those of a text.
        refuses: whether `truncate: false` is known, as it is since 0.12.6.
        model: its name.
        told: what `/api/show` answers, where that is not the usual.
        more: those of `ScriptServer`.
    """

    def __init__(
        self,
        responses: Iterable[Response] = (),
        *,
        window: int = 32_768,
        tokens: Callable[[str], int] = quarter,
        refuses: bool = False,
        model: str = MODEL,
        told: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> None:
        super().__init__(responses, **more)
        self.window, self.tokens, self.refuses, self.model = window, tokens, refuses, model
        self.told: Mapping[str, Any] = shown(window) if told is None else told
        self.cuts: list[bool] = []
        """Of each conversation that was answered, whether something was left out."""
        self.contexts: list[int] = []
        """The context that each had."""
        self.asked = 0
        """How often it was asked what the model is."""

    @property
    def loads(self) -> int:
        """How often the model was loaded: once for each context in a row."""
        return sum(before != after for before, after in zip([0, *self.contexts], self.contexts, strict=False))

    def serves(self, path: str) -> bool:
        return path in {"/api/chat", "/api/show"}

    def fault_in(self, body: Any) -> str | None:
        return fault_in(body)

    def error(self, status: int, message: str, kind: str, **headers: str) -> dict[str, Any]:  # noqa: ARG002 - it has none
        told = error(status, message)
        told["headers"] |= {name.replace("_", "-"): value for name, value in headers.items()}
        return told

    def reply(self, text: str) -> str:
        return reply(text)

    def _answer(self, connection: socket.socket, request: Recorded) -> bool:
        with self._lock:
            answer = self._before_the_script(request)
            if answer is not None and request.path == "/api/chat":
                self.requests.append(request)
        if answer is None:
            return super()._answer(connection, request)
        return self.play(connection, request, answer)

    def _before_the_script(self, request: Recorded) -> Mapping[str, Any] | None:
        """Return what is answered whatever the script has; None for what it has."""
        body = request.body if isinstance(request.body, dict) else {}
        is_asked_about = request.path == "/api/show"
        if not (is_asked_about or (request.path == "/api/chat" and self._checked)):
            return None
        if self._checked and body.get("model") != self.model:
            return error(404, f"model '{body.get('model')}' not found")
        if is_asked_about:
            self.asked += 1
            return self.told if "status" in self.told else {"status": 200, "body": json.dumps(self.told)}
        refused = self._unable(body) if fault_in(body) is None else ""
        return error(400, refused) if refused else None

    def _unable(self, body: Mapping[str, Any]) -> str:
        """Say what the model cannot do of what it is asked; "" where it can."""
        abilities = self.told.get("capabilities", ["tools", "thinking"])
        if body.get("tools") and "tools" not in abilities:
            return f"registry.ollama.ai/library/{self.model} does not support tools"
        if body.get("think") and "thinking" not in abilities:
            return f'"{self.model}" does not support thinking'
        return TOO_LONG if self.refuses and body.get("truncate") is False and self._read(body)[1] else ""

    def _context(self, body: Mapping[str, Any]) -> int:
        return min(int((body.get("options") or {}).get("num_ctx", DEFAULT_CONTEXT)), self.window)

    def _read(self, body: Mapping[str, Any]) -> tuple[int, bool]:
        """Return how many tokens of a conversation are read, and whether some are left out."""
        context, messages = self._context(body), body["messages"]
        first = 0
        while (size := self._size(body, first)) > context and first < len(messages) - 1:
            first += 1
        return min(size, context - 1), first > 0 or size >= context

    def _size(self, body: Mapping[str, Any], first: int) -> int:
        """Return the tokens of a prompt without the messages before `first`, but for what the system says."""
        told = [each for number, each in enumerate(body["messages"]) if number >= first or each["role"] == "system"]
        images = sum(len(each.get("images") or []) for each in told)
        text = "".join(
            f"<|{each['role']}|>{each.get('thinking', '')}{each.get('content', '')}"
            f"{json.dumps(each['tool_calls'], ensure_ascii=False) if each.get('tool_calls') else ''}<|end|>"
            for each in told
        )
        tools = json.dumps(body["tools"], ensure_ascii=False) if body.get("tools") else ""
        return self.tokens(tools + text) + 768 * images

    def played(self, request: Recorded, response: dict[str, Any]) -> dict[str, Any]:
        if "sse" not in response or not self._checked:
            return response
        read, cut = self._read(request.body)
        self.contexts.append(self._context(request.body))
        self.cuts.append(cut)
        text = response["sse"].replace(_UNCOUNTED, f'"prompt_eval_count": {read}')
        return {"headers": {"content-type": "application/x-ndjson"}, **response, "sse": text}


if __name__ == "__main__":
    sys.exit(serve_as_program(OllamaServer))
