"""`strongroom doctor`: every protection and dependency, tried for real.

Rule: a protection counts when a door was tried from inside a worker and stayed shut, not when a system call said
yes. The worker is thrown away afterwards. What is only wished for is `degraded`; what Strongroom needs is `missing`.
"""

import contextlib
import importlib.util
import os
import platform
import sys
import tempfile
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final, Literal

import msgspec
import trio

from supervisor.config import Settings, secure_home
from supervisor.core import child_spec
from supervisor.errors import StrongroomError, WorkerError
from supervisor.journal import open_journal
from supervisor.pool.pool import Pool
from supervisor.pool.pools import Pools
from supervisor.profiles import Profile
from supervisor.programs.sandbox import advice, facts
from supervisor.render import one_line
from supervisor.tools.catalog import category_tools
from workers import wire
from workers.catalog import CATEGORIES

Verdict = Literal["ok", "degraded", "missing"]


class Finding(msgspec.Struct, frozen=True):
    """One line of the table: what was looked at, how it is, what it means and what to do."""

    subject: str
    verdict: Verdict
    detail: str
    advice: str = ""


def examine(settings: Settings) -> list[Finding]:
    """Try everything; needs no model and no network."""
    findings = [*_system(), *_home(settings)]
    for category in CATEGORIES:
        findings += trio.run(_category, settings, category)
    return findings


def _system() -> Iterator[Finding]:
    yield Finding("python", "ok", f"{platform.python_version()} at {sys.executable}")
    supported = platform.system() == "Linux" and platform.machine() in ("x86_64", "aarch64")
    yield Finding(
        "kernel",
        "ok" if supported else "missing",
        f"{platform.system()} {platform.release()} on {platform.machine()}",
        "" if supported else "Strongroom confines with Landlock and seccomp: it needs Linux on x86_64 or aarch64.",
    )
    found = importlib.util.find_spec("anthropic") is not None
    yield Finding(
        "anthropic",
        "ok" if found else "degraded",
        "the Messages API client is installed" if found else "not installed: only offline and scripted models work",
        "" if found else "pip install 'strongroom[anthropic]'",
    )


def _home(settings: Settings) -> Iterator[Finding]:
    try:
        secure_home(settings.home)
        yield Finding("home", "ok", f"{settings.home} is for its owner alone")
        with open_journal(settings.journal) as journal:
            verdict = journal.verify()
    except StrongroomError as error:
        yield Finding("home", "missing", str(error), "Nothing can be recorded, so nothing runs.")
        return
    if verdict.problem:
        advice = "Keep the file; start with another STRONGROOM_HOME."
        yield Finding("journal", "missing", verdict.problem, advice)
    else:
        yield Finding("journal", "ok", f"{verdict.rows} facts, the chain is whole")


def _advice(category: str) -> str:
    if category == "shell":
        return advice(facts(), os.path.realpath(sys.executable))
    return "See README, Try it."


_TRIALS: Final[Mapping[str, tuple[str, bytes]]] = MappingProxyType({"search": ("find_files", b'{"pattern": "*"}')})
"""A call for each category that stands on a program besides: whether that works shows only when it runs."""


async def _trial(pool: Pool, category: str) -> list[Finding]:
    """Call a tool of the category, if there is one to call.

    Raises:
        WorkerError: the worker cannot work.
    """
    if category not in _TRIALS:
        return []
    tool, arguments = _TRIALS[category]
    answer = await pool.call(tool, arguments, effect=False)
    if isinstance(answer, wire.Failed):
        return [Finding(f"{category}: {tool}", "missing", answer.message, _advice(category))]
    return [Finding(f"{category}: {tool}", "ok", "answers")]


async def _category(settings: Settings, category: str) -> list[Finding]:
    """Start one worker of the category on an empty directory and let it try every door."""
    findings: list[Finding] = []
    with tempfile.TemporaryDirectory(prefix="strongroom-doctor-") as root:
        tools = category_tools(category)
        spec = child_spec(settings, Profile("doctor", os.path.realpath(root), tools), category)
        async with trio.open_nursery() as nursery:
            pools = Pools(root, lambda _category: spec, nursery)
            pool = pools.pool(category)
            try:
                doors = (await pool.probe()).doors
                trial = await _trial(pool, category)
            except WorkerError as error:
                findings.append(Finding(f"{category} worker", "missing", str(error), _advice(category)))
            else:
                keeper = pool.keepers[0]
                enforced = f"confined by {', '.join(keeper.enforced)}"
                findings.append(Finding(f"{category} worker", "ok", enforced))
                findings += [
                    Finding(f"{category}: {feature}", "degraded", "allow_degraded does without it", "")
                    for feature in keeper.degraded
                ]
                findings += [
                    Finding(
                        f"{category}: {door.name}",
                        "ok" if door.shut else "missing",
                        one_line(door.detail, 100),
                    )
                    for door in doors
                ]
                findings += trial
            finally:
                with contextlib.suppress(OSError):
                    await pools.close()
                nursery.cancel_scope.cancel()
    return findings
