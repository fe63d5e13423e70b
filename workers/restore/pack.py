"""A pack: what one call changed, name by name, with the content that files had before.

Rule: all of it is looked through before anything is done with a part of it, up to its end, which says what all bytes
before it were. What was kept came from a tree that anybody may have filled: a name leads nowhere but beneath the root,
and what does not fit together is refused as a whole.
"""

import os
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from workers.changes.effects import NodeState
from workers.tree.attributes import is_carried
from workers.tree.root import PATH_LIMIT
from workers.treediff.snapshot import KEPT, KEPT_EACH
from workers.wire.pack_format import Broken, PackedContent, PackedName, PackReader

NAMES: Final = 200_000
"""Names that a pack may have, as many as one call may change."""


class PackEntry(NamedTuple):
    """One name, before the call and after it; `path` may hold surrogates, as os.fsdecode makes them."""

    path: str
    before: NodeState | None
    after: NodeState | None
    attributes: Mapping[str, bytes]
    kept: bool
    at: int
    """Where in the file the content's frames begin."""
    content: bytes | None = None
    """What the file held, where that is little."""
    gist: bytes = b""
    """Of git's index after the call."""

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
    left, keeps = 0, KEPT
    reader = PackReader(file)
    for part in reader.parts():
        match part:
            case PackedName() if not left:
                entry = _entry(part, reader.at)
                _add(entries, around, entry)
                left = entry.before.size if entry.before is not None and entry.kept else 0
            case PackedContent(data=data) if 0 < len(data) <= left:
                left -= len(data)
                if not left and entry.before is not None and len(data) == entry.before.size <= min(keeps, KEPT_EACH):
                    entries[entry.path] = entry._replace(content=data)
                    keeps -= len(data)
            case _:
                raise Broken("a name or a content is out of turn")
    if left:
        raise Broken("it ends in the middle of a content")
    return entries


def content(file: int, entry: PackEntry) -> Iterator[bytes]:
    """Return the content that a kept file had, of a pack that was read, in pieces."""
    if entry.content is not None:
        return iter((entry.content,))
    return PackReader(file, entry.at).contents(entry.before.size if entry.before is not None else 0)


def _entry(original: PackedName, at: int) -> PackEntry:
    path = os.fsdecode(original.raw_path) if original.raw_path else original.path
    before = original.before
    _check(_leads_beneath(path), path, "it is no name beneath the root")
    _check(before is not None or original.after is not None, path, "it was not there, neither before nor after")
    _check(not original.kept or (before is not None and before.kind == "file"), path, "only files have a content")
    _check(all(map(is_carried, original.attributes)), path, "an attribute is none that is kept")
    return PackEntry(path, before, original.after, original.attributes, original.kept, at, gist=original.gist)


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
