"""The console in a process of its own: on a pseudo-terminal whose screen can be looked at, or on pipes.

Most of a console's start is importing. So consoles on terminals are forked by one process that has imported everything;
those on pipes are started as they really are.
"""

import fcntl
import json
import os
import pty
import re
import select
import signal
import socket
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Self

import pyte

from tests.supervisor.command import CODE

PATIENCE: Final = 10.0
_PROGRAM: Final = """
import json, os, sys
from supervisor.clients.console.options import ConsoleOptions
from supervisor.clients.console.start_console import run_console
from supervisor.config.settings import load
from supervisor.errors import StrongroomError
try:
    sys.exit(run_console(load(), ConsoleOptions(**json.loads(sys.argv[1]))))
except StrongroomError as error:
    sys.exit(f"error: {error}")
except BrokenPipeError:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # as the command line does
    sys.exit(1)
"""

_PARENT: Final = """
import fcntl, json, os, signal, socket, sys, termios
import supervisor.clients.console.markdown_display, supervisor.clients.console.terminal
from supervisor.clients.console.options import ConsoleOptions
from supervisor.clients.console.start_console import run_console
from supervisor.config.settings import load

def child(wanted, slave, result):
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
    for number in range(3):
        os.dup2(slave, number)
    sys.stdin, sys.stdout, sys.stderr = (open(number, mode, closefd=False) for number, mode in enumerate("rww"))
    os.closerange(3, result)
    os.closerange(result + 1, 100)
    os.chdir(wanted["folder"])
    os.environ.update(wanted["environment"])
    try:
        code = run_console(load(), ConsoleOptions(**wanted["options"]))
    except Exception as error:
        print("error:", error, file=sys.stderr, flush=True)
        code = 1
    os.write(result, b"%d" % code)

signal.signal(signal.SIGCHLD, signal.SIG_IGN)
orders = socket.socket(fileno=int(sys.argv[1]))
while True:
    order, descriptors, _, _ = socket.recv_fds(orders, 2**16, 2)
    if not order:
        break
    pid = os.fork()
    if not pid:
        try:
            child(json.loads(order), *descriptors)
        finally:
            os._exit(1)
    for descriptor in descriptors:
        os.close(descriptor)
    orders.send(b"%d" % pid)
"""

ENTER: Final = "\r"
ALT_ENTER: Final = "\x1b\r"
ESCAPE: Final = "\x1b"
INTERRUPT: Final = "\x03"
END: Final = "\x04"


def command(**options: Any) -> list[str]:
    return [sys.executable, "-c", _PROGRAM, json.dumps(options)]


def environment(home: Path, **more: str) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "STRONGROOM_HOME": str(home),
        "PYTHONPATH": str(CODE),
        "TERM": "xterm-256color",
        "LANG": "C.UTF-8",
        **more,
    }


class Parent:
    """Forks consoles. Use it in `with`."""

    def __init__(self, folder: Path) -> None:
        self._orders, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _PARENT, str(theirs.fileno())],
                env=environment(folder),
                pass_fds=[theirs.fileno()],
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._orders.close()
        self._process.wait(PATIENCE)

    def fork(self, home: Path, folder: Path, slave: int, result: int, options: dict[str, Any]) -> int:
        """Start a console on a terminal; return its pid. Its exit code goes to `result`."""
        order = {"folder": str(folder), "environment": environment(home), "options": options}
        socket.send_fds(self._orders, [json.dumps(order).encode()], [slave, result])
        return int(self._orders.recv(64))


class Terminal:
    """A console on a pseudo-terminal. Everything that it ever wrote is in `raw`."""

    def __init__(
        self, parent: Parent, home: Path, folder: Path, columns: int = 80, rows: int = 24, **options: Any
    ) -> None:
        self._screen = pyte.HistoryScreen(columns, rows, history=1000)
        self._stream = pyte.ByteStream(self._screen)
        self.raw = b""
        self._master, slave = pty.openpty()
        self._set_size(columns, rows)
        self._result, result = os.pipe()
        self.pid = parent.fork(home, folder, slave, result, options)
        os.close(slave)
        os.close(result)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        os.close(self._master)
        os.close(self._result)

    def _set_size(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def resize(self, columns: int, rows: int) -> None:
        self._screen.resize(rows, columns)
        self._set_size(columns, rows)

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def signal(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    @property
    def echoes(self) -> bool:
        """Whether the terminal shows what is typed by itself."""
        return bool(termios.tcgetattr(self._master)[3] & termios.ECHO)

    def echo(self) -> None:
        """Let the terminal do that, and hand over whole lines."""
        modes = termios.tcgetattr(self._master)
        modes[3] |= termios.ECHO | termios.ICANON
        termios.tcsetattr(self._master, termios.TCSANOW, modes)

    @property
    def lines(self) -> list[str]:
        return [line.rstrip() for line in self._screen.display]

    @property
    def text(self) -> str:
        """The screen."""
        return "\n".join(self.lines).rstrip()

    @property
    def all(self) -> str:
        """The scrollback, and the screen."""
        above = ["".join(line[at].data for at in range(self._screen.columns)) for line in self._screen.history.top]
        return "\n".join([*(line.rstrip() for line in above), self.text])

    def colour_of(self, text: str) -> str:
        """Return the colour in which the first character of a text on the screen is drawn."""
        row = next(number for number, line in enumerate(self.lines) if text in line)
        return str(self._screen.buffer[row][self.lines[row].index(text)].fg)

    def until(self, seen: Callable[[str], object] | str) -> str:
        """Wait until the screen shows a text, or fulfils a condition; return it."""
        fulfilled = (lambda screen: seen in screen) if isinstance(seen, str) else seen
        deadline = time.monotonic() + PATIENCE
        while not fulfilled(self.text):
            assert time.monotonic() < deadline, f"waited for {seen!r}:\n{self.text}"
            assert self._read(0.05), f"the console ended:\n{self.text}"
        return self.text

    def ended(self) -> int:
        """Wait for the console's end; return its exit code."""
        deadline = time.monotonic() + PATIENCE
        while self._read(0.05):
            assert time.monotonic() < deadline, f"the console goes on:\n{self.text}"
        return int(os.read(self._result, 16))

    def _read(self, seconds: float) -> bool:
        """Take what there is; return whether more may come."""
        if select.select([self._master], [], [], seconds)[0]:
            try:
                chunk = os.read(self._master, 2**16)
            except OSError:
                return False  # the last process with the terminal has ended
            if not chunk:
                return False
            self.raw += chunk
            self._stream.feed(chunk)
        return True


_SEQUENCE: Final = re.compile(rb"\x1b(\[[0-9;?]*[a-zA-Z]|[=>78])")


def unexpected(raw: bytes) -> bytes:
    """Return the control characters of an output that are neither line ends nor plain sequences of a screen."""
    left = _SEQUENCE.sub(b"", raw)
    return bytes(byte for byte in left if (byte < 32 and byte not in b"\r\n\t\b") or byte == 127)


def piped(
    home: Path, folder: Path, given: str, variables: dict[str, str], **options: Any
) -> "subprocess.CompletedProcess[str]":
    """Run a console on pipes, to its end."""
    return subprocess.run(
        command(**options),
        input=given,
        capture_output=True,
        text=True,
        cwd=folder,
        env=environment(home, **variables),
        timeout=PATIENCE * 2,
        check=False,
    )
