"""One worker's two pipes: frames out, frames in, at most one exchange at a time.

Rule: an exchange ends with its own answer, or the process is ended; there is no third way. Every id is random, so
a late, repeated or forged answer matches nothing. A frame that no exchange is waiting for is dropped and counted;
a worker that sends many of them, or bytes that are no frame, is broken.

Speed: write first and wait only when the pipe is full; one reader task that reschedules the waiting task itself;
no cancel scope per call (the pool's sweeper watches the deadlines). See scripts/bench.
"""

import fcntl
import logging
import os
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import outcome
from trio.lowlevel import (
    Abort,
    RaiseCancelT,
    Task,
    current_task,
    notify_closing,
    reschedule,
    wait_readable,
    wait_task_rescheduled,
    wait_writable,
)

from supervisor.errors import WorkerDied, WorkerUnavailable
from workers import wire

PIPE_SIZE: Final = 2**20
"""Bytes asked of the kernel for each pipe; a large reply then needs few wake-ups. Less is fine."""

STRAY_LIMIT: Final = 16
"""Frames outside of an exchange that one worker may send in its life."""

_CHUNK: Final = 2**16
_log: Final = logging.getLogger("strongroom.pool")

Answer = wire.Ready | wire.Refused | wire.Done | wire.Failed | wire.Probed


class _Exchange:
    """What is awaited: the answer to call `id`, or (None) to Start or Probe."""

    __slots__ = ("answer", "deadline", "id", "output", "task")

    def __init__(self, number: int | None, deadline: float, output: Callable[[str], None] | None) -> None:
        self.id = number
        self.deadline = deadline
        self.output = output
        self.task: Task | None = None
        self.answer: outcome.Outcome[Answer] | None = None

    def settle(self, answer: outcome.Outcome[Answer]) -> None:
        self.answer = answer
        if self.task is not None:
            reschedule(self.task, answer)


class Channel:
    """The supervisor's ends of the pipes of one worker process.

    Args:
        incoming: read end of the worker's fd 1; owned from here on.
        outgoing: write end of the worker's fd 0; owned from here on.
        kill: ends the process at once, noting why; called when a caller is cancelled.
    """

    def __init__(self, incoming: int, outgoing: int, kill: Callable[[str], None]) -> None:
        self._incoming = incoming
        self._outgoing = outgoing
        self._kill = kill
        self._exchange: _Exchange | None = None
        self._buffer = bytearray()
        self._strays = 0
        self._dead: WorkerDied | None = None
        for descriptor in (incoming, outgoing):
            os.set_blocking(descriptor, False)
            with suppress(PermissionError):  # over the user's pipe-user-pages-soft: the default size will do
                fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, PIPE_SIZE)

    @property
    def deadline(self) -> float:
        """When the running exchange is overdue (trio's clock); infinite when none runs."""
        return float("inf") if self._exchange is None else self._exchange.deadline

    async def exchange(
        self,
        message: bytes,
        number: int | None = None,
        deadline: float = float("inf"),
        output: Callable[[str], None] | None = None,
    ) -> Answer:
        """Send one frame and wait for its answer.

        Cancelling the caller kills the process.

        Raises:
            WorkerUnavailable: the worker was already gone; it has seen nothing of the message.
            WorkerDied: the process ended before its answer.
        """
        if self._dead is not None or self._outgoing < 0:
            raise WorkerUnavailable("the worker has ended")
        exchange = self._exchange = _Exchange(number, deadline, output)
        try:
            try:
                written = os.write(self._outgoing, message)
            except BlockingIOError:
                written = 0
            if written < len(message):
                await self._write_rest(exchange, memoryview(message)[written:])
        except BrokenPipeError:
            # Nobody reads any more; what was written was never a whole frame.
            self._exchange = None
            self._kill("closed its input")
            raise WorkerUnavailable("the worker had closed its input") from None
        except BaseException:
            self._exchange = None
            self._kill("cancelled")
            raise
        if exchange.answer is not None:
            self._exchange = None
            return exchange.answer.unwrap()
        exchange.task = current_task()
        answer: Answer = await wait_task_rescheduled(self._abort)
        return answer

    async def _write_rest(self, exchange: _Exchange, rest: memoryview) -> None:
        while rest and exchange.answer is None:
            await wait_writable(self._outgoing)
            with suppress(BlockingIOError):
                rest = rest[os.write(self._outgoing, rest) :]

    def _abort(self, _raise_cancel: RaiseCancelT) -> Abort:
        self._exchange = None
        self._kill("cancelled")
        return Abort.SUCCEEDED

    async def pump(self) -> str:
        """Read frames until the worker's end closes or breaks the protocol; return what happened."""
        try:
            while True:
                try:
                    chunk = os.read(self._incoming, _CHUNK)
                except BlockingIOError:
                    await wait_readable(self._incoming)
                    continue
                if not chunk:
                    return "closed its output"
                self._feed(chunk)
        except wire.FrameError as error:
            return f"broke the protocol: {error}"

    def drain(self) -> None:
        """Take what a process wrote before it ended; a grandchild that holds the pipe is not waited for."""
        with suppress(BlockingIOError, wire.FrameError, OSError):
            while chunk := os.read(self._incoming, _CHUNK):
                self._feed(chunk)

    def fail(self, death: WorkerDied) -> None:
        """Tell whoever waits that no answer will come, and everybody later."""
        self._dead = death
        exchange, self._exchange = self._exchange, None
        if exchange is not None:
            exchange.settle(outcome.Error(death))

    def finish(self) -> None:
        """Close our end of the worker's input: it leaves when it has nothing to do."""
        if self._outgoing >= 0:
            notify_closing(self._outgoing)
            os.close(self._outgoing)
            self._outgoing = -1

    def close(self) -> None:
        """Close both ends."""
        self.finish()
        if self._incoming >= 0:
            notify_closing(self._incoming)
            os.close(self._incoming)
            self._incoming = -1

    def _feed(self, chunk: bytes) -> None:
        header = wire.LENGTH.size
        if not self._buffer and len(chunk) > header and len(chunk) == header + wire.payload_length(chunk[:header]):
            self._take(memoryview(chunk)[header:])  # the common case, one whole small frame: nothing is copied
            return
        buffer, position = self._buffer, 0
        buffer += chunk
        while len(buffer) - position >= header:
            end = position + header + wire.payload_length(buffer[position : position + header])
            if len(buffer) < end:
                break
            self._take(bytes(memoryview(buffer)[position + header : end]))
            position = end
        del buffer[:position]

    def _take(self, payload: bytes | memoryview) -> None:
        try:
            message = wire.decode_up(payload)
        except wire.FrameError as error:
            if self._exchange is not None:
                raise
            self._stray(str(error))
            return
        exchange = self._exchange
        if exchange is None:
            self._stray(f"{type(message).__name__} outside of a call")
        elif isinstance(message, wire.Output):
            if message.id != exchange.id:
                raise wire.FrameError("output of another call")
            if exchange.output is not None:
                exchange.output(message.text)
        elif (message.id if isinstance(message, wire.Done | wire.Failed) else None) != exchange.id:
            raise wire.FrameError(f"answered another call with {type(message).__name__}")
        else:
            self._exchange = None
            exchange.settle(outcome.Value(message))

    def _stray(self, what: str) -> None:
        self._strays += 1
        if self._strays > STRAY_LIMIT:
            raise wire.FrameError(f"{self._strays} frames outside of a call")
        _log.warning("dropped a stray frame of a worker: %s", what)
