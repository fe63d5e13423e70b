"""Checks with workers that are thrown away: one of each category tries every door, or says whether it can serve.

Rule: a protection counts when a door was tried from inside and stayed shut. The worker has the configured limits, and
an empty directory for its root; nothing is recorded.
"""

import contextlib
import dataclasses
import os
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, TypeVar

import trio

from supervisor.categories.row import TrialCall
from supervisor.categories.rows import ROWS
from supervisor.categories.shell import ShellConfig
from supervisor.config.profiles import Profile
from supervisor.config.settings import Settings
from supervisor.display.escape import one_line
from supervisor.doctor import remedies
from supervisor.doctor.table import CheckResult
from supervisor.errors import StrongroomError, WorkerError
from supervisor.pool.pending_proposal import PendingProposal
from supervisor.pool.pool import Pool
from supervisor.pool.pools import Pools
from supervisor.session.child_specs import child_spec
from supervisor.tools.catalog import SANDBOXED, offers
from workers.wire import messages

_T = TypeVar("_T")


def check_category(settings: Settings, category: str) -> list[CheckResult]:
    """Start one worker of the category on an empty directory and let it try every door."""
    try:
        with tempfile.TemporaryDirectory(prefix="strongroom-doctor-") as folder:
            settings = dataclasses.replace(settings, home=Path(folder, "home"))  # a worker may write what is kept there
            found = trio.run(_with_worker, settings, category, folder, _of_category)
            if category in SANDBOXED and found[0].verdict == "missing" and _copies(settings):
                copied = trio.run(_with_worker, settings, category, folder, _of_category, True)
                if copied[0].verdict == "ok":
                    told, advice = f"{found[0].detail}; so {_IN_COPIES}", "\n".join(_allow_namespaces())
                    return [CheckResult(f"{category} sandbox", "degraded", told, advice), *copied]
            return found
    except (StrongroomError, OSError) as error:
        advice = "Workers are tried in a temporary directory, in TMPDIR or /tmp: make room there."
        return [CheckResult(f"{category} worker", "missing", f"it could not be tried: {error}", advice)]


def unavailable_tools(settings: Settings, tools: Sequence[str]) -> dict[str, str]:
    """Return those of `tools` that a session would not be offered here, each with why its workers refuse."""

    async def refusal(_settings: Settings, pools: Pools, category: str, _root: str) -> str:
        return await pools.refusal(category)

    def why(category: str, folder: str) -> str:
        told = trio.run(_with_worker, settings, category, folder, refusal)
        in_copies = bool(told) and _copies(settings)
        return "" if in_copies and not trio.run(_with_worker, settings, category, folder, refusal, True) else told

    categories = {name: offer.category for name, offer in offers(tools).items() if offer.category in SANDBOXED}
    refused = {}
    for category in dict.fromkeys(categories.values()):
        with tempfile.TemporaryDirectory(prefix="strongroom-tools-") as folder:
            refused[category] = why(category, folder)
    return {name: refused[category] for name, category in categories.items() if refused[category]}


_IN_COPIES: Final = (
    "commands are rehearsed in copies of the root instead, held by Landlock and seccomp alone, without a network"
)


def _copies(settings: Settings) -> bool:
    return settings.config.section(ShellConfig).copy_mb > 0


async def _with_worker(
    settings: Settings,
    category: str,
    folder: str,
    trying: Callable[[Settings, Pools, str, str], Awaitable[_T]],
    copies: bool = False,
) -> _T:
    """Return what comes of trying workers whose root is an empty directory in `folder`; they are thrown away."""
    root = os.path.realpath(os.path.join(folder, "root"))
    os.makedirs(root, exist_ok=True)
    spec = child_spec(settings, Profile("doctor", root, (), copies=copies), category)
    async with trio.open_nursery() as nursery:
        pools = Pools(root, lambda _category: spec, nursery)
        try:
            result = await trying(settings, pools, category, root)
        finally:
            with contextlib.suppress(OSError):
                await pools.close()
            nursery.cancel_scope.cancel()
    return result


