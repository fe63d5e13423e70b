"""`strongroom status --watch`: the status on a screen of its own that scrolls, looked at anew each second.

Rule: however it ends, the terminal is as it was. Where standard output is none, block follows block. `moved` is pure.
"""

import os
import re
import select
import signal
import sys
import termios
import time
import tty
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from types import MappingProxyType
from typing import Final

from supervisor.clients.status import NONE_RUNS, look, status_text
from supervisor.config.settings import Settings
from supervisor.display.columns import cut, wrapped
from supervisor.display.escape import visible
from supervisor.errors import DaemonLost

_PERIOD: Final = 1.0
"""Seconds between two looks."""
_BEGIN: Final = "\x1b[?1049h\x1b[?25l\x1b[?7l"
"""A screen of its own, no cursor, and lines that do not go on in the next one."""
_END: Final = "\x1b[?7h\x1b[?25h\x1b[?1049l"
_HOME: Final = "\x1b[H"
_CLEAR_LINE: Final = "\x1b[K"
_CLEAR_REST: Final = "\x1b[J"
_KEY: Final = re.compile(rb"\x1b(?:\[[0-9;]*[A-Za-z~]|O[A-Za-z])|.", re.DOTALL)
_ENDS: Final = frozenset({b"q", b"Q", b"\x03", b"\x04"})
_STEPS: Final[Mapping[bytes, tuple[int, int]]] = MappingProxyType(
    {
        **dict.fromkeys((b"\x1b[A", b"\x1bOA", b"k"), (-1, 0)),
        **dict.fromkeys((b"\x1b[B", b"\x1bOB", b"j", b"\r", b"\n"), (1, 0)),
        **dict.fromkeys((b"\x1b[5~", b"b"), (0, -1)),
        **dict.fromkeys((b"\x1b[6~", b" "), (0, 1)),
        **dict.fromkeys((b"\x1b[H", b"\x1bOH", b"\x1b[1~", b"g"), (-sys.maxsize, 0)),
        **dict.fromkeys((b"\x1b[F", b"\x1bOF", b"\x1b[4~", b"G"), (sys.maxsize, 0)),
    }
)
"""How far each key moves: lines, and pages."""
_KEYS: Final = "q ends; arrows, PgUp, PgDn scroll"


def watch(settings: Settings, width: Callable[[], int], style: Callable[[str], str]) -> None:
    """Show it each second until the person has seen enough.

    Args:
        settings: say where the daemon is.
        width: says how many columns there are now.
        style: makes a line of `status_text` pleasant to look at.

    Raises:
        KeyboardInterrupt: it was interrupted.
    """
    if sys.stdout.isatty():
        with _screen() as woken:
            _watch_screen(settings, width, style, woken)
        return
    while True:
        lines = [style(line) for line in _looked(settings, width())]
        sys.stdout.write("\n".join([*lines, "", ""]))
        sys.stdout.flush()
        time.sleep(_PERIOD)


def moved(first: int, key: bytes, count: int, rows: int) -> int:
    """Return the first line that is shown after a key; a page keeps a line of the one before.

    Args:
        first: the line that is first now.
        key: as a terminal sends it; one without a meaning moves nothing.
        count: of all lines.
        rows: for lines on the screen.
    """
    lines, pages = _STEPS.get(key, (0, 0))
    return max(0, min(first + lines + pages * max(1, rows - 1), count - rows))


def _watch_screen(settings: Settings, width: Callable[[], int], style: Callable[[str], str], woken: int) -> None:
    first, lines, due = 0, list[str](), 0.0
    while True:
        if time.monotonic() >= due:
            lines = _looked(settings, width())
            due = time.monotonic() + _PERIOD
        columns, rows = os.get_terminal_size(sys.stdout.fileno())
        rows = max(1, rows - 1)
        first = moved(first, b"", len(lines), rows)
        shown = [style(line) for line in lines[first : first + rows]]
        foot = f"lines {first + 1} to {first + len(shown)} of {len(lines)}; {_KEYS}"
        body = "".join(f"{line}{_CLEAR_LINE}\r\n" for line in shown)
        sys.stdout.write(f"{_HOME}{body}{_CLEAR_REST}\x1b[{rows + 1}H\x1b[2m{cut(foot, columns)}\x1b[0m")
        sys.stdout.flush()
        resized, keys = _waited(due - time.monotonic(), woken)
        due = 0.0 if resized else due
        for key in keys:
            if key in _ENDS:
                return
            first = moved(first, key, len(lines), rows)


def _waited(seconds: float, woken: int) -> tuple[bool, list[bytes]]:
    """Wait until something is pressed, or the terminal has another size; return whether that is so, and the keys."""
    ready = select.select([woken, *([0] if _has_keys() else [])], [], [], max(0.0, seconds))[0]
    if woken in ready:
        os.read(woken, 2**12)
    if 0 not in ready:
        return woken in ready, []
    return woken in ready, _KEY.findall(os.read(0, 2**12)) or [b"\x04"]  # the terminal is gone


def _has_keys() -> bool:
    return sys.stdin is not None and sys.stdin.isatty()


@contextmanager
def _screen() -> Iterator[int]:
    """Take the terminal, and give a descriptor that can be read when its size has changed."""
    with ExitStack() as stack:
        if _has_keys():
            stack.callback(termios.tcsetattr, 0, termios.TCSAFLUSH, termios.tcgetattr(0))
            tty.setcbreak(0)
            modes = termios.tcgetattr(0)
            modes[6][termios.VSUSP] = b"\0"  # a screen that is left for a while would not come back
            termios.tcsetattr(0, termios.TCSANOW, modes)
        woken, wakes = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        stack.callback(os.close, woken)
        stack.callback(os.close, wakes)
        stack.callback(signal.set_wakeup_fd, signal.set_wakeup_fd(wakes, warn_on_full_buffer=False))
        stack.callback(signal.signal, signal.SIGWINCH, signal.signal(signal.SIGWINCH, lambda *_: None))
        stack.callback(_write, _END)
        _write(_BEGIN)
        yield woken


def _write(text: str) -> None:
    with suppress(OSError):  # it is gone
        sys.stdout.write(text)
        sys.stdout.flush()


def _looked(settings: Settings, width: int) -> list[str]:
    try:
        found = look(settings)
    except DaemonLost as error:  # the next look may find another, or the same one again
        return ["No answer", *wrapped(visible(str(error)), width, "  ", "    ")]
    return [NONE_RUNS] if found is None else status_text(found, width).splitlines()
