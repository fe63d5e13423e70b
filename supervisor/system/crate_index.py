"""Crates in a cache of cargo's, held against the digests of the index beside them.

Rule: cargo unpacks a crate of its cache without looking at it again, so a crate is kept only if it has the digest that
the index beside it says; of that index, cargo itself compares the digests with those of a Cargo.lock. Source of the
formats: cargo's `sources/registry/index/cache.rs` and "Registry Index" of The Cargo Book.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec

_CRATE: Final = re.compile(r"cache/([^/]+)/([A-Za-z0-9_-]+?)-(\d+\.\d+\.\d+[^/]*)\.crate")
_INDEX: Final = re.compile(r"index/([^/]+)/\.cache/(?:.+/)?([a-z0-9_-]+)")
_FORMAT: Final = b"\3"
_HEADER: Final = 5
"""The first byte of a file of the index, and how many stand before its tag."""


class _Version(msgspec.Struct):
    """What the index says of a version."""

    vers: str
    cksum: str


def is_crate(path: str) -> bool:
    """Say whether a file of a cache of cargo's is a crate."""
    return _CRATE.fullmatch(path) is not None


def other_crates(directory: Path, staged: Mapping[str, str]) -> Iterator[str]:
    """Yield the crates that are new, or of which the index is, and that are not those of the index then.

    Args:
        directory: a cache of cargo's.
        staged: what is to be moved into it: each path in the cache, and where that is now. A crate's is yielded where
            it is staged, and where it is in the cache.
    """
    concerned = {_concerned(each) for each in staged}
    known: dict[tuple[str, str], dict[str, str]] = {}
    there = {str(each.relative_to(directory)): str(each) for each in (directory / "cache").glob("*/*.crate")}
    for path, file in (*staged.items(), *there.items()):
        found, name = _CRATE.fullmatch(path), _concerned(path)
        if found is None or name not in concerned:
            continue
        if name not in known:
            index = f"index/{name[0]}/.cache/{_place(name[1])}"
            known[name] = _digests(Path(staged.get(index, directory / index)))
        if known[name].get(found[3]) != _digest(Path(file)):
            yield file


def _concerned(path: str) -> tuple[str, str]:
    """Return the registry and the name of the crate, in small letters, that a file of a cache is of."""
    found = _CRATE.fullmatch(path) or _INDEX.fullmatch(path)
    return (found[1], found[2].lower()) if found else ("", "")


def _place(name: str) -> str:
    """Return where the index has a crate, by its name in small letters."""
    match len(name):
        case 1 | 2:
            return f"{len(name)}/{name}"
        case 3:
            return f"3/{name[0]}/{name}"
        case _:
            return f"{name[:2]}/{name[2:4]}/{name}"


def _digests(file: Path) -> dict[str, str]:
    """Return the digest of each version that a file of the index names; nothing of one that is odd in anything.

    It is read as cargo does: after a header, pairs of a version and its JSON. Source: cargo's own code.
    """
    digests: dict[str, str] = {}
    try:
        data = file.read_bytes()
        _tag, *parts = data[_HEADER:].split(b"\0")
        for version, text in zip(parts[::2], parts[1::2], strict=False):
            found = msgspec.json.decode(text, type=_Version)
            if data[:1] != _FORMAT or found.vers.encode() != version or found.vers in digests:
                return {}
            digests[found.vers] = found.cksum
    except (OSError, ValueError, RecursionError, msgspec.MsgspecError):
        return {}
    return digests


def _digest(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            return hashlib.file_digest(opened, "sha256").hexdigest()
    except OSError:
        return "unreadable"
