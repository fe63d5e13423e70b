"""Ends that are begun are gone through with, once, and everybody who waits hears how."""

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from supervisor.daemon.sessions.closing import ClosingTasks
from supervisor.errors import JournalError, StrongroomError
from tests.supervisor.command import HANG_GUARD

SESSION = "20260101-000001-aaaaaaaaaaaa"
ERRORS = pytest.mark.parametrize("error", [JournalError("journal_io", "The disk is full."), RuntimeError("a bug")])


class End:
    """Something that takes its time, and then fails where it is told to."""

    def __init__(self, failure: Exception | None = None) -> None:
        self.failure = failure
        self.may_go_on = trio.Event()
        self.begun = 0
        self.done = trio.Event()

    async def __call__(self) -> None:
        self.begun += 1
        await self.may_go_on.wait()
        self.done.set()
        if self.failure is not None:
            raise self.failure


@pytest.fixture
def endings(nursery: trio.Nursery) -> ClosingTasks:
    return ClosingTasks(nursery)


async def given_up(endings: ClosingTasks, end: End) -> None:
    """Ask for an end, and wait for it no longer; let it go on then."""
    async with trio.open_nursery() as asking:
        asking.start_soon(endings.run, "delete", SESSION, end)
        await wait_all_tasks_blocked()
        asking.cancel_scope.cancel()
    assert endings
    end.may_go_on.set()
    with trio.fail_after(HANG_GUARD):
        await endings.done()


async def test_an_end_is_gone_through_with_when_whoever_asked_has_gone(endings: ClosingTasks) -> None:
    end = End()
    await given_up(endings, end)
    assert end.done.is_set()
    assert not endings


async def test_a_second_request_to_close_waits_for_the_first(endings: ClosingTasks) -> None:
    first, second = End(), End()
    with trio.fail_after(HANG_GUARD):
        async with trio.open_nursery() as asking:
            asking.start_soon(endings.run, "delete", SESSION, first)
            asking.start_soon(endings.run, "delete", SESSION, second)
            await wait_all_tasks_blocked()
            for end in (first, second):
                end.may_go_on.set()
    assert first.begun + second.begun == 1


@ERRORS
async def test_everybody_who_waits_hears_why_an_end_failed(endings: ClosingTasks, error: Exception) -> None:
    end, heard = End(error), []

    async def ask() -> None:
        with pytest.raises(type(error)) as caught:
            await endings.run("delete", SESSION, end)
        heard.append(caught.value)

    with trio.fail_after(HANG_GUARD):
        async with trio.open_nursery() as asking:
            for _ in range(2):
                asking.start_soon(ask)
            await wait_all_tasks_blocked()
            end.may_go_on.set()
    assert heard == [error, error]


@ERRORS
async def test_a_failure_that_nobody_waits_for_is_logged_and_the_next_end_is_begun(
    endings: ClosingTasks, error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    end, after = End(error), End()
    after.may_go_on.set()
    await given_up(endings, end)
    with trio.fail_after(HANG_GUARD):
        await endings.run("delete", SESSION, after)
    assert after.begun == 1
    assert str(error) in caplog.text


async def test_a_waiter_is_told_that_the_daemon_stopped_first() -> None:
    async with trio.open_nursery() as asking, trio.open_nursery() as nursery:
        endings = ClosingTasks(nursery)

        async def ask() -> None:
            with pytest.raises(StrongroomError, match="daemon stops"):
                await endings.run("close", SESSION, End())

        asking.start_soon(ask)
        await wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
