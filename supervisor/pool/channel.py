"""One worker's two pipes: frames out, frames in, at most one exchange at a time.

Rule: an exchange ends with its own answer, or the process is ended. Every id is random, so a late or forged answer
matches nothing. What comes between exchanges is dropped and counted; much of it, or what is no frame, breaks a worker.

Speed: write first and wait only when the pipe is full; one task reads for all workers of a pool (`PipeWatch`), and has
the next call sent before who awaited the answer goes on; no cancel scope per call (the pool's sweeper watches the
deadlines); a quick tool's answer is looked for before the event loop has its turn (12 of 29 us on one CPU), first
without sleeping (14 of 31 us on two).
"""

import fcntl
import logging
import os
import select
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import msgspec
import trio
from trio.lowlevel import Abort, RaiseCancelT, Task, current_task, notify_closing, wait_task_rescheduled, wait_writable

from supervisor.errors import WorkerDied, WorkerError, WorkerUnavailable
from supervisor.pool.frame_reader import FrameReader
from supervisor.pool.pending_answer import Originals, Output, PendingAnswer
from supervisor.pool.pipe_watch import PipeWatch
from workers.wire import frames, messages

PIPE_SIZE: Final = 2**20
"""Bytes asked of the kernel for each pipe; a large reply then needs few wake-ups. Less is fine."""
STRAY_LIMIT: Final = 16
"""Frames outside of an exchange that one worker may send in its life."""
_SHARE: Final = 2**16
"""Bytes after which other tasks have their turn: a worker that writes without end must not keep them from running."""
_DYING: Final = 0.3
"""Seconds in which a process that has closed a pipe may turn out to have ended."""
_log: Final = logging.getLogger("strongroom.pool")
_USUAL: Final = (messages.Done, messages.Failed, messages.Ready, messages.Refused, messages.Probed)


