"""Places that programs lead to: by links, by the interpreters that scripts name, by the base of an environment.

Rule: files are looked into and never run; what cannot be read leads nowhere. Nothing is checked of what is returned.
"""

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from supervisor.categories.shown_places import names_in
from supervisor.system import safe_files
from workers.shell.shell_inputs import SYSTEM, within

_SCRIPTS_AT_MOST: Final = 1024
"""In one directory: how many files are looked into for the interpreter that they name."""
_SYSTEM_BENEATH: Final = tuple(f"{each}/" for each in SYSTEM)
_NAMED: Final = re.compile(rb"#![ \t]*(/[^ \t\n\0]+)")


def in_system(path: str) -> bool:
    """Say whether a path lies among the system's programs and libraries."""
    return path in SYSTEM or path.startswith(_SYSTEM_BENEATH)


def leading_out(directory: str) -> Iterator[str]:
    """Yield the programs in a directory that are links, and the interpreters that scripts in it name."""
    system, scripts, named = in_system(directory), 0, set()
    for entry in names_in(directory):
        if entry.is_symlink():
            if not system or _leads_out_of_the_system(os.readlink(entry.path)):
                yield entry.path
        elif not system and scripts < _SCRIPTS_AT_MOST and entry.is_file(follow_symlinks=False):
            scripts += 1
            if found := _NAMED.match(_start(entry.path)):
                named.add(os.fsdecode(found[1]))
    yield from sorted(named)


def _leads_out_of_the_system(target: str) -> bool:
    return target.startswith("/") and not within(target, "/etc") and not in_system(target)


def _start(file: str) -> bytes:
    """Return the first bytes of a file; nothing where it cannot be read."""
    with suppress(OSError), open(file, "rb", buffering=0, opener=_at_once) as opened:
        return opened.read(256) or b""
    return b""


def _at_once(file: str, flags: int) -> int:
    return os.open(file, flags | safe_files.AT_ONCE)


def base_named_by(prefix: str) -> list[str]:
    """Return where a virtual environment says that the programs of its Python are; nothing where it is none."""
    if not os.path.lexists(f"{prefix}/pyvenv.cfg"):
        return []
    try:
        text = safe_files.read_bytes(Path(prefix, "pyvenv.cfg"), 2**16).decode("utf-8")
    except (OSError, ValueError):
        return []
    found = [
        value.strip() for key, _, value in (line.partition("=") for line in text.splitlines()) if key.strip() == "home"
    ]
    return [each for each in found[:1] if os.path.isabs(each)]
