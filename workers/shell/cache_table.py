"""Caches of package managers: where each looks for its own, and what of it is worth keeping.

Rule: a command sees what approved installs have left, and writes above it. Of that only new files are handed on, and
those that index what there is; what runs from a cache without being checked again (unpacked sources, tools) never is.
pip's is kept as the wheels that it has fetched (`cached_files`): about the rest it asks the index each time. Pure.
"""

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

from workers.shell.shell_inputs import HOME

SHOWN: Final = "/.caches"
"""Where the caches are in the private root, read-only."""
LINKS: Final = "links"
"""The directory of pip's wheels in its cache."""


class CacheRow(NamedTuple):
    """The cache of one registry's package managers."""

    place: str
    """In a command's HOME."""
    kept: str
    """A pattern of the paths in it that are handed on."""
    renewed: str = "(?!)"
    """The same of those that take the place of older ones."""


CACHES: Final[Mapping[str, CacheRow]] = MappingProxyType(
    {
        # cacache: contents by their digests, which npm checks as it reads them, and an index by address
        "npm": CacheRow(".npm/_cacache", r"(content-v2|index-v5)/.+", r"index-v5/.+"),
        "pypi": CacheRow(".cache/pip", rf"{LINKS}/[^/]+\.whl"),
        # crates are checked against the index and the lock file as they are unpacked, which is done anew
        "crates": CacheRow(".cargo/registry", r"(cache/.+\.crate|index/.+)", r"index/.+"),
        # modules are checked against go.sum as they are unpacked
        "go": CacheRow("go/pkg/mod/cache/download", r"(?!sumdb/).+/@v/[^/]+\.(info|mod|zip|ziphash|list)", r".+/list"),
    }
)
"""Registry -> row. Sources: npm's cacache, docs of pip, cargo and go."""


def cache_variables(caches: Sequence[tuple[str, str]]) -> Mapping[str, str]:
    """Return what package managers are told of the caches that there are."""
    pip = f"{HOME}/{CACHES['pypi'].place}"
    return {"PIP_CACHE_DIR": pip, "PIP_FIND_LINKS": f"{pip}/{LINKS}"} if "pypi" in dict(caches) else {}


def renews(name: str, path: str) -> bool:
    """Say whether a file of a cache takes the place of an older one."""
    return re.fullmatch(CACHES[name].renewed, path) is not None


def is_kept(name: str, path: str) -> bool:
    """Say whether a file of a cache is handed on."""
    return name in CACHES and ".." not in path.split("/") and re.fullmatch(CACHES[name].kept, path) is not None
