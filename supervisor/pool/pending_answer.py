"""The answer that an exchange with a worker awaits, and who is woken by it."""

from collections.abc import Callable
from dataclasses import dataclass

import trio
from trio.lowlevel import Task, reschedule

from supervisor.errors import WorkerDied
from workers.wire import messages

Output = Callable[[str], None]
"""Takes what a tool prints while it runs."""
Originals = Callable[[messages.Original | messages.Piece], None]
"""Takes what comes before a `Kept`."""


@dataclass(slots=True)
class PendingAnswer:
    """One that awaits the answer to call `id`, or (None) to Start or Probe."""

    id: int | None
    deadline: float
    output: Output | None
    expects: tuple[type[messages.Answer], ...]
    originals: Originals | None
    task: Task | None = None
    writing: trio.CancelScope | None = None
    answer: messages.Answer | WorkerDied | None = None

    def settle(self, answer: messages.Answer | WorkerDied) -> None:
        """Let whoever waits go on, with an answer or without one."""
        self.answer = answer
        if self.task is not None:
            reschedule(self.task)
        elif self.writing is not None:
            self.writing.cancel()

    def result(self) -> messages.Answer:
        """Return the answer, once there is one.

        Raises:
            WorkerDied: the process ended before it.
        """
        if isinstance(self.answer, WorkerDied):
            raise self.answer
        assert self.answer is not None
        return self.answer
