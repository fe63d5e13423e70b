"""Installers: the commands of package managers that fetch packages, and what such an install may change unasked.

Rule: data, and pure functions over it. A command that is not understood installs nothing here: it is asked about when
it has tried the network. What an install changes is as an install's only where nothing else is changed at all.
"""

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

from supervisor.rules.change_kinds import kinds_of
from supervisor.rules.judge_effects import exact_path
from supervisor.rules.rule import ChangeKind, Rule
from supervisor.rules.started_programs import HARMLESS, simple_commands
from workers.changes.effects import Change, Effects, is_folded


class _Installer(NamedTuple):
    """Package managers of one registry whose subcommands have the same names."""

    registry: str
    programs: str
    """A pattern."""
    subcommands: str
    """Each of one or two words that fetch packages, with commas between; "" stands for none at all."""


_INSTALLERS: Final = (
    _Installer(
        "npm", "npm|pnpm", "install,i,in,add,ci,clean-install,ic,install-test,it,update,up,upgrade,dedupe,import"
    ),
    _Installer("npm", "yarn|yarnpkg", ",install,add,up,upgrade,dedupe"),
    _Installer("npm", "bun", "install,i,add,a,ci,update"),
    _Installer("pypi", r"pip[0-9.]*", "install,download,wheel"),
    _Installer("pypi", "uv", "sync,add,lock,pip install,pip sync,pip compile,tool install"),
    _Installer("pypi", "poetry|pdm|pipenv", "install,add,update,lock,sync"),
    _Installer("crates", "cargo", "fetch,add,update,install,generate-lockfile,vendor"),
    _Installer("go", "go", "get,install,mod download,mod tidy,mod vendor"),
)
"""Sources: each program's own help."""

_OFFLINE: Final = frozenset({"--offline", "--no-index", "--help", "-h", "--version"})
_PYTHON: Final = re.compile(r"python[0-9.]*|pypy[0-9.]*")
_ENVIRONMENTS: Final = re.compile(rf"/bin/(?:{_PYTHON.pattern})")
_INTERPRETER: Final = re.compile(rf"(?:/(?!\.\.?/)[^/]+)*/bin/(?:{_PYTHON.pattern})")

_DIRECTORIES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {"npm": ("node_modules",), "pypi": (".venv", "*.egg-info"), "crates": ("vendor",), "go": ("vendor",)}
)
"""Registry -> directories, wherever they lie, that belong to packages."""

_LOCKS: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {
        "npm": frozenset(
            ["package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml", "bun.lock", "bun.lockb"]
        ),
        "pypi": frozenset(["uv.lock", "poetry.lock", "pdm.lock", "Pipfile.lock"]),
        "crates": frozenset(["Cargo.lock"]),
        "go": frozenset(["go.sum", "go.work.sum"]),
    }
)
_NAMING: Final = frozenset(
    ["package.json", "pyproject.toml", "Pipfile", "Cargo.toml", "go.mod", "METADATA", ".package-lock.json"]
)
"""Manifests, and what says of installed packages which they are."""
_ORDINARY: Final[frozenset[ChangeKind]] = frozenset({"content"})
_OF_PACKAGES: Final[frozenset[ChangeKind]] = frozenset({"content", "mode", "executable", "program", "link", "deletion"})


class Install(NamedTuple):
    """What a command installs, as its text says."""

    registries: tuple[str, ...]
    programs: tuple[str, ...]
    command: str
    """The first one's words, for people."""
    alone: bool
    """Nothing else is run beside it."""


def install_of(tool: str, arguments: str) -> Install | None:
    """Return what a call installs; None where it is no install, or is not understood. `arguments` are raw JSON."""
    commands = simple_commands(tool, arguments)
    found: list[tuple[str, str, str]] = []
    others = 0
    for words in commands or ():
        program, rest = words[0].rpartition("/")[2], words[1:]
        if _PYTHON.fullmatch(program) and rest[:1] == ["-m"] and len(rest) > 1:
            program, rest = rest[1], rest[2:]
        if registry := _registry(program, rest):
            found.append((registry, words[0], " ".join((program, *rest[:1]))))
        else:
            others += words[0] not in HARMLESS
    if not found:
        return None
    registries, programs = (tuple(dict.fromkeys(column)) for column in list(zip(*found, strict=True))[:2])
    return Install(registries, programs, found[0][2], not others)


