"""A real worker process, spoken to directly over its pipes: for tests of the worker's side alone."""

import os
import select
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from supervisor.pool.spec import worker_command
from workers.tool import Proposal, Result
from workers.wire import frames, messages


class RawWorker:
    """One worker; every method blocks until it answers."""

    def __init__(self, process: "subprocess.Popen[bytes]", ready: messages.Up | None) -> None:
        self.process = process
        self.ready = ready
        self._ids = iter(range(1, 2**31))

    @property
    def report(self) -> messages.Ready:
        """What a worker that serves has reported."""
        assert isinstance(self.ready, messages.Ready), self.ready
        return self.ready

    @property
    def refusal(self) -> messages.Refused:
        assert isinstance(self.ready, messages.Refused), self.ready
        return self.ready

    def call(self, tool: str, arguments: Any, **more: Any) -> messages.Done | messages.Failed:
        """Run one tool, and let it do what it proposes; bytes go as they are, anything else as JSON."""
        answer = self.propose(tool, arguments, **more)
        if isinstance(answer, messages.Proposed):
            send(self.process, messages.Decide(answer.id, commit=True))
            answer = self.answer(answer.id)
        assert isinstance(answer, messages.Done | messages.Failed), answer
        return answer

    def done(self, tool: str, arguments: Any, **more: Any) -> messages.Done:
        """Run one tool, which succeeds."""
        answer = self.call(tool, arguments, **more)
        assert isinstance(answer, messages.Done), answer
        return answer

    def failed(self, tool: str, arguments: Any, **more: Any) -> messages.Failed:
        """Run one tool, which fails."""
        answer = self.call(tool, arguments, **more)
        assert isinstance(answer, messages.Failed), answer
        return answer

    def attack(self, code: str, **given: str | int) -> str:
        """Run an attacker's Python in a hostile worker; return how it ended."""
        return self.done("attack", {"code": code, "given": given}).content

    def propose(self, tool: str, arguments: Any, **more: Any) -> messages.Up | None:
        """Run one tool up to what it proposes, which is then to be decided; `more` are fields of the call."""
        raw = arguments if isinstance(arguments, bytes) else msgspec.json.encode(arguments)
        number = next(self._ids)
        send(self.process, messages.Call(number, tool, raw, **more))
        return self.answer(number)

    def answer(self, number: int) -> messages.Up | None:
        """Return what ends the exchange, past the output before it."""
        answer = receive(self.process)
        while isinstance(answer, messages.Output):
            answer = receive(self.process)
        assert answer is None or getattr(answer, "id", number) == number
        return answer

    def probe(self) -> tuple[messages.Door, ...]:
        send(self.process, messages.Probe())
        answer = receive(self.process)
        assert isinstance(answer, messages.Probed)
        return answer.doors


def committed(result: Result | Proposal) -> Result:
    """Return what a tool that was called in this process says in the end: a proposal is committed."""
    return result.commit() if isinstance(result, Proposal) else result


def send(process: "subprocess.Popen[bytes]", message: messages.Down) -> None:
    assert process.stdin
    process.stdin.write(frames.frame(message))
    process.stdin.flush()


def receive(process: "subprocess.Popen[bytes]") -> messages.Up | None:
    assert process.stdout
    header = process.stdout.read(frames.LENGTH.size)
    if not header:
        return None
    return frames.decode_up(process.stdout.read(frames.payload_length(header)))


def gone(descriptor: int, patience_ms: int = 5000) -> bool:
    """Wait for a process to end, at most so long."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(patience_ms))


@contextmanager
def open_worker(
    root: Path,
    *,
    category: str = "files",
    writable: bool = True,
    limits: messages.Limits | None = None,
    allow_degraded: tuple[str, ...] = (),
    version: int = messages.VERSION,
    command: tuple[str, ...] | None = None,
    call_s: float = 30.0,
    inputs: messages.Inputs | None = None,
    broker_fd: int = -1,
) -> Iterator[RawWorker]:
    """Start a worker on `root`, greet it, and kill it at the end.

    `broker_fd` is the worker's end of a socket, which the caller closes.
    """
    descriptor = os.open(root, os.O_PATH | os.O_DIRECTORY)
    process = subprocess.Popen(
        command or worker_command(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={},
        cwd="/",
        start_new_session=True,
        pass_fds=(descriptor, *((broker_fd,) if broker_fd >= 0 else ())),
    )
    os.close(descriptor)
    context = messages.Context(str(root))
    start = messages.Start(
        version,
        category,
        context,
        descriptor,
        writable,
        limits or messages.Limits(),
        allow_degraded,
        call_s,
        msgspec.msgpack.encode(inputs or messages.Inputs()),
        broker_fd,
    )
    try:
        send(process, start)
        yield RawWorker(process, receive(process))
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
        for stream in (process.stdin, process.stdout):
            assert stream
            try:
                stream.close()
            except BrokenPipeError:
                continue
