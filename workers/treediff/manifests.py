"""Manifests: files that name a project's dependencies, and whether two versions differ in nothing else.

Rule: pure, deny by default. What cannot be read, or is another thing by a second reading, differs in more. Each format
is read as its package manager does; `prepare` imports the readers, as a locked worker can import nothing.
"""

import json
import re
import tomllib
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from workers.treediff.package_addresses import EVERY, FETCHED, PORTS, RESOLVED, addresses

LARGEST: Final = 2**20
"""Bytes of a manifest that is read."""

LARGEST_LOCK: Final = 2**23
"""The same of a lock file."""
UNKNOWN: Final = ("a place that was not looked for",)

_NODE: Final = "package.json"
_NPM: Final = "dependencies devDependencies optionalDependencies peerDependencies"
_DEPENDENCIES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "package.json": tuple(_NPM.split()),
        "pyproject.toml": (
            *("project.dependencies", "project.optional-dependencies", "dependency-groups", "tool.uv.sources"),
            *("tool.uv.dev-dependencies", "tool.poetry.dependencies", "tool.poetry.group.*.dependencies"),
            "tool.pdm.dev-dependencies",
        ),
        "composer.json": ("require", "require-dev"),
        "Pipfile": ("packages", "dev-packages"),
        "Cargo.toml": (
            *("dependencies", "dev-dependencies", "build-dependencies", "workspace.dependencies"),
            *("target.*.dependencies", "target.*.dev-dependencies", "target.*.build-dependencies"),
        ),
    }
)
"""Name of a file -> keys of what an install may change; `*` is any one key."""

_OF_NODE: Final = frozenset(["package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml", "bun.lock"])
_LOCKS: Final = _OF_NODE | {
    "uv.lock",
    "poetry.lock",
    "pdm.lock",
    "Pipfile.lock",
    "Cargo.lock",
    "Gemfile.lock",
    "composer.lock",
}
_OVER_SSH: Final = re.compile(r"(?<![\w.-])[\w.-]{1,64}@([\w-][\w.-]{0,200}\.[A-Za-z]{2,24}):[\w.~-]{1,100}/")
"""A repository as scp(1) names one."""
_ESCAPED: Final = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|x([0-9A-Fa-f]{2})|U000([0-9A-Fa-f]{5})|(/))")
"""A character as JSON, TOML and YAML may write it."""
_SHORT: Final = re.compile(r'"\s*:\s*"((?:(?:github|gitlab|bitbucket|gist):)?[\w.-]+/[\w.-]+)(?:#[^"]*)?"')
"""A repository, as a dependency of npm's."""
_PLACES: Final = 8

_REQUIRE: Final = re.compile(r"^require[ \t]*\([^()]*^\)|^require[ \t][^(\n]*$", re.MULTILINE)
_GEM: Final = re.compile(r"""^(?:# Added at [\d: +-]*$\s*)?gem "[\w.-]+"(?:, "[<>=~ \w.]+")*[ \t]*$""", re.MULTILINE)
_WANTS: Final[Mapping[str, re.Pattern[str]]] = MappingProxyType({"go.mod": _REQUIRE, "Gemfile": _GEM, "gems.rb": _GEM})
"""Name of a manifest that is read by lines -> those of what it wants."""
_BLANKS: Final = re.compile(r"\s+")


def is_manifest(name: str) -> bool:
    """Say whether a file of this name is one."""
    return name in _DEPENDENCIES or name in _WANTS


def names_places(name: str) -> bool:
    """Say whether a file of this name says where packages come from."""
    return is_manifest(name) or name in _LOCKS


def new_places(name: str, before: bytes, after: bytes) -> tuple[str, ...]:
    """Return the places, as "host:port", from where a manifest or a lock file would have packages, and had none.

    Of a manifest every address counts: it matters only where dependencies alone differ.
    """
    old, new = (_places(name, text.decode("utf-8", "replace")) for text in (before, after))
    return tuple(sorted(new - old))[:_PLACES]


def _places(name: str, text: str) -> set[str]:
    pattern = EVERY if name not in _LOCKS else RESOLVED if name in _OF_NODE else FETCHED
    halves = _ESCAPED.sub(_character, text).encode("utf-16", "surrogatepass")
    text = halves.decode("utf-16", "replace")  # which needs no module, as utf-16-le does: a locked worker imports none
    places = {place for _scheme, place in addresses(pattern, text)}
    places |= {f"{host.lower()}:{PORTS['ssh']}" for host in _OVER_SSH.findall(text)}
    if name != _NODE:
        return places
    return places | {f"the repository {each}" for each in _SHORT.findall(text)}


def _character(escaped: re.Match[str]) -> str:
    digits = escaped[1] or escaped[2] or escaped[3]
    return chr(int(digits, 16)) if digits else "/"


def differs_in_dependencies(name: str, before: bytes, after: bytes) -> bool:
    """Say whether two versions of a manifest differ in dependencies alone; b"" is one that was not there."""
    try:
        if name in _WANTS:
            old, new = (_BLANKS.sub(" ", _WANTS[name].sub("", text.decode())).strip() for text in (before, after))
            return bool(before) and old == new
        read: Callable[[str], Any] = _json if name.endswith(".json") else tomllib.loads
        versions = [read(text.decode()) if text else {} for text in (before, after)]
    except (ValueError, RecursionError):
        return False
    for each in versions:
        if not isinstance(each, dict):
            return False
        for key in _DEPENDENCIES[name]:
            _remove(each, key.split("."))
    return bool(versions[0] == versions[1])


def _remove(table: dict[str, Any], keys: list[str]) -> None:
    """Remove what stands at a path of keys, and what is empty after that."""
    first, rest = keys[0], keys[1:]
    for name in [each for each in table if first in ("*", each)]:
        below = table[name]
        if rest and isinstance(below, dict):
            _remove(below, rest)
        if not rest or below == {}:
            del table[name]


def _json(text: str) -> Any:
    return json.loads(text, object_pairs_hook=_once)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse a name that is there twice: programs differ in which one counts.

    Raises:
        ValueError: it is.
    """
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name is there twice")
    return found
