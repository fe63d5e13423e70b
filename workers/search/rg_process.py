"""One run of ripgrep: started, read, ended and reaped, several at once if need be.

Rule: whatever happens to a call, no process of it is left when it is answered, and none outlives the worker: with the
first process of a PID namespace, which the worker is, the kernel kills all others. Without namespaces it kills this one
with its parent (PR_SET_PDEATHSIG, for which posix_spawn(3) leaves no room, and fork(2) takes a millisecond more). It is
of the worker's process group. Its environment is empty, its input at its end, and its directory the root.
"""

import os
import select
import signal
import time
from collections.abc import Iterator
from typing import Final, Never, Self

from workers import kernel
from workers.confine.privileges import PR_SET_PDEATHSIG

_CHUNK: Final = 2**18
_KEPT: Final = 2**14
"""Bytes of what it complained about that are kept."""

_FIRST: Final = 1
"""The number of the first process of a PID namespace."""
_NOT_STARTED: Final = 127
_GONE: Final = "ripgrep was there when this worker began, and can no longer be executed"
_SYSTEM: Final = b"(os error "
"""What ripgrep says of each file or directory that it could not read."""


class Overdue(Exception):
    """The time for the call is over."""


class Run:
    """A running program. `Runs` reads it; afterwards `status` is its exit code, or minus the signal that ended it."""

    def __init__(self, program: str, arguments: tuple[str, ...]) -> None:
        self.status: int | None = None
        self.stderr = b""
        """The beginning of what it wrote to its stderr."""
        self.unread = 0
        """How many files or directories it could not read."""
        self._rest = b""
        start = _spawn if os.getpid() == _FIRST else _fork
        self.output, output = os.pipe()
        self.errors, errors = os.pipe()
        self.pid = start(output, errors, program, arguments)
        os.close(output)
        os.close(errors)

    def note(self, chunk: bytes) -> None:
        """Take what it wrote to its stderr."""
        self.stderr += chunk[: _KEPT - len(self.stderr)]
        *lines, self._rest = (self._rest + chunk)[-_KEPT:].split(b"\n")
        self.unread += sum(_SYSTEM in line for line in lines)

    def end(self) -> None:
        """Kill it if it still runs, and wait until it is gone."""
        if self.status is None:
            os.kill(self.pid, signal.SIGKILL)
            self.reap()

    def reap(self) -> None:
        """Wait until it is gone.

        Raises:
            RuntimeError: it could not be started.
        """
        self.status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        os.close(self.output)
        os.close(self.errors)
        if self.status == _NOT_STARTED:
            raise RuntimeError(_GONE)


class Runs:
    """The runs of one call; all have ended when it is left.

    Args:
        program: path of the program.
        deadline: of time.monotonic().
    """

    def __init__(self, program: str, deadline: float) -> None:
        self._program = program
        self._deadline = deadline
        self._poll = select.poll()
        self._open: dict[int, Run] = {}
        self.running: list[Run] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_raised: object) -> None:
        for run in tuple(self.running):
            self.end(run)

    def start(self, *arguments: str) -> Run:
        run = Run(self._program, arguments)
        self.running.append(run)
        for descriptor in (run.output, run.errors):
            self._open[descriptor] = run
            self._poll.register(descriptor, select.POLLIN)
        return run

    def end(self, run: Run) -> None:
        """End a run, whether it has finished or not."""
        if run in self.running:
            self.running.remove(run)
            for descriptor in (run.output, run.errors):
                self._forget(descriptor)
            run.end()

    def chunks(self) -> Iterator[tuple[Run, bytes]]:
        """Yield what the runs write, and for each that has finished by itself (b"") once, after its `status` is known.

        Raises:
            Overdue: the deadline has passed.
        """
        while self.running:
            left = self._deadline - time.monotonic()
            ready = self._poll.poll(left * 1000) if left > 0 else []
            if not ready:
                raise Overdue
            for descriptor, run in [(each, self._open[each]) for each, _ in ready]:
                if self._open.get(descriptor) is not run:
                    continue  # it was ended meanwhile, and the number may be another's
                chunk = os.read(descriptor, _CHUNK)
                if not chunk:
                    self._forget(descriptor)
                    if run not in self._open.values():
                        self.running.remove(run)
                        run.reap()
                        yield run, b""
                elif descriptor == run.errors:
                    run.note(chunk)
                else:
                    yield run, chunk

    def _forget(self, descriptor: int) -> None:
        if self._open.pop(descriptor, None) is not None:
            self._poll.unregister(descriptor)


def _spawn(output: int, errors: int, program: str, arguments: tuple[str, ...]) -> int:
    """Start the program from the first process of a PID namespace; return its pid.

    Raises:
        RuntimeError: it could not be started.
    """
    places = [(os.POSIX_SPAWN_DUP2, descriptor, place) for place, descriptor in enumerate((0, output, errors))]
    try:
        return os.posix_spawn(program, (program, *arguments), {}, file_actions=places)
    except OSError as error:
        raise RuntimeError(_GONE) from error


def _fork(output: int, errors: int, program: str, arguments: tuple[str, ...]) -> int:
    """Start the program so that it ends with this process; return its pid."""
    worker = os.getpid()
    return os.fork() or _become(worker, output, errors, program, arguments)


def _become(worker: int, output: int, errors: int, program: str, arguments: tuple[str, ...]) -> Never:
    """Turn this process, a fresh child of `worker`, into the program; it never returns."""
    try:
        kernel.prctl("PR_SET_PDEATHSIG", PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() == worker:
            for descriptor, place in ((os.dup(0), 0), (output, 1), (errors, 2)):
                os.dup2(descriptor, place)
            os.execve(program, (program, *arguments), {})  # noqa: S606 - the one program that this process may execute
    finally:
        os._exit(_NOT_STARTED)
