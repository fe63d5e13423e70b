"""Crowds: many conversations at once against a model that takes its time, and commands that print much."""

import os
import tempfile
import time
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path
from typing import Final, NamedTuple

import httpx2
import msgspec
import trio

from scripts.benchmarks.bare_loops import BARE_LOOPS, BareLoop
from scripts.benchmarks.figures import Figure, Goal, figure
from scripts.benchmarks.growth.curves import Point, curve
from scripts.benchmarks.growth.roots import with_programs
from scripts.benchmarks.pools import NOTE
from scripts.benchmarks.steps import loopback_model, opened_session, with_resources
from supervisor.agent.models.gemini_api import FORMAT as GEMINI
from supervisor.agent.models.model import Model
from supervisor.agent.models.ollama_model import OllamaModel
from supervisor.agent.models.remote_model import RemoteModel
from supervisor.config.config_keys import Config
from supervisor.config.profiles import resolve
from supervisor.config.settings import Settings
from supervisor.session.resources import SessionResources
from supervisor.session.session import Session
from tests import gemini_server, ollama_server

_PROMPT: Final = "Do you know it?"
_ANSWER_S: Final = 2.0
"""Seconds that the model takes for an answer."""
_ENOUGH: Final = 0.95
"""Of what the model's server allows."""
_A_SESSION: Final = 100.0
"""kB of memory that one more open session may take."""
_SAID: Final = ("Yes", ", I ", "know ", "it.")
_GEMINI: Final = "gemini-3-test"
_GEMINI_PATH: Final = f"/v1beta/models/{_GEMINI}:streamGenerateContent?alt=sse"
_PATHS: Final = ("/v1/messages", "/v1/chat/completions", "/v1/responses")
"""Of `BARE_LOOPS`."""


def _at_base(loop: BareLoop) -> Callable[[str], Model]:
    return lambda url: loop.model(url + loop.base)


def _gemini(url: str) -> Model:
    return RemoteModel(_GEMINI, "none", url, GEMINI, provider="gemini")


def _ollama(url: str) -> Model:
    return OllamaModel(ollama_server.MODEL, "none", url, provider="ollama")


class _Crowd(NamedTuple):
    """A wire format, its loopback server, and what a bare client and Strongroom need for it."""

    title: str
    server: str
    """The module that is the server."""
    answer: str
    """The body of an answer, of several events."""
    path: str
    """Where requests go."""
    model: Callable[[str], Model]
    """Opens ours, of a server's address."""


_CROWDS: Final = (
    *(
        _Crowd(f"crowd{loop.title.removeprefix('agent step')}", loop.server, loop.reply(_SAID), path, _at_base(loop))
        for loop, path in zip(BARE_LOOPS, _PATHS, strict=True)
    ),
    _Crowd("crowd by gemini", "tests.gemini_server", gemini_server.reply(_SAID), _GEMINI_PATH, _gemini),
    _Crowd("crowd by ollama", "tests.ollama_server", ollama_server.reply(_SAID), "/api/chat", _ollama),
)


async def growth_crowd(quick: bool) -> list[Figure]:
    """Measure one to two hundred conversations at once, each with a turn of its own at a time, in each wire format."""
    return [row for crowd in _CROWDS for row in await _measured(crowd, quick, whole=crowd is _CROWDS[0])]


async def _measured(crowd: _Crowd, quick: bool, *, whole: bool) -> list[Figure]:
    """Measure one format; the `whole` curve, or its end alone."""
    found: list[Figure] = []
    sizes = (1, 20) if quick else (1, 20, 200)
    turns = 2 if quick or not whole else 5
    events = crowd.answer.count("\n\n") or crowd.answer.count("\n")
    slow = {"sse": crowd.answer, "gap": _ANSWER_S / (events - 1)}
    with tempfile.TemporaryDirectory() as home, tempfile.TemporaryDirectory() as root:
        Path(root, NOTE).write_text("A note.\n", encoding="utf-8")
        settings = Settings(Config(), Path(home, "config.toml"), Path(home))
        with loopback_model(home, [slow], "--repeat-last", server=crowd.server) as url:

            async def use(core: SessionResources) -> None:
                profile = resolve(core.settings, "vault", root)
                bare = httpx2.AsyncClient(base_url=url, timeout=60, limits=httpx2.Limits(max_connections=None))
                async with bare, aclosing(crowd.model(url)) as model:
                    await model.warm()
                    for size in sizes if whole else sizes[-1:]:
                        allowed = await _items_a_second(size, turns, [_Bare(bare, crowd.path)] * size)
                        before = _resident_kb()
                        sessions = [await opened_session(core, profile, model) for _ in range(size)]
                        rate = await _items_a_second(size, turns, [_Turns(session) for session in sessions])
                        memory = (_resident_kb() - before) / size
                        name, last = f"{size} conversations", size == sizes[-1]
                        found.append(figure(crowd.title, f"{name}: bare client (the limit)", allowed, "items/s", 1))
                        goal = Goal(_ENOUGH, of="ratio", at_least=True) if last else None
                        found.append(figure(crowd.title, name, rate, "items/s", 1, limit=allowed, goal=goal))
                        if whole:  # later ones have what those before have freed
                            goal = Goal(_A_SESSION) if last else None
                            found.append(figure(crowd.title, f"{name}: memory a session", memory, "kB", 1, goal=goal))

            await with_resources(settings, use)
    return found


class _Turns:
    """Turns of one session."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def run(self) -> None:
        ended = await self._session.conversation.run_turn(_PROMPT)
        if ended.status != "ok":
            raise RuntimeError(ended.message)


class _Bare:
    """Requests of a bare client."""

    def __init__(self, client: httpx2.AsyncClient, path: str) -> None:
        self._client, self._path = client, path

    async def run(self) -> None:
        body = {"model": "m", "max_tokens": 1, "stream": True, "messages": [{"role": "user", "content": _PROMPT}]}
        answer = await self._client.post(self._path, content=msgspec.json.encode(body))
        answer.raise_for_status()


async def _items_a_second(size: int, turns: int, each: "list[_Bare] | list[_Turns]") -> float:
    async def some(one: _Bare | _Turns) -> None:
        for _ in range(turns):
            await one.run()

    began = time.perf_counter()
    async with trio.open_nursery() as nursery:
        for one in each:
            nursery.start_soon(some, one)
    return size * turns / (time.perf_counter() - began)


def _resident_kb() -> float:
    return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1000


async def growth_output(quick: bool) -> list[Figure]:
    """Measure commands that print one to a hundred megabytes."""
    sizes = (1, 5) if quick else (1, 10, 100)
    points: list[Point] = []
    with tempfile.TemporaryDirectory() as home, tempfile.TemporaryDirectory() as root:
        settings = with_programs(home)

        async def use(core: SessionResources) -> None:
            pool = core.pools(resolve(core.settings, "project", root)).pool("shell")
            for size in sizes:
                Path(root, "text").write_bytes(b"A line of some output of a program.\n" * (size * 2**20 // 36))
                samples = []
                for _ in range(4):
                    began = time.perf_counter()
                    await pool.propose("exec_shell", b'{"command": "cat", "args": ["text"]}')
                    samples.append((time.perf_counter() - began) * 1e3 / size)
                points.append(Point(size, min(samples), len(samples)))

        await with_resources(settings, use)
    return curve("output", "a megabyte printed by a command", "MB", "ms", points)
