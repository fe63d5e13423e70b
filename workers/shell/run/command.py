"""One command: started, watched, ended.

Rule: its end is the exit of its process. Then, and when it has had its time or too much of anything, everything that it
started is killed, however it hid, and reaped; only then is there an outcome. Nobody waits for the end of a pipe.

    fork -> places -> locks -> exec          in the new process, which says if it failed
         -> output, time, memory, numbers    in the worker, until it exits or is ended
"""

import errno
import os
import signal
from collections.abc import Callable, Sequence
from typing import Final, Literal, NamedTuple, NoReturn

import msgspec

from workers.changes.effects import UPLOAD, Attempt, Traffic
from workers.confine import limits
from workers.confine.steps import Enforced, Prepared, ProtectionUnavailable, confine
from workers.errors import CannotRehearse, TooMuch
from workers.shell.command_runner import CommandRunner, Network
from workers.shell.proxy.proxy_process import ProxyProcess, ProxyUnavailable
from workers.shell.run.attempts import Attempts
from workers.shell.run.monitor import CommandMonitor, Ended
from workers.shell.run.process_group import end_all
from workers.shell.sandbox import machine_root

_CHUNK: Final = 2**16
_EXIT_FAILED: Final = 127


class StartFailure(msgspec.Struct, frozen=True):
    """Why a command did not start."""

    step: Literal["sandbox", "rehearsal", "exec"]
    errno: int
    """Of "rehearsal": 0 where it will not work later either."""
    message: str
    what: str = ""
    """What failed: a system call, or a file."""
    feature: str = ""
    """The protection that could not be had."""


class CommandOutcome(NamedTuple):
    """How a command ended, and what it printed until then."""

    ended: Ended
    code: int
    """Its exit code; negative, the signal that killed it. Of no meaning unless it exited."""
    stdout: str
    stderr: str
    seconds: float
    """How long it ran."""
    refused: tuple[Attempt, ...] = ()
    """What it tried in vain, where that is told."""
    refused_left_out: int = 0
    traffic: tuple[Traffic, ...] = ()
    exposed: tuple[str, ...] = ()
    """What is hidden and came while it ran: it may have read that."""


class NotStarted(Exception):
    """Nothing was run."""

    def __init__(self, failure: StartFailure) -> None:
        super().__init__(failure.message)
        self.failure = failure


def run(
    engine: CommandRunner,
    file: str,
    arguments: Sequence[bytes],
    show: Callable[[str], None],
    umask: int = 0o022,
    *,
    network: bool = False,
    upload: int = UPLOAD,
) -> CommandOutcome:
    """Run a program with `arguments` (the first is its name) in a sandbox of its own; nothing of it is left.

    With `network` it reaches the hosts that the profile names, if any, and sends them at most `upload` bytes.

    Raises:
        NotStarted: the sandbox or the program could not be had.
        OSError: no process or descriptor is to be had; something cannot be hidden.
    """
    machine_root.hide_again(engine.layout)
    proxy = _proxy(engine, engine.network, upload) if network and engine.network else None
    engine = proxy.engine if proxy else engine
    (out, to_out), (err, to_err), (failed, to_failed) = (os.pipe2(os.O_CLOEXEC) for _ in range(3))
    group = engine.group()
    number = machine_root.own_number(engine.layout)
    elsewhere = engine.network.local_ports if engine.network else frozenset[int]()
    attempts = Attempts(engine.layout.root, engine.calls and engine.calls(group), number, elsewhere)
    if (child := group.fork()) == 0:
        _become(engine, file, arguments, umask, (to_out, to_err, to_failed), attempts.theirs)
    _close(to_out, to_err, to_failed)
    for end in (out, err):
        os.set_blocking(end, False)
    try:
        watch = CommandMonitor(engine, child, (out, err), show, attempts, group)
        ended, status, texts = watch.until_the_end(), group.end(attempts.close), watch.texts()
        if failure := _everything(failed):
            raise NotStarted(msgspec.json.decode(failure, type=StartFailure))
        code = os.waitstatus_to_exitcode(status)
        traffic = _traffic(proxy, attempts, upload) if proxy else ()
        refused, exposed = (attempts.refused(), attempts.left_out), tuple(machine_root.hide_again(engine.layout))
        return CommandOutcome(ended, code, *texts, watch.seconds, *refused, traffic, exposed)
    finally:
        group.end(attempts.close)
        attempts.close()
        if attempts.mounts >= 0:
            engine.hold(attempts.mounts)
        if proxy:
            proxy.close()
        _close(out, err, failed)


def _close(*descriptors: int) -> None:
    for each in descriptors:
        os.close(each)


