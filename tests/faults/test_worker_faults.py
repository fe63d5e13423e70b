"""Every fault of a worker in the corpora, through the router and a real pool of real processes.

What a row expects is data. Each row is called as a read, and where that says more, as a call with an effect; after
each, the same invariants hold: the next call answers, nothing is left running or open, nothing secret was answered.
"""

import json
import os
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import trio

from supervisor.config.profiles import Profile
from supervisor.errors import WorkerUnavailable
from supervisor.journal.facts import CallEnded
from supervisor.pool.pool import Pool
from supervisor.pool.pools import Pools
from supervisor.pool.spec import ChildSpec
from supervisor.system.descendants import Orphans
from supervisor.tools.outcomes import as_error
from supervisor.tools.router import Router
from tests.corpus_rows import rows
from tests.fake_worker import fake
from tests.supervisor.pool.harness import (
    HANG,
    QUICK,
    ask,
    children,
    descriptors,
    forget_peak,
    memory_mb,
    ready,
    restarts,
    survivors,
    until,
)
from tests.supervisor.recording_context import RecordingContext
from workers.wire.messages import Context

Row = dict[str, Any]

CLASSES = {"good", "truncated", "length", "garbage", "shape", "ids", "crash", "start", "hang", "orphan", "stderr"}
WITH_EFFECT = {"truncated", "length", "garbage", "shape", "ids", "crash", "orphan"}
SILENCE = 0.4
"""Seconds that a call may take in rows that may end in a timeout."""

START = 1.0
"""Seconds that a start may take in the row about one that hangs, and half of what a call waits for it."""


ROWS = [
    row
    for row in rows("frames.json", "more_frames.json")
    if row["side"] == "worker" and row["class"] in CLASSES
    # A worker serves one call at a time, so answers cannot come in another order (README.md).
    if not any("reorder" in step for step in row["steps"])
]


@dataclass
class Place:
    """One row under way: its pool, behind the router that maps what becomes of a call."""

    row: Row
    pools: Pools
    router: Router
    calls: Path
    cured: Path

    @property
    def pool(self) -> Pool:
        return self.pools.pool("files")

    @property
    def starts_badly(self) -> bool:
        return any("at_start" in step for step in self.row["steps"])

    @property
    def delivered(self) -> int:
        return len(self.calls.read_text().splitlines()) if self.calls.exists() else 0

    async def call(self, effect: bool) -> CallEnded:
        tool = "write_file" if effect else "read_file"
        return await self.router.run(self.router.judge(1, "call", tool, "{}"), RecordingContext())


@pytest.fixture
def left(row: Row, request: pytest.FixtureRequest) -> Orphans | None:
    """Those of rows that leave processes behind; pytest itself starts none meanwhile."""
    found: Orphans | None = request.getfixturevalue("orphans") if row["class"] == "orphan" else None
    return found


@pytest.fixture
async def place(row: Row, left: Orphans | None, tmp_path: Path, nursery: trio.Nursery) -> AsyncIterator[Place]:
    """The row's place; afterwards nothing of it runs, and every descriptor is closed."""
    calls, cured = tmp_path / "calls", tmp_path / "cured"
    given = fake(row["steps"], tmp_path / "memory", calls=calls, cured=cured)
    family, opened = children(), descriptors()
    if left is not None:
        given["template"] = None  # it would be taken for an orphan
    starts = {"at_start": {"hang": True}} in row["steps"]
    spec = ChildSpec(
        "files",
        Context(str(tmp_path)),
        call_timeout=START * 2 if starts else SILENCE if "timeout" in row.get("kind", ()) else HANG,
        start_timeout=START if starts else HANG,
        decide_timeout=SILENCE if "timeout" in row.get("kind", ()) else HANG,
        restart=QUICK,
        orphans=left,
        **given,
    )
    pools = Pools(str(tmp_path), lambda _category: spec, nursery)
    profile = Profile("faults", str(tmp_path), ("read_file", "write_file"))
    yield Place(row, pools, Router(profile, pools, None), calls, cured)
    with trio.fail_after(spec.stop_timeout + HANG):
        await pools.close()
    await until(lambda: survivors(tmp_path, family) == [])  # what was killed may need a moment to go
    assert descriptors() == opened


@pytest.mark.parametrize("row", ROWS, ids=[f"{row['id']}-{row['class']}" for row in ROWS])
async def test_a_fault_ends_as_its_row_says(row: Row, place: Place) -> None:
    await _judge(place, effect=False)
    if row["class"] in WITH_EFFECT:
        await _judge(place, effect=True)


async def _judge(place: Place, *, effect: bool) -> None:
    """Make one call, and look at everything that must hold after it."""
    row = place.row
    if not place.starts_badly:
        await until(lambda: len(ready(place.pool)) >= 2)
    delivered, lost, memory = place.delivered, restarts(place.pool), memory_mb("VmRSS")
    forget_peak()

    with trio.fail_after(HANG):
        ended = await place.call(effect=effect)

    grown = memory_mb("VmHWM") - memory
    assert grown <= row.get("max_daemon_rss_growth_mb", float("inf"))
    assert _fits(row, ended, effect), ended
    assert place.delivered - delivered <= (1 if effect else 2)
    everything = json.dumps(as_error(ended)) + ended.content
    assert "CANARY" not in everything
    assert ended.ok or (ended.content.isprintable() and len(ended.content) < 1000)
    await WORKER[row["worker"]](place, lost)
    await _next_call_answers(place)


def _fits(row: Row, ended: CallEnded, effect: bool) -> bool:
    """Say whether the call ended as the row says; only a call with an effect has an unknown outcome."""
    crashed = {"worker_crashed", "outcome_unknown"} - {"outcome_unknown" if effect else "worker_crashed"}
    errors = set(row.get("kind", ())) - crashed
    if row["expect"] == "either":
        return ended.ok or ended.kind in errors
    return ended.ok if row["expect"] == "ok" else ended.kind in errors


async def _survived(place: Place, lost: int) -> None:
    assert restarts(place.pool) == lost


async def _restarted(place: Place, lost: int) -> None:
    await until(lambda: restarts(place.pool) > lost)


async def _gave_up(place: Place, _lost: int) -> None:
    await until(lambda: place.pool.workers.failed_because)
    delivered = place.delivered
    ended = await place.call(effect=False)
    assert ended.kind == "worker_unavailable"
    assert place.delivered == delivered


async def _any(_place: Place, _lost: int) -> None:
    """Either way is right."""


WORKER = {"kept": _survived, "restarted": _restarted, "gave_up": _gave_up, "any": _any}


async def _next_call_answers(place: Place) -> None:
    """A category that was given up, or cannot start, answers as soon as its workers start as they should."""
    place.cured.touch()
    with trio.fail_after(HANG):
        while True:
            try:
                answer = await ask(place.pool, "ping")
            except WorkerUnavailable:
                assert place.starts_badly
                await trio.sleep(0.01)
            else:
                break
    assert answer == "pong"
    assert answer != place.row.get("next_call_not")


def test_every_class_of_the_corpora_has_rows() -> None:
    assert {row["class"] for row in ROWS} == CLASSES
    assert len({row["id"] for row in ROWS}) == len(ROWS)


def test_the_processes_of_the_rows_are_ours_to_see() -> None:
    """The invariants stand on /proc: this process must find itself there."""
    assert str(os.getpid()) in os.listdir("/proc")
