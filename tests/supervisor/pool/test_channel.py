"""A channel over two pipes; the test is the worker."""

import os
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest
import trio
import trio.testing

from supervisor.errors import WorkerDied, WorkerUnavailable
from supervisor.pool.channel import STRAY_LIMIT, Channel
from supervisor.pool.spec import worker_command
from tests.supervisor.pool.conftest import OpenPool
from tests.supervisor.pool.harness import HANG, ask, pids, until
from workers.wire import frames, messages

DONE = frames.frame(messages.Done(7, "x"))
LARGE = 4 * 2**20
"""Bytes that fit no pipe: they go out while the worker reads."""


@dataclass
class Ends:
    """A channel, and the worker's ends of its pipes."""

    channel: Channel
    reader: int
    writer: int
    kills: list[str] = field(default_factory=list)

    @property
    def breach(self) -> str:
        """How the worker broke the protocol or left."""
        return " ".join(self.kills)

    def say(self, data: bytes) -> None:
        assert os.write(self.writer, data) == len(data)


@pytest.fixture
async def ends(nursery: trio.Nursery) -> AsyncIterator[Ends]:
    incoming, writer = os.pipe()
    reader, outgoing = os.pipe()
    kills: list[str] = []
    channel = Channel(incoming, outgoing, kills.append, trio.Event())
    ends = Ends(channel, reader, writer, kills)
    yield ends
    nursery.cancel_scope.cancel()
    with trio.CancelScope(shield=True):
        await trio.testing.wait_all_tasks_blocked()
    channel.close()
    os.close(reader)
    if ends.writer >= 0:
        os.close(writer)


async def test_an_exchange_ends_with_its_answer(ends: Ends, nursery: trio.Nursery) -> None:
    got: list[object] = []

    async def call() -> None:
        got.append(await ends.channel.exchange(b"message", 7))

    nursery.start_soon(call)
    await trio.testing.wait_all_tasks_blocked()
    assert os.read(ends.reader, 100) == b"message"
    ends.say(DONE)
    await until(lambda: got)
    assert got == [messages.Done(7, "x")]


async def test_a_frame_may_come_byte_by_byte(ends: Ends, nursery: trio.Nursery) -> None:
    async def say_slowly() -> None:
        for byte in DONE:
            await trio.testing.wait_all_tasks_blocked()
            ends.say(bytes([byte]))

    nursery.start_soon(say_slowly)
    with trio.fail_after(HANG):
        assert await ends.channel.exchange(b"message", 7) == messages.Done(7, "x")


async def test_output_comes_in_order_and_before_the_answer(ends: Ends) -> None:
    seen: list[str] = []
    outputs = [frames.frame(messages.Output(7, str(number))) for number in range(300)]

    async with trio.open_nursery() as nursery:

        async def call() -> None:
            await ends.channel.exchange(b"message", 7, output=seen.append)
            seen.append("answered")

        nursery.start_soon(call)
        await trio.testing.wait_all_tasks_blocked()
        ends.say(b"".join(outputs) + DONE)
    assert seen == [str(number) for number in range(300)] + ["answered"]


async def test_output_that_nobody_watches_is_dropped(ends: Ends, nursery: trio.Nursery) -> None:
    async def say() -> None:
        await trio.testing.wait_all_tasks_blocked()
        ends.say(frames.frame(messages.Output(7, "x")) + DONE)

    nursery.start_soon(say)
    with trio.fail_after(HANG):
        assert await ends.channel.exchange(b"message", 7) == messages.Done(7, "x")


async def test_an_answer_to_another_call_breaks_the_channel(ends: Ends, nursery: trio.Nursery) -> None:
    nursery.start_soon(_exchange_until_dead, ends.channel, 8)
    await trio.testing.wait_all_tasks_blocked()
    ends.say(DONE)
    await until(lambda: ends.breach)
    assert "answered another call with Done" in ends.breach
    ends.channel.fail(WorkerDied("gone"))


async def test_nothing_is_taken_after_a_breach(ends: Ends, nursery: trio.Nursery) -> None:
    seen: list[str] = []
    died = trio.Event()

    async def call() -> None:
        with pytest.raises(WorkerDied):
            await ends.channel.exchange(b"message", 8, output=seen.append)
        died.set()

    nursery.start_soon(call)
    await trio.testing.wait_all_tasks_blocked()
    ends.say(frames.frame(messages.Output(8, "once")) + DONE + frames.frame(messages.Done(8, "late")))
    await until(lambda: ends.breach)
    ends.say(frames.frame(messages.Done(8, "later")))
    await trio.testing.wait_all_tasks_blocked()
    ends.channel.drain()
    ends.channel.fail(WorkerDied("gone"))
    await died.wait()
    assert seen == ["once"]


async def test_a_few_strays_are_dropped(ends: Ends, nursery: trio.Nursery) -> None:
    ends.say(DONE * STRAY_LIMIT)
    nursery.start_soon(_exchange_until_dead, ends.channel, 8)
    await trio.testing.wait_all_tasks_blocked()
    assert ends.kills == []
    ends.channel.fail(WorkerDied("gone"))


async def test_many_strays_break_the_channel(ends: Ends) -> None:
    ends.say(DONE * (STRAY_LIMIT + 1))
    with pytest.raises(WorkerUnavailable):
        await ends.channel.exchange(b"message", 8)
    assert f"{STRAY_LIMIT + 1} frames outside of a call" in ends.breach


