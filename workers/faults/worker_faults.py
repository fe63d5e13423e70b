"""The faults that a worker does, by name.

Rule: each happens by the means that a broken or hostile tool would have, in the worker's own process. One that uses
something up stops where the kernel says that there is no more; any other refusal is an error, and ends the worker.
"""

import ctypes
import errno
import fcntl
import os
import signal
import time
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from workers.errors import ToolError

EXIT_CODE: Final = 70
_SET_SIGNAL: Final = 10
"""F_SETSIG of fcntl(2)."""
_NO_MORE: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_CHUNK: Final = 2**20
_FLOOD: Final = 8 * _CHUNK
_MESSAGE: Final = 10_000_000
_BOMB: Final = 1024
_MEMORY: Final = 4 * 2**30
"""Processes, and bytes: far more than a worker may have. Where nothing stops it, the machine must outlive it."""
_PIECE_OF_MEMORY: Final = 16 * _CHUNK
_FIRST: Final = 1
_FILLING: Final = ".strongroom-fault"


class Signal:
    """A signal that this process can send itself when its filter lets it send none.

    The kernel sends it to the owner of a pipe that becomes readable (fcntl(2), F_SETSIG).
    """

    def __init__(self, number: signal.Signals) -> None:
        lower, self._writer = os.pipe()
        # The last to be opened is the first that the kernel closes when this process ends: else that would send it too.
        reader = fcntl.fcntl(lower, fcntl.F_DUPFD_CLOEXEC, self._writer + 1)
        os.close(lower)
        fcntl.fcntl(reader, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(reader, _SET_SIGNAL, number)
        fcntl.fcntl(reader, fcntl.F_SETFL, fcntl.fcntl(reader, fcntl.F_GETFL) | os.O_ASYNC)
        self.descriptors: Final = (reader, self._writer)

    def send(self) -> None:
        """Send it."""
        os.write(self._writer, b"!")


class Scene:
    """What faults in one worker happen with.

    Args:
        root_fd: the root's descriptor.
    """

    def __init__(self, root_fd: int) -> None:
        self.root_fd = root_fd
        self.kill = Signal(signal.SIGKILL)
        self.stop = Signal(signal.SIGSTOP)
        self.outgoing = -1
        """The pipe to the supervisor."""
        self._held: list[int] = []

    @property
    def descriptors(self) -> tuple[int, ...]:
        """Those that must stay open."""
        return self.kill.descriptors + self.stop.descriptors

    def hold(self, descriptor: int) -> None:
        """Keep a descriptor open until the call has ended."""
        self._held.append(descriptor)

    def release(self) -> None:
        while self._held:
            os.close(self._held.pop())


Act = Callable[[Scene], None]


def _exit(_scene: Scene) -> None:
    os._exit(EXIT_CODE)


def _sigkill(scene: Scene) -> None:
    scene.kill.send()
    _hang(scene)


def _sigstop(scene: Scene) -> None:
    scene.stop.send()
    if os.getpid() == _FIRST:  # nothing in its namespace can stop it: it stops the one outside, and
        _hang(scene)


def _sigsegv(_scene: Scene) -> None:
    ctypes.string_at(0)


def _hang(_scene: Scene) -> None:
    while True:
        time.sleep(3600)


def _spin(_scene: Scene) -> None:
    while True:
        pass


def _ignore_sigterm(scene: Scene) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    _hang(scene)


def _allocate(scene: Scene) -> None:
    _taken = [b"x" * _PIECE_OF_MEMORY for _ in range(_MEMORY // _PIECE_OF_MEMORY)]
    _hang(scene)


def _fork_bomb(scene: Scene) -> None:
    for _ in range(_BOMB):
        try:
            if os.fork() == 0:
                break
        except BlockingIOError:  # as many as there may be
            break
    _hang(scene)


def _open_files(scene: Scene) -> None:
    _until_none_is_left(lambda: scene.hold(os.dup(2)))


def _fill_disk(scene: Scene) -> None:
    file = os.open(_FILLING, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600, dir_fd=scene.root_fd)
    scene.hold(file)
    os.unlink(_FILLING, dir_fd=scene.root_fd)
    _until_none_is_left(lambda: os.write(file, bytes(_CHUNK)))


def _until_none_is_left(take: Callable[[], object]) -> None:
    try:
        while True:
            take()
    except OSError as error:
        if error.errno not in _NO_MORE:
            raise


def _flood_stderr(_scene: Scene) -> None:
    for _ in range(_FLOOD // _CHUNK):
        written = 0
        while written < _CHUNK:
            written += os.write(2, b"x" * (_CHUNK - written))


def _print_stdout(_scene: Scene) -> None:
    print("a library says hello", flush=True)  # noqa: T201 - that is the fault


def _close_pipe(scene: Scene) -> None:
    os.close(scene.outgoing)
    _hang(scene)


def _grandchild_holds_pipe(scene: Scene) -> None:
    if os.fork():
        os._exit(EXIT_CODE)
    _hang(scene)


def _error_10mb(_scene: Scene) -> None:
    raise ToolError("internal", "x" * _MESSAGE)


_ACTS: Final = (
    *(_exit, _sigkill, _sigstop, _sigsegv, _hang, _spin, _ignore_sigterm),
    *(_allocate, _fork_bomb, _open_files, _fill_disk),
    *(_flood_stderr, _print_stdout, _close_pipe, _grandchild_holds_pipe, _error_10mb),
)

ACTS: Final[Mapping[str, Act]] = MappingProxyType({act.__name__.removeprefix("_"): act for act in _ACTS})
