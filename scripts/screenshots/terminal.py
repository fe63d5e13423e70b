"""A program on a pseudo-terminal, with a screen that can be read cell by cell."""

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Self

import pyte

PATIENCE_S: Final = 30.0


class Terminal:
    """Runs one program. Use it in `with`: the program is killed at the end.

    Raises:
        TimeoutError: the screen does not show in time what is waited for; the message holds the screen.
    """

    def __init__(
        self, command: list[str], folder: Path, environment: Mapping[str, str], *, columns: int, rows: int
    ) -> None:
        self.raw = b""
        """All that was ever written."""
        self.screen = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self.screen)
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self._process = self._begin(command, stdin=slave, stdout=slave, stderr=slave, cwd=folder, env=dict(environment))
        os.close(slave)

    def _begin(self, command: list[str], **options: Any) -> subprocess.Popen[bytes]:
        return subprocess.Popen(command, start_new_session=True, **options)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()
        os.close(self._master)

    def type_keys(self, keys: str) -> None:
        """Send keys as a person would press them."""
        os.write(self._master, keys.encode())

    def wait_for(self, text: str) -> None:
        """Wait until the screen shows `text`, and has come to rest."""
        deadline = time.monotonic() + PATIENCE_S
        while text not in "\n".join(self.screen.display):
            self._read(0.1)
            if time.monotonic() > deadline:
                raise TimeoutError(f"The screen does not show {text!r}:\n" + "\n".join(self.screen.display))
        while self._read(0.4):
            pass

    def _read(self, seconds: float) -> bool:
        """Take what was written; return whether it was anything."""
        if not select.select([self._master], [], [], seconds)[0]:
            return False
        try:
            chunk = os.read(self._master, 2**16)
        except OSError:
            return False  # the program has ended
        self.raw += chunk
        self._stream.feed(chunk)
        return bool(chunk)