async def _of_category(settings: Settings, pools: Pools, category: str, root: str) -> list[CheckResult]:
    pool = pools.pool(category)
    try:
        doors = (await pool.probe()).doors
        trial = await _trial(pool, category, root)
    except WorkerError as error:
        told = pool.workers.refusal or pool.workers.failed_because or str(error)
        advice = remedies.refusal_remedy(told, category, settings, _allow_namespaces())
        return [CheckResult(f"{category} worker", "missing", remedies.without_hints(told), advice)]
    return [*_confined(pool, doors), *trial]


def _confined(pool: Pool, doors: Sequence[messages.Door]) -> Iterator[CheckResult]:
    """Say what holds the worker, what does not, and which ways out it found."""
    category, slot = pool.spec.category, pool.workers.slots[0]
    yield CheckResult(f"{category} worker", "ok", f"confined by {', '.join(slot.enforced)}")
    for feature in slot.degraded:
        detail, advice = remedies.degraded_remedy(feature, category, _allow_namespaces())
        yield CheckResult(f"{category}: {feature}", "degraded", detail, advice)
    for door in doors:
        subject, detail = f"{category}: {door.name}", one_line(door.detail, 100)
        if door.shut:
            yield CheckResult(subject, "ok", detail)
        else:
            yield CheckResult(subject, "missing", detail, remedies.open_door_remedy(slot.degraded))


def _failed(subject: str, category: str, message: str) -> CheckResult:
    advice = remedies.tool_remedy(message, category, _allow_namespaces())
    return CheckResult(subject, "missing", remedies.without_hints(message), advice)


def _allow_namespaces() -> list[str]:
    """Return how to allow them here, to the interpreter that workers run."""
    return remedies.namespace_remedy(remedies.system_facts(), os.path.realpath(sys.executable))


_NO_OVERLAY: Final = (
    "Commands cannot be rehearsed: each is asked about as text, and changes the root at once after a yes. Rehearsals "
    "need overlay mounts in user namespaces (Linux 5.11, the module `overlay`), and room for them in memory."
)


async def _trial(pool: Pool, category: str, root: str) -> list[CheckResult]:
    """Call the tool of the category's trial, if it has one: whether a program works shows only when it runs.

    Raises:
        WorkerError: the worker cannot work.
    """
    trial = ROWS[category].trial
    if trial is None:
        return []
    if trial.makes:
        return [await _rehearsal(pool, category, trial, root)]
    subject = f"{category}: {trial.tool}"
    answer = await pool.call(trial.tool, trial.arguments, effect=False)
    if isinstance(answer, messages.Failed):
        return [_failed(subject, category, answer.message)]
    return [CheckResult(subject, "ok", "answers")]


async def _rehearsal(pool: Pool, category: str, trial: TrialCall, root: str) -> CheckResult:
    """Rehearse a call that would make a file in the root, look whether it did, and discard it.

    Raises:
        WorkerError: the worker cannot work.
    """
    subject = f"{category}: rehearsal"
    answer = await pool.propose(trial.tool, trial.arguments)
    if isinstance(answer, messages.Unrehearsable):
        return CheckResult(subject, "degraded", answer.why, _NO_OVERLAY)
    if isinstance(answer, messages.Failed):
        return _failed(subject, category, answer.message)
    changed = os.listdir(root)
    foretold = [each.path for each in answer.effects.changes] if isinstance(answer, PendingProposal) else []
    if isinstance(answer, PendingProposal):
        await answer.decide(commit=False)
    if changed or foretold != [trial.makes]:
        detail = f"the rehearsal of a command that makes a file announced {foretold}, but {changed} changed"
        return CheckResult(subject, "missing", detail, "Let no command run here, and report it: this must not happen.")
    return CheckResult(subject, "ok", "a command's changes are known before anything is changed")
