"""Choices of the person about `.strongroom.toml`: whether one of this content counts; kept in the home.

Rule: a choice is about a digest, so that a file that has changed is asked about again, and one that lies in many roots
is not. Only a choice that can be read counts: without it the file does, which takes away and adds nothing. The file is
replaced as a whole, under a lock, and is on the disk when `choose` returns.
"""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from supervisor.errors import ConfigError, reason
from supervisor.system.safe_files import locked_for_change, read_bytes, replace_file

_LIMIT: Final = 2**20
"""Bytes of the file."""

_log: Final = logging.getLogger("strongroom.rules")


class NarrowingChoice(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What was said of one content."""

    use: bool
    file: str
    """Where it was asked about."""
    by: str
    """Who said so, for example "console"."""


class NarrowingChoices:
    """The choices in a file, which need not be there yet."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def uses(self, digest: str) -> bool | None:
        """Return whether a file with this digest counts; None where nobody has said."""
        try:
            choice = self._read().get(digest)
        except ConfigError as error:
            _log.error("%s", error)
            return None
        return None if choice is None else choice.use

    def choose(self, digest: str, choice: NarrowingChoice) -> None:
        """Keep what a person has said.

        Raises:
            ConfigError: it cannot be kept.
        """
        with locked_for_change(self._path):
            data = msgspec.json.format(msgspec.json.encode({**self._read(), digest: choice})) + b"\n"
            if len(data) > _LIMIT:
                raise ConfigError(f"{self._path} has no room for another choice. Move it away to begin anew.")
            try:
                replace_file(self._path, data, durable=True)
            except OSError as error:
                raise ConfigError(f"{self._path} cannot be written: {reason(error)}. Nothing has changed.") from error

    def _read(self) -> Mapping[str, NarrowingChoice]:
        try:
            return msgspec.json.decode(read_bytes(self._path, _LIMIT, own=True), type=dict[str, NarrowingChoice])
        except FileNotFoundError:
            return {}
        except (OSError, msgspec.DecodeError, UnicodeError, RecursionError) as error:
            raise ConfigError(
                f"{self._path} cannot be used, and no choice in it counts: {reason(error)}. Move it away to begin anew."
            ) from error
