"""Processes of the command line and of the daemon that need not import everything anew.

Rule: such a process is one of its own, with its own descriptors, environment, directory and end, and does what the same
arguments to a new Python would do. It is forked from a Python that has imported the modules, has at hand what each
would make of the code alone, and has done nothing else. Workers and their templates are forked by whoever would start
them. Where Python itself is the point, or its options, or what a process has in memory, take `subprocess.Popen`, or
`raw_worker.py` for a worker.
"""

import gc
import json
import logging
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from io import FileIO
from itertools import takewhile
from typing import Any, Final

from tests.supervisor.command import CODE, Strongroom
from workers import __main__ as workers

_HEADER_BYTES: Final = 8
_MOST_DESCRIPTORS: Final = 16
_OUT_OF_THE_WAY: Final = 500
"""Descriptors from here on are the forking process's own, or on their way to where a child wants them."""

_BENEATH_LIBRARY: Final = "anthropic."
"""Two thousand modules, which are out of a worker's reach without what they lie beneath."""

_MODULES: Final = (
    "anthropic",
    "httpcore2",
    "supervisor.agent.models.anthropic",
    "supervisor.agent.models.gemini",
    "supervisor.agent.models.messages_api",
    "supervisor.agent.models.offline",
    "supervisor.agent.models.ollama",
    "supervisor.agent.models.openai",
    "supervisor.agent.models.scripted",
    "supervisor.agent.receipts.evidence",
    "supervisor.agent.receipts.run_line",
    "supervisor.cli.main",
    "supervisor.clients.batch.run",
    "supervisor.clients.call",
    "supervisor.clients.console.markdown_display",
    "supervisor.clients.console.plain",
    "supervisor.clients.console.start_console",
    "supervisor.clients.console.terminal",
    "supervisor.clients.single_prompt",
    "supervisor.daemon.program",
    "supervisor.doctor.checks",
    "supervisor.doctor.workers",
    "supervisor.reports.history",
    "supervisor.reports.verification",
    "tests.workers.shell.conftest",
    "workers.restore.private_tree",
    "workers.supervised.read_skill",
    "workers.supervised.recall",
)

_PROGRAM: Final = """
import gc, importlib, socket, sys
gc.disable()
sys.path.insert(0, sys.argv.pop(1))
import workers.__main__
from workers.confine.template import _make_ready
_make_ready(workers.__main__.CATEGORIES)
of_workers = frozenset(sys.modules)
for name in sys.argv[2:]:
    importlib.import_module(name)
from tests.forked import serve
exec(serve(int(sys.argv[1]), of_workers), {"__name__": "__main__"})
"""
"""Ends as its program ends, with all that Python does then: in a child `serve` returns what to run."""

_MODULE: Final = """
import runpy, sys
from tests.forked import fork_daemons
fork_daemons()
sys.path.insert(0, "")
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
"""


class Forked(subprocess.Popen[bytes]):
    """As the process of `python -c PROGRAM ARGUMENTS`, or, with `module`, of `python -m MODULE ARGUMENTS`.

    `options` are those of `Popen`; `env` and `cwd` have to be given.
    """

    def __init__(self, program: str, arguments: Sequence[str], *, module: bool = False, **options: Any) -> None:
        self._program, self._arguments = (_MODULE, [program, *arguments]) if module else (program, ["-c", *arguments])
        self._handle = -1
        super().__init__([sys.executable], **options)

    def _execute_child(self, *given: Any) -> None:
        """Begin the process; `given` is what `Popen` has made of its options, by position."""
        _args, _executable, _before, _close, pass_fds, cwd, env, *_windows, _shell = given[:10]
        child_in, parent_in, parent_out, child_out, parent_error, child_error = given[10:16]
        standard = [fd if fd >= 0 else number for number, fd in enumerate((child_in, child_out, child_error))]
        descriptors = dict(enumerate(standard)) | {each: each for each in pass_fds}
        self.pid = _forking().begin(self._program, self._arguments, env, os.fspath(cwd), descriptors)
        self._handle = os.pidfd_open(self.pid)
        self._child_created = True
        _close_ends(self, ((child_in, parent_in), (child_out, parent_out), (child_error, parent_error)))

    def _try_wait(self, flags: int) -> tuple[int, int]:
        if self._handle < 0:
            return self.pid, 0
        poll = select.poll()
        poll.register(self._handle, select.POLLIN)
        if not poll.poll(0 if flags & os.WNOHANG else None):
            return 0, 0
        os.close(self._handle)
        self._handle = -1
        return self.pid, _forking().end(self.pid)

    def _internal_poll(self, *_given: Any, **_named: Any) -> int | None:
        """Return the exit code, or None while it runs."""
        if self.returncode is None and self._waitpid_lock.acquire(blocking=False):  # type: ignore[attr-defined]
            try:
                pid, status = self._try_wait(os.WNOHANG)
                if pid == self.pid:
                    self._handle_exitstatus(status)  # type: ignore[attr-defined]
            finally:
                self._waitpid_lock.release()  # type: ignore[attr-defined]
        return self.returncode


