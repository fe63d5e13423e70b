"""A look at what installs would fetch, and at where the root says that packages come from.

Rule: anybody may have written these files, and nobody else's session waits for them. Little is read in this process;
more is left to one of its own, that ends after a few seconds, and of which what it has not said by then is not known.
Blocks; the caller is a thread.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from supervisor.system.isolated import environment_without_code, isolated
from supervisor.system.lock_files import Found, Locked
from supervisor.system.locked_packages import built, wanted
from supervisor.system.named_registries import places_named
from supervisor.system.project_files import ProjectFiles, TooMuchError, text_of

_HERE: Final = 2**18
_AT_MOST: Final = 2**25
"""Bytes that are read in this process, and in the other one."""
_SECONDS: Final = 5
"""Of a processor, for the other one."""
_WAIT: Final = 4 * _SECONDS
_MEMORY: Final = 2**31
_NAMED: Final = 100
"""Places that are named, of those that the root has."""
_NEW_YARN: Final = re.compile(r'"packageManager"\s{0,9}:\s{0,9}"yarn@(?!0|1\.)')
_LINKER: Final = re.compile(r"^nodeLinker:[ \t\"']{0,9}(?!pnp\b)\w", re.MULTILINE)
_PROGRAM: Final = "from supervisor.system.package_look import main; main()"


class PackageLook(NamedTuple):
    """What was found."""

    found: list[Found]
    """For each command."""
    outputs: list[str]
    """Programs that they may build."""
    places: list[tuple[str, str]]
    """Files of the root, each with a place that it names."""


def look(locked: Iterable[Locked], root: str, caches: Mapping[str, str], registries: Iterable[str]) -> PackageLook:
    """Return what commands lack of what the root names, and where that would have it from.

    Args:
        locked: the commands.
        root: a path that leads to the root.
        caches: name of a cache -> its directory.
        registries: those that they reach.
    """
    locked, registries = tuple(locked), tuple(registries)
    try:
        return _look(locked, root, caches, registries, _HERE)
    except TooMuchError:
        return _elsewhere(locked, json.dumps([locked, root, dict(caches), registries]))


def plugs_in(root: str) -> bool:
    """Say whether yarn may leave packages as they are, for Node.js to find by a file of its own (Plug'n'Play); blocks.

    So does yarn 2 and later, unless its settings name another linker (yarnpkg.com, "nodeLinker").
    """
    settings, manifest = (text_of(f"{root}/{name}", _HERE) for name in (".yarnrc.yml", "package.json"))
    of_late = bool(settings) or _NEW_YARN.search(manifest) is not None or os.path.exists(f"{root}/.pnp.cjs")
    return of_late and _LINKER.search(settings) is None


def _look(
    locked: tuple[Locked, ...], root: str, caches: Mapping[str, str], registries: tuple[str, ...], most: int
) -> PackageLook:
    files = ProjectFiles(most)
    found = [wanted(each, root, caches, files) for each in locked]
    outputs = [path for each in locked for path in built(each, root, files)]
    directories = dict.fromkeys(("", *(each.directory for each in locked)))
    places: dict[tuple[str, str], None] = {}
    for directory in directories:
        for registry in registries:
            places |= dict.fromkeys(places_named(root, directory, registry, files))
    return PackageLook(found, outputs, list(places)[:_NAMED])


def _elsewhere(locked: tuple[Locked, ...], asked: str) -> PackageLook:
    command = isolated(_PROGRAM, "strongroom-look")
    try:
        done = subprocess.run(  # noqa: S603 - our own interpreter and code
            command,
            input=asked.encode(),
            capture_output=True,
            timeout=_WAIT,
            env=environment_without_code(),
            check=True,
        )
        found, outputs, places = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.SubprocessError):
        return PackageLook([Found([]) for _ in locked], [], [])
    return PackageLook([Found(*each) for each in found], outputs, [(path, place) for path, place in places])


def main() -> None:
    """Answer what stdin asks, in a process of its own."""
    import resource

    resource.setrlimit(resource.RLIMIT_CPU, (_SECONDS, _SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    locked, root, caches, registries = json.load(sys.stdin)
    commands = tuple(Locked(*each) for each in locked)
    sys.stdout.write(json.dumps(_look(commands, root, caches, tuple(registries), _AT_MOST)))
