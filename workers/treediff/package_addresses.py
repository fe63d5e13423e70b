"""Addresses in the files of package managers: patterns that find them, and how a place is called.

Rule: an address counts however it is written; what a package manager makes of it is its own affair. Pure.
"""

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

_URL: Final = r"(?i:(?:[a-z]{1,12}\+)?([a-z]{1,12})://(?:[^/\s\"']{0,200}@)?([^/\s\"'\\#?@]{1,260}))"
EVERY: Final = re.compile(_URL)
RESOLVED: Final = re.compile(rf"(?:resolved|tarball|repo|registry)\W{{1,6}}{_URL}")
"""Where a lock file of Node's says that a package comes from; others of its addresses are for people."""
FETCHED: Final = re.compile(rf"(?:registry|url|source|git|index|find-links|remote)\W{{1,6}}{_URL}")
"""The same of others."""
_CRATES_IO: Final = "registry+https://github.com/rust-lang/crates.io-index"
"""What Cargo.lock calls the registry, wherever that is."""
PORTS: Final[Mapping[str, str]] = MappingProxyType({"https": "443", "http": "80", "ssh": "22"})


_MARK: Final = re.compile(r"://(?<=[^\W\d_]://)")
_BEFORE: Final = 48
_AFTER: Final = 480
"""Characters of an address, and of the word that leads to it, around its mark: at most so many."""


def addresses(pattern: re.Pattern[str], text: str) -> Iterator[tuple[str, str]]:
    """Yield the scheme, and the place as "host:port", of each address that a pattern of this module finds.

    It is looked for around each mark alone: over a long text, a pattern of its own would hold up every other thread.
    """
    for scheme, host in dict.fromkeys(_around_marks(pattern, text.replace(_CRATES_IO, ""))):
        yield scheme, host if ":" in host else f"{host}:{PORTS.get(scheme, '0')}"


def _around_marks(pattern: re.Pattern[str], text: str) -> Iterator[tuple[str, str]]:
    for at in (mark.start() for mark in _MARK.finditer(text)):
        for found in pattern.finditer(text, max(at - _BEFORE, 0), at + _AFTER):
            if found.end(1) >= at:
                if found.end(1) == at:
                    yield found[1].lower(), found[2].lower()
                break
