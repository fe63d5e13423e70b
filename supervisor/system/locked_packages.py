"""Packages that a project's lock file names, and that neither the root nor a cache of ours has.

Rule: a look, and no more: what cannot be read, or is not understood, lacks nothing, for then the command is asked about
when it has tried the network. What lock files name for other systems is never fetched: what was still not here after a
command had gone well is remembered as not needed for such a one, and is no reason to ask before the next.
"""

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from supervisor.system.lock_files import MOST, READERS, Found, Locked, Place
from supervisor.system.project_files import ProjectFiles, begins_with, text_of

_NAME: Final = re.compile(r"[A-Za-z0-9@_.+~!/-]{1,200}")
_UNNEEDED: Final = ".unneeded"
_PROGRAM: Final = b"\x7fELF"
"""How one begins (elf(5))."""

_MODULE: Final = re.compile(r"^module (?:[\w.~/-]*/)??([\w.~-]+)(?:/v\d+)?$", re.MULTILINE)
"""Its last name is what a program is called."""


def unmet(locked: Locked, found: Found, caches: Mapping[str, str]) -> list[str]:
    """Return the packages that a command has to fetch: without those that it had no need of before. Blocks.

    Args:
        locked: the command.
        found: what it lacks.
        caches: name of a cache -> its directory.
    """
    cache, direct = caches.get(locked.kind, ""), {*found.direct}
    known = set(text_of(f"{cache}{_UNNEEDED}").splitlines()) if cache and found.lacking else set()
    others = {each.partition("\t")[2] for each in known}
    return [
        each
        for each in found.lacking
        if f"{locked.group}\t{each}" not in known and (each not in others or each.rpartition("@")[0] in direct)
    ]


def built(locked: Locked, root: str, files: ProjectFiles) -> tuple[str, ...]:
    """Return the programs that a command may build, relative to the root; blocks.

    What lies there and is no program for this machine, a script say, is nothing that it built before.

    Raises:
        TooMuchError: there is too much to read.
    """
    module = _MODULE.search(files.text(f"{root}/{locked.directory}/go.mod")) if locked.kind == "go" else None
    named = (f"{locked.directory}/{module[1]}".removeprefix("/"),) if module is not None else ()
    found = {each: f"{root}/{each}" for each in (*locked.outputs, *named)}
    return tuple(each for each, at in found.items() if not os.path.lexists(at) or begins_with(at, _PROGRAM))


def remember(locked: Locked, found: Found, caches: Mapping[str, str]) -> None:
    """Remember what is still not here, after a command has gone well. Blocks.

    Raises:
        OSError: it cannot be written.
    """
    if not (cache := caches.get(locked.kind, "")):
        return
    known = dict.fromkeys(text_of(f"{cache}{_UNNEEDED}").splitlines())
    new = [f"{locked.group}\t{each}" for each in found.lacking]
    if {*new} - known.keys():
        lines = [*known, *(each for each in new if each not in known)][-MOST:]
        draft = f"{cache}{_UNNEEDED}.{os.getpid()}"
        with open(draft, "w", encoding="utf-8") as file:
            file.write("".join(f"{each}\n" for each in lines))
        os.replace(draft, f"{cache}{_UNNEEDED}")


def wanted(locked: Locked, root: str, caches: Mapping[str, str], files: ProjectFiles) -> Found:
    """Return what a command lacks; blocks.

    Args:
        locked: the command.
        root: a path that leads to the root.
        caches: name of a cache -> its directory.
        files: read those of the root.

    Raises:
        TooMuchError: there is too much to read.
    """
    parts = locked.directory.split("/") if locked.directory else []
    above = tuple("/".join((root, *parts[:count])) for count in range(len(parts), -1, -1))
    with suppress(OSError, ValueError, RecursionError, TypeError, AttributeError, KeyError):
        found = READERS[locked.kind](Place(above, caches.get(locked.kind, ""), files), locked)
        lacking, direct = ([each for each in names if _NAME.fullmatch(str(each))] for names in found)
        return Found(list(dict.fromkeys(lacking))[:MOST], sorted(direct)[:MOST])
    return Found([])
