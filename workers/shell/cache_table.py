"""Caches of package managers: where each looks for its own, and what of it is worth keeping.

Rule: a command sees what approved installs have left, and writes above it. Of that only new files are handed on, and
those that index what there is; no path that is kept can be a directory above another. A command with a network sees
only what its package manager holds against a digest of the registry's; the rest, which is obeyed as it is, stands in
for the registry where there is no network. pip's is kept as the wheels that it has fetched (`cached_files`). Pure.
"""

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

SHOWN: Final = "/.caches"
"""Where the caches are in the private root, read-only."""
LINKS: Final = "links"
"""The directory of pip's wheels in its cache."""
_NONE: Final = "(?!)"


class CacheRow(NamedTuple):
    """A cache of a package manager, or a part of it."""

    registry: str
    place: str
    """In a command's HOME; parts of one cache have the same."""
    kept: str
    """A pattern of the paths in it that are handed on."""
    renewed: str = _NONE
    """The same of those that take the place of older ones."""
    whole: str = _NONE
    """The same of directories that are handed on, and go, as one: packages that are unpacked."""
    checked: bool = False
    """Whether its package manager holds each file against a digest of the registry's or of a lock file's."""
    variables: tuple[tuple[str, str], ...] = ()
    """What is said of it in a command's environment; `{at}` is its place."""
    variables_if_filled: tuple[tuple[str, str], ...] = ()
    files: tuple[tuple[str, str], ...] = ()
    """The same in files of its HOME."""


_STORE: Final = "store-dir={at}/store\ncache-dir={at}/cache\nprefer-offline=true\n"

_METADATA: Final = r"[^/]+/(?:@[^/]+/)?(?!@)[^/]+\.jsonl?"
_INDEX: Final = r"(?:pypi|index/[0-9a-f]+)"
_PACKAGE: Final = r"(?:@[^/]+/)?[^/@]+@[^/]+@@@\d+"

CACHES: Final[Mapping[str, CacheRow]] = MappingProxyType(
    {
        # cacache: contents by their digests, which npm checks as it reads them, and an index by address
        "npm": CacheRow("npm", ".npm/_cacache", r"content-v2/sha\d+/(?:[0-9a-f]{2}/){2}[0-9a-f]+", checked=True),
        "npm-index": CacheRow("npm", ".npm/_cacache", r"index-v5/(?:[0-9a-f]{2}/){2}[0-9a-f]+", r".+"),
        # tarballs as they came, each checked against yarn.lock or the registry as it is unpacked
        "yarn": CacheRow(
            *("npm", ".yarn-tarballs", r"[^/]+\.tgz"),
            checked=True,
            files=((".yarnrc", 'yarn-offline-mirror "{at}"\n'),),
        ),
        # archives, checked against yarn.lock where that has them
        "berry": CacheRow(
            *("npm", ".yarn/berry", rf"cache/[^/]+\.zip|metadata/npm/[0-9a-f]+/{_METADATA}", r"metadata/.+")
        ),
        # files by their digests, and an index of packages, which is believed
        "pnpm": CacheRow(
            *("npm", ".pnpm"),
            r"store/v\d+/(?:(?:files|index)/[0-9a-f]{2}/[^/]+|index\.db)"
            rf"|cache/(?:(?:v\d+/)?metadata[^/]*/{_METADATA}|lockfile-verified\.jsonl)",
            r"store/v\d+/index\.db|cache/.+",
            variables=(
                ("pnpm_config_store_dir", "{at}/store"),
                ("pnpm_config_cache_dir", "{at}/cache"),
                ("pnpm_config_prefer_offline", "true"),
            ),
            files=((".config/pnpm/rc", _STORE),),
        ),
        # packages as they are unpacked, and what the registry says of each
        "bun": CacheRow(
            *("npm", ".bun/install/cache", rf"(?!@)[^/]+\.npm|{_PACKAGE}/.+", r"[^/]+\.npm"),
            whole=_PACKAGE,
            variables=(("BUN_INSTALL_CACHE_DIR", "{at}"),),
        ),
        "pypi": CacheRow(
            *("pypi", ".cache/pip", rf"{LINKS}/[^/]+\.whl"),
            variables=(("PIP_CACHE_DIR", "{at}"),),
            variables_if_filled=(("PIP_FIND_LINKS", f"{{at}}/{LINKS}"),),
        ),
        # wheels as they are unpacked, which of them is whose, and the index; not what packages have built
        "uv": CacheRow(
            *("pypi", ".cache/uv"),
            rf"archive-v\d+/[^/]+/.+|simple-v\d+/{_INDEX}/[^/]+\.rkyv|wheels-v\d+/{_INDEX}/[\w-]+/[^/]+\.\w+",
            r"(?:simple|wheels)-v\d+/.+",
            whole=r"archive-v\d+/[^/]+",
            variables=(("UV_CACHE_DIR", "{at}"), ("UV_LINK_MODE", "copy")),
        ),
        # crates, which cargo believes: what is no crate of the index beside it is not kept (`system.crate_index`)
        "crates": CacheRow(
            *("crates", ".cargo/registry"),
            r"cache/[^/]+/[^/]+\.crate|index/[^/]+/(?:config\.json|\.cache/(?:[12]|3/[^/]|[^/]{2}/[^/]{2})/[\w-]+)",
            r"index/.+",
        ),
        # modules, checked against go.sum as they are unpacked; the hash beside one would be believed instead
        "go": CacheRow(
            *("go", "go/pkg/mod/cache/download"),
            *(r"(?!sumdb/)(?:[^@/]+/)+@v/(?:[^@/]+\.(?:info|mod|zip)|list)", r".+/list"),
        ),
        # archives by their addresses, of which many have no digest, and what the repository says of packages
        "packagist": CacheRow(
            *(
                "packagist",
                ".cache/composer",
                r"files/(?:[^/]+/){2}[0-9a-f]{40}\.zip|repo/[^/]+/[^/]+\.json",
                "repo/.+",
            ),
            variables=(("COMPOSER_CACHE_DIR", "{at}"),),
        ),
    }
)
"""Name -> row. Sources: npm's cacache, docs of the others, and what each was seen to do."""


def caches_of(registry: str) -> Iterable[str]:
    """Return the names of the caches of one registry's package managers."""
    return (name for name, row in CACHES.items() if row.registry == registry)


def renews(name: str, path: str) -> bool:
    """Say whether a file of a cache takes the place of an older one."""
    return re.fullmatch(CACHES[name].renewed, path) is not None


def is_kept(name: str, path: str) -> bool:
    """Say whether a file of a cache is handed on."""
    return name in CACHES and ".." not in path.split("/") and re.fullmatch(CACHES[name].kept, path) is not None


def whole(name: str, path: str) -> str:
    """Return the directory that a file of a cache is handed on with; the file itself where it stands alone."""
    found = re.match(rf"(?:{CACHES[name].whole})(?=/)", path)
    return found[0] if found else path