async def test_a_call_that_meets_a_breach_is_not_sent(ends: Ends) -> None:
    ends.say(b"garbage")
    with pytest.raises(WorkerUnavailable):
        await ends.channel.exchange(b"message", 8)
    os.set_blocking(ends.reader, False)
    with pytest.raises(BlockingIOError):
        os.read(ends.reader, 1)


async def test_a_late_answer_is_not_the_next_calls(ends: Ends, nursery: trio.Nursery) -> None:
    ends.say(DONE)
    await trio.testing.wait_all_tasks_blocked()
    nursery.start_soon(_exchange_until_dead, ends.channel, 8)
    await trio.testing.wait_all_tasks_blocked()
    assert ends.channel.deadline == 1e9
    ends.channel.fail(WorkerDied("gone"))


async def test_cancelling_the_caller_kills(ends: Ends) -> None:
    with trio.move_on_after(0):
        await ends.channel.exchange(b"message", 7)
    assert ends.kills == ["cancelled"]


async def test_cancelling_in_the_middle_of_a_large_message_kills(ends: Ends) -> None:
    with trio.move_on_after(0):
        await ends.channel.exchange(bytes(LARGE), 7)
    assert ends.kills == ["cancelled"]


async def test_a_dead_worker_is_unavailable(ends: Ends) -> None:
    ends.channel.fail(WorkerDied("gone"))
    with pytest.raises(WorkerUnavailable):
        await ends.channel.exchange(b"message", 7)


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


async def test_giving_up_frees_a_caller_that_still_writes(ends: Ends) -> None:
    death = WorkerDied("was given up", "timeout")
    with trio.fail_after(HANG), pytest.RaisesGroup(pytest.RaisesExc(WorkerDied, check=lambda error: error is death)):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ends.channel.exchange, bytes(LARGE), 7)
            await trio.testing.wait_all_tasks_blocked()
            ends.channel.fail(death)


async def test_a_worker_that_dies_before_it_has_read_the_call_was_never_called(ends: Ends) -> None:
    with trio.fail_after(HANG), pytest.RaisesGroup(WorkerUnavailable):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ends.channel.exchange, bytes(LARGE), 7)
            await trio.testing.wait_all_tasks_blocked()
            ends.channel.fail(WorkerDied("exited with code 1"))


async def test_closing_frees_a_caller_that_still_writes(ends: Ends) -> None:
    with trio.fail_after(HANG), pytest.RaisesGroup(WorkerUnavailable):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ends.channel.exchange, bytes(LARGE), 7)
            await trio.testing.wait_all_tasks_blocked()
            ends.channel.finish()


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


async def test_what_a_dead_worker_left_in_the_pipe_is_taken(ends: Ends, nursery: trio.Nursery) -> None:
    got: list[object] = []

    async def call() -> None:
        got.append(await ends.channel.exchange(b"message", 7))

    nursery.start_soon(call)
    await trio.testing.wait_all_tasks_blocked()
    ends.say(DONE)
    ends.channel.drain()
    ends.channel.fail(WorkerDied("gone"))
    await until(lambda: got)
    assert got == [messages.Done(7, "x")]


async def test_what_a_grandchild_goes_on_writing_is_not_waited_for(ends: Ends, nursery: trio.Nursery) -> None:
    frame = frames.frame(messages.Output(7, "x"))

    def refill(_text: str) -> None:
        ends.say(frame)

    async def call() -> None:
        with pytest.raises(WorkerDied):
            await ends.channel.exchange(b"message", 7, output=refill)

    nursery.start_soon(call)
    await trio.testing.wait_all_tasks_blocked()
    ends.say(frame * 1000)
    ends.channel.drain()
    ends.channel.fail(WorkerDied("gone"))


async def test_a_worker_that_closed_its_output_is_unavailable(ends: Ends) -> None:
    os.close(ends.writer)
    ends.writer = -1
    with pytest.raises(WorkerUnavailable):
        await ends.channel.exchange(b"message", 8)
    assert ends.kills == ["closed its output"]


async def test_a_worker_that_closes_its_output_in_mid_call_is_ended(ends: Ends, nursery: trio.Nursery) -> None:
    nursery.start_soon(_exchange_until_dead, ends.channel, 8)
    await trio.testing.wait_all_tasks_blocked()
    os.close(ends.writer)
    ends.writer = -1
    await until(lambda: ends.breach)
    assert ends.kills == ["closed its output"]
    ends.channel.fail(WorkerDied("gone"))


TELLS_TOO_MUCH = """
from tests.fake_worker import Fake
from workers.wire import messages
from workers.changes.effects import CHANGES, Change, Effects

class TellsTooMuch(Fake):
    def misbehave(self):
        self.send(messages.Proposed(self.call.id, Effects((Change("", "times"),) * (CHANGES + 1), {}, b"")))

TellsTooMuch({"steps": [], "calls": "", "cured": "", "memory": ""}).live()
"""


async def test_a_worker_that_tells_of_more_changes_than_may_be_told_ends_alone(open_pool: OpenPool) -> None:
    pool = await open_pool(command=worker_command(TELLS_TOO_MUCH))
    before = pids(pool)
    with trio.fail_after(HANG), pytest.raises(WorkerDied, match=r"broke the protocol: .* at `\$\.effects\.changes`"):
        await pool.propose("misbehave", b"{}")
    assert await ask(pool, "ping") == "pong"
    assert len({*before} & {*pids(pool)}) == len(before) - 1


async def _exchange_until_dead(channel: Channel, number: int) -> None:
    with pytest.raises(WorkerDied):
        await channel.exchange(b"message", number, deadline=1e9)
