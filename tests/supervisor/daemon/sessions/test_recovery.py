"""An interrupted turn is resumed by the daemon itself, but not under what runs in its session."""

from pathlib import Path
from typing import Final

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from supervisor.acp import extensions
from supervisor.daemon.sessions.open_session import OpenSession
from supervisor.daemon.sessions.recovery import resume_interrupted
from supervisor.daemon.sessions.registry import SessionRegistry
from supervisor.journal.facts import TurnEnded, TurnStarted
from tests.daemon_process import scripted
from tests.supervisor.command import HANG_GUARD
from tests.supervisor.daemon.harness import Undo, WatchedReader
from tests.supervisor.histories import DONE, opening_fact

SESSION: Final = "20260101-000001-aaaaaaaaaaaa"


@pytest.fixture
def left(registry: SessionRegistry, root: Path, tmp_path: Path) -> SessionRegistry:
    """A registry whose journal has one session, with an interrupted turn."""
    model = scripted(tmp_path / "done.jsonl", DONE)
    registry.resources.writer.journal.append(SESSION, opening_fact(root, model), TurnStarted(1, "go"))
    return registry


def ends(registry: SessionRegistry) -> list[str]:
    facts = [entry.fact for entry in registry.resources.writer.journal.of_session(SESSION)]
    return [fact.status for fact in facts if isinstance(fact, TurnEnded)]


async def undoing(registry: SessionRegistry, recovery: trio.Nursery) -> tuple[OpenSession, Undo]:
    """Begin an undo in the session, and let the recovery come to it meanwhile."""
    session, _ = await registry.reopen(SESSION, extensions.SessionOptions())
    undo = Undo()
    recovery.start_soon(undo.run, session)
    await wait_all_tasks_blocked()
    recovery.start_soon(resume_interrupted, registry)
    assert isinstance(registry.reader, WatchedReader)
    await registry.reader.looked.wait()
    await wait_all_tasks_blocked()
    return session, undo


async def test_an_interrupted_turn_waits_for_the_undo_that_runs_in_its_session(left: SessionRegistry) -> None:
    with trio.fail_after(HANG_GUARD):
        async with trio.open_nursery() as recovery:
            session, undo = await undoing(left, recovery)
            assert session.interrupted  # and no turn runs
            undo.may_go_on.set()
        await left.wait_until_idle()
    assert ends(left) == ["ok"]


async def test_an_interrupted_turn_stays_open_in_a_session_that_is_being_closed(left: SessionRegistry) -> None:
    with trio.fail_after(HANG_GUARD):
        async with trio.open_nursery() as recovery:
            session, _ = await undoing(left, recovery)
            await left.close(SESSION)
        assert not session.busy
    assert session.interrupted
    assert ends(left) == []
