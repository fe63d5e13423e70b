"""The check of workers: one of each category tries every door, and is thrown away.

Rule: a protection counts when a door was tried from inside and stayed shut. The worker has the configured limits, and
an empty directory for its root.
"""

import contextlib
import dataclasses
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import trio

from supervisor.categories.row import TrialCall
from supervisor.categories.rows import ROWS
from supervisor.config.profiles import Profile
from supervisor.config.settings import Settings
from supervisor.display.escape import one_line
from supervisor.doctor import remedies
from supervisor.doctor.check_result import CheckResult
from supervisor.doctor.namespaces import system_facts
from supervisor.errors import StrongroomError, WorkerError
from supervisor.pool.pending_proposal import PendingProposal
from supervisor.pool.pool import Pool
from supervisor.pool.pools import Pools
from supervisor.session.resources import child_spec
from supervisor.tools.catalog import category_tools
from workers.wire import messages


def check_category(settings: Settings, category: str) -> list[CheckResult]:
    """Start one worker of the category on an empty directory and let it try every door."""
    try:
        return trio.run(_of_category, settings, category)
    except (StrongroomError, OSError) as error:
        advice = "A worker is tried in a directory that is made for it, in TMPDIR or /tmp."
        return [CheckResult(f"{category} worker", "missing", f"it could not be tried: {error}", advice)]


async def _of_category(settings: Settings, category: str) -> list[CheckResult]:
    with tempfile.TemporaryDirectory(prefix="strongroom-doctor-") as folder:
        root = os.path.join(folder, "root")
        os.mkdir(root)
        tools = category_tools(category)
        settings = dataclasses.replace(settings, home=Path(folder, "home"))  # a worker may write what is kept there
        spec = child_spec(settings, Profile("doctor", os.path.realpath(root), tools), category)
        async with trio.open_nursery() as nursery:
            pools = Pools(root, lambda _category: spec, nursery)
            pool = pools.pool(category)
            try:
                doors = (await pool.probe()).doors
                trial = await _trial(pool, category, root)
            except WorkerError as error:
                told = pool.workers.refusal or pool.workers.failed_because or str(error)
                results = [_refusal(settings, category, told)]
            else:
                results = [*_confined(pool, doors), *trial]
            finally:
                with contextlib.suppress(OSError):
                    await pools.close()
                nursery.cancel_scope.cancel()
    return results


def _confined(pool: Pool, doors: Sequence[messages.Door]) -> Iterator[CheckResult]:
    """Say what holds the worker, what does not, and which ways out it found."""
    category, slot = pool.spec.category, pool.workers.slots[0]
    yield CheckResult(f"{category} worker", "ok", f"confined by {', '.join(slot.enforced)}")
    for feature in slot.degraded:
        detail, advice = remedies.degraded_remedy(feature, category, system_facts(), _program())
        yield CheckResult(f"{category}: {feature}", "degraded", detail, advice)
    for door in doors:
        subject, detail = f"{category}: {door.name}", one_line(door.detail, 100)
        if door.shut:
            yield CheckResult(subject, "ok", detail)
        else:
            yield CheckResult(subject, "missing", detail, remedies.open_door_remedy(slot.degraded))


def _refusal(settings: Settings, category: str, told: str) -> CheckResult:
    advice = remedies.refusal_remedy(told, category, settings, system_facts(), _program())
    return CheckResult(f"{category} worker", "missing", remedies.without_hints(told), advice)


def _failed(subject: str, category: str, message: str) -> CheckResult:
    advice = remedies.tool_remedy(message, category, system_facts(), _program())
    return CheckResult(subject, "missing", remedies.without_hints(message), advice)


def _program() -> str:
    """Return the interpreter that workers run."""
    return os.path.realpath(sys.executable)


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
        detail = f"a command that makes a file was said to change {foretold}, and has changed {changed}"
        return CheckResult(subject, "missing", detail, "Let no command run here, and report it: this must not happen.")
    return CheckResult(subject, "ok", "a command's changes are known before anything is changed")
