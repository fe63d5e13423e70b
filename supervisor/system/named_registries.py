"""Places that files of a root name as where packages come from: a registry's settings, and lock files.

Rule: a table of files, and every address in them counts, for what a package manager makes of one is its own affair. It
is told to a person; what holds is that an install reaches the places of its question and no others.
"""

import os
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

from supervisor.system.project_files import ProjectFiles
from workers.treediff.package_addresses import EVERY, FETCHED, RESOLVED, addresses

_LARGEST: Final = 2**22
_NODE: Final = ".npmrc .yarnrc .yarnrc.yml bunfig.toml package-lock.json npm-shrinkwrap.json yarn.lock pnpm-lock.yaml"
_PYTHON: Final = (
    "pip.conf .venv/pip.conf uv.toml pyproject.toml poetry.toml Pipfile requirements.txt uv.lock poetry.lock pdm.lock"
)
_PHP: Final = ("composer.json", "composer.lock")
_FILES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "npm": tuple(_NODE.split()),
        "pypi": tuple(_PYTHON.split()),
        "crates": (".cargo/config.toml", ".cargo/config", "Cargo.lock", "Cargo.toml"),
        "go": ("vendor/go.env",),
        "rubygems": ("Gemfile", "Gemfile.lock", "gems.rb", "gems.locked", ".bundle/config"),
        "packagist": _PHP,
    }
)
"""Registry -> files beside which its package managers run. Sources: their documentation."""
_OF_NODE: Final = frozenset({"package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml"})
_OTHERS: Final = frozenset({"pyproject.toml", "Cargo.toml", "Cargo.lock", "uv.lock", "poetry.lock", "pdm.lock", *_PHP})
"""Files that have addresses for people as well."""
_LOCAL: Final = frozenset({"file"})


def places_named(root: str, directory: str, registry: str, files: ProjectFiles) -> Iterator[tuple[str, str]]:
    """Yield files, relative to the root, with a place that each names as "host:port"; blocks.

    Raises:
        TooMuchError: there is too much to read.
    """
    parts = directory.split("/") if directory else []
    for above in ("/".join(parts[:count]) for count in range(len(parts), -1, -1)):
        for name in _FILES.get(registry, ()):
            path = os.path.join(above, name)
            pattern = RESOLVED if name in _OF_NODE else FETCHED if name in _OTHERS else EVERY
            for scheme, place in addresses(pattern, files.text(f"{root}/{path}", _LARGEST)):
                if scheme not in _LOCAL:
                    yield path, place
