"""Source trees: the top of the one that a directory lies in, and the profile where none is named.

Rule: what is looked at are names, upwards from the directory; never the home directory, nor what it lies in, nor /. A
name counts that belongs to this user, or to who owns the directory: no stranger makes a tree of /tmp.
"""

import os
from typing import Final

from supervisor.config.config_keys import VAULT
from supervisor.config.settings import Settings

_REPOSITORY: Final = (".git", ".hg", ".jj")
_MANIFESTS: Final = frozenset(
    """
    pyproject.toml setup.py setup.cfg tox.ini package.json deno.json deno.jsonc Cargo.toml go.mod go.work Makefile
    makefile GNUmakefile CMakeLists.txt meson.build configure configure.ac configure.in autogen.sh SConstruct pom.xml
    build.gradle build.gradle.kts settings.gradle settings.gradle.kts build.sbt project.clj mix.exs rebar.config Gemfile
    Rakefile composer.json Package.swift pubspec.yaml dune-project stack.yaml cabal.project build.zig flake.nix
    MODULE.bazel WORKSPACE justfile Project.toml
    """.split()  # noqa: SIM905 - to be read
)
CODE: Final = "code"


def tree_top(directory: str) -> str | None:
    """Return the top of the repository that an absolute directory without links lies in, else of its source tree.

    A source tree without a repository begins where something is built, and goes up as long as that is so.
    """
    home, owner = os.path.realpath(os.path.expanduser("~")), _owner(directory)
    above = [directory]
    while above[-1] not in ("/", home):
        above.append(os.path.dirname(above[-1]))
    here = [each for each in above[:-1] if not f"{home}/".startswith(f"{each}/")]
    top = next((each for each in here if _has(each, _REPOSITORY, owner)), None)
    for each in here if top is None else ():
        if _has(each, _MANIFESTS, owner):
            top = each
        elif top is not None:
            break
    return top


def profile_here(settings: Settings, cwd: str, root: str | None = None) -> str:
    """Return the name of the profile for a client in `cwd`, or for a `root` that it names."""
    if settings.config.profile is not None:
        return settings.config.profile
    at = os.path.realpath(os.path.expanduser(cwd if root is None else root))
    if os.path.isdir(os.path.join(at, VAULT)):
        return VAULT
    top = tree_top(at)
    return CODE if top is not None and (root is None or _has(at, (*_REPOSITORY, *_MANIFESTS), _owner(at))) else VAULT


def is_unknown(settings: Settings, cwd: str) -> bool:
    """Say whether nothing tells what a directory is for: neither the configuration nor what lies there."""
    chosen = settings.config.profiles.get(VAULT)
    if settings.config.profile is not None or (chosen is not None and chosen.root is not None):
        return False
    at = os.path.realpath(cwd)
    is_home = at == os.path.realpath(os.path.expanduser("~"))  # which no profile works on
    return not (is_home or os.path.isdir(os.path.join(at, VAULT)) or tree_top(at))


def _has(directory: str, names: "frozenset[str] | tuple[str, ...]", owner: int) -> bool:
    return any(_owner(os.path.join(directory, name)) in (owner, os.geteuid()) for name in names)


def _owner(path: str) -> int:
    """Return the user that a path belongs to, not what it leads to; -1 where there is nothing."""
    try:
        return os.lstat(path).st_uid
    except (OSError, ValueError):
        return -1
