"""Output of a command: shown while it runs, and kept for the answer.

Rule: neither takes more memory, or more of anybody's time, than its limits say, whatever is printed. Of long output the
beginning and the end are kept, and how much lies between is said. Bytes that are no UTF-8 become U+FFFD.
"""

import codecs
import os
from collections.abc import Callable, Container
from typing import Final

KEPT_HEAD: Final = 2**15
KEPT_TAIL: Final = 2**15
"""Bytes of each stream that the answer holds."""

SHOWN_AT_ONCE: Final = 2**13
"""Characters of one part of the output, as it is shown."""

SHOWN_EVERY: Final = 0.05
"""Seconds between two parts."""

_CHUNK: Final = 2**16
_LEFT: Final = 2**5
"""Chunks that a pipe may still hold when nobody is left to write: more than pipe-max-size of pipe(7)."""

_decoder = codecs.getincrementaldecoder("utf-8")


class KeptOutput:
    """The beginning and the end of one stream."""

    def __init__(self, head: int = KEPT_HEAD, tail: int = KEPT_TAIL) -> None:
        self.size = 0
        self._head = bytearray()
        self._tail = bytearray()
        self._most_head = head
        self._most_tail = tail

    def add(self, data: bytes) -> None:
        self.size += len(data)
        room = self._most_head - len(self._head)
        self._head += data[:room]
        self._tail += data[room:] if room > 0 else data
        if len(self._tail) > 2 * self._most_tail:  # not at each byte
            del self._tail[: -self._most_tail]

    def text(self) -> str:
        """Return it, with a line between beginning and end that says what is left out."""
        tail = self._tail[-self._most_tail :]
        left_out = self.size - len(self._head) - len(tail)
        if left_out == 0:
            return (self._head + tail).decode("utf-8", "replace")
        cut = next((at for at, byte in enumerate(tail[:4]) if byte & 0xC0 != 0x80), 0)  # noqa: PLR2004 - see RFC 3629
        del tail[:cut]  # the rest of a character
        left_out += cut
        head = _decoder("replace").decode(bytes(self._head))  # without the beginning of one
        return f"{head}\n[... {left_out} bytes left out ...]\n{tail.decode('utf-8', 'replace')}"


class Shown:
    """What of both streams is shown while the command runs: at most so much, at most so often.

    Args:
        send: takes the next part.
    """

    def __init__(self, send: Callable[[str], None]) -> None:
        self._send = send
        self._decoders = (_decoder("replace"), _decoder("replace"))
        self._waiting = ""
        self._skipped = 0
        self._next = 0.0

    def add(self, stream: int, data: bytes, now: float) -> None:
        """Take what was printed next on one stream, 0 or 1; show it if it is time."""
        text = self._decoders[stream].decode(data)
        room = SHOWN_AT_ONCE - len(self._waiting)
        self._waiting += text[:room]
        self._skipped += max(0, len(text) - room)
        if now >= self._next:
            self.flush(now)

    def flush(self, now: float) -> None:
        text = self._waiting
        if self._skipped:
            text += f"\n[... {self._skipped} characters not shown ...]\n"
        if text:
            self._send(text)
            self._waiting, self._skipped, self._next = "", 0, now + SHOWN_EVERY

    def due(self, now: float) -> float:
        """Return the seconds until something that waits should be shown; infinite where nothing does."""
        return max(0.0, self._next - now) if self._waiting or self._skipped else float("inf")


class CommandOutput:
    """Both streams of a running command: read without waiting, shown, and kept.

    Args:
        streams: the reading ends of its standard output and error, which do not block; they stay the caller's.
        show: takes the next part that is shown.
    """

    def __init__(self, streams: tuple[int, int], show: Callable[[str], None]) -> None:
        self._streams = streams
        self._kept = (KeptOutput(), KeptOutput())
        self._shown = Shown(show)
        self.due = self._shown.due

    def read(self, ready: Container[int], now: float) -> list[int]:
        """Read each stream that is ready, once; return those that are at their end."""
        ended = []
        for number, stream in enumerate(self._streams):
            if stream not in ready:
                continue
            try:
                data = os.read(stream, _CHUNK)
            except BlockingIOError:  # a process that could not be ended holds the other end
                continue
            self._kept[number].add(data)
            self._shown.add(number, data, now)
            if not data:
                ended.append(stream)
        if self.due(now) == 0:
            self._shown.flush(now)
        return ended

    def read_rest(self, now: float) -> None:
        """Read what the pipes still hold, now that nobody writes any more."""
        for _ in range(_LEFT):
            if len(self.read(self._streams, now)) == len(self._streams):
                break
        self._shown.flush(now)

    def texts(self) -> tuple[str, str]:
        """Return what is kept of both streams."""
        out, err = self._kept
        return out.text(), err.text()
