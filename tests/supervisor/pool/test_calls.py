"""What becomes of a call: lent a worker, retried, refused, cancelled, given up."""

import json
import os
import select
import signal
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from supervisor.errors import WorkerDied, WorkerUnavailable
from supervisor.pool import call_attempt as module
from supervisor.pool.channel import Channel
from supervisor.pool.frame_reader import FrameReader
from supervisor.pool.pool import Pool
from supervisor.pool.worker_slot import WorkerState
from tests.fake_worker import Step
from tests.supervisor.pool.conftest import OpenPool
from tests.supervisor.pool.harness import (
    HANG,
    QUICK,
    READ,
    ask,
    begin_call,
    busy,
    gone,
    kill,
    next_lent,
    pids,
    process_of,
    ready,
    restarts,
    until,
)
from workers.wire import frames, messages

HANGS: list[list[Step]] = [
    [{"hang": True}],
    [{"stop": True}],
    [{"spin": True}],
    [{"gil_hold": True}],
    [{"ignore": ["SIGTERM", "SIGINT", "SIGHUP"]}, {"hang": True}],
    [{"close": "stdin"}, {"hang": True}],
    [{"progress_forever": True}],
]


def delivered(folder: Path) -> list[str]:
    """Return the calls that reached a worker, in their order."""
    file = folder / "calls"
    return file.read_text().splitlines() if file.exists() else []


async def hanging(pool: Pool, nursery: trio.Nursery) -> tuple[int, trio.CancelScope]:
    """Start a call that does not end; return its worker's pid and its scope, once it runs."""
    scope = trio.CancelScope()
    before = _busy_pids(pool)

    async def call() -> None:
        with scope:
            await pool.call("hang", b"{}", effect=True)

    nursery.start_soon(call)
    await until(lambda: _busy_pids(pool) - before)
    (pid,) = _busy_pids(pool) - before
    return pid, scope


def _busy_pids(pool: Pool) -> set[int]:
    return {slot.process.pid for slot in busy(pool) if slot.process is not None}


async def test_a_spare_starts_after_the_call_that_takes_the_last_worker_and_one_that_a_call_waits_for_at_once(
    open_pool: OpenPool, mock_clock: trio.testing.MockClock
) -> None:
    mock_clock.rate = 1.0
    pool = await open_pool({"hang": True}, workers=3)
    mock_clock.rate = 0.0
    async with trio.open_nursery() as calls:
        for _ in range(2):
            begin_call(calls, pool, "hang")
        await trio.testing.wait_all_tasks_blocked()
        assert (len(busy(pool)), len(pool.workers.slots)) == (2, 2)
        begin_call(calls, pool, "hang")
        await trio.testing.wait_all_tasks_blocked()
        assert len(pool.workers.slots) == 3
        mock_clock.rate = 1.0
        await until(lambda: (len(busy(pool)), len(ready(pool))) == (3, 1))
        calls.cancel_scope.cancel()


async def test_the_call_after_a_kill_is_answered_by_the_running_spare(open_pool: OpenPool) -> None:
    pool = await open_pool(restart=replace(QUICK, first_backoff=3600.0, longest_backoff=3600.0))
    running = set(pids(pool))
    first = int(await ask(pool, "who"))
    os.kill(first, signal.SIGKILL)
    second = int(await ask(pool, "who"))
    assert second in running - {first}
    await until(lambda: [slot for slot in pool.workers.slots if slot.state is WorkerState.BACKOFF])
    assert int(await ask(pool, "who")) == second


async def test_a_read_is_made_once_more_on_the_running_spare(open_pool: OpenPool, tmp_path: Path) -> None:
    pool = await open_pool({"stop": True})
    running = set(pids(pool))
    answers: list[object] = []

    async def read() -> None:
        with pytest.raises(WorkerDied):
            await pool.call("read", b"{}", effect=False)
        answers.append("died")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(read)
        await until(lambda: delivered(tmp_path) == ["read"])
        (first,) = busy(pool)
        kill(first)
        await until(lambda: delivered(tmp_path) == ["read", "read"])
        (second,) = busy(pool)
        assert second is not first
        assert process_of(second).pid in running
        assert answers == []
        kill(second)


