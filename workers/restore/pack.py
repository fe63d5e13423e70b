"""A pack: what one call changed, name by name, with the content that files had before.

Rule: all of it is looked through before anything is done with a part of it, up to its end, which says what all bytes
before it were. What was kept came from a tree that anybody may have filled: a name leads nowhere but beneath the root,
and what does not fit together is refused as a whole.
"""

import hashlib
import os
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from workers.changes.effects import NodeState
from workers.tree.root import PATH_LIMIT
from workers.treediff.overlay import INTERNAL
from workers.wire import frames, messages

NAMES: Final = 200_000
"""Names that a pack may have, as many as one call may change."""

_LISTS: Final = ("system.posix_acl_access", "system.posix_acl_default")


class Broken(Exception):
    """It is no whole pack. The text says what is wrong with it."""


class PackEntry(NamedTuple):
    """One name, before the call and after it; `path` may hold surrogates, as os.fsdecode makes them."""

    path: str
    before: NodeState | None
    after: NodeState | None
    attributes: Mapping[str, bytes]
    kept: bool
    at: int
    """Where in the file the content's frames begin."""

    @property
    def parent(self) -> str:
        """The directory that it is in, relative to the root; empty for the root itself."""
        return self.path.rpartition("/")[0]


def read(file: int) -> dict[str, PackEntry]:
    """Return the entries of an open pack by path, a directory before what is in it.

    Raises:
        Broken: it was cut or changed, or was never whole.
    """
    entries: dict[str, PackEntry] = {}
    around: set[str] = set()
    left = 0
    reader = _Reader(file)
    for part in _parts(reader):
        match part:
            case messages.Original() if not left:
                entry = _entry(part, reader.at)
                _add(entries, around, entry)
                left = entry.before.size if entry.before is not None and entry.kept else 0
            case messages.Piece(data=data) if 0 < len(data) <= left:
                left -= len(data)
            case _:
                raise Broken(f"{type(part).__name__} out of turn")
    if left:
        raise Broken("it ends in the middle of a content")
    return entries


def content(file: int, entry: PackEntry) -> Iterator[bytes]:
    """Yield the content that a kept file had, of a pack that was read."""
    left = entry.before.size if entry.before is not None else 0
    payloads = frames.payloads(_Reader(file, entry.at))
    while left:
        piece = frames.decode_packed(next(payloads))
        assert isinstance(piece, messages.Piece), "it was when the pack was read"
        left -= len(piece.data)
        yield piece.data


def _parts(reader: "_Reader") -> Iterator[messages.Original | messages.Piece]:
    """Yield what stands before a pack's end, when the `reader` has come to where each part ends.

    Raises:
        Broken: there is no end, it is not the end of what stands before it, or something comes after it.
    """
    digest, ended = hashlib.sha256(), False
    try:
        for payload in frames.payloads(reader):
            part = frames.decode_packed(payload)
            if ended:
                raise Broken("it goes on after its end")
            if isinstance(part, messages.End):
                if part.digest != digest.digest():
                    raise Broken("it is not what was written")
                ended = True
                continue
            digest.update(frames.LENGTH.pack(len(payload)))
            digest.update(payload)
            yield part
    except frames.FrameError as error:
        raise Broken(str(error)) from error
    if not ended:
        raise Broken("its end is missing")


class _Reader:
    """Reads on from a place; `at` is how far it has come."""

    def __init__(self, file: int, at: int = 0) -> None:
        self._file = file
        self.at = at

    def __call__(self, size: int) -> bytes:
        parts: list[bytes] = []
        while size and (part := os.pread(self._file, size, self.at)):
            parts.append(part)
            self.at += len(part)
            size -= len(part)
        return b"".join(parts)


def _entry(original: messages.Original, at: int) -> PackEntry:
    path = os.fsdecode(original.raw_path) if original.raw_path else original.path
    before = original.before
    _check(_leads_beneath(path), path, "it is no name beneath the root")
    _check(before is not None or original.after is not None, path, "it was not there, neither before nor after")
    _check(not original.kept or (before is not None and before.kind == "file"), path, "only files have a content")
    for name in original.attributes:
        plain = name in _LISTS or (name.startswith("user.") and not name.startswith(INTERNAL))
        _check(plain, path, "an attribute is none that is kept")
    return PackEntry(path, before, original.after, original.attributes, original.kept, at)


def _add(entries: dict[str, PackEntry], around: set[str], entry: PackEntry) -> None:
    """Take an entry that fits with those before it, which lie in the directories `around`."""
    path, parent = entry.path, entries.get(entry.parent)
    _check(path not in entries, path, "it is there twice")
    _check(path not in around, path, "it comes after what is in it")
    _check(len(entries) < NAMES, path, f"there are more than {NAMES} names")
    if parent is not None:
        for inner, outer in ((entry.before, parent.before), (entry.after, parent.after)):
            _check(inner is None or (outer is not None and outer.kind == "dir"), path, "it lies in no directory")
    entries[path] = entry
    above = entry.parent
    while above and above not in around:
        around.add(above)
        above = above.rpartition("/")[0]


def _leads_beneath(path: str) -> bool:
    if path == ".":
        return True
    parts = path.split("/")
    return not {"", ".", ".."} & set(parts) and "\0" not in path and len(os.fsencode(path)) <= PATH_LIMIT


def _check(holds: bool, path: str, otherwise: str) -> None:
    if not holds:
        raise Broken(f"{path[:200]!r}: {otherwise}")