def _close_ends(process: "subprocess.Popen[bytes]", ends: Iterable[tuple[int, int]]) -> None:
    """Close what the child has by now; `ends` are its own and, where there is a pipe, ours."""
    for theirs, ours in ends:
        if ours >= 0:
            os.close(theirs)
    if (null := getattr(process, "_devnull", -1)) >= 0:
        os.close(null)
    vars(process)["_closed_child_pipe_fds"] = True


class ForkedStrongroom(Strongroom):
    """The command line, and private daemons behind it, in processes that have imported everything already.

    A new Python comes instead where something is for Python itself, or runs before it.
    """

    PROGRAMS = ("supervisor", "tests.supervisor.dying", "tests.supervisor.lacking")

    def begin(
        self, arguments: Sequence[str], program: Sequence[str], wrapper: Sequence[str], stdin: int, stdout: int
    ) -> "subprocess.Popen[bytes]":
        for_python = any(name.startswith(("PYTHON", "LC_", "LANG")) for name in self.environment)
        if wrapper or program[0] not in self.PROGRAMS or for_python:
            return super().begin(arguments, program, wrapper, stdin, stdout)
        ends = {"stdin": stdin, "stdout": stdout, "stderr": subprocess.PIPE}
        place = {"env": {**self.environment, "PYTHONPATH": str(CODE)}, "cwd": self.folder}
        return Forked(program[0], [*program[1:], *arguments], module=True, **ends, **place)


class _Forking:
    """The process that forks; it ends with its socket."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair()
        self._lock = threading.Lock()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-c", _PROGRAM, str(CODE), str(theirs.fileno()), *_MODULES],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                env={"PATH": os.environ["PATH"]},
                cwd="/",
                pass_fds=(theirs.fileno(),),
            )

    def begin(
        self, program: str, arguments: Sequence[str], environment: Mapping[str, str], cwd: str, fds: Mapping[int, int]
    ) -> int:
        """Return the pid of a new process, which has the descriptors `fds`: each number there, and what it is here."""
        request = [program, [os.fsdecode(each) for each in arguments], dict(environment), cwd, list(fds)]
        return self._ask(request, list(fds.values()))

    def end(self, pid: int) -> int:
        """Collect a process that has ended; return its status, as waitpid(2) has it."""
        return self._ask(pid, [])

    def close(self) -> None:
        """End it, and wait for that."""
        self._socket.close()
        self._process.wait()

    def _ask(self, request: Any, fds: Sequence[int]) -> int:
        data = json.dumps(request).encode()
        with self._lock:
            socket.send_fds(self._socket, [len(data).to_bytes(_HEADER_BYTES, "big")], fds)
            self._socket.sendall(data)
            answer = int.from_bytes(_exactly(self._socket, _HEADER_BYTES), "big", signed=True)
        if answer < 0:
            raise OSError(-answer, os.strerror(-answer))
        return answer


@cache
def _forking() -> _Forking:
    """Return this process's one; it is started when it is first needed."""
    return _Forking()


def close() -> None:
    """End the process that forks, if there is one."""
    if _forking.cache_info().currsize:
        _forking().close()
        _forking.cache_clear()


class _ForkedPython(subprocess.Popen[bytes]):
    """A template or worker of a process that was forked, and forks it: what it imports is there, and nothing else."""

    others: Sequence[str] = ()
    """What a template has not imported, and the forking process has; the last is the last module that it has."""

    def _execute_child(self, *given: Any) -> None:
        _args, _executable, prepare, _close, pass_fds = given[:5]
        child_in, parent_in, parent_out, child_out, parent_error, child_error = given[10:16]
        self.pid = os.fork()
        if self.pid:
            self._child_created = True
            _close_ends(self, ((child_in, parent_in), (child_out, parent_out), (child_error, parent_error)))
            return
        try:
            prepare()
            _as_if_new((child_in, child_out, child_error), pass_fds)
            _open_standard_streams()
            os.environ.clear()
            gc.disable()
            later = [*takewhile(self.others[-1].__ne__, reversed(sys.modules))]
            hidden = {name: sys.modules.pop(name) for name in (*self.others, *later)}
            sys.argv = list(map(str, self.args))  # type: ignore[arg-type]
            workers.main()
            del hidden
        finally:
            os._exit(1)


def _fork_workers() -> None:
    """Let this process fork the templates and workers that it starts, which have these modules."""
    from supervisor.pool import child_process, template_process, worker_process

    def spawn(
        command: tuple[str, ...],
        descriptors: Sequence[int],
        prepare: Callable[[], None],
        ends: tuple[int, int] = (subprocess.PIPE, subprocess.PIPE),
    ) -> "subprocess.Popen[bytes]":
        if command != template_process.worker_command():
            return child_process.spawn(command, descriptors, prepare, ends)
        given: dict[str, Any] = {"stdin": ends[0], "stdout": ends[1], "stderr": ends[1], "pass_fds": descriptors}
        return _ForkedPython(command, bufsize=0, preexec_fn=prepare, **given)

    for module in (template_process, worker_process):
        vars(module)["spawn"] = spawn


