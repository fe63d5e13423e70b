"""Comparison of two versions of git's index, without the times and numbers that git caches of files.

Rule: pure, of untrusted bytes; what is not understood is not the same. Git writes its index anew when it merely looked
(`git diff`), with other times of the same files: nobody needs to be asked about that, and nothing is lost without it.
Source: Documentation/gitformat-index.txt of git.
"""

import hashlib
import struct
from typing import Final

_HEADER: Final = struct.Struct(">4sII")
_REMEMBERED: Final = ((0, 24), (28, 40))
"""Of an entry: its times, device and inode; after the mode, its user, group and size."""
_FIXED: Final = 40
_EXTENDED: Final = 0x40
"""In the first byte of an entry's flags: there are two bytes more."""
_WITH_EXTENDED: Final = 3
_PREFIXED: Final = 4
"""Versions of the format: from which on flags may be extended, and in which names are cut short."""
_MORE: Final = 0x80


def is_index(path: str) -> bool:
    """Say whether a path, relative to the root, is where git keeps an index."""
    *parents, name = path.split("/")
    return name == "index" and ".git" in parents


def same(before: bytes, after: bytes) -> bool:
    """Say whether both are indexes with the same entries and extensions."""
    try:
        return _essence(before) == _essence(after)
    except (ValueError, IndexError, struct.error):
        return False


def _essence(data: bytes) -> bytes:
    """Return an index without what git remembers of the files, and without its checksum.

    Raises:
        ValueError, IndexError, struct.error: it is none.
    """
    name_size = _name_size(data)
    signature, version, entries = _HEADER.unpack_from(data)
    if signature != b"DIRC" or version > _PREFIXED:
        raise ValueError("no index of a known version")
    essence = bytearray(data[:-name_size])
    at = _HEADER.size
    for _ in range(entries):
        if at + _FIXED > len(essence):
            raise ValueError("an entry is cut off")
        for start, end in _REMEMBERED:
            essence[at + start : at + end] = bytes(end - start)
        flags = at + _FIXED + name_size
        name = flags + (4 if version >= _WITH_EXTENDED and data[flags] & _EXTENDED else 2)
        if version == _PREFIXED:
            while data[name] & _MORE:
                name += 1
            at = data.index(0, name + 1) + 1
        else:
            at += (data.index(0, name) - at + 8) & ~7
    return bytes(essence)


def _name_size(data: bytes) -> int:
    """Return how many bytes the name of an object has, from the checksum, which is made the same way."""
    for make in (hashlib.sha1, hashlib.sha256):
        size = make().digest_size
        if make(data[:-size], usedforsecurity=False).digest() == data[-size:]:
            return size
    raise ValueError("no checksum")
