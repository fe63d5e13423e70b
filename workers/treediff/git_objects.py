"""Loose objects of one repository: what a reference names, and how trees differ.

Rule: an object counts that has the name of its content. What is in a pack is not read: it was there before, and whoever
looks sees to it that no pack comes unasked. Source: gitrepository-layout(5), gitformat-pack(5).
"""

import hashlib
import os
import re
import stat
import zlib
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

_NAMED: Final = rb"([0-9a-f]{40}|[0-9a-f]{64})\n"
_COMMIT: Final = re.compile(rb"tree %s((?:parent %s)*)(?!parent )" % (_NAMED, _NAMED))
_TAG: Final = re.compile(rb"object %s" % _NAMED)
_ENTRY: Final = re.compile(rb"([0-7]{5,7}) ([^\0/]+)\0")
"""How a commit and a tag begin, and an entry of a tree before the name of its object."""
_OBJECT: Final = 2**22
_ALL: Final = 2**24
_LEAST: Final = 2**12
"""Bytes of one object as it is stored, and of all that are read; what each counts at least."""
_ANCESTORS: Final = 1000
"""Commits that are looked through for one."""
_LONGEST: Final = 3000
"""Characters of a directory's path: of a longer one no file can be checked out."""
_LIST: Final = b"\xfftOc\0\0\0\2"
_COUNTS: Final = 8
_NAMES: Final = 8 + 256 * 4
"""How the list of a pack's objects begins; where it counts them by their first byte, and where their names begin."""


class TooFar(Exception):
    """It takes more than a look."""


class Commit(NamedTuple):
    """One, as far as it counts."""

    tree: str
    parents: list[str]


class Entry(NamedTuple):
    """A file in a tree."""

    path: str
    mode: int
    name: str
    """Of its object."""


