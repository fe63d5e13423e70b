"""PID 1 of its own namespaces, as the shell worker is, but without a sandbox: it rehearses on request.

`open_rehearsing` starts this file as a program. What it is asked are method names of `Server` with arguments, what it
answers are results or exceptions.
"""

import ctypes
import math
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

from tests.workers.commit.snapshot import Snapshot, snapshot
from workers.changes.effects import CommitOutcome, Effects
from workers.errors import ToolError
from workers.shell.command_overlay import Rehearsal
from workers.tool import Replaced
from workers.tree.drafts import clear
from workers.tree.obeyed_names import read_names
from workers.tree.root import closing

_NEWNS, _NEWUSER, _NEWPID = 0x20000, 0x10000000, 0x20000000
_REC_PRIVATE = 16384 | 1 << 18
_NOSUID_NODEV = 6
_PDEATHSIG, _DUMPABLE = 1, 4
_libc = ctypes.CDLL(None, use_errno=True)
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"}
SIZE = "256m"
"""Of the scratch file system."""


class Ran(NamedTuple):
    """What came of a command; `view` is the tree as it stood on the overlay then."""

    code: int
    output: bytes
    view: Snapshot


@contextmanager
def _without_capabilities() -> Iterator[None]:
    """Let permission bits stop this process as they stop any other, for the body."""
    header = struct.pack("=Ii", 0x20080522, 0)
    held = ctypes.create_string_buffer(24)
    _check(_libc.capget(header, held))
    low, high = struct.unpack("=IIIIII", held.raw)[1], struct.unpack("=IIIIII", held.raw)[4]
    _check(_libc.capset(header, struct.pack("=IIIIII", 0, low, 0, 0, high, 0)))
    try:
        yield
    finally:
        _check(_libc.capset(header, held.raw))


class Server:
    def __init__(self, scratch: str) -> None:
        self._scratch = scratch
        self._number = 0
        self._rehearsal: Rehearsal | None = None
        self._root = ""

    @property
    def rehearsal(self) -> Rehearsal:
        assert self._rehearsal
        return self._rehearsal

    def begin(self, root: str) -> None:
        """Begin the next rehearsal, and close the last one if that was not done."""
        self._remove()
        self._number += 1
        scratch = f"{self._scratch}/{self._number}"
        os.mkdir(scratch)
        self._root = root
        descriptor = os.open(root, os.O_PATH | os.O_DIRECTORY)
        self._rehearsal = Rehearsal(descriptor, root, scratch)

    def run(self, script: str, *, looks: bool = False) -> Ran:
        return self._in_child(lambda: self._command(script, looks=looks))

    def effects(self, until: float = math.inf) -> Effects:
        with _without_capabilities():
            return self.rehearsal.layer.effects(until)

    def commit(self) -> CommitOutcome:
        with _without_capabilities():
            return self.rehearsal.layer.commit()

    def originals(self, each: int, total: int) -> list[tuple[Replaced, bytes]]:
        """Return each name with its content, if that is kept."""
        found: list[tuple[Replaced, list[bytes]]] = []
        try:
            for part in self.rehearsal.layer.originals(each, total):
                if isinstance(part, bytes):
                    found[-1][1].append(part)
                else:
                    found.append((part._replace(attributes=dict(part.attributes)), []))
        except ToolError as error:  # which does not go through a pipe
            raise RuntimeError(f"{error.kind}: {error.message}") from error
        return [(name, b"".join(parts)) for name, parts in found]

    def close(self) -> list[str]:
        """Return what is left of the rehearsal."""
        with _without_capabilities():
            self._remove()
        return os.listdir(f"{self._scratch}/{self._number}")

    def _remove(self) -> None:
        if self._rehearsal:
            self._rehearsal.layer.close()
            self._rehearsal = None
            with closing(os.open(f"{self._scratch}/{self._number}", os.O_RDONLY)) as scratch:
                clear(scratch)

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function of a module here."""
        return function(*arguments)

    def overlay_at(self, path: str, lower: str) -> None:
        """Mount an overlay of another making: a root that is one itself."""
        self._number += 1
        base = f"{self._scratch}/{self._number}"
        for name in ("upper", "work"):
            os.makedirs(f"{base}/{name}")
        options = f"userxattr,lowerdir={lower},upperdir={base}/upper,workdir={base}/work"
        mount("overlay", path, "overlay", _NOSUID_NODEV, options)

    def tmpfs_at(self, path: str, options: str = "size=16m") -> None:
        mount("tmpfs", path, "tmpfs", _NOSUID_NODEV, options)

    def unmount(self, path: str) -> None:
        _check(_libc.umount2(os.fsencode(path), 2))

    def _command(self, script: str, *, looks: bool) -> Ran:
        with tempfile.TemporaryFile() as output:
            streams: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": output, "stderr": output}
            shell = ["/bin/bash", "-c", script]
            done = subprocess.run(shell, cwd=self._root, check=False, env=ENVIRONMENT, **streams)
            output.seek(0)
            return Ran(done.returncode, output.read(), snapshot(self._root) if looks else {})

    def _in_child(self, what: Callable[[], Ran]) -> Ran:
        ours, theirs = socket.socketpair()
        if not os.fork():
            with Connection(theirs.detach()) as up:
                try:
                    _check(_libc.unshare(_NEWNS))
                    mount(None, "/", None, _REC_PRIVATE)
                    self.rehearsal.mount(self._root)
                    up.send(what())
                except BaseException as error:  # noqa: BLE001 - it is told, whatever it is
                    up.send(error)
            os._exit(0)
        theirs.close()
        with Connection(ours.detach()) as down:
            answer = down.recv()
        with suppress(ProcessLookupError):
            os.kill(-1, signal.SIGKILL)
        with suppress(ChildProcessError):
            while True:
                os.waitpid(-1, 0)
        if isinstance(answer, BaseException):
            raise answer
        assert isinstance(answer, Ran)
        return answer


class Rehearsing:
    """The other end: the methods of `Server`."""

    def __init__(self, connection: Connection, process: "subprocess.Popen[bytes]") -> None:
        self._connection = connection
        self.process = process

    def ask(self, method: str, *arguments: Any, **more: Any) -> Any:
        self.tell(method, *arguments, **more)
        answer = self._connection.recv()
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def kill(self) -> None:
        """Kill PID 1, at once."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        os.kill(int(children[0]), signal.SIGKILL)
        self.process.wait()

    def tell(self, method: str, *arguments: Any, **more: Any) -> None:
        self._connection.send((method, arguments, more))

    def begin(self, root: Path) -> None:
        self.ask("begin", str(root))

    def sh(self, script: str) -> Ran:
        ran = self.ask("run", script, looks=True)
        assert isinstance(ran, Ran)
        return ran

    def effects(self) -> Effects:
        effects = self.ask("effects")
        assert isinstance(effects, Effects)
        return effects

    def commit(self) -> CommitOutcome:
        outcome: CommitOutcome = self.ask("commit")
        return outcome

    def rehearse(self, root: Path, script: str) -> Effects:
        """Begin, run, and tell the effects."""
        self.begin(root)
        self.ask("run", script)
        return self.effects()


