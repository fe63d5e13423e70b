"""The proposal of write_file and edit_file: one file with its new content.

Rule: proposing changes nothing, and holds no descriptor. A commit goes the same way again, and writes only where the
file, and the directories on the way, are what they were when the proposal was made.
"""

import os
import stat
from collections.abc import Iterator
from typing import Final

import msgspec

from workers.changes.diff import DIFFS, Budget, Diff
from workers.changes.digest import sha256
from workers.changes.effects import Change, Effects, NodeState
from workers.changes.readable import Compared, Readable, compare, side_of, too_large
from workers.files.atomic import replace
from workers.files.seen_file import Old, expect, identity
from workers.files.text_limits import pieces
from workers.tool import Proposal, Replaced, Result
from workers.tree.attributes import shortened
from workers.tree.parent_dir import ParentDir, PathToParent, changed, looking, path_to_parent, reached
from workers.tree.protected import protection_in_tool
from workers.tree.root import Root, closing
from workers.wire.messages import PIECE

_STAYS: Final = 0o1777
"""Bits of a mode that the new file has as the old one had them."""
_STEPS: Final = 200_000
"""Of the comparison of two texts; a fifth of a second."""


class FileProposal(Proposal):
    """One file that would be made or replaced, with the directories that it would need."""

    def __init__(
        self, effects: Effects, root: Root, way: PathToParent, data: bytes, old: Old | None, said: str
    ) -> None:
        super().__init__(effects)
        self._root = root
        self._way = way
        self._data = data
        self._old = old
        self._said = said

    def originals(self, each: int, total: int) -> Iterator[Replaced | bytes]:
        """Yield the directories that would be made, then the file with its old content."""
        *directories, file = self.effects.changes
        for change in directories:
            yield Replaced(change.path, change.before, change.after)
        if self._old is None:
            yield Replaced(file.path, file.before, file.after)
            return
        with looking(self._root, file.path) as place:
            yield from self._original(place, file, self._old, min(each, total))

    def expected(self) -> Result:
        """Return what is said of the file that was written."""
        return self._said

    def commit(self) -> Result:
        after = self.effects.changes[-1].after
        assert after is not None, "a file is written, never removed"
        with reached(self._root, self._way) as place:
            replace(self._root, place, self._data, after.mode, self._old)
        return self._said

    def _original(self, place: ParentDir, change: Change, old: Old, most: int) -> Iterator[Replaced | bytes]:
        expect(place, old)
        try:
            file = place.open(os.O_RDONLY)
        except PermissionError:
            yield Replaced(change.path, change.before, change.after)
            return
        with closing(file):
            kept = old.size <= most
            yield Replaced(change.path, change.before, change.after, attributes=old.attributes, kept=kept)
            if kept:
                yield from _content(file, place, old)


def proposed(root: Root, place: ParentDir, data: bytes, old: Old | None, said: str) -> FileProposal:
    """Propose to write `data` where `old` is.

    Args:
        root: For the umask, and to find the place again.
        place: A regular file that this process may write, or nothing.
        data: The whole new content.
        old: The file that is there, as it was looked at.
        said: The result of the call, if it is committed.

    Raises:
        OSError: no file can be made here.
    """
    mode = place.mode_of_new(old.mode & 0o777 if old is not None else 0o666 & ~root.umask)
    has: dict[str, bytes] = {}
    if old is not None:
        mode, has = old.mode & _STAYS, shortened(old.attributes)
    seen = _difference(data, old)
    protection = protection_in_tool(place.path.split("/"))
    change = Change(
        place.path,
        "added" if old is None else "modified",
        None if old is None else NodeState("file", old.mode, old.size, old.identity[4], old.digest, attributes=has),
        NodeState("file", mode, len(data), 0, sha256(data).digest(), attributes=has),
        diff=seen.diff.text,
        diff_left_out=seen.why,
        encoding=seen.how,
        protected=protection.protected,
        level=protection.level,
        linked=old is not None and old.links > 1,
        loses=old.loses if old is not None else (),
    )
    effects = _effects((*_directories(root, place), change))
    return FileProposal(effects, root, path_to_parent(place), data, old, said)


def _directories(root: Root, place: ParentDir) -> Iterator[Change]:
    """Yield those that are missing. A directory inherits the set-group-ID bit."""
    mode = (0o777 & ~root.umask) | (os.fstat(place.parent).st_mode & stat.S_ISGID)
    parts = place.path.split("/")
    for depth in range(len(parts) - len(place.missing), len(parts)):
        yield Change("/".join(parts[:depth]), "added", None, NodeState("dir", mode))


def _difference(data: bytes, old: Old | None) -> Compared:
    """Return the difference that people are shown."""
    why = too_large(max(len(data), old.size if old is not None else 0))
    if not why and old is not None and old.content is None:
        why = "the old file cannot be read"
    if why:
        return Compared(Diff("", 0), why)
    before = None if old is None or old.content is None else side_of(old.content)
    return compare(before, Readable(data.decode()), DIFFS, Budget(_STEPS))


def _effects(changes: tuple[Change, ...]) -> Effects:
    """Sum up changes, sorted by path as they are: directories are made for a new file, and come before it."""
    everything = sha256()
    for change in changes:
        everything.update(_encoder.encode(msgspec.structs.replace(change, diff="", diff_left_out="", encoding="")))
    file = changes[-1]
    return Effects(changes, {file.what: len(changes)}, everything.digest(), file.after.size if file.after else 0)


def _content(file: int, place: ParentDir, old: Old) -> Iterator[bytes]:
    """Yield the old content, and make sure that it was."""
    digest = sha256()
    size = 0
    for piece in pieces(file, old.size, PIECE):
        yield piece
        size += len(piece)
        digest.update(piece)
    same = size == old.size and identity(os.fstat(file)) == old.identity
    if not same or (old.digest and digest.digest() != old.digest):
        raise changed(place.path)


_encoder: Final = msgspec.msgpack.Encoder()
