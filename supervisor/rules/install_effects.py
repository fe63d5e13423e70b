"""Effects of installs: what packages bring, lock files, and manifests in which dependencies alone change.

Rule: pure, and deny by default. Effects are an install's only where nothing else is changed at all.
"""

import re
from collections.abc import Container, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from supervisor.rules.change_kinds import exact_path, kinds_of
from supervisor.rules.git_changes import in_git
from supervisor.rules.rule import ChangeKind
from workers.changes.effects import Change, Effects, is_folded

_PYTHON: Final = re.compile(r"python[0-9.]*|pypy[0-9.]*")
_ENVIRONMENTS: Final = re.compile(rf"/bin/(?:{_PYTHON.pattern})")
_INTERPRETER: Final = re.compile(rf"(?:/(?!\.\.?/)[^/]+)*/bin/(?:{_PYTHON.pattern})")

_DIRECTORIES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "npm": ("node_modules", ".yarn/cache", ".yarn/unplugged"),
        "pypi": (".venv", "venv", ".tox", ".nox", "*.egg-info"),
        "crates": ("vendor",),
        "go": ("vendor",),
        "rubygems": ("vendor/bundle", "vendor/cache"),
        "packagist": ("vendor",),
    }
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
        "rubygems": frozenset(["Gemfile.lock", "gems.locked"]),
        "packagist": frozenset(["composer.lock"]),
    }
)
_KEPT_BY_YARN: Final[Mapping[str, str]] = MappingProxyType(
    {"/.yarn": "dir", "/.yarn/install-state.gz": "file", "/.yarn/build-state.yml": "file"}
)
"""What it keeps of an install beside its packages, and of what kind that is."""
_NAMED_IN: Final = "package.json pyproject.toml Pipfile Cargo.toml go.mod Gemfile composer.json METADATA"
_NAMING: Final = frozenset([*_NAMED_IN.split(), ".package-lock.json"])
"""Manifests, and what says of installed packages which they are."""
_TARGET: Final = "target"
"""Where cargo builds."""
_ORDINARY: Final[frozenset[ChangeKind]] = frozenset({"content"})
_OF_PACKAGES: Final[frozenset[ChangeKind]] = frozenset({"content", "mode", "executable", "program", "link", "deletion"})


def only_installs(
    effects: Effects,
    registries: Sequence[str],
    *,
    builds: bool = False,
    outputs: Container[str] = (),
    loaders: Container[str] = (),
    places: Container[str] = (),
) -> bool:
    """Say whether effects are those of installs from these registries, and no others.

    Those are: package directories and all beneath them, lock files, manifests in which dependencies alone change, and
    what git ignores and nobody obeys; without special files, set-user-ID bits, second names but among what git ignores
    or in one package directory, and links to the outside, but for that of an environment to its interpreter. Of what
    `builds` also what it builds, where such programs put it, and programs at `outputs`; and `loaders`, by which
    packages are found. Lock files and manifests have packages from `places`.
    """
    built = {each.path for each in effects.changes if each.ignored or (builds and _is_built(each, registries))}
    if any(place not in places for each in effects.changes for place in each.places):
        return False
    others = [
        each
        for each in effects.changes
        if not (each.path in outputs and _is_program(each)) and not (each.path in loaders and _is_loader(each))
    ]
    plain = all(_of_install(each, registries, built) for each in others)
    return plain and _only_folded(effects, registries)


def _is_loader(change: Change) -> bool:
    """Say whether a change is a file of a package manager's own, new or newer, and nothing else."""
    plain = not (change.meanwhile or change.same_as or change.linked or change.withheld)
    files = all(each.kind == "file" for each in (change.before, change.after) if each is not None)
    return plain and files and change.what in {"added", "modified"} and kinds_of(change) <= _OF_PACKAGES


def _is_program(change: Change) -> bool:
    """Say whether a change is a new program, or a newer one of the same kind, and nothing else."""
    plain = not (change.meanwhile or change.same_as or change.linked or change.withheld)
    was_one = change.before is None or (change.before.kind == "file" and bool(change.before.mode & 0o111))
    seen = change.diff or change.protected or change.level or change.script or change.what not in {"added", "modified"}
    return plain and was_one and not seen and kinds_of(change) <= {"content", "program"}


def _is_built(change: Change, registries: Sequence[str]) -> bool:
    return "crates" in registries and change.path.split("/")[0] == _TARGET


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
        for name in (name for registry in registries for name in _DIRECTORIES.get(registry, ())):
            size = name.count("/") + 1
            if _is_called("/".join(parts[at : at + size]) if size > 1 else part, name):
                return "/".join(parts[: at + size])
    return ""


def _is_called(part: str, name: str) -> bool:
    return part == name or (name[0] == "*" and part.endswith(name[1:]) and len(part) >= len(name))


def _of_install(change: Change, registries: Sequence[str], built: Container[str]) -> bool:
    path, kinds = exact_path(change), kinds_of(change)
    if change.meanwhile or change.withheld:
        return False
    if change.path in built and not change.protected and not change.level:
        removes = "deletion" in kinds and not _is_built(change, registries)
        return kinds <= _OF_PACKAGES and (not change.same_as or change.same_as in built) and not removes
    top = _package_directory(path, registries)
    if change.linked or (change.same_as and not (top and _package_directory(change.same_as, registries) == top)):
        return False
    if top:
        kinds = kinds - {"link"} if change.same_as else kinds
        kinds = kinds - {"link-outside"} if _is_interpreter(change, path[len(top) :]) else kinds
        is_top = top == path and any(each and each.kind != "dir" for each in (change.before, change.after))
        return kinds <= _OF_PACKAGES and not (is_top or change.tracked or "/.git/" in f"{path[len(top) :]}/")
    name = path.rpartition("/")[2]
    is_lock = any(name in _LOCKS.get(registry, ()) for registry in registries) or (
        "npm" in registries and _is_kept_by_yarn(change, path)
    )
    ordinary = kinds <= _ORDINARY and change.what in {"added", "modified"} and not in_git(path)
    return ordinary and (is_lock or change.only_dependencies)


def _is_kept_by_yarn(change: Change, path: str) -> bool:
    kinds = {each.kind for each in (change.before, change.after) if each is not None}
    return any(kinds == {kind} and f"/{path}".endswith(kept) for kept, kind in _KEPT_BY_YARN.items())


def leads_to_python(change: Change) -> bool:
    """Say whether a change is a new link of an environment to its interpreter."""
    below = change.path[change.path.rfind("/bin/") :]
    return change.what == "added" and _is_interpreter(change, below)


def _is_interpreter(change: Change, below: str) -> bool:
    """Say whether a name of an environment is a link to its interpreter; which one that is, does not matter."""
    target = change.after.target if change.after is not None else ""
    return bool(_ENVIRONMENTS.fullmatch(below) and _INTERPRETER.fullmatch(target))
