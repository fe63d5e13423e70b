"""The file of what was typed, in all sessions.

Rule: it holds JSON strings, one a line, oldest first; it is its owner's alone, and never longer than twice the cap. It
cannot stop a client: lines that cannot be read or written are left out.
"""

import os
from pathlib import Path
from typing import Final

import msgspec

from supervisor.errors import StrongroomError
from supervisor.system.safe_files import own_file, read_bytes

CAP: Final = 1000
"""Lines that are kept."""
_LONGEST: Final = 10_000
"""Characters; what is longer was pasted, and is not remembered."""


def load(path: Path) -> list[str]:
    """Return what was typed, oldest first."""
    try:
        lines = read_bytes(path).splitlines()
    except OSError:
        return []
    found = []
    for line in lines[-CAP:]:
        try:
            found.append(msgspec.json.decode(line, type=str))
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue
    return found


def append(path: Path, text: str) -> None:
    """Remember a line; now and then, forget the oldest."""
    if len(text) > _LONGEST:
        return
    try:
        descriptor = own_file(path, os.O_RDWR | os.O_APPEND)
        with open(descriptor, "r+b") as file:
            file.write(msgspec.json.encode(text) + b"\n")
            file.flush()
            file.seek(0)
            lines = file.read().splitlines(keepends=True)
        if len(lines) > 2 * CAP:
            _replace(path, b"".join(lines[-CAP:]))
    except (OSError, StrongroomError, UnicodeError):
        return


def _replace(path: Path, content: bytes) -> None:
    beside = path.with_name(f"{path.name}.{os.getpid()}")
    with open(own_file(beside, os.O_WRONLY | os.O_TRUNC), "wb") as file:
        file.write(content)
    beside.replace(path)
