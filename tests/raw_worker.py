"""A real worker process, spoken to directly over its pipes: for tests of the worker's side alone.

It is forked by a template, as the daemon's are, unless the command is one that does something before it is a worker.
"""

import io
import os
import select
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import msgspec

from supervisor.pool.child_process import ForkedWorker
from supervisor.pool.spec import ChildSpec
from supervisor.pool.template_process import worker_command
from supervisor.pool.worker_template import WorkerTemplate
from workers.wire import frames, messages

TEMPLATES: dict[tuple[str | int, ...], WorkerTemplate] = {}
"""The last few, by their command and the umask that their workers have; they end with this process."""
_TEMPLATES_AT_MOST = 16
PATIENCE_S = 60.0


class Forked(ForkedWorker):
    """A forked worker with the manners of `subprocess.Popen`, as far as tests use them."""

    returncode: int | None = None

    def __init__(self, template: WorkerTemplate, root_fd: int, broker_fd: int = -1) -> None:
        super().__init__(brokered=False)
        self.theirs[2].close()
        self.theirs[2] = io.FileIO(os.devnull, "wb")
        if broker_fd >= 0:
            self.theirs.append(io.FileIO(os.dup(broker_fd), "rb+"))
        assert gone(template.ask(self, root_fd)), "no answer from the template"
        self.pid = template.answer()
        self.close_theirs()
        self.stdout = io.BufferedReader(self.stdout)  # type: ignore[assignment]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
        self.wait()

    def poll(self) -> int | None:
        with suppress(subprocess.TimeoutExpired):
            return self.wait(0)
        return None

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            self.returncode = super().wait(timeout)
        return self.returncode

    def kill(self) -> None:
        if self.returncode is None:
            super().kill()


def template_of(command: tuple[str, ...]) -> WorkerTemplate:
    """Return the template of a command's workers, which runs."""
    os.umask(mask := os.umask(0))
    key: tuple[str | int, ...] = (*command, mask)
    if key not in TEMPLATES:
        while len(TEMPLATES) >= _TEMPLATES_AT_MOST:
            TEMPLATES.pop(next(iter(TEMPLATES))).close()
        TEMPLATES[key] = WorkerTemplate(command, None, PATIENCE_S)
    template = TEMPLATES[key]
    if template.process is None or template.process.poll() is not None:
        template.close()
        root = os.open("/", os.O_PATH)
        with Forked(template, root) as first:
            first.kill()
        os.close(root)
    return template


def forked(spec: ChildSpec) -> ChildSpec:
    """Let the workers of a pool be forked, by a template that all tests share."""
    return replace(spec, template=template_of(spec.command))


Process = subprocess.Popen[bytes] | Forked


class RawWorker:
    """One worker; every method blocks until it answers."""

    def __init__(self, process: Process, ready: messages.Up | None) -> None:
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
            answer = self.decide(answer, commit=True)
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

    def decide(self, proposed: messages.Up | None, *, commit: bool) -> messages.Up | None:
        """Decide about what was proposed; return what ends the exchange."""
        assert isinstance(proposed, messages.Proposed), proposed
        send(self.process, messages.Decide(proposed.id, commit))
        return self.answer(proposed.id)

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


def send(process: Process, message: messages.Down) -> None:
    assert process.stdin
    process.stdin.write(frames.frame(message))
    process.stdin.flush()


def receive(process: Process) -> messages.Up | None:
    assert process.stdout
    header = process.stdout.read(frames.LENGTH.size)
    if not header:
        return None
    return frames.decode_up(process.stdout.read(frames.payload_length(header)))


def gone(descriptor: int, patience_ms: int = 60_000) -> bool:
    """Wait for a process to end, at most so long."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(patience_ms))


def _spawned(command: tuple[str, ...], root_fd: int, broker_fd: int) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={},
        cwd="/",
        start_new_session=True,
        pass_fds=(root_fd, *((broker_fd,) if broker_fd >= 0 else ())),
    )


@contextmanager
def open_worker(
    root: Path,
    *,
    category: str = "files",
    writable: bool = True,
    limits: messages.Limits | None = None,
    command: tuple[str, ...] | None = None,
    inputs: messages.Inputs | None = None,
    version: int = messages.VERSION,
    broker_fd: int = -1,
    template: WorkerTemplate | None = None,
    forked: bool = True,
    **more: Any,
) -> Iterator[RawWorker]:
    """Start a worker on `root`, greet it, and kill it at the end.

    `broker_fd` is the worker's end of a socket, which the caller closes; `forked` says whether a template may fork it;
    `more` are other fields of the greeting.
    """
    descriptor = os.open(root, os.O_PATH | os.O_DIRECTORY)
    ours, command = worker_command(), command or worker_command()
    process: Process
    if forked and command[: len(ours) - 4] == ours[: len(ours) - 4]:
        process = Forked(template or template_of(command), descriptor, broker_fd)
        number, broker_fd = messages.FORKED_ROOT, messages.FORKED_BROKER if broker_fd >= 0 else -1
    else:
        process = _spawned(command, descriptor, broker_fd)
        number = descriptor
    os.close(descriptor)
    given = msgspec.msgpack.encode(inputs or messages.Inputs())
    context = messages.Context(str(root))
    start = messages.Start(
        version,
        category,
        context,
        number,
        writable,
        limits or messages.Limits(),
        inputs=given,
        broker_fd=broker_fd,
        **more,
    )
    try:
        send(process, start)
        yield RawWorker(process, receive(process))
    finally:
        process.kill()
        with suppress(BrokenPipeError), process:  # it may have gone before it was told everything
            pass
