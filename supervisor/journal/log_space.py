"""Space in SQLite's log behind its last frame: zeros, over which commits are written.

Rule: only whoever holds the write lock makes it, and only behind the end of the file. A frame of zeros has no valid
salt, so SQLite takes it for the end of its log (https://www.sqlite.org/walformat.html, 4.1). A commit that does not
lengthen its file is durable in half the time: its sync writes the frame, and not where the file ends as well.
"""

from contextlib import suppress
from typing import Final, Protocol

_SHORT: Final = 2**18
"""Bytes of a log that may never grow longer, as that of a single call: nothing is added to it."""
_LONG: Final = 2**22
"""Bytes from which on SQLite begins the log anew, over its old frames."""
_AHEAD: Final = 2**19
"""Bytes that are added at once; the next commit's sync writes them out."""


class _Log(Protocol):
    @property
    def log_size(self) -> int: ...

    def write_to_log(self, data: bytes, at: int) -> None: ...


class LogSpace:
    """The space in the log of one journal, whose `files` a connection has open."""

    def __init__(self, files: _Log) -> None:
        self._files = files
        self._end = _SHORT
        """Where the log ends, as far as it is known to have space."""

    def make(self) -> None:
        """Lengthen the log where frames have reached its end, under the write lock; a full disk is met by others."""
        size = self._files.log_size
        if self._end < size < _LONG:
            self._end = size + _AHEAD
            with suppress(OSError):
                self._files.write_to_log(bytes(_AHEAD), size)