@contextmanager
def open_rehearsing(scratch: Path, user: int = 0) -> Iterator[Rehearsing]:
    """Start the program; `scratch` is an empty directory for it. A `user` other than root has an id of its own."""
    scratch.mkdir(exist_ok=True)
    os.chown(scratch, user or -1, user or -1)
    ours, theirs = socket.socketpair()
    code = f"import sys; sys.path.insert(0, {str(_ROOT)!r}); {_MAIN}"
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(scratch), str(user), str(theirs.fileno())],
        pass_fds=[theirs.fileno()],
        env={**ENVIRONMENT, "TMPDIR": str(scratch)},
        cwd="/",
    )
    theirs.close()
    try:
        with Connection(ours.detach()) as connection:
            yield Rehearsing(connection, process)
    finally:
        process.kill()
        process.wait()


_ROOT = Path(__file__).parents[3]
_MAIN = "from tests.workers.commit.namespaces import main; main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))"


def main(scratch: str, user: int, descriptor: int) -> None:
    """Become PID 1 of new namespaces, and serve."""
    read_names()  # as a worker does: the user may not be able to read the code
    if user:
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
        _check(_libc.prctl(_DUMPABLE, 1, 0, 0, 0))
    _check(_libc.prctl(_PDEATHSIG, signal.SIGKILL, 0, 0, 0))
    ids = os.getuid(), os.getgid()
    _check(_libc.unshare(_NEWUSER | _NEWNS | _NEWPID))
    Path("/proc/self/setgroups").write_text("deny")
    for name, number in zip(("uid_map", "gid_map"), ids, strict=True):
        Path(f"/proc/self/{name}").write_text(f"{number} {number} 1")
    pid = os.fork()
    if pid:
        os.waitpid(pid, 0)
        return
    _check(_libc.prctl(_PDEATHSIG, signal.SIGKILL, 0, 0, 0))
    mount(None, "/", None, _REC_PRIVATE)
    mount("proc", "/proc", "proc", _NOSUID_NODEV)
    mount("tmpfs", scratch, "tmpfs", _NOSUID_NODEV, f"size={SIZE}")
    os.umask(0o022)
    server = Server(scratch)
    with Connection(descriptor) as connection, suppress(EOFError):
        while True:
            method, arguments, more = connection.recv()
            try:
                answer = getattr(server, method)(*arguments, **more)
            except Exception as error:  # noqa: BLE001 - the same
                answer = error
            connection.send(answer)


def before_each(owner: type, name: str, act: Callable[..., object]) -> None:
    """Let something happen before each call of a method, in the process that is asked; it gets the arguments."""
    original = getattr(owner, name)

    def changed(self: Any, *given: Any) -> None:
        act(*given)
        original(self, *given)

    setattr(owner, name, changed)


def mount(source: str | None, target: str, kind: str | None, flags: int, options: str | None = None) -> None:
    encoded = [None if each is None else os.fsencode(each) for each in (source, target, kind, options)]
    _check(_libc.mount(*encoded[:3], ctypes.c_ulong(flags), encoded[3]))


def _check(result: int) -> None:
    if result:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
