"""Git's index: what it names, and comparison of two versions without the times and numbers that git caches of files.

Rule: pure, of untrusted bytes; what is not understood is not the same, and names nothing. Git writes its index anew
when it merely looked (`git diff`), with other times of the same files: nobody needs to be asked about that, and nothing
is lost without it.
Source: Documentation/gitformat-index.txt of git.
"""

import hashlib
import struct
from collections.abc import Iterator, Mapping
from typing import Final

from workers.tree.root import PATH_LIMIT

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
_EXTENSION: Final = struct.Struct(">4sI")
_WRITTEN_OUT: Final = (b"\0\0\0\2", b"\0\0\0\3")
"""Versions whose entries hold whole paths."""
_ELSEWHERE: Final = frozenset({b"link", b"sdir"})
"""Extensions with which other paths count as well: of another file, and all of a directory."""

SHA1: Final = 20
"""Bytes of the name of an object; more are those of a SHA-256."""

INDEX: Final = 2**26
"""Bytes of an index that are looked through, and of all names in it: one may be written as what another is not."""


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


def gist(data: bytes) -> bytes:
    """Return a digest that all indexes have which are the `same` as this one; empty of what is none."""
    try:
        return hashlib.sha256(_essence(data)).digest()
    except (ValueError, IndexError, struct.error):
        return b""


_Entry = tuple[int, bytes, bytes, bytes, int]
"""Where it begins, its mode, its object's name, its path, and where it ends."""


def may_name(data: bytes, path: bytes) -> bool:
    """Say whether an index may name a path; a look, where it is written out, and is of this file alone."""
    if data[4:8] in _WRITTEN_OUT and not any(each in data for each in _ELSEWHERE):
        return path + b"\0" in data
    return True


def entries_of(data: bytes) -> Mapping[bytes, tuple[bytes, bytes]] | None:
    """Return the mode and the object's name of each path in an index; None where it does not name all of them."""
    try:
        found, end, last = {}, _HEADER.size, len(data) - _name_size(data)
        for _at, mode, blob, name, end in _entries(data):  # noqa: B007 - the last end counts
            found[name] = (mode, blob)
        while end < last:
            extension, size = _EXTENSION.unpack_from(data, end)
            if extension in _ELSEWHERE:
                return None
            end += _EXTENSION.size + size
    except (ValueError, IndexError, struct.error):
        return None
    return found


def tree_of(entries: Mapping[bytes, tuple[bytes, bytes]]) -> str:
    """Return the name of the tree that has exactly these entries (git-write-tree(1), git-mktree(1))."""
    make = hashlib.sha256 if any(len(blob) > SHA1 for _mode, blob in entries.values()) else hashlib.sha1
    inside: dict[bytes, dict[bytes, bytes]] = {b"": {}}
    for path, (mode, blob) in entries.items():
        above, _, name = path.rpartition(b"/")
        inside.setdefault(above, {})[name] = b"%o %s\0%s" % (int.from_bytes(mode), name, blob)
        while above:
            above = above.rpartition(b"/")[0]
            inside.setdefault(above, {})
    tree = make(usedforsecurity=False)
    for directory in sorted(inside, key=lambda each: each.count(b"/") + bool(each), reverse=True):  # the top at last
        content = b"".join(each for _name, each in sorted(inside[directory].items()))
        tree = make(b"tree %d\0%s" % (len(content), content), usedforsecurity=False)
        above, _, name = directory.rpartition(b"/")
        inside[above][name + b"/"] = b"40000 %s\0%s" % (name, tree.digest())
    return tree.hexdigest()


def _essence(data: bytes) -> bytes:
    """Return an index without what git remembers of the files, and without its checksum.

    Raises:
        ValueError, IndexError, struct.error: it is none.
    """
    essence = bytearray(data[: -_name_size(data)])
    for at, *_entry in _entries(data):
        for start, end in _REMEMBERED:
            essence[at + start : at + end] = bytes(end - start)
    return bytes(essence)


def _entries(data: bytes) -> Iterator[_Entry]:
    """Yield the entries of an index; raises like `_essence`."""
    name_size = _name_size(data)
    signature, version, entries = _HEADER.unpack_from(data)
    if signature != b"DIRC" or version > _PREFIXED:
        raise ValueError("no index of a known version")
    at, name, left = _HEADER.size, b"", INDEX
    for _ in range(entries):
        if at + _FIXED > len(data) - name_size:
            raise ValueError("an entry is cut off")
        flags = at + _FIXED + name_size
        start = flags + (4 if version >= _WITH_EXTENDED and data[flags] & _EXTENDED else 2)
        if version == _PREFIXED:
            cut, start = _cut_from(data, start)
            end = data.index(0, start)
            name = name[: max(0, len(name) - cut)] + data[start:end]
            end += 1
        else:
            end = data.index(0, start)
            name = data[start:end]
            end += (at - end) % 8 or 8
        left -= len(name)
        if len(name) > PATH_LIMIT or left < 0:
            raise ValueError("its names are too long")
        yield at, data[at + 24 : at + 28], data[at + _FIXED : flags], name, end
        at = end


def _cut_from(data: bytes, at: int) -> tuple[int, int]:
    """Return how much of the name before is cut off, and where the rest of this one begins."""
    count = data[at] & ~_MORE
    while data[at] & _MORE:
        at += 1
        count = ((count + 1) << 7) + (data[at] & ~_MORE)
        if count > PATH_LIMIT:
            raise ValueError("more is cut off than a name has")
    return count, at + 1


def _name_size(data: bytes) -> int:
    """Return how many bytes the name of an object has, from the checksum, which is made the same way."""
    for make in (hashlib.sha1, hashlib.sha256):
        size = make().digest_size
        if make(data[:-size], usedforsecurity=False).digest() == data[-size:]:
            return size
    raise ValueError("no checksum")
