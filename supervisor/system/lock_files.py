"""Lock files and manifests of package managers: what they name, and neither the root nor a cache has.

Rule: a reader for each kind; what is wrong with a file is raised as it comes. Blocks.
"""

import base64
import glob
import hashlib
import json
import os
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from supervisor.system.project_files import MEMBERS, ProjectFiles, matching

MOST: Final = 20_000
"""Packages of one command."""
_DOTS: Final = 500
"""Of a line of TOML."""

_PACKAGE: Final = re.compile(
    r'^\[\[package\]\]\nname = "([^"\n]+)"\nversion = "([^"\n]+)"(?:\nsource = ("[^"\n]+"|\{[^\n]+\}))?', re.MULTILINE
)
"""Of Cargo.lock, uv.lock, poetry.lock and pdm.lock."""
_DEPENDENCIES: Final = re.compile(r"^dependencies = \[\n((?: [^\n]+\n)*)\]", re.MULTILINE)
_SUM: Final = re.compile(r"^(\S+) (v[^\s/]+) h1:", re.MULTILINE)
_REQUIRED: Final = re.compile(
    r"^(?:require)?[ \t]{1,64}([\w~-][\w.~/-]{0,259}) (v[\w.+-]{1,260})[ \t]{0,64}(// indirect)?", re.MULTILINE
)
_OF_NODE: Final = ("dependencies", "devDependencies", "optionalDependencies")
_OF_CARGO: Final = ("dependencies", "dev-dependencies", "build-dependencies")
_REPLACED: Final = re.compile(r"^(?:replace)?[ \t]*([\w.~/-]{1,260})(?: v\S{1,60})? => \.{0,2}/", re.MULTILINE)


_GEM: Final = re.compile(r"^    ([\w.-]+) \(([\w.-]+)\)$", re.MULTILINE)
_WANTED_GEM: Final = re.compile(r"""^[ \t]{0,16}gem[ (]["']([\w.-]{1,100})["']""", re.MULTILINE)
_BUNDLE_PATH: Final = re.compile(r'^BUNDLE_PATH: "([^"\n]{1,200})"$', re.MULTILINE)
_RUBYS: Final = ("/var/lib/gems", "/usr/lib/ruby/gems", "/usr/share/rubygems-integration")


class Locked(NamedTuple):
    """What a command fetches where it is lacking."""

    kind: str
    """A key of `READERS`."""
    directory: str
    """Where it runs, relative to the root; "" is the root."""
    group: str
    """Commands that need the same packages."""
    program: str = ""
    """For npx, what it is to run."""
    clean: bool = False
    """It removes what is installed first."""
    outputs: tuple[str, ...] = ()
    """What it may build, relative to the root, as its words say."""


class Place(NamedTuple):
    """Where a command runs, and what may be read for it."""

    directories: tuple[str, ...]
    """Where it runs, and those above it up to the root."""
    cache: str
    """A cache of the registry's packages; "" where there is none."""
    files: ProjectFiles


class Found(NamedTuple):
    """What a command wants, and neither the root nor a cache has."""

    lacking: list[str]
    """Packages, as they are called."""
    direct: list[str] = []  # noqa: RUF012 - a default that nobody changes
    """Names that the project itself asks for."""


def _crates(place: Place, _locked: Locked) -> Found:
    if any(
        "replace-with" in place.files.text(f"{each}/.cargo/config{end}")
        for each in place.directories
        for end in ("", ".toml")
    ):
        return Found([])  # vendored, or wherever else it says
    here = _nearest(place, "Cargo.lock")
    if here is None:
        return Found(list(_wanted_crates(place)))
    text = place.files.text(f"{here}/Cargo.lock")
    kept = {name for _, _, names in os.walk(f"{place.cache}/cache") for name in names} if place.cache else set()
    named, direct = [], set()
    for found in _PACKAGE.finditer(text):
        name, version, source = found.groups()
        if source is None:
            below = _DEPENDENCIES.search(text, found.end(), (text.find("\n[[", found.end()) + 1) or len(text))
            direct |= {line.strip(' ",').partition(" ")[0] for line in below[1].splitlines()} if below else set()
        elif source.startswith(('"registry+', '"sparse+')) and f"{name}-{version}.crate" not in kept:
            named.append(f"{name}@{version}")
    return Found(named, [*direct])


