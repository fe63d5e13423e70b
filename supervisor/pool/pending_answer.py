"""The answer that an exchange with a worker awaits, and who is woken by it."""

from collections.abc import Callable
from typing import TypeGuard

import msgspec
import trio
from trio.lowlevel import Task, reschedule

from workers.wire import messages
from workers.wire.frames import FrameError

Output = Callable[[str], None]
"""Takes what a tool prints while it runs."""
Originals = Callable[[messages.Original | messages.Piece], None]
"""Takes what comes before a `Kept`."""


class PendingAnswer(msgspec.Struct, eq=False):
    """One that awaits the answer to call `id`, or (None) to Start or Probe."""

    id: int | None
    deadline: float
    output: Output | None
    expects: tuple[type[messages.Answer], ...]
    originals: Originals | None = None
    task: Task | None = None
    """Waits for it, if one does already."""
    writing: trio.CancelScope | None = None
    answer: messages.Answer | Exception | None = None
    answered: Callable[[], None] | None = None
    """Is called once the answer has been read, before who waits goes on."""

    def is_answered_by(self, message: messages.Up) -> TypeGuard[messages.Answer]:
        """Say whether a message is the answer; give whoever takes them what comes before it.

        Raises:
            FrameError: it is neither.
        """
        if getattr(message, "id", None) != self.id:
            raise FrameError(f"answered another call with {type(message).__name__}")
        if isinstance(message, self.expects):
            if self.writing is not None:
                raise FrameError(f"answered with {type(message).__name__} before it had read the call")
            return True
        if isinstance(message, messages.Output):
            if self.output is not None:
                self.output(message.text)
        elif isinstance(message, messages.Original | messages.Piece):
            if self.originals is None:
                raise FrameError("originals that nobody asked for")
            self.originals(message)
        else:
            raise FrameError(f"answered with {type(message).__name__}")
        return False

    def settle(self, answer: messages.Answer | Exception) -> None:
        """Let whoever waits go on, with an answer or without one."""
        self.answer = answer
        if self.task is not None:
            self.wake()
        elif self.writing is not None:
            self.writing.cancel()

    def wake(self) -> None:
        """Let whoever waits look again."""
        task, self.task = self.task, None
        if task is not None:
            reschedule(task)

    def result(self) -> messages.Answer:
        """Return the answer, once there is one.

        Raises:
            WorkerDied: the process ended before it.
            Exception: taking what comes before it has failed.
        """
        if isinstance(self.answer, Exception):
            raise self.answer
        assert self.answer is not None
        return self.answer
