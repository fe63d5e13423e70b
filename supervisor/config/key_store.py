"""Keys of model providers that a person keeps here: a file in the home, for `strongroom login`.

Rule: a key is kept with the server that it is for, and is sent to no other. It stands in no environment, no log and no
text about it. The file is this user's alone, and replaced as a whole, under a lock; where it cannot be read, that is
said, and no key is taken for none.
"""

import re
from pathlib import Path
from typing import Final

import msgspec

from supervisor.errors import ConfigError
from supervisor.system.safe_files import locked_for_change, read_bytes, replace_file

_LIMIT: Final = 2**18
"""Bytes of the file."""
_KEY: Final = re.compile(r"[!-~]{1,4096}")
"""What RFC 9110 lets a header hold, without blanks."""


class KeptKey(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A key, and the server that it is for: scheme, host and port."""

    key: str
    server: str

    def __repr__(self) -> str:
        return f"KeptKey(..., {self.server!r})"


def key_problem(text: str) -> str:
    """Return why a text is no key, a clause; "" where it may be one. The text is not repeated."""
    if not text:
        return "it is empty"
    if "\n" in text or "\r" in text:
        return "it has more than one line"
    return "" if _KEY.fullmatch(text) else "it has characters that no key has, or more than 4096 of them"


class KeyStore:
    """The keys in a file, which need not be there yet."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def kept(self) -> dict[str, KeptKey]:
        """Return all keys, by the provider's label.

        Raises:
            ConfigError: the file cannot be read, or is damaged.
        """
        try:
            return msgspec.json.decode(read_bytes(self._path, _LIMIT, own=True), type=dict[str, KeptKey])
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise self._unusable(error.strerror or str(error)) from error
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            raise self._unusable("it is not as `strongroom login` writes it") from None  # which may repeat a key

    def keep(self, label: str, kept: KeptKey) -> None:
        """Keep a key, in place of one that there may be; it is on the disk when this returns.

        Raises:
            ConfigError: the file is damaged, or cannot be written.
        """
        with locked_for_change(self._path):
            self._write({**self.kept(), label: kept})

    def forget(self, label: str) -> bool:
        """Forget a key; say whether there was one.

        Raises:
            ConfigError: the file is damaged, or cannot be written.
        """
        if label not in self.kept():  # without a lock, which would need a place to be
            return False
        with locked_for_change(self._path):
            self._write({name: kept for name, kept in self.kept().items() if name != label})
        return True

    def _write(self, keys: dict[str, KeptKey]) -> None:
        try:
            replace_file(self._path, msgspec.json.format(msgspec.json.encode(keys)) + b"\n", durable=True)
        except OSError as error:
            raise ConfigError(f"{self._path} cannot be written: {error.strerror}. Nothing has changed.") from error

    def _unusable(self, why: str) -> ConfigError:
        return ConfigError(
            f"{self._path} cannot be used, and no key in it counts: {why}. Move it away, and log in again."
        )