async def test_a_read_that_a_fresh_worker_can_answer_is_answered(open_pool: OpenPool, tmp_path: Path) -> None:
    pool = await open_pool(*READ)
    victim = next_lent(pool).pid
    os.kill(victim, signal.SIGSTOP)  # it takes the call, and never answers
    async with trio.open_nursery() as nursery:
        answers = begin_call(nursery, pool, "read")
        await until(lambda: busy(pool))
        os.kill(victim, signal.SIGKILL)
    assert answers == ["hello"]
    assert delivered(tmp_path) == ["read"]


@pytest.mark.parametrize(("effect", "times"), [(False, 2), (True, 1)], ids=["without an effect", "with one"])
async def test_a_call_whose_workers_die_is_repeated_once_but_never_with_an_effect(
    open_pool: OpenPool, tmp_path: Path, effect: bool, times: int
) -> None:
    pool = await open_pool({"exit": 3})
    with pytest.raises(WorkerDied, match="exited with code 3") as caught:
        await pool.call("work", b"{}", effect=effect)
    assert caught.value.ordered == ""
    assert await ask(pool, "ping") == "pong"
    assert delivered(tmp_path) == ["work"] * times


@pytest.mark.parametrize("steps", HANGS, ids=lambda steps: "-".join(key for step in steps for key in step))
async def test_the_deadline_frees_the_caller_and_ends_the_worker_and_the_call_is_not_repeated(
    open_pool: OpenPool, tmp_path: Path, steps: list[Step]
) -> None:
    pool = await open_pool(*steps)
    worker = next_lent(pool)
    timed_out = pytest.RaisesExc(WorkerDied, check=lambda death: death.ordered == "timeout")
    with trio.fail_after(HANG), pytest.RaisesGroup(timed_out):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(lambda: pool.call("read", b"{}", effect=False))
            await until(lambda: delivered(tmp_path))
            assert worker.channel._pending is not None
            worker.channel._pending.deadline = trio.current_time()
            pool.checkout.sweeper.expect(trio.current_time())
    await gone(worker.pid)
    assert await ask(pool, "ping") == "pong"
    assert delivered(tmp_path) == ["read"]


async def test_the_deadline_frees_a_caller_whose_worker_does_not_read(open_pool: OpenPool) -> None:
    pool = await open_pool()
    kill(*ready(pool), by=signal.SIGSTOP)
    with trio.fail_after(HANG), pytest.raises(WorkerDied) as caught:
        await pool.call("echo", bytes(4 * 2**20), effect=True, timeout=0.1)
    assert caught.value.ordered == "timeout"
    await until(lambda: restarts(pool) == 1)  # the other one was left alone
    assert restarts(pool) == 1


async def test_cancelling_a_caller_ends_its_worker_and_no_other(open_pool: OpenPool, nursery: trio.Nursery) -> None:
    pool = await open_pool({"hang": True})
    one, first = await hanging(pool, nursery)
    other, _second = await hanging(pool, nursery)
    first.cancel()
    await gone(one)
    await until(lambda: restarts(pool) == 1)
    assert [process_of(slot).pid for slot in busy(pool)] == [other]


async def test_a_cancelled_call_is_no_death_of_the_category(open_pool: OpenPool, nursery: trio.Nursery) -> None:
    pool = await open_pool({"hang": True})
    for _ in range(pool.spec.restart.intensity + 2):
        pid, scope = await hanging(pool, nursery)
        scope.cancel()
        await gone(pid)
    assert pool.workers.failed_because == ""
    assert await ask(pool, "ping") == "pong"


