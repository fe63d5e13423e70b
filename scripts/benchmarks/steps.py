"""Agent steps: the whole of Strongroom against a loop written by hand on the bare SDK.

Both ask the same server for the same replies with the same SDK in the same process, in turns. The hand-written loop
runs its tool as a function and keeps nothing; Strongroom runs it in a confined worker and makes every fact durable
before it acts on it: the difference is what safety costs.
"""

import json
import os
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import aclosing, contextmanager
from pathlib import Path
from typing import Any, Final

import trio

from scripts.benchmarks import frameworks
from scripts.benchmarks.bare_loops import BARE_LOOPS, PROMPT, BareLoop
from scripts.benchmarks.figures import Figure, Goal, at, figure
from scripts.benchmarks.pools import NOTE
from scripts.benchmarks.servers import serving
from supervisor.agent.models.model import Model
from supervisor.config.config_keys import Config
from supervisor.config.profiles import Profile, resolve
from supervisor.config.settings import Settings
from supervisor.journal.journal import open_journal
from supervisor.session.earlier_session import new_session
from supervisor.session.resources import SessionResources, prepare_process
from supervisor.session.session import Session
from supervisor.tools.approval import Approve
from supervisor.tools.catalog import offers
from tests.messages_server import reply

_TEXT: Final = "A note.\n" * 20
_SAID: Final = ("I will ", "read ", "the note ", "and see ", "what it says.")
_ARGUMENTS: Final = {"path": NOTE}


@contextmanager
def loopback_model(
    folder: str, script: Sequence[Any], *options: str, server: str = "tests.messages_server"
) -> Iterator[str]:
    """Run a loopback server, a module; yield its URL. `script` and `options` are as `tests/script_server.py` says."""
    file = Path(folder, "script.json")
    file.write_text(json.dumps(script), encoding="utf-8")
    command = [sys.executable, "-m", server, "--unchecked", "--script", str(file), *options]
    with serving(command) as url:
        yield url


def _turn(reply: Callable[..., str], steps: int) -> list[str]:
    """Return the replies of one turn: so many with a tool call each, then the answer."""
    calls = [
        reply(_SAID, [("read_file", {**_ARGUMENTS, "limit": 1000 - number})], ids=[f"call_{number:024}"])
        for number in range(steps)
    ]
    return [*calls, reply("I know it.")]


async def agent_step(quick: bool) -> list[Figure]:
    """Measure milliseconds a step for each wire format, by hand and by Strongroom, the durable journal included."""
    return [row for loop in BARE_LOOPS for row in await _steps(loop, quick)] + _by_frameworks(quick)


def _by_frameworks(quick: bool) -> list[Figure]:
    """Measure the same turn through other frameworks, where they are installed."""
    steps, turns = (20, 3) if quick else (40, 6)
    found = []
    for name in frameworks.installed():
        with tempfile.TemporaryDirectory() as folder, loopback_model(folder, _turn(reply, steps) * (turns + 1)) as url:
            took = frameworks.milliseconds_a_step(name, url, steps, turns)
        found.append(
            figure(f"agent step, {steps} steps a turn", f"{name}, nothing kept", at(took[1:], 0.5), "ms", turns - 1)
        )
    return found


async def _steps(loop: BareLoop, quick: bool) -> list[Figure]:
    steps, rounds = (20, 4) if quick else (40, 10)
    by_hand: list[float] = []
    ours: list[float] = []
    commits: list[float] = []
    with tempfile.TemporaryDirectory() as home, tempfile.TemporaryDirectory() as root:
        Path(root, NOTE).write_text(_TEXT, encoding="utf-8")
        settings = Settings(Config(max_steps=steps + 1), Path(home, "config.toml"), Path(home))
        with loopback_model(home, _turn(loop.reply, steps) * 2 * (rounds + 1), server=loop.server) as at_server:
            url = at_server + loop.base

            async def use(core: SessionResources) -> None:
                profile = resolve(settings, "vault", root)
                for _ in range(rounds + 1):
                    async with loop.client(url) as client, aclosing(loop.model(url)) as model:
                        session = await opened_session(core, profile, model)
                        await model.warm()
                        tools = [offer.as_api() for offer in offers(profile.tools).values()]
                        began = time.perf_counter()
                        assert await loop.run(client, tools, _TEXT) == steps
                        middle = time.perf_counter()
                        ended = await session.conversation.run_turn(PROMPT)
                        ours.append((time.perf_counter() - middle) / (steps + 1) * 1e3)
                        by_hand.append((middle - began) / (steps + 1) * 1e3)
                        assert (ended.status, ended.answer) == ("ok", "I know it."), ended

            os.environ.pop("ANTHROPIC_CUSTOM_HEADERS", None)
            await with_resources(settings, use)
            commits = _commits(Path(home), 200)
    limit = at(by_hand[1:], 0.5)
    more = [mine - bare for mine, bare in zip(ours[1:], by_hand[1:], strict=True)]
    name = f"{loop.title}, {steps} steps a turn"
    return [
        figure(name, "bare SDK, by hand, nothing kept (the limit)", limit, "ms", len(by_hand) - 1),
        figure(name, "strongroom, confined and durable", at(ours[1:], 0.5), "ms", len(ours) - 1, limit=limit),
        figure(name, "what that costs more", at(more, 0.5), "ms", len(more), goal=Goal(0.6)),
        figure(name, "of it: one durable commit on this disk (2 a step)", at(commits, 0.5), "ms", len(commits)),
    ]


async def with_resources(settings: Settings, use: Callable[[SessionResources], Awaitable[None]]) -> None:
    orphans = prepare_process()
    with open_journal(settings.journal) as journal:
        async with trio.open_nursery() as nursery:
            core = SessionResources(settings, journal, nursery, orphans)
            await use(core)
            await core.close()


async def opened_session(
    core: SessionResources, profile: Profile, model: Model | None, approve: Approve | None = None
) -> Session:
    """Return a new session of a benchmark."""
    new = new_session(profile, model, "bench", attended=approve is not None)
    await core.writer.append(new.id, new.opened)
    return Session(core.writer, core.pools(profile), profile, model, new, approve=approve, services=core.services)


def _commits(home: Path, times: int) -> list[float]:
    """Return milliseconds of the journal's commits of one fact each."""
    from supervisor.journal.facts import TurnStarted

    found: list[float] = []
    with open_journal(home / "journal.db") as journal:
        for number in range(times):
            began = time.perf_counter()
            journal.append("bench", TurnStarted(number, "x" * 200))
            found.append((time.perf_counter() - began) * 1e3)
    return found
