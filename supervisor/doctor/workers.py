"""One worker of each category, thrown away after it has tried every door. For `strongroom doctor`.

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

from supervisor.categories.row import Trial
from supervisor.categories.rows import ROWS
from supervisor.config.profiles import Profile
from supervisor.config.settings import Settings
from supervisor.display.escape import one_line
from supervisor.doctor import remedies
from supervisor.doctor.namespaces import facts
from supervisor.doctor.surroundings import Finding
from supervisor.errors import StrongroomError, WorkerError
from supervisor.pool.pending_proposal import PendingProposal
from supervisor.pool.pool import Pool
from supervisor.pool.pools import Pools
from supervisor.session.resources import child_spec
from supervisor.tools.catalog import category_tools
from workers.wire import messages


def of_category(settings: Settings, category: str) -> list[Finding]:
    """Start one worker of the category on an empty directory and let it try every door."""
    try:
        return trio.run(_of_category, settings, category)
    except (StrongroomError, OSError) as error:
        advice = "A worker is tried in a directory that is made for it, in TMPDIR or /tmp."
        return [Finding(f"{category} worker", "missing", f"it could not be tried: {error}", advice)]


async def _of_category(settings: Settings, category: str) -> list[Finding]:
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
                findings = [_refusal(settings, category, told)]
            else:
                findings = [*_confined(pool, doors), *trial]
            finally:
                with contextlib.suppress(OSError):
                    await pools.close()
                nursery.cancel_scope.cancel()
    return findings


def _confined(pool: Pool, doors: Sequence[messages.Door]) -> Iterator[Finding]:
    """Say what holds the worker, what does not, and which ways out it found."""
    category, slot = pool.spec.category, pool.workers.slots[0]
    yield Finding(f"{category} worker", "ok", f"confined by {', '.join(slot.enforced)}")
    for feature in slot.degraded:
        detail, advice = remedies.of_degraded(feature, category, facts(), _program())
        yield Finding(f"{category}: {feature}", "degraded", detail, advice)
    for door in doors:
        subject, detail = f"{category}: {door.name}", one_line(door.detail, 100)
        if door.shut:
            yield Finding(subject, "ok", detail)
        else:
            yield Finding(subject, "missing", detail, remedies.of_open_door(slot.degraded))


def _refusal(settings: Settings, category: str, told: str) -> Finding:
    advice = remedies.of_refusal(told, category, settings, facts(), _program())
    return Finding(f"{category} worker", "missing", remedies.in_full(told), advice)


def _failed(subject: str, category: str, message: str) -> Finding:
    advice = remedies.of_tool(message, category, facts(), _program())
    return Finding(subject, "missing", remedies.in_full(message), advice)


def _program() -> str:
    """Return the interpreter that workers run."""
    return os.path.realpath(sys.executable)


_NO_OVERLAY: Final = (
    "Commands cannot be rehearsed: each is asked about as text, and changes the root at once after a yes. Rehearsals "
    "need overlay mounts in user namespaces (Linux 5.11, the module `overlay`), and room for them in memory."
)


async def _trial(pool: Pool, category: str, root: str) -> list[Finding]:
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
    return [Finding(subject, "ok", "answers")]


async def _rehearsal(pool: Pool, category: str, trial: Trial, root: str) -> Finding:
    """Rehearse a call that would make a file in the root, look whether it did, and discard it.

    Raises:
        WorkerError: the worker cannot work.
    """
    subject = f"{category}: rehearsal"
    answer = await pool.propose(trial.tool, trial.arguments)
    if isinstance(answer, messages.Unrehearsable):
        return Finding(subject, "degraded", answer.why, _NO_OVERLAY)
    if isinstance(answer, messages.Failed):
        return _failed(subject, category, answer.message)
    changed = os.listdir(root)
    foretold = [each.path for each in answer.effects.changes] if isinstance(answer, PendingProposal) else []
    if isinstance(answer, PendingProposal):
        await answer.decide(commit=False)
    if changed or foretold != [trial.makes]:
        detail = f"a command that makes a file was said to change {foretold}, and has changed {changed}"
        return Finding(subject, "missing", detail, "Let no command run here, and report it: this must not happen.")
    return Finding(subject, "ok", "a command's changes are known before anything is changed")
