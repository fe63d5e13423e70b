"""The process that runs one command outside of the sandbox, and ends everything that the command started.

Rule: it outlives neither its command nor its supervisor. Whatever ends the command, all its descendants are killed,
however they hid, and reaped; only then is there an answer. Anything on the control pipe, its end, and the death of the
supervisor are one and the same order: end it.

    supervisor  -- Order ----------------> warden  -- spawn --> the command, in a session of its own
                -- end of file ---------->         -- SIGKILL -> it, and all that it started
                <-- Output*, Done|Failed --

It holds nothing but its three standard descriptors: run as `supervisor.tools.unconfined.run` does.
"""

import os
import select
import signal
import sys
import time
from types import FrameType
from typing import Final

import msgspec

from supervisor.system.descendants import become_subreaper, children, end_all, reap
from workers import kernel
from workers.shell.command_line import exit_result, not_started
from workers.shell.no_input import remarks
from workers.shell.run.output import CommandOutput
from workers.wire import frames, messages

NOTE: Final = "ran unconfined: the person said so"

_SET_PDEATHSIG: Final = 1
_CONTROL: Final = 0
_REPORT: Final = 1
_LOOK_EVERY: Final = 1.0
"""Seconds between two looks at the dead that became ours."""
_DEFAULTS: Final = signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}
"""Signals that Python, this process or who started the daemon may treat in ways of their own; the command shall not."""


class CommandRequest(msgspec.Struct, frozen=True):
    """What to run: the first and only frame on the control pipe."""

    file: str
    arguments: tuple[bytes, ...]
    """The first one is the program's name."""
    environment: tuple[tuple[bytes, bytes], ...]
    root_fd: int
    """The current directory; an inherited descriptor."""
    timeout_s: float


class _EndRequested(Exception):
    """The supervisor has gone, or says that the command shall end. Nobody wants an answer."""


def main() -> None:
    """Run with `python -c ... SUPERVISOR_PID`."""
    os._exit(run(int(sys.argv[-1])))


def run(supervisor: int) -> int:
    """Run the one command that is requested; `supervisor` is the pid that this process must not outlive."""
    signal.signal(signal.SIGTERM, _end_now)
    kernel.prctl("PR_SET_PDEATHSIG", _SET_PDEATHSIG, signal.SIGTERM)
    become_subreaper()
    try:
        if os.getppid() == supervisor:
            request = _read_request()
            _report(_obey(request))
    except (_EndRequested, BrokenPipeError):
        pass
    finally:
        end_all()
    return 0


def _end_now(_number: int, _where: FrameType | None) -> None:
    """End everything and this process, wherever it is.

    It raises nothing: the death of the supervisor shows twice, by the pipe and then by the signal, and an exception
    that comes while another one is dealt with would pass the end of the command by.
    """
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    end_all()
    os._exit(0)


def _read_request() -> CommandRequest:
    header = _exactly(frames.LENGTH.size)
    return msgspec.msgpack.decode(_exactly(frames.payload_length(header)), type=CommandRequest)


def _exactly(size: int) -> bytes:
    data = b""
    while len(data) < size:
        part = os.read(_CONTROL, size - len(data))
        if not part:
            raise _EndRequested
        data += part
    return data


def _report(message: messages.Output | messages.Done | messages.Failed) -> None:
    data = frames.frame(message)
    while data:
        data = data[os.write(_REPORT, data) :]


# --- the command ---------------------------------------------------------------------------------------------------


def _obey(request: CommandRequest) -> messages.Done | messages.Failed:
    """Run the command to its end, and return how that was; nothing of it is left.

    Raises:
        _EndRequested: it was ended; something of it may be left.
    """
    os.fchdir(request.root_fd)
    os.close(request.root_fd)
    (out, to_out), (err, to_err) = os.pipe2(os.O_CLOEXEC), os.pipe2(os.O_CLOEXEC)
    actions = (
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_DUP2, to_out, 1),
        (os.POSIX_SPAWN_DUP2, to_err, 2),
    )
    try:
        file, arguments, environment = request.file, request.arguments, dict(request.environment)
        child = os.posix_spawn(file, arguments, environment, file_actions=actions, setsid=True, setsigdef=_DEFAULTS)
    except OSError as error:
        failure = not_started(arguments[0], error.errno or 0, error.strerror or str(error))
        return messages.Failed(0, failure.kind, failure.message, failure.details)
    for end in (to_out, to_err):
        os.close(end)
    for end in (out, err):
        os.set_blocking(end, False)
    watch = _SignalWatch(child, (out, err), request.timeout_s)
    exited = watch.until_the_end()
    status = end_all(child, watch.status)
    watch.left = len(children(os.getpid()))
    return watch.outcome(os.waitstatus_to_exitcode(status), arguments[-1]) if exited else watch.overdue(request)


class _SignalWatch:
    """Over the command: takes its output, looks at the clock and at the control pipe."""

    def __init__(self, child: int, streams: tuple[int, int], timeout_s: float) -> None:
        self.status: int | None = None
        self.left = 0
        """Processes that could not be ended."""
        self._child = child
        self._streams = streams
        self.output = CommandOutput(streams, lambda text: _report(messages.Output(0, text)))
        self._now = time.monotonic()
        self._deadline = self._now + timeout_s

    def until_the_end(self) -> bool:
        """Return when the command has exited (True) or had its time (False).

        Raises:
            _EndRequested: it shall end.
        """
        exited = os.pidfd_open(self._child)
        poll = select.poll()
        for descriptor in (*self._streams, exited, _CONTROL):
            poll.register(descriptor, select.POLLIN)
        while True:
            wait = min(self._deadline - self._now, self.output.due(self._now), _LOOK_EVERY)
            ready = {descriptor for descriptor, _ in poll.poll(max(0, wait) * 1000)}
            self._now = time.monotonic()
            if _CONTROL in ready:
                raise _EndRequested
            for descriptor in self.output.read(ready, self._now):
                poll.unregister(descriptor)
            if exited in ready:
                return True
            if self._now >= self._deadline:
                return False
            self.status = reap(self._child, self.status)

    def outcome(self, code: int, command: bytes) -> messages.Done:
        """Return the answer for a command that exited by itself; a negative `code` is a signal's number."""
        self.output.read_rest(self._now)
        result, notes = exit_result(code, *self.output.texts())
        notes.insert(0, NOTE)
        notes += remarks(command, result["stdout"], result["stderr"])
        if self.left:
            notes.append(self._survivors())
        return messages.Done(0, msgspec.json.encode(result).decode(), "json", "; ".join(notes))

    def overdue(self, request: CommandRequest) -> messages.Failed:
        """Return the answer for a command that had its time."""
        self.output.read_rest(self._now)
        out, err = self.output.texts()
        kept = " What it printed until then is in stdout and stderr." if out or err else " It had printed nothing."
        message = (
            f"The command did not end within the {request.timeout_s:g} s that it had. It {NOTE}. It was killed with "
            f"everything that it had started; what it did until then is done.{kept} Run less at once."
        )
        message += f" {self._survivors()}." if self.left else ""
        return messages.Failed(0, "timeout", message, {"stdout": out, "stderr": err})

    def _survivors(self) -> str:
        return f"{self.left} of its processes became another user's, and may still run"
