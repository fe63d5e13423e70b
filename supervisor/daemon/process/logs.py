"""The daemon's log: a JSON object a line in a file that rotates, and lines for people on stderr.

Rule: a log that cannot be written is counted and never felt: it ends nothing and says nothing. It hangs on our own
logger and not on the root, because a library may log its requests, and with them the key; and the key is taken out of
what we log ourselves.
"""

import logging
import os
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any, Final, TextIO

import msgspec

from supervisor.agent.models.providers import secrets
from supervisor.config.settings import Settings
from supervisor.display.escape import json_line, one_line
from supervisor.system.safe_files import own_directory, own_file

_LEVELS: Final = (logging.WARNING, logging.INFO, logging.DEBUG)
"""What stderr shows, by how often -v was given."""
_WIDTH: Final = 1000
_KEY_LENGTH: Final = 8
"""Characters from which a key is one, and not a word that any line may hold."""
_OWN: Final = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}
"""What every record has; the rest are the fields of `extra`."""


class LogFile(RotatingFileHandler):
    """The log's file. `lost` counts the records that could not be written."""

    def __init__(self, path: Path, size: int, kept: int) -> None:
        super().__init__(path, maxBytes=size, backupCount=kept, encoding="utf-8", delay=True)
        self.lost = 0

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: ARG002, N802 - logging's names
        """Count the record, and begin anew with the next: a half-written line stays in no buffer."""
        self.lost += 1
        stream, self.stream = self.stream, None
        with suppress(OSError, ValueError):  # what it still held is lost as well
            if stream is not None:
                stream.close()

    def _open(self) -> Any:
        descriptor = own_file(Path(self.baseFilename), os.O_RDWR | os.O_APPEND)
        try:
            size = os.fstat(descriptor).st_size
            if size and os.pread(descriptor, 1, size - 1) != b"\n":
                os.write(descriptor, b"\n")  # ends a line that a full disk or a power cut tore
            return open(descriptor, "a", encoding="utf-8")
        except BaseException:
            os.close(descriptor)
            raise


class _Formatter(logging.Formatter):
    """Leaves the keys out of each line; `keys` may grow."""

    def __init__(self, keys: Iterable[str]) -> None:
        super().__init__()
        self.keys = dict.fromkeys(keys)

    def _without_keys(self, text: str) -> str:
        for key in tuple(self.keys):
            text = text.replace(key, "[key]")
        return text


class _Json(_Formatter):
    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line: dict[str, Any] = {
            "at": at.replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": _clean(_message(record)),
        }
        if record.exc_info:
            line["exception"] = _clean(self.formatException(record.exc_info))
        for name, value in record.__dict__.items():
            if name not in _OWN:
                line.setdefault(_clean(name), _value(value))
        return self._without_keys(json_line(line)[:-1])


class _PlainFormatter(_Formatter):
    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created).astimezone()
        text = f"{at:%H:%M:%S} {record.levelname.lower()} {record.name}:"
        fields = [f"{name}={value}" for name, value in record.__dict__.items() if name not in _OWN]
        failed = [repr(record.exc_info[1])] if record.exc_info else []
        return one_line(self._without_keys(" ".join([text, _message(record), *failed, *fields])), _WIDTH)


class _Stderr(logging.StreamHandler[TextIO]):
    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging's name
        """Leave it: whoever read stderr has gone."""


def start_logging(settings: Settings, *, to_stderr: bool, verbose: int) -> LogFile:
    """Log from now on, instead of wherever the logger "strongroom" wrote before; return the file's handler.

    Raises:
        ConfigError: the directory of the log is not for us alone, or cannot be made.
    """
    if own_directory(settings.logs, "Set XDG_STATE_HOME or STRONGROOM_HOME to a directory of your own.") & 0o077:
        settings.logs.chmod(0o700)
    keys = _keys(settings)
    daemon = settings.config.daemon
    file = LogFile(settings.logs / "daemon.log", daemon.log_mb * 2**20, daemon.log_files)
    file.setLevel(logging.DEBUG if verbose > 1 else logging.INFO)
    file.setFormatter(_Json(keys))
    handlers: list[logging.Handler] = [file]
    if to_stderr:
        handlers += _people(_LEVELS[min(verbose, 2)], keys)
    _log_to(handlers, file.level)
    return file


def log_to_stderr(settings: Settings, level: int) -> None:
    """Log for people alone, from `level` on: for a daemon that is private to somebody's command."""
    _log_to(_people(level, _keys(settings)), level)


def keep_out(keys: Iterable[str]) -> None:
    """Keep keys out of the log from now on, which were not known when it began."""
    for handler in logging.getLogger("strongroom").handlers:
        if isinstance(handler.formatter, _Formatter):
            handler.formatter.keys |= dict.fromkeys(_long_enough(keys))


def _people(level: int, keys: Sequence[str]) -> list[logging.Handler]:
    if sys.stderr is None:
        return []
    handler = _Stderr(sys.stderr)
    handler.setLevel(level)
    handler.setFormatter(_PlainFormatter(keys))
    return [handler]


def _log_to(handlers: list[logging.Handler], level: int) -> None:
    ours = logging.getLogger("strongroom")
    for old in ours.handlers[:]:
        ours.removeHandler(old)
        old.close()
    for each in handlers:
        ours.addHandler(each)
    ours.setLevel(level)
    ours.propagate = False


def _keys(settings: Settings) -> list[str]:
    return _long_enough(secrets(settings))


def _long_enough(keys: Iterable[str]) -> list[str]:
    return [key for key in keys if len(key) >= _KEY_LENGTH]


def _message(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except (TypeError, ValueError, KeyError):
        return f"{record.msg} {record.args!r}"  # arguments that do not fit: a bug, but not one to lose the line for


def _value(value: Any) -> msgspec.Raw:
    """Return any value as JSON; what has none as its representation."""
    try:
        return msgspec.Raw(msgspec.json.encode(_clean(value) if isinstance(value, str) else value, enc_hook=repr))
    except (ArithmeticError, RecursionError, TypeError, ValueError):
        return msgspec.Raw(msgspec.json.encode(_clean(repr(value))))


def _clean(text: str) -> str:
    """Return text that is Unicode: half a surrogate pair, which file names can hold, as an escape."""
    return text.encode("utf-8", "backslashreplace").decode()
