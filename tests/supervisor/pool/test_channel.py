"""A channel over two pipes; the test is the worker."""

import os
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest
import trio
import trio.testing

from supervisor.errors import WorkerDied, WorkerUnavailable
from supervisor.pool.channel import STRAY_LIMIT, Channel
from supervisor.pool.pipe_watch import PipeWatch
from supervisor.pool.template_process import worker_command
from tests.supervisor.pool.conftest import OpenPool
from tests.supervisor.pool.harness import HANG, ask, pids, until
from workers.wire import frames, messages

DONE = frames.frame(messages.Done(7, "x"))
DEATH = WorkerDied("was given up", "timeout")
LARGE = 4 * 2**20
"""Bytes that fit no pipe: they go out while the worker reads."""


@dataclass
class Ends:
    """A channel, and the worker's ends of its pipes."""

    channel: Channel
    reader: int
    writer: int
    kills: list[str]
    answers: list[object] = field(default_factory=list)

    @property
    def breach(self) -> str:
        """How the worker broke the protocol or left."""
        return " ".join(self.kills)

    def say(self, data: bytes) -> None:
        assert os.write(self.writer, data) == len(data)

    def close_writer(self) -> None:
        os.close(self.writer)
        self.writer = -1

    async def call(self, number: int = 7, **options: Any) -> None:
        """Begin an exchange, and note its answer, or the death of the worker."""
        try:
            self.answers.append(await self.channel.exchange(b"message", number, **options))
        except WorkerDied as error:
            self.answers.append(error)


@pytest.fixture
async def ends(nursery: trio.Nursery) -> AsyncIterator[Ends]:
    incoming, writer = os.pipe()
    reader, outgoing = os.pipe()
    kills: list[str] = []
    watch = PipeWatch()
    nursery.start_soon(watch.run)
    channel = Channel(incoming, outgoing, kills.append, trio.Event(), watch)
    ends = Ends(channel, reader, writer, kills)
    yield ends
    nursery.cancel_scope.cancel()
    with trio.CancelScope(shield=True):
        await trio.testing.wait_all_tasks_blocked()
    channel.close()
    watch.close()
    os.close(reader)
    if ends.writer >= 0:
        os.close(writer)


async def begin(ends: Ends, nursery: trio.Nursery, number: int = 7, **options: Any) -> None:
    """Return when an exchange waits for its answer."""
    nursery.start_soon(partial(ends.call, number, **options))
    await trio.testing.wait_all_tasks_blocked()


async def test_an_exchange_ends_with_its_answer(ends: Ends, nursery: trio.Nursery) -> None:
    await begin(ends, nursery)
    assert os.read(ends.reader, 100) == b"message"
    ends.say(DONE)
    await until(lambda: ends.answers)
    assert ends.answers == [messages.Done(7, "x")]


async def test_a_frame_may_come_byte_by_byte(ends: Ends, nursery: trio.Nursery) -> None:
    async def say_slowly() -> None:
        for byte in DONE:
            await trio.testing.wait_all_tasks_blocked()
            ends.say(bytes([byte]))

    nursery.start_soon(say_slowly)
    with trio.fail_after(HANG):
        assert await ends.channel.exchange(b"message", 7) == messages.Done(7, "x")


async def test_output_comes_in_order_and_before_the_answer(ends: Ends, nursery: trio.Nursery) -> None:
    seen = ends.answers
    outputs = [frames.frame(messages.Output(7, str(number))) for number in range(300)]
    await begin(ends, nursery, output=seen.append)
    ends.say(b"".join(outputs) + DONE)
    await until(lambda: len(seen) == 301)
    assert seen == [*(str(number) for number in range(300)), messages.Done(7, "x")]


async def test_output_that_nobody_watches_is_dropped(ends: Ends, nursery: trio.Nursery) -> None:
    await begin(ends, nursery)
    ends.say(frames.frame(messages.Output(7, "x")) + DONE)
    await until(lambda: ends.answers)
    assert ends.answers == [messages.Done(7, "x")]


