"""Places that files of a root name as where packages come from: a registry's settings, and lock files.

Rule: a table of files, and every address in them counts, for what a package manager makes of one is its own affair. It
is told to a person; what holds is that an install reaches the places of its question and no others.
"""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from supervisor.system.safe_files import read_bytes

_LARGEST: Final = 2**22
_NODE: Final = ".npmrc .yarnrc .yarnrc.yml bunfig.toml package-lock.json npm-shrinkwrap.json yarn.lock pnpm-lock.yaml"
_PYTHON: Final = (
    "pip.conf .venv/pip.conf uv.toml pyproject.toml poetry.toml Pipfile requirements.txt uv.lock poetry.lock pdm.lock"
)
_FILES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "npm": tuple(_NODE.split()),
        "pypi": tuple(_PYTHON.split()),
        "crates": (".cargo/config.toml", ".cargo/config", "Cargo.lock", "Cargo.toml"),
        "go": ("vendor/go.env",),
    }
)
"""Registry -> files beside which its package managers run. Sources: their documentation."""
_OF_NODE: Final = frozenset({"package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml"})
_OTHERS: Final = frozenset({"pyproject.toml", "Cargo.toml", "Cargo.lock", "uv.lock", "poetry.lock", "pdm.lock"})
"""Files that have addresses for people as well."""
_URL: Final = r"(?i:(?:[a-z]{1,12}\+)?([a-z]{1,12})://(?:[^/\s\"']{0,200}@)?([^/\s\"'\\#?@]{1,260}))"
_EVERY: Final = re.compile(_URL)
_RESOLVED: Final = re.compile(rf"(?:resolved|tarball|repo|registry)\W{{1,6}}{_URL}")
_KEYS: Final = re.compile(rf"(?:registry|url|source|git|index|find-links)\W{{1,6}}{_URL}")
_CRATES_IO: Final = "registry+https://github.com/rust-lang/crates.io-index"
_PORTS: Final[Mapping[str, str]] = MappingProxyType({"https": "443", "http": "80", "ssh": "22"})
_LOCAL: Final = frozenset({"file"})


def places_named(root: str, directory: str, registry: str) -> Iterator[tuple[str, str]]:
    """Yield files, relative to the root, with a place that each names as "host:port"; blocks."""
    parts = directory.split("/") if directory else []
    for above in ("/".join(parts[:count]) for count in range(len(parts), -1, -1)):
        for name in _FILES.get(registry, ()):
            path = os.path.join(above, name)
            for scheme, host in _addresses(name, _text(f"{root}/{path}")):
                if scheme not in _LOCAL:
                    yield path, host if ":" in host else f"{host}:{_PORTS.get(scheme, '0')}"


def _addresses(name: str, text: str) -> list[tuple[str, str]]:
    pattern = _RESOLVED if name in _OF_NODE else _KEYS if name in _OTHERS else _EVERY
    found = pattern.findall(text.replace(_CRATES_IO, ""))
    return list(dict.fromkeys((scheme.lower(), host.lower()) for scheme, host in found))


def _text(path: str) -> str:
    try:
        return read_bytes(Path(path), _LARGEST).decode("utf-8", "replace")
    except (OSError, ValueError):
        return ""
