"""The process of a template: the command that it shares with spawned workers, and how it starts.

Rule: this imports next to nothing, so that a program may start one and then import what it needs itself.
"""

import os
import socket
import subprocess
import sys
from typing import Final

from supervisor.pool.child_process import end_with_this_process, spawn
from supervisor.system.isolated import CODE, libraries

_BEGIN: Final = """\
import gc, sys
gc.disable()
sys.path += sys.argv[1:3]
class platform: system = staticmethod(lambda: "Linux")
sys.modules |= {"typing_extensions": None, "platform": platform}
import msgspec
del sys.modules["typing_extensions"], sys.modules["platform"], platform
"""
"""Each line is worth its place at every start. Collecting garbage while importing finds next to none, for 4 ms (the
worker turns it on again). msgspec can do without typing_extensions; where another library brought it, it would be
imported for nothing, for 9 ms; of `platform`, 1.2 ms, uuid asks one word. Nothing that is installed comes before the
standard library."""

_MAIN: Final = "from workers.__main__ import main; main()"


def worker_command(main: str = _MAIN) -> tuple[str, ...]:
    """Return the command of a worker whose supervisor is this process.

    `main` is the Python that it runs. Isolated (-I) and without site (-S): nothing of the user's Python set-up
    runs in it, and it starts in half the time. The last argument is the pid that the worker dies with.
    """
    return (sys.executable, "-I", "-S", "-X", "utf8", "-c", _BEGIN + main, CODE, libraries(), str(os.getpid()))


class TemplateProcess:
    """A template that was started, and our end of its socket; its death is bound to this process.

    Args:
        command: of a worker, which is a template where its input is a socket.

    Raises:
        OSError: it cannot be started.
    """

    def __init__(self, command: tuple[str, ...]) -> None:
        self.socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            try:
                ends = theirs.fileno(), subprocess.DEVNULL
                self.process: Final = spawn(command, (), end_with_this_process, ends)
            except BaseException:
                self.socket.close()
                raise