async def test_what_cannot_be_read_ends_one_worker_and_the_others_are_heard(
    ends: Ends, nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_memory(_size: int) -> bytearray:
        raise MemoryError

    monkeypatch.setattr("supervisor.pool.frame_reader.bytearray", no_memory, raising=False)
    ends.say(frames.LENGTH.pack(frames.FRAME_LIMIT))
    await until(lambda: ends.kills)
    assert ends.breach == "cannot be heard: MemoryError"
    with pytest.raises(WorkerUnavailable):
        await ends.channel.exchange(b"message", 7)


async def test_an_answer_to_another_call_breaks_the_channel_and_nothing_is_taken_any_more(
    ends: Ends, nursery: trio.Nursery
) -> None:
    seen: list[str] = []
    await begin(ends, nursery, 8, output=seen.append)
    ends.say(frames.frame(messages.Output(8, "once")) + DONE + frames.frame(messages.Done(8, "late")))
    await until(lambda: ends.breach)
    assert "answered another call with Done" in ends.breach
    ends.say(frames.frame(messages.Done(8, "later")))
    await trio.testing.wait_all_tasks_blocked()
    ends.channel.drain()
    ends.channel.fail(DEATH)
    await until(lambda: ends.answers)
    assert (seen, ends.answers) == (["once"], [DEATH])


async def test_a_few_strays_are_dropped_and_are_no_answer_to_the_next_call(ends: Ends, nursery: trio.Nursery) -> None:
    ends.say(DONE * STRAY_LIMIT)
    await begin(ends, nursery, 8, deadline=1e9)
    assert (ends.kills, ends.answers, ends.channel.deadline) == ([], [], 1e9)
    ends.channel.fail(DEATH)
    await until(lambda: ends.answers == [DEATH])


async def test_many_strays_break_the_channel(ends: Ends) -> None:
    ends.say(DONE * (STRAY_LIMIT + 1))
    with pytest.raises(WorkerUnavailable):
        await ends.channel.exchange(b"message", 8)
    assert f"{STRAY_LIMIT + 1} frames outside of a call" in ends.breach


async def test_a_worker_that_sends_much_while_nobody_asks_it_is_ended_at_once(ends: Ends) -> None:
    ends.say(DONE * (STRAY_LIMIT + 1))
    await until(lambda: ends.breach)
    assert f"{STRAY_LIMIT + 1} frames outside of a call" in ends.breach


async def test_an_answer_that_comes_before_the_call_was_read_breaks_the_channel(
    ends: Ends, nursery: trio.Nursery
) -> None:
    async def call() -> None:
        with pytest.raises(WorkerUnavailable):
            await ends.channel.exchange(bytes(LARGE), 7)

    nursery.start_soon(call)
    await trio.testing.wait_all_tasks_blocked()
    ends.say(DONE)
    await until(lambda: ends.breach)
    ends.channel.fail(WorkerDied("was ended"))
    assert "answered with Done before it had read the call" in ends.breach


async def test_an_error_of_who_takes_the_output_is_the_callers_and_ends_the_worker(ends: Ends) -> None:
    def take(_text: str) -> None:
        raise ZeroDivisionError

    ends.say(frames.frame(messages.Output(7, "early")))  # a stray
    with pytest.RaisesGroup(ZeroDivisionError):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(partial(ends.channel.exchange, b"message", 7, output=take))
            await trio.testing.wait_all_tasks_blocked()
            ends.say(frames.frame(messages.Output(7, "x")) + DONE)
    assert ends.kills == ["cancelled"]


async def test_a_call_that_meets_a_breach_is_not_sent(ends: Ends) -> None:
    ends.say(b"garbage")
    with pytest.raises(WorkerUnavailable):
        await ends.channel.exchange(b"message", 8)
    os.set_blocking(ends.reader, False)
    with pytest.raises(BlockingIOError):
        os.read(ends.reader, 1)


@pytest.mark.parametrize("size", [7, LARGE])
async def test_cancelling_the_caller_kills(size: int, ends: Ends) -> None:
    with trio.move_on_after(0):
        await ends.channel.exchange(bytes(size), 7)
    assert ends.kills == ["cancelled"]


async def test_a_dead_worker_is_unavailable(ends: Ends) -> None:
    ends.channel.fail(DEATH)
    with pytest.raises(WorkerUnavailable):
        await ends.channel.exchange(b"message", 7)


async def test_a_large_message_holds_nothing_of_a_larger_one_before_it(ends: Ends, nursery: trio.Nursery) -> None:
    sent = [messages.Done(7, "x" * 2**20), messages.Done(7, "y" * 2**18)]
    for each in sent:
        nursery.start_soon(trio.to_thread.run_sync, ends.say, frames.frame(each))
        with trio.fail_after(HANG):
            assert await ends.channel.exchange(b"message", 7) == each


async def test_a_large_message_arrives_whole(ends: Ends, nursery: trio.Nursery) -> None:
    message = os.urandom(LARGE)
    received = bytearray()

    async def read() -> None:
        os.set_blocking(ends.reader, False)
        while len(received) < LARGE:
            await trio.lowlevel.wait_readable(ends.reader)
            received.extend(os.read(ends.reader, 2**16))
        ends.say(DONE)

    nursery.start_soon(read)
    with trio.fail_after(HANG):
        await ends.channel.exchange(message, 7)
    assert received == message


@pytest.mark.parametrize(
    ("end", "told"),
    [
        pytest.param(lambda channel: channel.fail(DEATH), DEATH, id="giving up"),
        pytest.param(lambda channel: channel.fail(WorkerDied("exited")), None, id="its end: it was never called"),
        pytest.param(Channel.finish, None, id="closing"),
    ],
)
async def test_a_caller_that_still_writes_is_freed_by(
    end: Callable[[Channel], None], told: WorkerDied | None, ends: Ends
) -> None:
    expected = pytest.RaisesExc(WorkerDied if told else WorkerUnavailable, check=lambda error: told in (None, error))
    with trio.fail_after(HANG), pytest.RaisesGroup(expected):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ends.channel.exchange, bytes(LARGE), 7)
            await trio.testing.wait_all_tasks_blocked()
            end(ends.channel)