def _wanted_crates(place: Place) -> Iterator[str]:
    """Yield the crates that manifests want, where there is no lock file."""
    here = _nearest(place, "Cargo.toml")
    tops = [_tables(place.files.text(f"{here}/Cargo.toml"))] if here is not None else []
    for top in tops[:1]:
        members = matching(str(here), top.get("workspace", {}).get("members", ()))
        tops += [_tables(place.files.text(f"{here}/{each}/Cargo.toml")) for each in members]
    tables = [each for top in tops for each in (top, top.get("workspace", {}))]
    for table in tables:
        for name, value in (pair for key in _OF_CARGO for pair in table.get(key, {}).items()):
            if isinstance(value, str) or not ({"path", "workspace"} & value.keys()):
                yield name


def _modules(place: Place, _locked: Locked) -> Found:
    here = _nearest(place, "go.mod")
    if here is None or os.path.exists(f"{here}/vendor/modules.txt"):
        return Found([])
    text = place.files.text(f"{here}/go.mod")
    replaced = set(_REPLACED.findall(text))
    required = [each for each in _REQUIRED.findall(text)[:MOST] if "." in each[0] and each[0] not in replaced]
    sums = _SUM.findall(place.files.text(f"{here}/go.sum")) or [each[:2] for each in required]
    wanted = [
        (name, version)
        for name, version in dict.fromkeys(sums[:MOST])
        if not _is_kept_module(place.cache, name, version)
    ]
    return Found([f"{n}@{v}" for n, v in wanted], [name for name, _, other in required if not other])


def _is_kept_module(cache: str, name: str, version: str) -> bool:
    escaped = re.sub("[A-Z]", lambda letter: f"!{letter[0].lower()}", name)
    return bool(cache) and os.path.exists(f"{cache}/{escaped}/@v/{version}.zip")


def _nodes(place: Place, locked: Locked) -> Found:
    here, packages = _locked_nodes(place)
    wanted = _wanted_nodes(place, f"{here}/package.json")
    named = []
    for path in ("", *_workspaces(place, here, packages)):
        said = _each_node(packages.get(path, {}))
        new = [
            name for name, each in _wanted_nodes(place, f"{here}/{path}/package.json").items() if said.get(name) != each
        ]
        named += [name for name in new if packages or not os.path.exists(f"{here}/node_modules/{name}")]
    named += [
        f"{path.rpartition('node_modules/')[2]}@{each.get('version', '')}"
        for path, each in packages.items()
        if path and "resolved" in each and not each.get("link") and not _is_installed(place, here, path, each, locked)
    ]
    return Found(named, [*wanted])


def _locked_nodes(place: Place) -> tuple[str, Mapping[str, Any]]:
    """Return where npm works, and the packages of the lock file there: of a workspace's package it is above."""
    here = _nearest(place, "package.json") or place.directories[-1]
    for top in place.directories[place.directories.index(here) :]:
        text = place.files.text(f"{top}/package-lock.json") or place.files.text(f"{top}/npm-shrinkwrap.json")
        packages: Mapping[str, Any] = json.loads(text).get("packages", {}) if text else {}
        if packages and (top == here or os.path.relpath(here, top) in packages):
            return top, packages
    return here, {}


def _workspaces(place: Place, here: str, packages: Mapping[str, Any]) -> Iterable[str]:
    """Return the directories of a workspace's packages, as the lock file has them or else the manifest."""
    if packages:
        return [path for path in packages if path and "node_modules" not in path][:MEMBERS]
    patterns = json.loads(place.files.text(f"{here}/package.json") or "{}").get("workspaces", [])
    patterns = patterns.get("packages", []) if isinstance(patterns, dict) else patterns
    return matching(here, patterns)


def _wanted_nodes(place: Place, manifest: str) -> dict[str, str]:
    wanted = _each_node(json.loads(place.files.text(manifest) or "{}"))
    return {name: each for name, each in wanted.items() if "file:" not in each and "workspace:" not in each}


def _each_node(table: Mapping[str, Any]) -> dict[str, str]:
    return {name: str(each) for key in _OF_NODE for name, each in table.get(key, {}).items()}


def _is_installed(place: Place, here: str, path: str, locked: Mapping[str, Any], how: Locked) -> bool:
    if not how.clean and os.path.exists(f"{here}/{path}/package.json"):
        return True
    kind, _, digest = str(locked.get("integrity", "")).partition(" ")[0].partition("-")
    name = base64.b64decode(digest).hex()
    return bool(place.cache and name) and os.path.exists(
        f"{place.cache}/content-v2/{kind}/{name[:2]}/{name[2:4]}/{name[4:]}"
    )


def _programs(place: Place, locked: Locked) -> Found:
    there = any(os.path.exists(f"{each}/node_modules/.bin/{locked.program}") for each in place.directories)
    return Found([] if there or not locked.program else [locked.program])


