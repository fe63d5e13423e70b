"""Addresses in the files of package managers: patterns that find them, and how a place is called.

Rule: an address counts however it is written; what a package manager makes of it is its own affair. Pure.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final

_URL: Final = r"(?i:(?:[a-z]{1,12}\+)?([a-z]{1,12})://(?:[^/\s\"']{0,200}@)?([^/\s\"'\\#?@]{1,260}))"
EVERY: Final = re.compile(_URL)
RESOLVED: Final = re.compile(rf"(?:resolved|tarball|repo|registry)\W{{1,6}}{_URL}")
"""Where a lock file of Node's says that a package comes from; others of its addresses are for people."""
FETCHED: Final = re.compile(rf"(?:registry|url|source|git|index|find-links)\W{{1,6}}{_URL}")
"""The same of others."""
_CRATES_IO: Final = "registry+https://github.com/rust-lang/crates.io-index"
"""What Cargo.lock calls the registry, wherever that is."""
PORTS: Final[Mapping[str, str]] = MappingProxyType({"https": "443", "http": "80", "ssh": "22"})


def addresses(pattern: re.Pattern[str], text: str) -> Iterator[tuple[str, str]]:
    """Yield the scheme, and the place as "host:port", of each address that a pattern of this module finds."""
    for scheme, host in _small(pattern.findall(text.replace(_CRATES_IO, ""))):
        yield scheme, host if ":" in host else f"{host}:{PORTS.get(scheme, '0')}"


def _small(found: Iterable[tuple[str, str]]) -> dict[tuple[str, str], None]:
    return dict.fromkeys((scheme.lower(), host.lower()) for scheme, host in found)
