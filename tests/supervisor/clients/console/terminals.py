"""The console in a process of its own, on a pseudo-terminal whose screen can be looked at."""

import fcntl
import re
import signal
import struct
import termios
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from scripts.screenshots.terminal import Terminal as PseudoTerminal
from tests.forked import Forked, ForkedStrongroom
from tests.supervisor.command import HANG_GUARD

_PROGRAM: Final = """
import fcntl, os, runpy, sys, termios
from supervisor.clients.console import answer_guard
if "REAL_TIMES" not in os.environ:
    answer_guard.READABLE_S = 0 if {"--plain", "inbox"} & {*sys.argv} else 0.1
    answer_guard.QUIET_S = answer_guard.TYPIST_S = answer_guard.BURST_S = 0
os.setsid()
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
runpy.run_module("supervisor", run_name="__main__", alter_sys=True)
"""
"""What runs; its person reads and types quicker than people do, so that tests need not wait for them.

The variable REAL_TIMES makes that a person's times.
"""

ENTER: Final = "\r"
ALT_ENTER: Final = "\x1b\r"
ESCAPE: Final = "\x1b"
INTERRUPT: Final = "\x03"
END: Final = "\x04"


class Terminal(PseudoTerminal):
    """A console on a pseudo-terminal, or another command there."""

    COMMAND = "console"

    def __init__(
        self, home: Path, folder: Path, *options: str, columns: int = 80, rows: int = 24, **variables: str
    ) -> None:
        own = {"TERM": "xterm-256color", "HOME": str(folder)}  # there nobody is asked what the directory is for
        environment = {**ForkedStrongroom(home, folder).environment, **own, **variables}
        super().__init__([self.COMMAND, *options], folder, environment, columns=columns, rows=rows)

    def _begin(self, command: list[str], **options: Any) -> Forked:
        return Forked(_PROGRAM, command, **options)

    def resize(self, columns: int, rows: int) -> None:
        self.screen.resize(rows, columns)
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, text: str, seen: Callable[[str], object] | str = "") -> str:
        """Type; then wait as `until` does."""
        self.type_keys(text)
        return self.until(seen)

    def hammer(self, key: str, times: int) -> str:
        """Press a key every 20 ms; return the screen."""
        for _ in range(times):
            self.type_keys(key)
            self.rest(0.02)
        return self.text

    def rest(self, seconds: float) -> None:
        """Look at the screen, and type nothing."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            self._read(left)

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

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
        return [line.rstrip() for line in self.screen.display]

    @property
    def text(self) -> str:
        return "\n".join(self.lines).rstrip()

    def colour_of(self, text: str) -> str:
        """Return the colour in which the first character of a text on the screen is drawn."""
        row = next(number for number, line in enumerate(self.lines) if text in line)
        return str(self.screen.buffer[row][self.lines[row].index(text)].fg)

    def until(self, seen: Callable[[str], object] | str) -> str:
        """Wait until the screen shows a text, or fulfils a condition; return it."""
        fulfilled = (lambda screen: seen in screen) if isinstance(seen, str) else seen
        deadline = time.monotonic() + HANG_GUARD
        while not fulfilled(self.text):
            assert time.monotonic() < deadline, f"waited for {seen!r}:\n{self.text}"
            assert self._goes_on(), f"the console ended:\n{self.text}"
        return self.text

    def _goes_on(self) -> bool:
        """Take what has come; say whether more may."""
        runs = self._process.poll() is None  # before the look: then its last words are not missed
        return self._read(0.05) or runs

    def ended(self) -> int:
        """Wait for the console's end; return its exit code."""
        deadline = time.monotonic() + HANG_GUARD
        while self._goes_on():
            assert time.monotonic() < deadline, f"the console goes on:\n{self.text}"
        return self._process.wait(HANG_GUARD)


_SEQUENCE: Final = re.compile(rb"\x1b(\[[0-9;?]*[a-zA-Z]|[=>78]|\]2;Strongroom: [^\x00-\x1f\x7f]*\x07)")


def unexpected(raw: bytes) -> bytes:
    """Return the control characters of an output that are neither line ends, our title, nor a screen's sequences."""
    left = _SEQUENCE.sub(b"", raw)
    return bytes(byte for byte in left if (byte < 32 and byte not in b"\r\n\t\b") or byte == 127)