async def test_cancelling_a_caller_that_waits_ends_no_worker(open_pool: OpenPool, nursery: trio.Nursery) -> None:
    pool = await open_pool({"hang": True}, workers=1)
    await hanging(pool, nursery)
    with trio.move_on_after(0) as scope:
        await pool.call("read", b"{}", effect=False)
    assert scope.cancelled_caught
    assert restarts(pool) == 0


async def test_a_worker_is_told_how_long_a_call_has_waited_for_it(open_pool: OpenPool) -> None:
    pool = await open_pool(warm=False)
    assert 0 < float(await ask(pool, "late")) < HANG
    assert float(await ask(pool, "late")) == 0


async def test_a_hundred_calls_over_four_workers_are_all_answered(open_pool: OpenPool) -> None:
    pool = await open_pool(workers=4)
    answers: list[str] = []
    most = 0

    async def call(number: int) -> None:
        nonlocal most
        answer = await pool.call("echo", f"{number}".encode(), effect=True)
        most = max(most, len(busy(pool)))  # without its own, which may run the next by now
        assert isinstance(answer, messages.Done)
        answers.append(answer.content)

    async with trio.open_nursery() as nursery:
        for number in range(100):
            nursery.start_soon(call, number)
    assert sorted(answers, key=int) == [str(number) for number in range(100)]
    assert most <= 4
    assert pool.times.calls == 100


async def test_no_more_workers_are_busy_than_the_spec_says(open_pool: OpenPool, nursery: trio.Nursery) -> None:
    pool = await open_pool({"hang": True}, workers=2)
    scopes = [(await hanging(pool, nursery))[1] for _ in range(2)]
    await until(lambda: ready(pool))
    with pytest.raises(WorkerUnavailable, match="all were busy"):
        await pool.call("ping", b"{}", effect=False, timeout=0.05)
    assert len(busy(pool)) == 2
    for scope in scopes:
        scope.cancel()


async def test_queued_calls_outlive_the_death_of_the_busy_worker(open_pool: OpenPool, nursery: trio.Nursery) -> None:
    pool = await open_pool({"hang": True}, workers=1)
    ended: list[str] = []

    async def write() -> None:
        with pytest.raises(WorkerDied):
            await pool.call("write", b"{}", effect=True)
        ended.append("died")

    async def ping() -> None:
        ended.append(await ask(pool, "ping"))

    async with trio.open_nursery() as calls:
        calls.start_soon(write)
        await until(lambda: busy(pool))
        for _ in range(10):
            calls.start_soon(ping)
        await trio.testing.wait_all_tasks_blocked()
        kill(busy(pool)[0])
    assert sorted(ended) == ["died"] + ["pong"] * 10


async def test_a_call_that_waits_is_answered_by_the_restarted_worker(open_pool: OpenPool) -> None:
    pool = await open_pool(restart=replace(QUICK, first_backoff=0.2, longest_backoff=0.2))
    lost = pids(pool)
    kill(*ready(pool))
    await until(lambda: not ready(pool))
    assert int(await ask(pool, "who")) not in lost


async def test_a_worker_that_dies_between_lending_and_call_was_never_called(
    open_pool: OpenPool, nursery: trio.Nursery, tmp_path: Path
) -> None:
    pool = await open_pool({"hang": True}, workers=1)
    _pid, scope = await hanging(pool, nursery)
    answers = begin_call(nursery, pool)
    await trio.testing.wait_all_tasks_blocked()
    (spare,) = ready(pool)
    pool.checkout.busy.clear()
    process, spare.process = spare.process, None
    pool.checkout._serve_waiting()  # the spare is the waiting call's, which has not yet run
    await trio.testing.wait_all_tasks_blocked()
    assert answers == []
    spare.process = process
    scope.cancel()
    await until(lambda: answers)
    assert answers == ["pong"]


