"""Outputs of a batch: a file that keeps its results, or standard output.

Rule: in a file a result line is written whole and synced before the next; a torn last line (the process was killed) is
cut off on resume, never repaired by guessing. Items that are suspended stand at the end, and are taken up again on
resume. Standard output keeps nothing: a batch that writes there cannot be resumed.
"""

import errno
import fcntl
import os
import stat
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import msgspec

from supervisor.clients.batch.items import Result
from supervisor.display.escape import json_line
from supervisor.errors import ConfigError, OutputError, reason

_LINE_START: Final = b'{"id":'
"""The beginning of each result line, which tells a torn line from somebody else's file."""


class OutputFile:
    """The results on the disk.

    Args:
        path: the file; made where it does not exist.
        resume: keep the results that are there; else a file that holds any is refused.

    Raises:
        ConfigError: it cannot be written, or already holds results.
    """

    def __init__(self, path: Path, *, resume: bool) -> None:
        self.statuses: dict[str, str] = {}
        self._writing, self._syncing = threading.Lock(), threading.Lock()
        self._written = self._synced = 0
        """Results, and those of them that are durable."""
        self._failed = self._torn = False
        try:
            self._file = open(path, "ab+", buffering=0, opener=_open)  # noqa: SIM115 - closed by `close`
        except (OSError, ValueError) as error:
            raise ConfigError(f"The output {str(path)!r} cannot be written: {reason(error)}.") from error
        try:
            self._begin(path, resume)
        except BaseException:
            self._file.close()
            raise

    def _begin(self, path: Path, resume: bool) -> None:
        if not stat.S_ISREG(os.fstat(self._file.fileno()).st_mode):
            raise ConfigError(f"The output {str(path)!r} is not a regular file; results must be kept.")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # until the file is closed
            self._file.seek(0)
            content = self._file.read()
        except BlockingIOError as error:
            raise ConfigError(f"Another batch is writing to {str(path)!r}. Let it end, or stop it first.") from error
        except OSError as error:
            raise ConfigError(f"The output {str(path)!r} cannot be read: {error.strerror or error}.") from error
        if content and not resume:
            raise ConfigError(
                f"The output {str(path)!r} already exists. Use --resume to resume its batch, or name another file."
            )
        whole = content.rfind(b"\n") + 1
        ended = self._read(path, content[:whole].splitlines(keepends=True))
        torn = content[whole:]
        if not (torn.startswith(_LINE_START) or _LINE_START.startswith(torn)):
            raise ConfigError(f"{path} does not end in a result of a batch; nothing was changed.")
        if len(content) > ended:
            self._file.truncate(ended)

    def _read(self, path: Path, lines: Sequence[bytes]) -> int:
        """Read the results; return how many bytes are of items that are not suspended, which come first."""
        ended = seen = 0
        for number, line in enumerate(lines, 1):
            seen += len(line)
            try:
                result = msgspec.json.decode(line)
                if result["status"] != "suspended":
                    self.statuses[str(result["id"])] = result["status"]
                    ended = seen
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, KeyError, TypeError) as error:
                raise ConfigError(f"{path}, line {number} is not a result of a batch; nothing was changed.") from error
        return ended

    def write(self, result: Result) -> None:
        """Append one result, durable when this returns, in any thread: those that wait share one sync.

        Raises:
            OutputError: the disk does not take it.
        """
        try:
            with self._writing:
                self._append(result.line())
                mine = self._written
            with self._syncing:
                if self._synced < mine:
                    self._sync()
        except OSError as error:
            raise OutputError(f"The output cannot be written: {error.strerror}. Use --resume later.") from error
        self.statuses[str(result.id)] = result.status

    def _append(self, line: bytes) -> None:
        """Write a line; none follows a part of one, which could not be resumed."""
        if self._torn:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        rest, self._torn = memoryview(line), True
        while rest:
            rest = rest[self._file.write(rest) :]
        self._torn = False
        self._written += 1

    def _sync(self) -> None:
        """Make durable what is written. What a sync has failed for is lost, and the next one may not say so."""
        if self._failed:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        covered, self._failed = self._written, True
        os.fsync(self._file.fileno())
        self._synced, self._failed = covered, False

    def close(self) -> None:
        self._file.close()


class ResultPrinter:
    """Results on standard output, each a line that is shown at once."""

    def __init__(self, put: Callable[[str], None]) -> None:
        self.statuses: dict[str, str] = {}
        self._put, self._printing = put, threading.Lock()

    def write(self, result: Result) -> None:
        """Print one result, in any thread.

        Raises:
            OSError: nobody reads it.
        """
        with self._printing:
            self._put(json_line(msgspec.Raw(result.line()[:-1]))[:-1])
        self.statuses[str(result.id)] = result.status

    def close(self) -> None:
        """Leave standard output open: it is not ours."""


def _open(path: str, flags: int) -> int:
    """Open without waiting for the other end of a FIFO; what is no file is refused afterwards."""
    return os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
