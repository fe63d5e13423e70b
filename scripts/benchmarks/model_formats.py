"""Requests to models in each wire format, against a bare HTTP client that sends the same bytes.

Both ask one server, a process of its own, in the same process and in turns. The bare client has its request ready and
parses what it gets as JSON; ours makes the request of the conversation, with its tools, and a reply of the answer. The
figures are processor time, which other programs on the machine do not change much.
"""

import json
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any, Final

import httpx2
import msgspec

from scripts.benchmarks.figures import Figure, Goal, at, figure
from scripts.benchmarks.servers import serving
from supervisor.agent.models.gemini_api import FORMAT as GEMINI
from supervisor.agent.models.model import Message, Model, ModelRequest
from supervisor.agent.models.ollama_api import ShownModel, planned_request
from supervisor.agent.models.ollama_model import OllamaModel
from supervisor.agent.models.remote_model import RemoteModel
from supervisor.journal.facts import ReplyOrigin
from supervisor.tools.catalog import offers
from tests import gemini_server, ollama_server

_MESSAGES: Final = 40
_RESULT: Final = "A note of some length, as they are read all day long.\n" * 40
_SAID: Final = ["I will ", "read ", "the note ", "and see ", "what it says."]
_TOOLS: Final = ("read_file", "write_file", "edit_file", "list_files", "search_files", "fetch_url")
_GEMINI: Final = "gemini-3-test"


def _request(provider: str, items: Sequence[dict[str, Any]]) -> ModelRequest:
    """Return a conversation of many steps, each of which the provider's own model has written."""
    messages: list[Message] = [{"role": "user", "content": [{"type": "text", "text": "Read the notes."}]}]
    origins = {}
    while len(messages) < _MESSAGES:
        call = f"call_{len(messages)}"
        origins[len(messages)] = ReplyOrigin(provider, "m", provider, list(items))
        use = {"type": "tool_use", "id": call, "name": "read_file", "input": {"path": "a.md"}}
        messages.append({"role": "assistant", "content": [{"type": "text", "text": "I read."}, use]})
        answer = {"type": "tool_result", "tool_use_id": call, "content": _RESULT}
        messages.append({"role": "user", "content": [answer]})
    tools = [offer.as_api() for offer in offers(_TOOLS).values()]
    return ModelRequest("You are a benchmark. " * 100, tools, messages, 0, origins=origins)


async def _alternate(
    ours: Callable[[], Awaitable[object]], bare: Callable[[], Awaitable[object]], times: int
) -> tuple[list[float], list[float]]:
    """Return milliseconds of processor time for each of both, in turns, once they are warm."""
    found: tuple[list[float], list[float]] = ([], [])
    for number in range(times + 10):
        for samples, ask in zip(found, (ours, bare), strict=True):
            began = time.process_time()
            await ask()
            if number >= 10:
                samples.append((time.process_time() - began) * 1e3)
    return found


async def _measured(name: str, model: Model, request: ModelRequest, url: str, body: bytes, times: int) -> list[Figure]:
    async with aclosing(model), httpx2.AsyncClient() as client:

        async def bare() -> None:
            headers = {"content-type": "application/json", "x-goog-api-key": "none"}
            async with client.stream("POST", url, content=body, headers=headers) as answer:
                async for line in answer.aiter_lines():
                    if line:
                        json.loads(line.removeprefix("data: "))

        async def ours() -> None:
            reply = await model.reply(request, lambda _: None)
            assert reply.text == "".join(_SAID)

        mine, others = await _alternate(ours, bare, times)
    more = [each - other for each, other in zip(mine, others, strict=True)]
    named = f"a request in the format {name}, {_MESSAGES} messages, {len(body) // 1000} kB"
    return [
        figure(named, "bare HTTP client, the same bytes (the limit)", at(others, 0.5), "ms", times),
        figure(named, "strongroom", at(mine, 0.5), "ms", times, limit=at(others, 0.5)),
        figure(named, "what that costs more", at(more, 0.5), "ms", times, goal=Goal(1.0)),
    ]


async def model_formats(quick: bool) -> list[Figure]:
    """Measure milliseconds of processor time a request, in the formats of Google and of Ollama."""
    times = 100 if quick else 400
    gemini = gemini_server.reply(_SAID, signature="c2ln", thoughts=["Hm."])
    local = ollama_server.reply(_SAID, thoughts=["Hm."])
    call = gemini_server.call("read_file", {"path": "a.md"}, "c2lnbmF0dXJl" * 40)
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "script.json")

        def server(module: str, answer: str) -> list[str]:
            script.write_text(json.dumps([answer]), encoding="utf-8")
            return [sys.executable, "-m", module, "--script", str(script), "--repeat-last"]

        with serving([*server("tests.gemini_server", gemini), "--unchecked"]) as url:
            request = _request("gemini", [{"text": "I read."}, call])
            body = msgspec.json.encode(GEMINI.body(request, _GEMINI, "gemini"))
            model = RemoteModel(_GEMINI, "none", url, GEMINI, provider="gemini")
            place = f"{url}/v1beta/models/{_GEMINI}:streamGenerateContent?alt=sse"
            figures += await _measured("gemini", model, request, place, body, times)
        with serving(server("tests.ollama_server", local)) as url:
            request = _request("ollama", [{"message": {"thinking": "Hm. " * 20}, "prompt_eval_count": 9000}])
            body = msgspec.json.encode(planned_request(request, ollama_server.MODEL, "ollama", ShownModel(32_768)).body)
            figures += await _measured(
                "ollama",
                OllamaModel(ollama_server.MODEL, "none", url, provider="ollama"),
                request,
                f"{url}/api/chat",
                body,
                times,
            )
    return figures