def serve(descriptor: int, of_workers: frozenset[str]) -> str:
    """Fork as asked for until the other end has closed; return, in a child alone, the program to run.

    What workers have imported is `of_workers`.
    """
    import fcntl

    from tests.huge_pages import collapse

    _fork_workers()
    _fill_caches()
    _ForkedPython.others = [
        name for name in sys.modules if name not in of_workers and not name.startswith(_BENEATH_LIBRARY)
    ]
    own = socket.socket(fileno=fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _OUT_OF_THE_WAY))
    os.close(descriptor)
    gc.freeze()
    gc.enable()
    collapse()
    while True:
        header, fds, _, _ = socket.recv_fds(own, _HEADER_BYTES, _MOST_DESCRIPTORS)
        if not header:
            os._exit(0)
        request = json.loads(_exactly(own, int.from_bytes(header, "big")))
        if isinstance(request, int):
            answer = os.waitpid(request, 0)[1]
        elif not (answer := _fork()):
            program, sys.argv, environment, cwd, numbers = request
            own.close()
            moved = [fcntl.fcntl(each, fcntl.F_DUPFD_CLOEXEC, _OUT_OF_THE_WAY) for each in fds]
            for each in fds:
                os.close(each)
            for each, number in zip(moved, numbers, strict=True):
                os.dup2(each, number)
                os.close(each)
            os.environ.clear()
            os.environ.update(environment)
            os.chdir(cwd)
            _open_standard_streams()
            return str(program)
        for each in fds:
            os.close(each)
        own.sendall(answer.to_bytes(_HEADER_BYTES, "big", signed=True))


def _fill_caches() -> None:
    """Have at hand what processes would make alike, of nothing but the code."""
    import re

    from supervisor.agent import system_prompt
    from supervisor.agent.models import model_catalog
    from supervisor.config import settings
    from supervisor.tools import catalog
    from workers.wire import frames

    model_catalog.entries()
    catalog.offers(())
    system_prompt._template()
    frames._up()
    re.fullmatch(settings._PERSON, "")


def _open_standard_streams() -> None:
    """Have streams that know what their descriptors are: those of the forking process were on other files."""
    for descriptor, name in enumerate(("stdin", "stdout", "stderr")):
        was = getattr(sys, name)
        mode, lines = "w" if descriptor else "r", name == "stderr" or os.isatty(descriptor)
        buffering = 1 if lines else -1
        new = open(descriptor, mode, buffering, encoding=was.encoding, errors=was.errors, closefd=False)  # noqa: SIM115
        setattr(sys, name, new)
        setattr(sys, f"__{name}__", new)


def _fork() -> int:
    """Return as fork(2) does, and the number of an error below zero."""
    try:
        return os.fork()
    except OSError as error:
        return -(error.errno or 1)


class _Child:
    """What a client that has forked its daemon knows of it."""

    def __init__(self, pid: int, stdin: int) -> None:
        self.pid = pid
        self.stdin = FileIO(stdin, "wb")

    def communicate(self) -> None:
        self.stdin.close()
        self.wait()

    def wait(self) -> int:
        return os.waitpid(self.pid, 0)[1]

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)


def fork_daemons() -> None:
    """Let the clients of this process fork the daemons that they start."""
    from supervisor.clients.connection import spawn as spawning

    def spawn(
        arguments: Sequence[str],
        descriptors: tuple[int, ...],
        errors: int | None,
        variables: Sequence[tuple[str, str]] = (),
    ) -> _Child:
        reader, writer = os.pipe()
        if pid := os.fork():
            os.close(reader)
            return _Child(pid, writer)
        code = 1
        try:
            os.close(writer)
            null = os.open(os.devnull, os.O_RDWR)
            _as_if_new((reader, null, 2 if errors is None else errors), descriptors)
            os.environ.update(variables)
            command = list(spawning._command())
            module, *words = command[command.index("-m") + 1 :] if "-m" in command else ["supervisor.daemon"]
            sys.argv = [module, *words, *arguments]
            runpy.run_module(module, run_name="__main__", alter_sys=True)
            code = 0
        except SystemExit as end:
            code = int(end.code or 0)
        except BaseException:  # noqa: BLE001 - it is told, and ends the process, as Python would
            traceback.print_exc()
        finally:
            os._exit(code)

    vars(spawning)["_spawn"] = spawn


def _as_if_new(standard: tuple[int, int, int], descriptors: Sequence[int]) -> None:
    """Have of the process that forked this one what a started program would have of it."""
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals():
        if callable(signal.getsignal(number)):
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    logging.getLogger("strongroom").handlers.clear()
    logging.getLogger("strongroom").setLevel(logging.NOTSET)
    os.setsid()
    os.chdir("/")
    for place, each in enumerate(standard):
        os.dup2(each, place)
    for each in map(int, os.listdir("/proc/self/fd")):
        if each > 2 and each not in descriptors:
            with suppress(OSError):
                os.close(each)
    for each in descriptors:
        os.set_inheritable(each, True)


def _exactly(connection: socket.socket, count: int) -> bytes:
    found = b""
    while len(found) < count:
        piece = connection.recv(count - len(found))
        if not piece:
            raise EOFError("The process that forks has ended.")
        found += piece
    return found
