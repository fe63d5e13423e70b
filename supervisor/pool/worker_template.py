"""The supervisor's side of the template: starts it, has workers forked by it, and does without it where it fails.

Rule: a worker that cannot be forked is spawned. The template starts when it is first needed; one that has ended, or
does not answer in time, is ended and another started for the next worker; for a while none, where several in a row have
failed. Nobody else's child is taken for an orphan while one is forked.
"""

import logging
import socket
import subprocess
from contextlib import ExitStack, suppress
from typing import Final

import trio
from trio.lowlevel import wait_readable

from supervisor.pool.child_process import ForkedWorker
from supervisor.pool.template_process import TemplateProcess
from supervisor.system.descendants import Orphans
from workers.wire.messages import FORKED_ROOT

_FAILURES: Final = 3
"""In a row, after which workers are spawned."""
_OFF_S: Final = 60
"""Seconds for which they are."""

_PID_DIGITS: Final = 16

_log: Final = logging.getLogger("strongroom.pool")


class WorkerTemplate:
    """The template of one command's workers; whoever has it closes it.

    Args:
        command: of a worker, which is a template where its input is a socket.
        orphans: as for `ChildSpec`.
        patience: seconds that it has to fork one worker, its own start included.
        started: the first one, if it runs already.
    """

    def __init__(
        self,
        command: tuple[str, ...],
        orphans: Orphans | None,
        patience: float = 2.0,
        started: TemplateProcess | None = None,
    ) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        """The template that runs, if one does."""
        self._socket: socket.socket | None = None
        self.forked = 0
        self._orphans = orphans
        self._patience = patience
        self._command = command
        self._failures = 0
        self._off_until = 0.0
        self._lock = trio.Lock()
        if started is not None:
            self._use(started)

    async def fork(self, root_fd: int, *, brokered: bool) -> ForkedWorker | None:
        """Return a worker whose death is bound to this process; None where one cannot be forked.

        To be called in the main thread, as `spawn`. The worker's descriptor of the root has the number `FORKED_ROOT`.

        Raises:
            OSError: this process is out of descriptors.
        """
        async with self._lock:
            if trio.current_time() < self._off_until:
                return None
            worker = ForkedWorker(brokered=brokered)
            with ExitStack() as stack:
                if self._orphans is not None:
                    stack.enter_context(self._orphans.expecting())
                try:
                    asked = self.ask(worker, root_fd)
                    with trio.move_on_after(self._patience, shield=True):
                        await wait_readable(asked)
                        worker.pid = self.answer()
                except (OSError, ValueError) as error:
                    _log.warning("the template of workers cannot be used: %s", error)
                if self._orphans is not None and worker.pid:
                    self._orphans.adopt(worker.pid)
            worker.close_theirs()
            if worker.pid:
                self._failures = 0
                self.forked += 1
                return worker
            worker.close()
            self.close()
            if self._orphans is not None:
                self._orphans.sweep()  # one that was forked too late
            self._failures += 1
            _log.warning("the template of workers forked none in time, and is ended")
            if self._failures >= _FAILURES:
                self._failures, self._off_until = 0, trio.current_time() + _OFF_S
                _log.error("workers are spawned for %d s: no template could fork one, %d times", _OFF_S, _FAILURES)
            return None

    def ask(self, worker: ForkedWorker, root_fd: int) -> int:
        """Ask for a worker; return the descriptor that can be read once there is an answer.

        Raises:
            OSError: there is no template, and none can be started.
        """
        connection = self._socket or self._use(TemplateProcess(self._command))
        passed = [each.fileno() for each in worker.theirs]
        passed.insert(FORKED_ROOT, root_fd)
        socket.send_fds(connection, [b"."], passed)
        return connection.fileno()

    def _use(self, started: TemplateProcess) -> socket.socket:
        self._socket, self.process = started.socket, started.process
        if self._orphans is not None:
            self._orphans.adopt(self.process.pid)
        return self._socket

    def answer(self) -> int:
        """Return the pid of the worker that was asked for.

        Raises:
            OSError, ValueError: the template has ended.
        """
        assert self._socket is not None, "it was asked"
        return int(self._socket.recv(_PID_DIGITS))

    def close(self) -> None:
        """End the template, where there is one: it holds nothing."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        process, self.process = self.process, None
        if process is not None:
            process.kill()
            with suppress(subprocess.TimeoutExpired):  # it is stuck in the kernel: its pdeathsig is left to end it
                process.wait(timeout=1)
                if self._orphans is not None:
                    self._orphans.release(process.pid)
