"""The key that this installation signs with: Ed25519, made at first need, in a file of the home for its owner alone.

Rule: it leaves the file for a signature alone. No worker sees the home, and nothing but `strongroom verify` imports
this: the library takes 13 ms and 9 MiB.
"""

import hashlib
import os
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)

from supervisor.errors import ConfigError
from supervisor.system import safe_files

_MOST: Final = 4096
"""Bytes that a file of a key has at most."""
_COMPARED: Final = 32
"""Hexadecimal digits of a fingerprint: 128 bits, of which nobody finds two keys that he did not make as a pair."""
_GROUP: Final = 4


class InstallationKey:
    """The key, loaded."""

    def __init__(self, key: Ed25519PrivateKey) -> None:
        self._key = key
        self.public = key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
        """32 bytes."""

    @property
    def fingerprint(self) -> str:
        """What people compare of it."""
        text = hashlib.sha256(self.public).hexdigest()[:_COMPARED]
        return " ".join(text[at : at + _GROUP] for at in range(0, _COMPARED, _GROUP))

    def sign(self, message: bytes) -> bytes:
        """Return a signature, of 64 bytes."""
        return self._key.sign(message)


def kept_key(path: Path) -> InstallationKey | None:
    """Return the key of a file; None where there is none.

    Raises:
        ConfigError: it cannot be read, is not this user's alone, or is no key.
    """
    advice = "Move it away, and the next proof makes another key, of which you have to tell those who know this one."
    try:
        key = load_pem_private_key(safe_files.read_bytes(path, _MOST, own=True), None)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigError(f"The key {path} cannot be read: {error.strerror}. {advice}") from error
    except (ValueError, TypeError) as error:
        raise ConfigError(f"{path} is no key. {advice}") from error
    if not isinstance(key, Ed25519PrivateKey):
        raise ConfigError(f"{path} is a key of another kind than Ed25519. {advice}")
    return InstallationKey(key)


def kept_or_made(path: Path) -> InstallationKey:
    """Return the key of a file, made durably if there is none; of two that make it at once, both return one.

    Raises:
        ConfigError: as `kept_key`, or it cannot be written.
    """
    if (found := kept_key(path)) is not None:
        return found
    with safe_files.locked_for_change(path):
        if (found := kept_key(path)) is not None:
            return found
        key = Ed25519PrivateKey.generate()
        text = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        try:
            safe_files.replace_file(path, text, durable=True)
        except OSError as error:
            raise ConfigError(f"The key {path} cannot be written: {os.strerror(error.errno or 0)}.") from error
    return InstallationKey(key)