def _proxy(engine: CommandRunner, network: Network, upload: int) -> ProxyProcess:
    """Start the proxy of a command.

    Raises:
        NotStarted: there is none.
    """
    try:
        return ProxyProcess(engine, network, upload)
    except ProxyUnavailable as error:
        end_all()
        raise NotStarted(StartFailure("sandbox", 0, str(error), feature=error.feature)) from error


def _traffic(proxy: ProxyProcess, attempts: Attempts, upload: int) -> tuple[Traffic, ...]:
    """Return what a command has sent and got; what it could not counts as attempts."""
    for place in proxy.declined():
        attempts.add(place)
    traffic = proxy.traffic()
    for each in traffic:
        if each.cut:
            attempts.add(f"{each.place}: cut, as it wanted to send more than {upload // 1000} kB in all")
    return traffic


def try_locks(engine: CommandRunner, work: Callable[[Enforced], bytes]) -> bytes:
    """Do `work` in a process that is locked in as a command is, and return what it returns.

    `work` is told what holds it.

    Raises:
        NotStarted: the sandbox could not be had.
        OSError: no process or descriptor is to be had.
    """
    done, to_done = os.pipe2(os.O_CLOEXEC)
    failed, to_failed = os.pipe2(os.O_CLOEXEC)
    group = engine.group()
    if group.fork() == 0:
        try:
            _send(to_done, work(_lock_in(engine, (to_done, to_failed))))
        except Exception as error:  # noqa: BLE001 - whatever it is, it is told by the worker
            _send(to_failed, _failure("sandbox", error))
        finally:
            os._exit(0)
    os.close(to_done)
    os.close(to_failed)
    try:
        with open(done, "rb") as answered, open(failed, "rb") as failing:
            answer, failure = answered.read(), failing.read()
    finally:
        group.end()
    if failure:
        raise NotStarted(msgspec.json.decode(failure, type=StartFailure))
    return answer


# --- in the new process --------------------------------------------------------------------------------------------


def _become(
    engine: CommandRunner, file: str, arguments: Sequence[bytes], umask: int, ends: tuple[int, int, int], to_worker: int
) -> NoReturn:
    """Become the program, or end when it has been said why not."""
    try:
        os.umask(umask)
        _execute(engine, file, arguments, ends, to_worker)
    finally:
        os._exit(_EXIT_FAILED)


def _execute(
    engine: CommandRunner, file: str, arguments: Sequence[bytes], ends: tuple[int, int, int], to_worker: int
) -> None:
    """Become the program, whose attempts are told `to_worker`; return where it cannot be, when that has been said."""
    to_out, to_err, to_failed = ends
    try:
        os.dup2(to_out, 1)
        os.dup2(to_err, 2)
        _lock_in(engine, (to_failed,), to_worker)
        os.dup2(os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC), 0)
        for stream in (1, 2):
            os.set_inheritable(stream, True)
        _unignore()
    except CannotRehearse as error:
        number = errno.ENOMEM if isinstance(error, TooMuch) else 0
        _send(to_failed, msgspec.json.encode(StartFailure("rehearsal", number, str(error))))
        return
    except Exception as error:  # noqa: BLE001 - whatever it is, it is told by the worker
        _send(to_failed, _failure("sandbox", error))
        return
    try:
        os.execve(file, list(arguments), dict(engine.environment))  # noqa: S606 - as it was asked for, and locked in
    except (OSError, ValueError) as error:
        _send(to_failed, _failure("exec", error))


def _lock_in(engine: CommandRunner, keep: tuple[int, ...], *to_worker: int) -> Enforced:
    """Put on everything that holds a command, and have its attempts told; return what holds.

    Raises:
        ProtectionUnavailable: a part of it is unavailable.
    """
    os.setsid()
    limits.lift_memory()
    prepared = Prepared(engine, keep=to_worker, steps=engine.locks)
    return confine(engine.confinement, engine.start, keep, prepared=prepared)


def _unignore() -> None:
    """Let signals do to the program what they usually do: what is ignored or blocked would stay so.

    Python ignores some, and so does who starts the daemon: nohup, or a shell in the background.
    """
    for number in signal.valid_signals():
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _failure(step: Literal["sandbox", "exec"], error: Exception) -> bytes:
    feature = error.feature if isinstance(error, ProtectionUnavailable) else ""
    cause = error.__cause__ if isinstance(error, ProtectionUnavailable) else error
    if not isinstance(cause, OSError):
        return msgspec.json.encode(StartFailure(step, 0, str(error), feature=feature))
    what = str(cause.filename or "") if step == "sandbox" else ""
    return msgspec.json.encode(StartFailure(step, cause.errno or 0, cause.strerror or str(cause), what, feature))


def _send(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def _everything(descriptor: int) -> bytes:
    parts = []
    while part := os.read(descriptor, _CHUNK):
        parts.append(part)
    return b"".join(parts)
