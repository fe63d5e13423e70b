"""Processes of ours, with three pipes, an empty environment, and nothing of this process: spawned, or forked.

Rule: they are started from the main thread, because PR_SET_PDEATHSIG fires when the starting *thread* ends (prctl(2)).
"""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from io import FileIO
from typing import Final

from workers.kernel import prctl

_SET_PDEATHSIG: Final = 1
_LOOK_AGAIN: Final = 0.001
"""Seconds between two looks whether a process that was killed has ended."""


def spawn(
    command: tuple[str, ...],
    descriptors: Sequence[int],
    prepare: Callable[[], None] | None = None,
    ends: tuple[int, int] = (subprocess.PIPE, subprocess.PIPE),
) -> "subprocess.Popen[bytes]":
    """Start a program of ours with three pipes, these descriptors and nothing else of this process.

    `ends` are its input, and its output and errors, where they are no pipes. `prepare` is run in the child before it is
    a program: one system call, and nothing that takes a lock.
    """
    return subprocess.Popen(  # noqa: S603 - our own interpreter and code
        command,
        stdin=ends[0],
        stdout=ends[1],
        stderr=ends[1],
        env={},
        cwd="/",
        start_new_session=True,
        pass_fds=descriptors,
        bufsize=0,
        preexec_fn=prepare,  # noqa: PLW1509 - as said above
    )


def end_with_this_process() -> None:
    """Let the kernel kill the child with this thread, from before it is a program.

    One that is stopped as it starts, and never comes to `die_with`, ends too; `die_with` itself looks whether the
    parent was gone before even this.
    """
    with suppress(OSError):
        prctl("PR_SET_PDEATHSIG", _SET_PDEATHSIG, signal.SIGKILL)


class ForkedWorker:
    """A worker that a template forks: what `subprocess.Popen` is for one that is spawned, with its pipes.

    Args:
        brokered: whether it has a socket to its broker.

    Raises:
        OSError: this process is out of descriptors.
    """

    def __init__(self, *, brokered: bool) -> None:
        self.pid = 0
        """Known once it is forked."""
        self.broker: socket.socket | None = None
        with ExitStack() as undo:

            def pipe() -> tuple[FileIO, FileIO]:
                read, write = (FileIO(each, mode) for each, mode in zip(os.pipe(), ("rb", "wb"), strict=True))
                return undo.enter_context(read), undo.enter_context(write)

            theirs, self.stdin = pipe()
            (self.stdout, output), (self.stderr, errors) = pipe(), pipe()
            self.theirs: list[FileIO | socket.socket] = [theirs, output, errors]
            """What the worker has, until `close_theirs`."""
            if brokered:
                self.broker, broker = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                undo.enter_context(self.broker)
                self.theirs.append(undo.enter_context(broker))
            undo.pop_all()

    def close_theirs(self) -> None:
        """Close what the worker has by now, or never will."""
        for each in self.theirs:
            each.close()

    def close(self) -> None:
        """Close everything, as no worker has come of it."""
        self.close_theirs()
        for each in (self.stdin, self.stdout, self.stderr, self.broker):
            if each is not None:
                each.close()

    def kill(self) -> None:
        """End it at once."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)

    def wait(self, timeout: float | None = None) -> int:
        """Collect its exit status, as `subprocess.Popen.wait` does.

        Raises:
            TimeoutExpired: it still runs after `timeout` seconds.
        """
        until = time.monotonic() + timeout if timeout is not None else float("inf")
        while True:
            try:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
            except ChildProcessError:  # SIGCHLD is ignored: nothing stays of a child
                return 0
            if pid:
                return os.waitstatus_to_exitcode(status)
            if time.monotonic() > until:
                raise subprocess.TimeoutExpired("a forked worker", timeout or 0)
            time.sleep(_LOOK_AGAIN)