class Channel:
    """The supervisor's ends of the pipes of one worker process.

    Args:
        incoming: read end of the worker's fd 1; owned from here on.
        outgoing: write end of the worker's fd 0; owned from here on.
        kill: ends the process at once, noting why; called when a caller is cancelled.
        exited: is set once the process has ended.
        watch: reads from it.

    Raises:
        OSError: it cannot be watched; the descriptors are still the caller's.
    """

    def __init__(
        self, incoming: int, outgoing: int, kill: Callable[[str], None], exited: trio.Event, watch: PipeWatch
    ) -> None:
        self._incoming = incoming
        self._outgoing = outgoing
        self._kill = kill
        self._exited = exited
        self._pending: PendingAnswer | None = None
        self._frames = FrameReader(incoming, self._take)
        self._strays = 0
        self._broken = False
        self._silent = False
        self._just_read = False
        self._dead: WorkerDied | None = None
        for descriptor in (incoming, outgoing):
            os.set_blocking(descriptor, False)
            with suppress(OSError):  # over the user's pipe-user-pages-soft, out of memory: the default size will do
                fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, PIPE_SIZE)
        self._early = select.poll()
        self._early.register(incoming, select.POLLIN)
        self._watch = watch
        watch.add(incoming, self._readable)

    @property
    def deadline(self) -> float:
        """When the exchange under way is overdue (trio's clock); infinite when none runs."""
        return float("inf") if self._pending is None else self._pending.deadline

    @property
    def running(self) -> int:
        """The random id of the call that runs; 0 when none does."""
        return 0 if self._pending is None else self._pending.id or 0

    async def exchange(
        self,
        message: bytes,
        number: int | None = None,
        deadline: float = float("inf"),
        expects: tuple[type[messages.Answer], ...] = _USUAL,
        *,
        output: Output | None = None,
        originals: Originals | None = None,
    ) -> messages.Answer:
        """Send one frame and wait for its answer, as `ask`."""
        return await self.ask(PendingAnswer(number, deadline, output, expects, originals), message)

    async def ask(self, pending: PendingAnswer, message: bytes, *, look: bool = False) -> messages.Answer:
        """Send one frame and wait for its answer, which is one of those that are expected, or the worker is broken.

        Cancelling the caller kills the process. With `look`, all other tasks wait too, for a moment: where the answer
        comes in it, no other task has run.

        Raises:
            WorkerUnavailable: the worker was already gone; it has seen nothing of the message.
            WorkerDied: the process ended before its answer.
        """
        self._drop_strays()
        self._refuse_if_useless()
        self._pending = pending
        await self._send(pending, message)
        if look and pending.answer is None and not self._silent and self._frames.comes_at_once():
            self._readable()
        return await self.ending(pending)

    def begin(self, pending: PendingAnswer, message: bytes, task: Task) -> bool:
        """Send one frame for a task that waits, which is rescheduled when `ending` has something to tell it.

        Return False where that cannot be done at once: then nothing has been sent.
        """
        try:
            if not self._just_read:
                self._drop_strays()
            self._refuse_if_useless()
            if len(message) > select.PIPE_BUF:  # it might be sent in part
                return False
            os.write(self._outgoing, message)
        except (WorkerUnavailable, BlockingIOError, BrokenPipeError):
            return False
        self._pending, pending.task = pending, task
        return True

    async def ending(self, pending: PendingAnswer) -> messages.Answer:
        """Return the answer to what has been sent, as soon as it is there; raises as `ask`."""
        while pending.answer is None:
            if self._silent:  # no answer can come any more: wait for how the process ends
                await self._let_end("closed its output")
            if pending.answer is None:
                pending.task = current_task()
                await wait_task_rescheduled(self._abort)
        return pending.result()

    def cancel(self) -> None:
        """Give the exchange up, for its caller was cancelled: that ends the process."""
        self._pending = None
        self._kill("cancelled")

    def _abort(self, _raise_cancel: RaiseCancelT) -> Abort:
        self.cancel()
        return Abort.SUCCEEDED

    async def _send(self, pending: PendingAnswer, message: bytes) -> None:
        try:
            try:
                written = os.write(self._outgoing, message)
            except BlockingIOError:
                written = 0
            if written < len(message):
                await self._write_rest(pending, memoryview(message)[written:])
        except (BrokenPipeError, trio.ClosedResourceError):
            raise await self._unsent() from None
        except BaseException:
            self.cancel()
            raise
        if self._dead is not None:
            raise await self._unsent()

    async def _write_rest(self, pending: PendingAnswer, rest: memoryview) -> None:
        with trio.CancelScope() as pending.writing:
            while rest:
                await wait_writable(self._outgoing)
                with suppress(BlockingIOError):
                    rest = rest[os.write(self._outgoing, rest) :]
        pending.writing = None

    async def _let_end(self, why: str) -> None:
        """Kill the process, unless it ends by itself, as it does where another has killed it."""
        try:
            with trio.move_on_after(_DYING):
                await self._exited.wait()
        finally:
            self._kill(why)

    async def _unsent(self) -> WorkerError:
        """Return why a frame was not written to its end: nobody reads any more, or the call was abandoned."""
        self._pending = None
        if self._dead is None:
            await self._let_end("closed its input")
        if self._dead is not None and self._dead.ordered:
            return self._dead
        return WorkerUnavailable("the worker had closed its input")

    def _drop_strays(self) -> None:
        """Take what came before the exchange, so that it is not held against it."""
        self._refuse_if_useless()
        try:
            if self._early.poll(0):
                self._readable()
        except OSError:  # EINVAL where this process may have no descriptors at all any more: then by reading
            self._readable()

    def _refuse_if_useless(self) -> None:
        if self._dead is not None or self._outgoing < 0:
            raise WorkerUnavailable("the worker has ended")
        if self._silent:
            self._kill("closed its output")
            raise WorkerUnavailable("the worker had closed its output")
        if self._broken:
            raise WorkerUnavailable("the worker had broken the protocol")

    def _readable(self) -> bool:
        """Take what has come, and let whoever awaits an answer go on where it is there, or none can come any more.

        Return whether a turn's share had come, or more.
        """
        pending, size = self._pending, 0
        try:
            if not (size := self._frames.read()):
                self._silent = True
                self._watch.remove(self._incoming)
                if pending is not None:
                    pending.wake()
        except BlockingIOError:
            pass
        except frames.FrameError as error:
            self._break(error)
        except Exception as error:  # noqa: BLE001 - what takes a part of an answer is the caller's, and so is its error
            if pending is None:
                self._break(error)  # it is read for all workers: what fails with one is the end of that one
            else:
                self.cancel()
                pending.settle(error)
        if pending is not None and pending.answered is not None and isinstance(pending.answer, msgspec.Struct):
            self._just_read = True
            pending.answered()
            self._just_read = False
        return size >= _SHARE

    def _break(self, error: Exception) -> None:
        self._broken = True
        self._watch.remove(self._incoming)
        broke = "broke the protocol" if isinstance(error, frames.FrameError) else "cannot be heard"
        self._kill(f"{broke}: {error!s}" if str(error) else f"{broke}: {type(error).__name__}")

    def drain(self) -> None:
        """Take what a process wrote before it ended; a grandchild that holds the pipe is not waited for.

        No more than a pipe holds: a grandchild may go on writing. Nothing after a breach of the protocol.
        """
        left = 0 if self._broken else PIPE_SIZE
        with suppress(frames.FrameError, OSError):
            while left > 0 and (size := self._frames.read()):
                left -= size

    def fail(self, death: WorkerDied) -> None:
        """Tell whoever waits that no answer will come, and everybody later."""
        self._dead = death
        pending, self._pending = self._pending, None
        if pending is not None:
            pending.settle(death)

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
            self._watch.remove(self._incoming)
            os.close(self._incoming)
            self._incoming = -1

    def _take(self, payload: memoryview) -> None:
        try:
            message = frames.decode_up(payload)
        except frames.FrameError as error:
            if self._pending is not None:
                raise
            self._stray(str(error))
            return
        pending = self._pending
        if pending is None:
            self._stray(f"{type(message).__name__} outside of a call")
        elif pending.is_answered_by(message):
            self._pending = None
            pending.settle(message)

    def _stray(self, what: str) -> None:
        self._strays += 1
        if self._strays > STRAY_LIMIT:
            raise frames.FrameError(f"{self._strays} frames outside of a call")
        _log.warning("dropped a stray frame of a worker: %s", what)