async def test_arguments_that_fit_no_frame_are_refused_before_anything_is_sent(
    open_pool: OpenPool, tmp_path: Path
) -> None:
    pool = await open_pool()
    with pytest.raises(frames.FrameTooLarge):
        await pool.call("read", bytes(frames.FRAME_LIMIT), effect=True)
    assert (restarts(pool), busy(pool)) == (0, [])
    assert delivered(tmp_path) == []


@pytest.mark.parametrize("size", [0, 1, 2**16, 2**20, 2 * 2**20, 8 * 2**20 - 100])
async def test_arguments_and_results_of_any_size_make_the_round_trip(open_pool: OpenPool, size: int) -> None:
    pool = await open_pool()
    text = ("0123456789abcdef" * (size // 16 + 1))[:size]
    with trio.fail_after(HANG):
        answer = await pool.call("echo", text.encode(), effect=True)
    assert isinstance(answer, messages.Done)
    assert answer.content == text


async def test_a_probe_that_is_answered_by_a_greeting_costs_the_worker(open_pool: OpenPool) -> None:
    pool = await open_pool()
    victim = next_lent(pool).pid
    with trio.fail_after(HANG), pytest.raises(WorkerDied, match="answered with Ready"):
        await pool.probe()
    await gone(victim)


async def test_a_worker_that_exits_idle_is_replaced_in_silence(open_pool: OpenPool) -> None:
    pool = await open_pool()
    victim = next_lent(pool).pid
    os.kill(victim, signal.SIGKILL)
    await until(lambda: restarts(pool) == 1 and len(ready(pool)) == 2)
    assert victim not in pids(pool)


async def test_a_worker_that_somebody_else_has_killed_is_told_as_such(open_pool: OpenPool) -> None:
    """Its output has ended before it has."""
    pool = await open_pool({"close": "stdout"}, {"signal": "SIGKILL"})
    with pytest.raises(WorkerDied) as caught:
        await pool.call("write", b"{}", effect=True)
    assert caught.value.reason == "was killed by SIGKILL"


@pytest.fixture
def answers_come_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each answer come while it is looked for, however slow the machine is."""

    def comes(reader: FrameReader) -> bool:
        return bool(select.select([reader._descriptor], [], [], HANG)[0])

    monkeypatch.setattr(FrameReader, "comes_at_once", comes)
    monkeypatch.setattr(module, "_QUICK_S", HANG)


@pytest.mark.usefixtures("answers_come_at_once")
async def test_quick_calls_of_a_caller_that_is_cancelled_are_not_sent(open_pool: OpenPool, tmp_path: Path) -> None:
    pool = await open_pool(*READ)
    await ask(pool, "read")
    with trio.CancelScope() as cancelled:
        cancelled.cancel()
        await ask(pool, "read")
    assert cancelled.cancelled_caught
    assert delivered(tmp_path) == ["read"]


@pytest.mark.usefixtures("answers_come_at_once")
@pytest.mark.parametrize(("effect", "calls_a_turn"), [(False, 16), (True, 1)], ids=["without an effect", "with one"])
async def test_quick_calls_in_a_row_let_other_tasks_run(open_pool: OpenPool, effect: bool, calls_a_turn: int) -> None:
    pool = await open_pool(*READ)
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(count)
        for _ in range(320):
            await pool.call("read", b"{}", effect=effect)
        nursery.cancel_scope.cancel()
    assert turns >= 320 // calls_a_turn - 10


@dataclass
class Queue:
    """A pool of one worker, whose calls wait behind one that is answered when `go` is called."""

    pool: Pool
    sent: list[bool]
    """For each call that waited, whether it was sent without its task having been woken."""
    go: Callable[[], None]


OpenQueue = Callable[..., Awaitable[Queue]]


@pytest.fixture
def open_queue(open_pool: OpenPool, nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch) -> OpenQueue:
    async def opened(*steps: Step) -> Queue:
        pool, sent, begin = await open_pool(*steps, workers=1), list[bool](), Channel.begin

        def watched(channel: Channel, *call: Any) -> bool:
            sent.append(begin(channel, *call))
            return sent[-1]

        monkeypatch.setattr(Channel, "begin", watched)
        first = next_lent(pool)
        os.kill(first.pid, signal.SIGSTOP)
        begin_call(nursery, pool)
        await until(lambda: busy(pool))
        return Queue(pool, sent, lambda: os.kill(first.pid, signal.SIGCONT))

    return opened


@pytest.mark.parametrize(("size", "at_once"), [(100, True), (select.PIPE_BUF, False)])
async def test_a_call_that_waited_is_sent_for_its_task_unless_it_might_go_in_parts(
    open_queue: OpenQueue, nursery: trio.Nursery, size: int, at_once: bool
) -> None:
    queue = await open_queue()
    answers: list[str] = []

    async def call(number: int) -> None:
        args = json.dumps({"text": f"{number}" * size}).encode()
        answer = await queue.pool.call("echo", args, effect=False)
        assert isinstance(answer, messages.Done)
        answers.append(answer.content)
        assert answer.content == args.decode()

    for number in range(5):
        nursery.start_soon(call, number)
    await trio.testing.wait_all_tasks_blocked()
    queue.go()
    await until(lambda: len(answers) == 5)
    assert (queue.sent, queue.pool.times.calls) == ([at_once] * 5, 6)


async def test_waiting_calls_are_served_first_come_first_served(
    open_queue: OpenQueue, nursery: trio.Nursery, tmp_path: Path
) -> None:
    queue = await open_queue()
    names = [f"number {number}" for number in range(10)]
    for name in names:
        begin_call(nursery, queue.pool, name)
        await trio.testing.wait_all_tasks_blocked()
    queue.go()
    await until(lambda: queue.pool.times.calls == 11)
    assert delivered(tmp_path) == names


async def test_cancelling_a_call_that_waits_harms_nobody_and_once_it_was_sent_ends_its_worker(
    open_queue: OpenQueue, nursery: trio.Nursery, tmp_path: Path
) -> None:
    queue = await open_queue({"hang": True})
    scopes = [trio.CancelScope() for _ in range(3)]

    async def call(scope: trio.CancelScope, tool: str) -> None:
        with scope:
            await queue.pool.call(tool, b"{}", effect=False)

    for scope, tool in zip(scopes, ("gone", "hang", "left"), strict=True):
        nursery.start_soon(call, scope, tool)
        await trio.testing.wait_all_tasks_blocked()
    scopes[0].cancel()
    await trio.testing.wait_all_tasks_blocked()
    queue.go()
    await until(lambda: delivered(tmp_path) == ["hang"])
    (slot,) = busy(queue.pool)
    pid = process_of(slot).pid
    scopes[1].cancel()
    await gone(pid)
    await until(lambda: delivered(tmp_path) == ["hang", "left"])
    scopes[2].cancel()
    assert await ask(queue.pool, "ping") == "pong"
    assert queue.sent[:1] == [True]
    assert all(scope.cancelled_caught for scope in scopes)


@pytest.mark.parametrize(("effect", "times"), [(False, 2), (True, 1)], ids=["without an effect", "with one"])
async def test_a_call_that_was_sent_for_its_task_has_the_fate_of_any_other(
    open_queue: OpenQueue, nursery: trio.Nursery, tmp_path: Path, effect: bool, times: int
) -> None:
    queue = await open_queue({"exit": 3})
    deaths: list[str] = []

    async def call() -> None:
        with pytest.raises(WorkerDied) as caught:
            await queue.pool.call("work", b"{}", effect=effect)
        deaths.append(caught.value.reason)

    nursery.start_soon(call)
    await trio.testing.wait_all_tasks_blocked()
    queue.go()
    await until(lambda: deaths)
    assert (deaths, delivered(tmp_path)) == (["exited with code 3"], ["work"] * times)
    assert queue.sent[0]
