"""The same agent's turn through other frameworks, where they are installed: `pip install --group bench`.

Rule: each runs in a process of its own, with its own event loop, against the same server of the Messages API as
Strongroom does, and keeps nothing: what they add to the bare SDK is what their abstractions cost.

    python -m scripts.benchmarks.frameworks NAME URL STEPS TURNS     prints the milliseconds a step of each turn
"""

import asyncio
import importlib.util
import json
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final

_MODEL: Final = "claude-haiku-5-5"
_PROMPT: Final = "Read the note until you know it."
_NOTE: Final = "A note.\n" * 20
_NEEDS: Final = {"pydantic-ai": ("pydantic_ai",), "langgraph": ("langgraph.prebuilt", "langchain_anthropic")}
"""The modules of each."""


def installed() -> list[str]:
    """Return the frameworks that can be measured here."""
    return [name for name, modules in _NEEDS.items() if all(map(_is_there, modules))]


def milliseconds_a_step(name: str, url: str, steps: int, turns: int) -> list[float]:
    """Run turns of so many steps in a process of its own; return what a step of each took."""
    command = [sys.executable, "-W", "ignore", "-m", __name__, name, url, str(steps), str(turns)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return [float(each) for each in json.loads(done.stdout)]


def _is_there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def read_file(path: str, limit: int = 0) -> str:  # noqa: ARG001 - the arguments of the tool
    """Read a text file of the root."""
    return _NOTE


def _pydantic_ai(url: str, steps: int) -> Callable[[], Awaitable[str]]:
    ai: Any = importlib.import_module("pydantic_ai")
    models: Any = importlib.import_module("pydantic_ai.models.anthropic")
    providers: Any = importlib.import_module("pydantic_ai.providers.anthropic")
    provider = providers.AnthropicProvider(api_key="none", base_url=url)
    agent = ai.Agent(models.AnthropicModel(_MODEL, provider=provider), tools=[read_file])
    limits = ai.UsageLimits(request_limit=steps + 2)

    async def turn() -> str:
        async with agent.iter(_PROMPT, usage_limits=limits) as run:
            async for node in run:
                if ai.Agent.is_model_request_node(node):
                    async with node.stream(run.ctx) as events:
                        async for _ in events:
                            pass
            return str(run.result.output)

    return turn


def _langgraph(url: str, steps: int) -> Callable[[], Awaitable[str]]:
    prebuilt: Any = importlib.import_module("langgraph.prebuilt")
    anthropic: Any = importlib.import_module("langchain_anthropic")
    model = anthropic.ChatAnthropic(model=_MODEL, api_key="none", base_url=url, streaming=True, max_tokens=8192)
    agent = prebuilt.create_react_agent(model, [read_file])

    async def turn() -> str:
        asked = {"messages": [("user", _PROMPT)]}
        found = await agent.ainvoke(asked, {"recursion_limit": 2 * steps + 10})
        return str(found["messages"][-1].content)

    return turn


_TURNS: Final = {"pydantic-ai": _pydantic_ai, "langgraph": _langgraph}


async def _main(name: str, url: str, steps: int, turns: int) -> list[float]:
    turn = _TURNS[name](url, steps)
    took = []
    for _ in range(turns):
        began = time.perf_counter()
        answer = await turn()
        took.append((time.perf_counter() - began) / (steps + 1) * 1e3)
        if "I know it." not in answer:
            raise RuntimeError(answer)
    return took


if __name__ == "__main__":
    _name, _url, _steps, _turns = sys.argv[1:]
    sys.stdout.write(json.dumps(asyncio.run(_main(_name, _url, int(_steps), int(_turns)))))
