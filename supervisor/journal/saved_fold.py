"""A fold over the journal, saved in a file beside it, so that not every program reads the whole journal.

Rule: nothing of it is a truth of its own. It stands under a digest, names the last row that it was folded from, and
counts only for a journal that has that row still, and for the version that wrote it; else it is removed.
"""

import hashlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

import msgspec

from supervisor.errors import ConfigError
from supervisor.journal.journal import Journal, Position
from supervisor.system.safe_files import read_bytes, replace_file

_DIGEST: Final = hashlib.sha256().digest_size


class Saved(Protocol):
    """What is in such a file, behind its digest."""

    @property
    def by(self) -> tuple[str, ...]:
        """The version that wrote it, and the fields that it knew."""

    @property
    def seen(self) -> Position:
        """The last row that was taken into account."""


_T = TypeVar("_T", bound=Saved)


def load(file: Path, journal: Journal, by: tuple[str, ...], decode: Callable[[bytes], _T]) -> _T | None:
    """Return what was saved, if it is of this journal; else remove it: it may tell of one that was deleted."""
    with suppress(OSError, msgspec.DecodeError):
        data = read_bytes(file, own=True)
        if hashlib.sha256(data[_DIGEST:]).digest() == data[:_DIGEST]:
            saved = decode(data[_DIGEST:])
            if saved.by == by and saved.seen == journal.position(saved.seen.seq):
                return saved
    with suppress(OSError):
        file.unlink()
    return None


def save(file: Path, saved: Any) -> None:
    """Save it; without it, the next program reads more of the journal."""
    data = msgspec.msgpack.encode(saved)
    with suppress(OSError, ConfigError):
        replace_file(file, hashlib.sha256(data).digest() + data, durable=False)
