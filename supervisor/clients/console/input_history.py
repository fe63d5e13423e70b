"""Input history of all sessions: one JSON string a line, oldest first.

Rule: the file is its owner's alone, and never longer than twice the cap. It cannot stop the console: lines that cannot
be read or written are left out.
"""

import os
from pathlib import Path
from typing import Final

import msgspec

from supervisor.errors import StrongroomError
from supervisor.system import plain_file
from supervisor.system.own_files import own_file

CAP: Final = 1000
"""Lines that are kept."""
_LONGEST: Final = 10_000
"""Characters; what is longer was pasted, and is not remembered."""


def load(path: Path) -> list[str]:
    """Return what was typed, oldest first."""
    try:
        lines = plain_file.read_bytes(path).splitlines()
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
