"""Paths of a command in a copy: of the sandbox in what it is given, of the copy in what it leaves.

Rule: the root, the home and /tmp lie elsewhere than in the sandbox, and variables, arguments and directories that a
line changes to are led there. Any other text stays as it is, for it may be what a file is to hold: a path of the root
itself in it leads to the root, which cannot be written, and a hint says so.
"""

import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final

from workers.shell.command_runner import CopyPlaces
from workers.shell.sandbox.private_root import AUTHORITIES
from workers.shell.shell_inputs import HOME, within
from workers.tree.root import DIRECTORY, closing, open_beneath

_OWN_PLACES: Final = (HOME, "/tmp", os.path.dirname(AUTHORITIES))  # noqa: S108 - private
_BEFORE: Final = rb"(\A|(?:\A|[;&|({\n])\s*(?:cd|pushd)\s+(?:--\s+)?['\"]?|\s-C\s*['\"]?)"
"""What stands before a path that a program is given as a whole, or that a shell changes to."""
_AFTER: Final = rb"(?=[/'\"\s;&|)]|\Z)"
_PLAIN: Final = re.compile(r"[\w./+-]+", re.ASCII)
"""A path that no shell reads as anything else."""
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_BEGINNING: Final = 2**16
_LOOKED_THROUGH: Final = 1000
"""Files that are looked into for the copy's path."""
_NO_PROGRAMS: Final = (
    "no program that lies in the root or is made there can be executed, as the copy's file system is mounted noexec: "
    "the person can set STRONGROOM_HOME to a directory on another"
)
_DENIED: Final = re.compile(r"permission denied|eacces|\[errno 13\]", re.IGNORECASE)


def moved(environment: Mapping[str, str], root: str, places: CopyPlaces) -> Mapping[str, str]:
    """Return variables for a command whose root, home and temporary files lie elsewhere than in the sandbox."""
    own = {root: places.root, **dict(zip(_OWN_PLACES, (places.home, places.tmp, places.etc), strict=True))}
    named = re.compile(rf"(?<![^\s=:'\"])(?:{'|'.join(map(re.escape, own))})(?![^/\s:'\"])")
    found = {name: named.sub(lambda match: own[match[0]], value) for name, value in environment.items()}
    path = (
        places.root + each.removeprefix(root) if within(each, root) else each for each in environment["PATH"].split(":")
    )
    return {**found, "PATH": ":".join(path), "GIT_CONFIG_SYSTEM": f"{places.etc}/gitconfig"}


def moved_arguments(arguments: Sequence[bytes], root: str, places: CopyPlaces) -> list[bytes]:
    """Return the arguments of a command, in which what is to be the root's path is the copy's."""
    if not _PLAIN.fullmatch(places.root):
        return list(arguments)
    path = re.compile(_BEFORE + re.escape(os.fsencode(root)) + _AFTER)
    return [path.sub(lambda match: match[1] + os.fsencode(places.root), each) for each in arguments]


def hints(printed: str, root: str, *, noexec: bool) -> list[str]:
    """Say what to do about what was refused as the command ran in a copy, on a file system that may be `noexec`."""
    if not _DENIED.search(printed):
        return []
    told = {
        root: f"paths that begin with {root} lead to the root itself, which no rehearsal changes: use relative ones",
        "/tmp/": "it has no /tmp here: use $TMPDIR",  # noqa: S108 - a name in what was printed
    }
    return [*[_NO_PROGRAMS] * noexec, *(hint for place, hint in told.items() if place in printed)]


def files_with(directory: int, text: bytes) -> list[str]:
    """Return files beneath a directory that hold a text near their beginning, of as many as are soon looked through."""
    found, pending, looked = list[str](), ["."], 0
    while pending and looked < _LOOKED_THROUGH:
        path = pending.pop()
        with suppress(OSError), closing(open_beneath(directory, path, DIRECTORY, links=False)) as opened:
            with os.scandir(opened) as entries:
                kinds = [
                    (each.name, each.is_dir(follow_symlinks=False), each.is_file(follow_symlinks=False))
                    for each in entries
                ]
            for name, is_directory, is_file in kinds:
                below = os.path.normpath(os.path.join(path, name))
                pending += [below] * is_directory
                looked += is_file
                if is_file and text in _beginning(opened, name):
                    found.append(below)
    return found


def _beginning(directory: int, name: str) -> bytes:
    with suppress(OSError), closing(os.open(name, _READ, dir_fd=directory)) as file:
        return os.read(file, _BEGINNING)
    return b""
