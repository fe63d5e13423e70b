"""Work on many effects is done in a thread, and the event loop's other tasks go on meanwhile."""

import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final

import msgspec
import pytest
import trio

from supervisor.agent.models.model_facts import model_facts
from supervisor.config.config_keys import Config
from supervisor.config.profiles import resolve
from supervisor.config.settings import Settings
from supervisor.daemon.protocol.updates import Projection
from supervisor.daemon.sessions.subscribers import Subscribers
from supervisor.journal.facts import CallStarted
from supervisor.rules.rule import Rule
from supervisor.system.off_loop import AT_ONCE, off_loop
from supervisor.tools.approval import ApprovalDecision, ApprovalQuestion
from supervisor.tools.services import ChangeServices
from supervisor.tools.session_rules import SessionRules
from tests.supervisor.changes import effects
from tests.supervisor.command import HANG_GUARD
from workers.changes.effects import Change, Effects

CALL: Final = CallStarted(1, "c", "exec_shell", '{"command": "touch", "args": ["a"]}', True, "allow", "")
RULE: Final = Rule("allow", writes=("elsewhere/**",))


def noting(number: int) -> tuple[Effects, set[int]]:
    """Return effects, and the threads that will have looked through them."""
    by: set[int] = set()

    class Looked(tuple[Change, ...]):
        __slots__ = ()

        def __iter__(self) -> Iterator[Change]:
            by.add(threading.get_ident())
            return super().__iter__()

    found = effects(*(f"+ new/f{each:04}" for each in range(number)))
    return msgspec.structs.replace(found, changes=Looked(found.changes)), by


async def test_other_tasks_have_turns_meanwhile(nursery: trio.Nursery) -> None:
    turns = threading.Semaphore(0)

    async def others() -> None:
        for _ in range(3):
            await trio.lowlevel.checkpoint()
            turns.release()

    nursery.start_soon(others)
    assert await off_loop(AT_ONCE + 1, lambda: [turns.acquire(timeout=HANG_GUARD) for _ in range(3)]) == [True] * 3


async def test_a_caller_that_is_cancelled_has_its_result_first() -> None:
    by: list[int] = []
    with trio.CancelScope() as scope:
        scope.cancel()
        by.append(await off_loop(AT_ONCE + 1, threading.get_ident))
        await trio.lowlevel.checkpoint()
        pytest.fail("it was not cancelled")
    assert by
    assert by != [threading.get_ident()]


async def test_without_threads_it_is_done_in_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    async def none_starts(*_given: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(trio.to_thread, "run_sync", none_starts)
    assert await off_loop(AT_ONCE + 1, threading.get_ident) == threading.get_ident()


async def test_an_error_in_the_thread_is_the_callers() -> None:
    by: list[int] = []

    def fail() -> None:
        by.append(threading.get_ident())
        raise RuntimeError("its own")

    with pytest.raises(RuntimeError, match="its own"):
        await off_loop(AT_ONCE + 1, fail)
    assert len(by) == 1


@pytest.mark.parametrize("more", [0, 1])
async def test_many_effects_are_judged_and_put_into_words_off_the_loop(
    nursery: trio.Nursery, tmp_path: Path, more: int
) -> None:
    many, by = noting(AT_ONCE + more)
    settings = Settings(Config(), Path("config.toml"), Path("/nonexistent"))
    profile = resolve(settings, "project", str(tmp_path))
    rules = SessionRules("s", profile, ChangeServices(rules=(RULE,)))
    assert (await rules.judge(CALL, many)).decision == "ask"
    assert await rules.suggest(CALL, many) is not None
    here = {threading.get_ident()}
    assert by.isdisjoint(here) if more else by == here
    by.clear()
    subscribers = Subscribers(nursery, "s", Projection(partial(model_facts, settings=settings)))
    answered: list[ApprovalDecision] = []

    async def ask() -> None:
        answered.append(await subscribers.request_approval(ApprovalQuestion(CALL, "effects", "why", many)))

    nursery.start_soon(ask)
    while not subscribers.approvals:
        await trio.lowlevel.checkpoint()
    subscribers.approvals["c"].decide(ApprovalDecision(approved=True))
    while not answered:
        await trio.lowlevel.checkpoint()
    assert by.isdisjoint(here) if more else by == here
