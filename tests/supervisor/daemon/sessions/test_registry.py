"""A session whose end was begun is ended, also when nobody waits for that any more."""

from pathlib import Path

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from supervisor.acp import extensions
from supervisor.daemon.protocol.connection import RequestError
from supervisor.daemon.sessions.open_session import OpenSession
from supervisor.daemon.sessions.registry import SessionRegistry
from supervisor.journal.facts import SessionDeleted
from supervisor.session.leases import Leases
from tests.supervisor.command import HANG_GUARD
from tests.supervisor.daemon.harness import Undo


@pytest.fixture
async def session(registry: SessionRegistry, root: Path) -> OpenSession:
    opened, _ = await registry.open(str(root), extensions.SessionOptions(profile="project", model="offline"))
    return opened


async def given_up(registry: SessionRegistry, session: OpenSession, method: str) -> None:
    """Begin to end a session in which something runs that takes its time, and wait for it no longer."""
    undo = Undo(stubborn=True)
    with trio.fail_after(HANG_GUARD):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(undo.run, session)
            await wait_all_tasks_blocked()
            async with trio.open_nursery() as asking:
                asking.start_soon(getattr(registry, method), session.id)
                await wait_all_tasks_blocked()
                asking.cancel_scope.cancel()
            undo.may_go_on.set()
        await registry.wait_until_idle()


async def test_a_close_that_nobody_waits_for_gives_the_session_back(
    registry: SessionRegistry, session: OpenSession
) -> None:
    await given_up(registry, session, "close")
    assert not registry.sessions
    with Leases.open(registry.settings.home) as others:
        assert others.acquire(session.id)
        assert registry.resources.ledger.runs_elsewhere(session.id)
    assert not registry.resources.ledger.runs_elsewhere(session.id)


async def test_a_session_whose_close_nobody_waits_for_can_be_opened_again(
    registry: SessionRegistry, session: OpenSession
) -> None:
    await given_up(registry, session, "close")
    with trio.fail_after(HANG_GUARD):
        again, _ = await registry.reopen(session.id, extensions.SessionOptions())
        assert (await again.start_turn("hello").wait()).status == "ok"


async def test_a_delete_that_nobody_waits_for_is_recorded(registry: SessionRegistry, session: OpenSession) -> None:
    await given_up(registry, session, "delete")
    facts = [entry.fact for entry in registry.resources.writer.journal.of_session(session.id)]
    assert [isinstance(fact, SessionDeleted) for fact in facts] == [False, True]
    assert not registry.sessions


async def test_a_session_that_is_being_deleted_is_not_opened_again(
    registry: SessionRegistry, session: OpenSession
) -> None:
    undo = Undo(stubborn=True)
    with trio.fail_after(HANG_GUARD):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(undo.run, session)
            await wait_all_tasks_blocked()
            nursery.start_soon(registry.delete, session.id)
            while not session.closing:
                await trio.lowlevel.checkpoint()
            nursery.start_soon(_is_not_found, registry, session.id)
            await wait_all_tasks_blocked()
            undo.may_go_on.set()
    assert not registry.sessions


async def _is_not_found(registry: SessionRegistry, session_id: str) -> None:
    with pytest.raises(RequestError, match="No session"):
        await registry.reopen(session_id, extensions.SessionOptions())
