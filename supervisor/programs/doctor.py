"""`strongroom doctor`: every protection and dependency, tried for real.

Rule: a protection counts when a door was tried from inside a worker and stayed shut, not when a system call said
yes. The worker is thrown away afterwards. What is only wished for is `degraded`; what Strongroom needs is `missing`.
"""

import contextlib
import dataclasses
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

import trio

from supervisor.config import Settings, own_directory, secure_home
from supervisor.core import child_spec
from supervisor.daemon.lock import running
from supervisor.errors import ConfigError, StrongroomError, WorkerError
from supervisor.journal import open_journal
from supervisor.pool.cgroup import look
from supervisor.pool.held import Held
from supervisor.pool.pool import Pool
from supervisor.pool.pools import Pools
from supervisor.profiles import Profile
from supervisor.programs.cgroups import judge
from supervisor.programs.sandbox import advice, facts
from supervisor.programs.surroundings import Finding, libraries, model_server, socket_place
from supervisor.render import one_line
from supervisor.tools.catalog import category_tools
from workers import wire
from workers.catalog import CATEGORIES

_MB: Final = 2**20
_BLOCK: Final = 512
"""Bytes of one of `st_blocks` (stat(2))."""


def examine(settings: Settings, *, model: bool = False, tell: Callable[[str], None] = lambda _: None) -> list[Finding]:
    """Try everything; needs no model and no network, but for the `model`'s server where that is asked for.

    `tell` is told what is being tried.
    """
    tell("the system")
    findings = [*_system(), *libraries(), *_home(settings), socket_place(settings), of_undo(settings)]
    findings.append(_cgroups(settings))
    for category in CATEGORIES:
        tell(f"the {category} worker")
        findings += trio.run(of_category, settings, category)
    if model:
        tell("the model's server")
        findings.append(model_server(settings))
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


def of_undo(settings: Settings) -> Finding:
    """Look at where the old content of what calls change is kept for undo; change nothing there."""
    place, limits = settings.kept, settings.config.undo
    if not limits.total_mb:
        detail = "nothing is kept: total_mb of [undo] is 0"
        return Finding("undo", "degraded", detail, "No change can be taken back until it is more.")
    begun = os.path.lexists(place)
    try:
        shared = own_directory(place if begun else settings.home, "Move it away.") & 0o077
        files = [each for each in os.scandir(place) if each.is_file(follow_symlinks=False)] if begun else []
        packs = [each.stat(follow_symlinks=False) for each in files]
        free = shutil.disk_usage(settings.home).free / _MB
    except (ConfigError, OSError) as error:
        return Finding("undo", "missing", str(error), "Nothing can be kept there, so nothing can be changed.")
    used = sum(each.st_blocks for each in packs) * _BLOCK / _MB
    detail = f"{len(packs)} calls can be undone; they take {used:.1f} of {limits.total_mb} MB in {place}"
    if begun and shared:
        return Finding("undo", "degraded", f"others may look into {place}", f"chmod 700 {place}")
    if used > limits.total_mb:
        return Finding("undo", "degraded", detail, "The oldest go with the next change that is kept.")
    if free < min(limits.call_mb, limits.total_mb - used):
        detail += f", and only {free:.0f} MB of its disk are free"
        return Finding("undo", "degraded", detail, "A change that cannot be kept is not made: make room there.")
    return Finding("undo", "ok", detail)


def _cgroups(settings: Settings) -> Finding:
    """Look at the cgroup of the daemon, or at our own; change nothing."""
    try:
        daemon = running(settings)
    except ConfigError:
        daemon = None
    pid = daemon.pid if daemon is not None else 0
    return Finding("cgroups", *judge(look(pid or os.getpid()), runs=bool(pid), root=os.geteuid() == 0))


def _advice(category: str) -> str:
    if category == "shell":
        return advice(facts(), os.path.realpath(sys.executable))
    return "See README, Try it."


_TRIALS: Final[Mapping[str, tuple[str, bytes]]] = MappingProxyType({"search": ("find_files", b'{"pattern": "*"}')})
"""A call for each category that stands on a program besides: whether that works shows only when it runs."""


_REHEARSED: Final = ("run_cmd", b'{"command": "echo rehearsed > made"}')
"""A command that would change something: a file of that name."""

_NO_OVERLAY: Final = (
    "Commands cannot be rehearsed: each is asked about as text, and changes the root at once after a yes. Rehearsals "
    "need overlay mounts in user namespaces (Linux 5.11, the module `overlay`), and room for them in memory."
)


async def _trial(pool: Pool, category: str, root: str) -> list[Finding]:
    """Call a tool of the category, if there is one to call.

    Raises:
        WorkerError: the worker cannot work.
    """
    if category == "shell":
        return [await _rehearsal(pool, root)]
    if category not in _TRIALS:
        return []
    tool, arguments = _TRIALS[category]
    answer = await pool.call(tool, arguments, effect=False)
    if isinstance(answer, wire.Failed):
        return [Finding(f"{category}: {tool}", "missing", answer.message, _advice(category))]
    return [Finding(f"{category}: {tool}", "ok", "answers")]


async def _rehearsal(pool: Pool, root: str) -> Finding:
    """Rehearse a command that would make a file in the root, look whether it did, and discard it.

    Raises:
        WorkerError: the worker cannot work.
    """
    subject, (tool, arguments) = "shell: rehearsal", _REHEARSED
    answer = await pool.propose(tool, arguments)
    if isinstance(answer, wire.Unrehearsable):
        return Finding(subject, "degraded", answer.why, _NO_OVERLAY)
    if isinstance(answer, wire.Failed):
        return Finding(subject, "missing", answer.message, _advice("shell"))
    changed = os.listdir(root)
    foretold = [each.path for each in answer.effects.changes] if isinstance(answer, Held) else []
    if isinstance(answer, Held):
        await answer.decide(commit=False)
    if changed or foretold != ["made"]:
        detail = f"a command that makes a file was said to change {foretold}, and has changed {changed}"
        return Finding(subject, "missing", detail, "Let no command run here: this should not be possible.")
    return Finding(subject, "ok", "a command's changes are known before anything is changed")


async def of_category(settings: Settings, category: str) -> list[Finding]:
    """Start one worker of the category on an empty directory and let it try every door."""
    findings: list[Finding] = []
    with tempfile.TemporaryDirectory(prefix="strongroom-doctor-") as folder:
        root = os.path.join(folder, "root")
        os.mkdir(root)
        tools = category_tools(category)
        if category == "restore":  # it works on what was kept: here, on nothing
            settings = dataclasses.replace(settings, home=Path(folder, "home"))
        spec = child_spec(settings, Profile("doctor", os.path.realpath(root), tools), category)
        async with trio.open_nursery() as nursery:
            pools = Pools(root, lambda _category: spec, nursery)
            pool = pools.pool(category)
            try:
                doors = (await pool.probe()).doors
                trial = await _trial(pool, category, root)
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