async def test_an_endless_writer_does_not_keep_others_from_running(ends: Ends) -> None:
    """The pipe is refilled by every output, so it is never empty; only a reader that lets others run ends this."""
    frame = frames.frame(messages.Output(7, "x"))
    os.set_blocking(ends.writer, False)
    turns = 0

    def refill(_text: str) -> None:
        try:
            os.write(ends.writer, frame * 3)
        except BlockingIOError:
            return

    async def count() -> None:
        nonlocal turns
        while turns < 20:
            turns += 1
            await trio.lowlevel.checkpoint()
        scope.cancel()

    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(lambda: ends.channel.exchange(b"message", 7, output=refill))
            await trio.testing.wait_all_tasks_blocked()
            ends.say(frame)
            nursery.start_soon(count)
    assert turns == 20


async def test_an_answer_that_a_dead_worker_left_in_the_pipe_is_taken(ends: Ends, nursery: trio.Nursery) -> None:
    await begin(ends, nursery)
    ends.say(DONE)
    ends.channel.drain()
    ends.channel.fail(DEATH)
    await until(lambda: ends.answers)
    assert ends.answers == [messages.Done(7, "x")]


async def test_a_grandchild_that_goes_on_writing_is_not_waited_for(ends: Ends, nursery: trio.Nursery) -> None:
    frame = frames.frame(messages.Output(7, "x"))
    await begin(ends, nursery, output=lambda _text: ends.say(frame))
    ends.say(frame * 1000)
    ends.channel.drain()
    ends.channel.fail(DEATH)
    await until(lambda: ends.answers == [DEATH])


async def test_a_worker_that_closed_its_output_is_unavailable(ends: Ends) -> None:
    ends.close_writer()
    with pytest.raises(WorkerUnavailable):
        await ends.channel.exchange(b"message", 8)
    assert ends.kills == ["closed its output"]


async def test_a_worker_that_closes_its_output_in_mid_call_is_ended(ends: Ends, nursery: trio.Nursery) -> None:
    await begin(ends, nursery)
    ends.close_writer()
    await until(lambda: ends.breach)
    assert ends.kills == ["closed its output"]
    ends.channel.fail(DEATH)


TELLS_TOO_MUCH = """
from tests.fake_worker import Fake
from workers.wire import messages
from workers.changes.effects import CHANGES, Change, Effects

class TellsTooMuch(Fake):
    def misbehave(self):
        self.send(messages.Proposed(self.call.id, Effects((Change("", "times"),) * (CHANGES + 1), {}, b"")))

TellsTooMuch().live()
"""


async def test_a_worker_that_tells_of_more_changes_than_may_be_told_ends_alone(open_pool: OpenPool) -> None:
    pool = await open_pool(command=worker_command(TELLS_TOO_MUCH))
    before = pids(pool)
    with trio.fail_after(HANG), pytest.raises(WorkerDied, match=r"broke the protocol: .* at `\$\.effects\.changes`"):
        await pool.propose("misbehave", b"{}")
    assert await ask(pool, "ping") == "pong"
    assert len({*before} & {*pids(pool)}) == len(before) - 1
