"""Rewindings: a thousand changed files of a hundred thousand go back to the end of a turn, and come again."""

import os
import tempfile
from pathlib import Path
from typing import Final

import msgspec

from scripts.benchmarks.figures import Figure, Goal, figure
from scripts.benchmarks.growth.roots import fill, with_programs
from scripts.benchmarks.programs import processor_seconds
from scripts.benchmarks.steps import opened_session, with_resources
from supervisor.config.profiles import resolve
from supervisor.session.resources import SessionResources
from supervisor.session.session import Session
from supervisor.session.taking_back import TakingBack, rewinding, undoing
from supervisor.tools.approval import ApprovalDecision, ApprovalQuestion
from supervisor.undo.rewind_plan import rewind_plan
from supervisor.undo.undo_plan import undo_plan

_CHANGED: Final = 1000
_ROUNDS: Final = 3
_SECOND: Final = Goal(1000)
"""Milliseconds of a processor: nothing in it waits for anything but the disk."""


async def growth_rewind(quick: bool) -> list[Figure]:
    """Measure a rewinding of a thousand files, each changed by a call of its own, and its undo, in processor time."""
    files = 10_000 if quick else 100_000
    found: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as home, tempfile.TemporaryDirectory() as root:
        fill(root, files)

        async def approve(_question: ApprovalQuestion) -> ApprovalDecision:
            return ApprovalDecision(approved=True)

        async def use(core: SessionResources) -> None:
            session = await opened_session(core, resolve(core.settings, "project", root), None, approve)
            for path in sorted(Path(root).glob("d000/*/*.txt"))[:_CHANGED]:
                arguments = {"path": str(path.relative_to(root)), "content": "Another line.\n"}
                ended = await session.call("write_file", msgspec.json.encode(arguments).decode())
                assert ended.ok, ended
            for _ in range(_ROUNDS):
                began = _processor_ms()
                plan = rewind_plan([], core.writer.journal.of_session(session.id), 0, core.packs.holds)
                call = await _done(session, rewinding(plan))
                found.setdefault("back", []).append(_processor_ms() - began)
                began = _processor_ms()
                (step,) = undo_plan(core.writer.journal.of_session(session.id), (call,), "last", core.packs.holds)
                await _done(session, undoing(step, force=False))
                found.setdefault("and again", []).append(_processor_ms() - began)

        await with_resources(with_programs(home), use)
    what = f"{_CHANGED} files of {files:,}, each changed by a call"
    return [figure("rewind", f"{what}: {way}", min(each), "ms", len(each), goal=_SECOND) for way, each in found.items()]


def _processor_ms() -> float:
    """Return the milliseconds of a processor that this process and its workers have used so far."""
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text(encoding="ascii").split()
    return sum(processor_seconds(pid) for pid in (os.getpid(), *map(int, children))) * 1e3


async def _done(session: Session, taking: TakingBack) -> str:
    """Take changes back; return the call that did."""
    ended, _ = await session.undo(taking, by="bench")
    if not ended.ok:
        raise TypeError(ended)
    return ended.call