class GitObjects:
    """Those of a repository as a command leaves it.

    Args:
        read: reads a loose object's file, by its path in git's directory, up to so many bytes; nothing of others.
        lists: descriptors of the lists of the packs that were there before.
    """

    def __init__(self, read: Callable[[str, int], bytes], lists: Callable[[], Sequence[int]]) -> None:
        self._read = read
        self._lists = lists
        self._left = _ALL

    def _any(self, name: str) -> tuple[bytes, bytes]:
        """Return the kind and the content of a loose object.

        Raises:
            TooFar: there is none, or enough have been read.
        """
        if self._left <= 0:
            raise TooFar
        unpacker = zlib.decompressobj()
        try:
            data = unpacker.decompress(self._read(f"objects/{name[:2]}/{name[2:]}", _OBJECT), self._left)
        except zlib.error as error:
            raise TooFar from error
        self._left -= len(data) + _LEAST
        if self._left <= 0:
            raise TooFar
        make = hashlib.sha256 if len(name) > 40 else hashlib.sha1  # noqa: PLR2004 - digits of a SHA-1
        head, _, content = data.partition(b"\0")
        if make(data, usedforsecurity=False).hexdigest() != name:
            raise TooFar
        return head.partition(b" ")[0], content

    def _object(self, name: str, kind: bytes) -> bytes:
        """Return the content of a loose object of that kind; raises like `_any`."""
        found, content = self._any(name)
        if found != kind:
            raise TooFar
        return content

    def _is_packed(self, name: str) -> bool:
        """Say whether a pack has an object that is not loose."""
        wanted = bytes.fromhex(name)
        size = len(wanted)
        for file in self._lists():
            if os.pread(file, len(_LIST), 0) != _LIST:
                continue
            counts = os.pread(file, 4 * (wanted[0] + 1), _COUNTS)[-8:]
            low, high = (int.from_bytes(each) for each in (counts[:-4], counts[-4:]))
            places = range(low, high)
            at = bisect_left(places, wanted, key=lambda at: os.pread(file, size, _NAMES + at * size))
            if at < len(places) and os.pread(file, size, _NAMES + places[at] * size) == wanted:
                return True
        return False

    def commit(self, name: str) -> Commit | None:
        try:
            return _commit(self._object(name, b"commit"))
        except TooFar:
            return None

    def _tree(self, name: str) -> Mapping[bytes, tuple[bytes, str]]:
        """Return mode and object of each name in a tree, none for no tree; raises like `_any`."""
        return _tree(self._object(name, b"tree") if name else b"", len(name) // 2)

    def files(self, old: str, new: str) -> int:
        """Return how many files differ between two trees; raises like `_object`."""
        count, left = 0, [(old, new)]
        while left:
            pair = left.pop()
            before, after = (self._tree(each) for each in pair)
            for name in before.keys() | after.keys():
                sides = [each.get(name) for each in (before, after)]
                if sides[0] != sides[1]:
                    trees = ["" if side is None or side[0] != b"40000" else side[1] for side in sides]
                    count += any(side is not None and side[0] != b"40000" for side in sides)
                    left += [(trees[0], trees[1])] * any(trees)
        return count

    # --- what is new ----------------------------------------------------------------------------------------------

    def added(self, name: str, known: set[str], base: str) -> Iterator[Entry]:
        """Yield the files in what an object leads to that are not so in a commit `base`.

        Args:
            name: of a commit, a tag or a tree; of other objects there is nothing to tell.
            known: commits of which, and of whose ancestors, nothing is new.
            base: what is compared with, empty for nothing; nothing either where it is packed.

        Raises:
            TooFar: not all of it can be read.
        """
        before = self.commit(base)
        tree, done, left, looked = before.tree if before is not None else "", {*known}, [name], False
        while left:
            if (each := left.pop()) in done:
                continue
            done.add(each)
            found = self._unless_packed(each)
            if found is None:
                continue
            if found[0] == b"tag":
                left.append(_match(_TAG, found[1])[1].decode())
            elif found[0] == b"tree":
                yield from self._differing(tree, each)
            elif found[0] == b"commit":
                commit = _commit(found[1])
                if not looked and not done.issuperset(commit.parents):
                    looked, older = True, self._ancestors(known)
                    done |= older
                    if each in older:
                        continue
                left += commit.parents
                yield from self._differing(tree, commit.tree)

    def _unless_packed(self, name: str) -> tuple[bytes, bytes] | None:
        try:
            return self._any(name)
        except TooFar:
            if self._is_packed(name):
                return None
            raise

    def _ancestors(self, names: set[str]) -> set[str]:
        found, left = set[str](), [*names]
        while left and len(found) < _ANCESTORS:
            if (name := left.pop()) not in found and (commit := self.commit(name)) is not None:
                found.add(name)
                left += commit.parents
        return found

    def _differing(self, old: str, new: str) -> Iterator[Entry]:
        """Yield the files of a tree that are not so in another; raises like `added`."""
        left = [("", old, new)]
        while left:
            above, *pair = left.pop()
            if (found := self._unless_packed(pair[1])) is None:
                continue
            if found[0] != b"tree" or len(above) > _LONGEST:
                raise TooFar
            before: Mapping[bytes, tuple[bytes, str]] = {}
            with suppress(TooFar):
                before = self._tree(pair[0])
            for name, (mode, entry) in _tree(found[1], len(pair[1]) // 2).items():
                if before.get(name) == (mode, entry):
                    continue
                path, number = f"{above}{os.fsdecode(name)}", int(mode, 8)
                if stat.S_ISDIR(number):
                    left.append((f"{path}/", before.get(name, (b"", ""))[1], entry))
                else:
                    yield Entry(path, number, entry)


def _match(form: re.Pattern[bytes], content: bytes, at: int = 0) -> re.Match[bytes]:
    """Match what an object must have there; raises TooFar where it has not, as nobody but git knows what that means."""
    if (found := form.match(content, at)) is None:
        raise TooFar
    return found


def _commit(content: bytes) -> Commit:
    """Return what a commit says; raises like `_match`."""
    tree, parents = _match(_COMMIT, content).group(1, 2)
    return Commit(tree.decode(), parents.decode().replace("parent ", "").split())


def _tree(content: bytes, size: int) -> Mapping[bytes, tuple[bytes, str]]:
    """Return mode and object of each name in a tree, whose objects' names have so many bytes; raises like `_match`."""
    found, at = {}, 0
    while at < len(content):
        entry = _match(_ENTRY, content, at)
        at = entry.end() + size
        found[entry[2]] = (entry[1], content[entry.end() : at].hex())
    if at > len(content):
        raise TooFar
    return found