def _registry(program: str, words: Sequence[str]) -> str:
    """Return the registry that a simple command fetches packages from; "" where it fetches none."""
    if not _OFFLINE.isdisjoint(words):
        return ""
    plain = [word for word in words if not word.startswith("-")]
    said = {" ".join(plain[:number]) for number in (1, 2)}
    for registry, programs, subcommands in _INSTALLERS:
        if re.fullmatch(programs, program) and said & {*subcommands.split(",")}:
            return registry
    return ""


# --- what it may change -----------------------------------------------------------------------------------------------


def only_installs(effects: Effects, registries: Sequence[str]) -> bool:
    """Say whether effects are those of installs from these registries, and no others.

    Those are: package directories and all beneath them, lock files, manifests in which dependencies alone change, and
    what git ignores and nobody obeys; without second names, special files, set-user-ID bits and links to the outside,
    but for that of an environment to its interpreter.
    """
    return _only_folded(effects, registries) and all(_of_install(each, registries) for each in effects.changes)


def _only_folded(effects: Effects, registries: Sequence[str]) -> bool:
    """Say whether all that is not listed lies in package directories, where it is ordinary."""
    within = all(_package_directory(f"{each.path}/", registries) == each.path for each in effects.folded)
    return within and is_folded(effects)


def names_packages(path: str) -> bool:
    """Say whether a file is a lock file or a manifest, or says which package it lies in."""
    name = path.rpartition("/")[2]
    return name in _NAMING or any(name in names for names in _LOCKS.values())


def _package_directory(path: str, registries: Sequence[str]) -> str:
    """Return the outermost package directory that a path is or lies in; "" where it lies in none."""
    parts = path.split("/")
    for at, part in enumerate(parts):
        if part == ".git":
            return ""
        if any(_is_called(part, name) for registry in registries for name in _DIRECTORIES.get(registry, ())):
            return "/".join(parts[: at + 1])
    return ""


def _is_called(part: str, name: str) -> bool:
    return part == name or (name[0] == "*" and part.endswith(name[1:]) and len(part) >= len(name))


def _of_install(change: Change, registries: Sequence[str]) -> bool:
    path, kinds = exact_path(change), kinds_of(change)
    if change.meanwhile or change.same_as or change.linked or change.withheld:
        return False
    if change.ignored and not change.protected and not change.level:
        return kinds <= _OF_PACKAGES
    if top := _package_directory(path, registries):
        kinds = kinds - {"link-outside"} if _is_interpreter(change, path[len(top) :]) else kinds
        is_top = top == path and any(each and each.kind != "dir" for each in (change.before, change.after))
        return kinds <= _OF_PACKAGES and not is_top and "/.git/" not in f"{path[len(top) :]}/"
    name = path.rpartition("/")[2]
    is_lock = any(name in _LOCKS.get(registry, ()) for registry in registries)
    return kinds <= _ORDINARY and change.what in {"added", "modified"} and (is_lock or change.only_dependencies)


def _is_interpreter(change: Change, below: str) -> bool:
    """Say whether a name of an environment is a link to its interpreter; which one that is, does not matter."""
    target = change.after.target if change.after is not None else ""
    return bool(_ENVIRONMENTS.fullmatch(below) and _INTERPRETER.fullmatch(target))


# --- rules ------------------------------------------------------------------------------------------------------------


def covers(rule: Rule, install: Install) -> bool:
    """Say whether a rule that allows installs covers this one."""
    return (
        rule.decision == "allow"
        and install.alone
        and {*install.registries} <= {*(rule.registries or ())}
        and (rule.programs is None or {*install.programs} <= {*rule.programs})
    )
