"""A session whose end was begun is ended, also when nobody waits for that any more."""

from functools import partial
from pathlib import Path

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from supervisor.acp import extensions
from supervisor.config.narrowing import NAME
from supervisor.daemon.protocol.connection import RequestError
from supervisor.daemon.sessions.deletion import delete
from supervisor.daemon.sessions.open_session import OpenSession
from supervisor.daemon.sessions.registry import SessionRegistry
from supervisor.daemon.status import About, report
from supervisor.journal.facts import CallDecided, CallEnded, CallStarted, SessionDeleted
from supervisor.session.leases import Leases
from tests.supervisor.command import HANG_GUARD
from tests.supervisor.daemon.harness import Undo
from tests.supervisor.histories import opening_fact
from workers.changes.effects import Change, Effects, NodeState


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
                asking.start_soon(partial(delete, registry) if method == "delete" else registry.close, session.id)
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
            nursery.start_soon(delete, registry, session.id)
            while not session.closing:
                await trio.lowlevel.checkpoint()
            nursery.start_soon(_is_not_found, registry, session.id)
            await wait_all_tasks_blocked()
            undo.may_go_on.set()
    assert not registry.sessions


async def test_a_session_of_another_process_is_not_deleted(registry: SessionRegistry, root: Path) -> None:
    await registry.resources.writer.append("s", opening_fact(root))
    with Leases.open(registry.settings.home) as others, trio.fail_after(HANG_GUARD):
        assert others.acquire("s")
        with pytest.raises(RequestError, match="another process"):
            await delete(registry, "s")
    assert len(registry.resources.writer.journal.of_session("s")) == 1


@pytest.mark.parametrize(("place", "ends", "kept"), [("", ["worker_crashed"], False), ("gone", [], True)])
async def test_a_commit_that_was_cut_off_is_settled_before_its_session_is_deleted_or_its_pack_stays(
    registry: SessionRegistry, root: Path, place: str, ends: list[str], kept: bool
) -> None:
    with registry.resources.packs.begin("s", "c") as begun:
        pack = begun.finish()
    effects = Effects((Change("x", "added", after=NodeState("file", 0o644)),), {"added": 1}, b"")
    started = CallStarted(0, "c", "write_file", "{}", True, "allow", "", rehearsed=True)
    decided = CallDecided(0, "c", "allow", "", True, effects, kept=pack)
    await registry.resources.writer.append("s", opening_fact(root / place), started, decided)
    with trio.fail_after(HANG_GUARD):
        await delete(registry, "s")
    _, _, _, *settled, deleted = (entry.fact for entry in registry.resources.writer.journal.of_session("s"))
    assert [fact.kind for fact in settled if isinstance(fact, CallEnded)] == ends
    assert (len(settled), isinstance(deleted, SessionDeleted)) == (len(ends), True)
    assert registry.resources.packs.holds(pack) == kept


async def _is_not_found(registry: SessionRegistry, session_id: str) -> None:
    with pytest.raises(RequestError, match="No session"):
        await registry.reopen(session_id, extensions.SessionOptions())


async def test_a_session_is_opened_with_what_is_left_and_told_of_it(registry: SessionRegistry, root: Path) -> None:
    (root / NAME).write_text("tools = ['read_file']\nmax_steps = 3\n")
    with trio.fail_after(30):
        session, notices = await registry.open(str(root), extensions.SessionOptions(profile="vault", model="offline"))
        assert session.session.profile.tools == ("read_file",)
        assert session.session.opened.tools == ("read_file",)
        assert session.session.conversation.max_steps == 3
        assert notices[-1].startswith(f"NARROWED BY {root}/{NAME}, which lies in the root: its tools are read_file;")
        assert report(About(private=False), registry, 0).sessions[0].narrowed_by.startswith(f"{root}/{NAME}: ")
        await registry.close(session.id)
        (root / NAME).unlink()
        again, notices = await registry.reopen(session.id, extensions.SessionOptions())
    assert ("write_file" in again.session.profile.tools, notices) == (True, [])