def _wheels(place: Place, _locked: Locked) -> Found:
    here = _nearest(place, "pyproject.toml")
    if here is None:
        return Found([])
    text = next(
        filter(None, (place.files.text(f"{here}/{name}") for name in ("uv.lock", "poetry.lock", "pdm.lock"))), ""
    )
    if not text:
        manifest = _tables(place.files.text(f"{here}/pyproject.toml"))
        groups = manifest.get("project", {}).get("dependencies", []), *manifest.get("dependency-groups", {}).values()
        wanted = [re.split(r"[^\w.-]", str(each), maxsplit=1)[0] for group in groups for each in group]
        poetrys = manifest.get("tool", {}).get("poetry", {}).get("dependencies", {})
        return Found([*wanted, *(each for each in poetrys if each != "python")])
    lib = f"{here}/.venv/lib"
    sites = [f"{lib}/{each}/site-packages" for each in (os.listdir(lib) if os.path.isdir(lib) else ())]
    there = {_distribution(name.removesuffix(".dist-info")) for each in sites for name in os.listdir(each)}
    named = [(name, version) for name, version, source in _PACKAGE.findall(text) if "virtual" not in source]
    return Found([f"{n}@{v}" for n, v in named if _distribution(f"{n}-{v}") not in there])


def _gems(place: Place, _locked: Locked) -> Found:
    here = _nearest(place, "Gemfile")
    if here is None:
        return Found([])
    direct = _WANTED_GEM.findall(place.files.text(f"{here}/Gemfile"))
    text = place.files.text(f"{here}/Gemfile.lock")
    path = _BUNDLE_PATH.search(place.files.text(f"{here}/.bundle/config"))
    own = os.path.join(here, path[1] if path else "vendor/bundle")
    there = {name for each in (f"{own}/ruby", *_RUBYS) for name in _below(each)}
    if not text:
        return Found([each for each in direct if not any(name.rpartition("-")[0] == each for name in there)], direct)
    _, _, locked = text.partition("\nGEM\n" if not text.startswith("GEM\n") else "GEM\n")
    named = _GEM.findall(locked.partition("\n\n")[0])
    return Found([f"{name}@{version}" for name, version in named if f"{name}-{version}" not in there], direct)


def _below(directory: str) -> Iterable[str]:
    """Return the gems of each version of Ruby, name and version as one."""
    found = (glob.iglob(f"{glob.escape(directory)}/*/specifications/{each}") for each in ("*", "default/*"))
    return [os.path.basename(path).removesuffix(".gemspec") for each in found for path in each]


def _archives(place: Place, _locked: Locked) -> Found:
    here = _nearest(place, "composer.json")
    if here is None:
        return Found([])
    wanted = json.loads(place.files.text(f"{here}/composer.json"))
    direct = [each for key in ("require", "require-dev") for each in wanted.get(key, {}) if "/" in each]
    lock = json.loads(place.files.text(f"{here}/composer.lock") or "{}")
    installed = json.loads(place.files.text(f"{here}/vendor/composer/installed.json") or "{}").get("packages", [])
    there = {(each["name"], each["version"]) for each in installed}
    if not lock:
        return Found([each for each in direct if not any(each == name for name, _version in there)], direct)
    named = [each for key in ("packages", "packages-dev") for each in lock.get(key, [])]
    lacks = [each for each in named if (each["name"], each["version"]) not in there and not _is_fetched(place, each)]
    return Found([f"{each['name']}@{each['version']}" for each in lacks], direct)


def _is_fetched(place: Place, package: Mapping[str, Any]) -> bool:
    """Say whether the cache has the archive: by the address, as Composer's FileDownloader calls it."""
    name = hashlib.sha1(package["dist"]["url"].encode(), usedforsecurity=False).hexdigest()
    return bool(place.cache) and os.path.exists(f"{place.cache}/files/{package['name']}/{name}.zip")


def _distribution(name: str) -> str:
    return re.sub(r"[-_.]+", "_", name).casefold()


def _tables(text: str) -> dict[str, Any]:
    """Return what a TOML file says; a key of many parts, which takes long to read, is as wrong as one that is none."""
    if any(line.count(".") > _DOTS for line in text.split("\n")):
        raise ValueError(text[:_DOTS])
    return tomllib.loads(text)


READERS: Final[Mapping[str, Callable[[Place, Locked], Found]]] = MappingProxyType(
    {
        "crates": _crates,
        "go": _modules,
        "npm": _nodes,
        "npx": _programs,
        "packagist": _archives,
        "pypi": _wheels,
        "rubygems": _gems,
    }
)
"""Kind -> what reads it. They raise what a file makes them raise."""


def _nearest(place: Place, name: str) -> str | None:
    return next((each for each in place.directories if os.path.exists(f"{each}/{name}")), None)
