"""A conversation that grows: a step at turn 10, at turn 1,000 and at turn 5,000 of one session.

What must grow is the request: the limit is the same body, encoded once and sent by a bare HTTP client that reads the
same answer.
"""

import tempfile
import time
from contextlib import aclosing
from pathlib import Path
from typing import Any, Final

import httpx2
import msgspec

from scripts.benchmarks.figures import Figure, Goal, at, figure
from scripts.benchmarks.growth.curves import Point, curve
from scripts.benchmarks.growth.journals import session_facts
from scripts.benchmarks.growth.model_program import unhurried_model
from scripts.benchmarks.pools import NOTE
from scripts.benchmarks.steps import with_resources
from supervisor.agent.models.messages_api import messages_model
from supervisor.agent.models.model import Model
from supervisor.agent.system_prompt import system_prompt
from supervisor.config.config_keys import Config
from supervisor.config.profiles import resolve
from supervisor.config.settings import Settings
from supervisor.session.earlier_session import read_earlier
from supervisor.session.resources import SessionResources
from supervisor.session.session import Session
from supervisor.tools.catalog import offers

_SESSION: Final = "20260101-000000-000000000000"
_PROMPT: Final = "Do you know it now?"
_GOALS: Final = {1_000: Goal(6), 2_000: Goal(10)}
"""Milliseconds of a step through the SDK at so many turns."""


async def growth_turns(quick: bool) -> list[Figure]:
    """Measure one step at several lengths of the conversation, through the SDK and with the offline model."""
    sizes = (10, 300) if quick else (10, 1_000, 2_000, 5_000)
    times = 5 if quick else 15
    steps: list[Point] = []
    offline: list[Point] = []
    requests: list[Figure] = []
    for turns in sizes:
        with tempfile.TemporaryDirectory() as home, tempfile.TemporaryDirectory() as root:
            Path(root, NOTE).write_text("A note.\n" * 20, encoding="utf-8")
            settings = Settings(Config(), Path(home, "config.toml"), Path(home))
            with unhurried_model(0) as url:

                async def use(core: SessionResources) -> None:
                    core.writer.journal.append(_SESSION, *session_facts(turns, root))  # noqa: B023 - awaited at once
                    async with aclosing(messages_model("claude-haiku-5-5", "none", url)) as model:
                        await model.warm()
                        limit, size = await _bare(core, url, root, times)
                        steps.append(Point(turns, await _turns(core, model, root, times), times, limit))  # noqa: B023
                    offline.append(Point(turns, await _turns(core, core.models.open("offline"), root, times), times))  # noqa: B023
                    name = f"size of the request, {turns:,} turns"  # noqa: B023
                    requests.append(figure("conversation", name, size / 2**20, "MiB", 1))

                await with_resources(settings, use)
    return [
        *curve("conversation", "a step through the SDK", "turns", "ms", steps, _GOALS),
        *requests,
        *curve("conversation", "a step of the offline model", "turns", "ms", offline),
    ]


async def _turns(core: SessionResources, model: Model, root: str, times: int) -> float:
    """Return the median of milliseconds a turn of one step."""
    profile = resolve(core.settings, "vault", root)
    earlier = read_earlier(core.writer.journal, _SESSION)
    session = Session(core.writer, core.pools(profile), profile, model, earlier)
    samples = []
    for _ in range(times + 1):
        began = time.perf_counter()
        ended = await session.conversation.run_turn(_PROMPT)
        samples.append((time.perf_counter() - began) * 1e3)
        if ended.status != "ok":
            raise RuntimeError(ended.message)
    return at(samples[1:], 0.5)


async def _bare(core: SessionResources, url: str, root: str, times: int) -> tuple[float, int]:
    """Return the median of milliseconds that a bare client needs for the same request, and its bytes."""
    profile = resolve(core.settings, "vault", root)
    transcript = read_earlier(core.writer.journal, _SESSION).transcript
    body: dict[str, Any] = {
        "model": "claude-haiku-5-5",
        "max_tokens": 8192,
        "messages": transcript.messages,
        "system": system_prompt(profile),
        "tools": [offer.as_api() for offer in offers(profile.tools).values()],
        "stream": True,
    }
    samples = []
    async with httpx2.AsyncClient() as client:
        for _ in range(times + 1):
            began = time.perf_counter()
            content = msgspec.json.encode(body)
            answer = await client.post(f"{url}/v1/messages", content=content)
            samples.append((time.perf_counter() - began) * 1e3)
            answer.raise_for_status()
    return at(samples[1:], 0.5), len(content)
