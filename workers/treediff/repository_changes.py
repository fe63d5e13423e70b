"""Changes in git's directories by what they come to: references moved, HEAD, the index.

Rule: nothing is run, and only bytes of references, of indexes, and of loose objects that have the names of their
content count, never a message or a log. What is in a pack is not looked for. Source: gitrepository-layout(5),
gitformat-pack(5).
"""

import hashlib
import os
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import Final, NamedTuple

from workers.changes.effects import GIT, GitChange
from workers.tree.git_index import entries_of
from workers.tree.root import closing, open_beneath
from workers.treediff.comparison import Difference
from workers.treediff.effects_of import Content
from workers.treediff.snapshot import Node, spoken

_INSIDE: Final = re.compile(r"((?:.*/)?\.git)/(HEAD|index|packed-refs|refs/.+)")
_NAME: Final = re.compile(rb"([0-9a-f]{40}|[0-9a-f]{64})\s*")
_SYMBOLIC: Final = re.compile(rb"ref: *(\S+)\s*")
_PACKED: Final = re.compile(rb"^([0-9a-f]{40}|[0-9a-f]{64}) (\S+)$", re.MULTILINE)
_PARENT: Final = re.compile(rb"parent ([0-9a-f]+)")
_BRANCHES: Final = "refs/heads/"
_SMALL: Final = 2**12
_LARGEST: Final = 2**24
"""Bytes of a reference, and of a list of them or an index."""
_COUNTED: Final = 2**20
"""The same of an index whose differences are counted: some 10,000 files."""
_OBJECT: Final = 2**22
_ALL: Final = 2**24
_LEAST: Final = 2**12
"""Bytes of one object as it is stored, and of all that are read; what each counts at least."""


class _TooFar(Exception):
    """It takes more than a look."""


class _Commit(NamedTuple):
    tree: str
    parents: list[str]


def git_changes(root: int, differences: Sequence[Difference], content: Content) -> tuple[GitChange, ...]:
    """Return what differences come to in each repository, a few of them.

    Args:
        root: a descriptor of the root.
        differences: from an upper layer.
        content: reads files of the upper layer.
    """
    inside: dict[str, set[str]] = {}
    for each in differences:
        if found := _INSIDE.fullmatch(each.path):
            inside.setdefault(found[1], set()).add(found[2])
    after = {each.path: each.after for each in differences} if inside else {}
    repositories = (_GitDirectory(root, path, after, content).changes(names) for path, names in sorted(inside.items()))
    return tuple(islice((change for found in repositories for change in found), GIT))


class _GitDirectory:
    """One, before and after."""

    def __init__(self, root: int, path: str, after: Mapping[str, Node | None], content: Content) -> None:
        self._root = root
        self._path = path
        self._after = after
        self._content = content
        self._left = _ALL

    def changes(self, names: set[str]) -> Iterator[GitChange]:
        """Yield what changes, the branch that is checked out first; `names` are those of the files that do."""
        where = spoken(self._path.rpartition("/")[0])[0]
        packed = [self._packed(now=now) for now in (False, True)] if "packed-refs" in names else [self._packed()] * 2
        refs = {name for name in names if name.startswith("refs/")}
        refs |= {name for name, _value in packed[0].items() ^ packed[1].items()}
        heads = [self._head(now=now) for now in (False, True)]
        commits = False
        for ref in sorted(refs, key=lambda each: (each != heads[1], each)):
            old, new = (self._value(ref, packed[now], now=bool(now)) for now in (0, 1))
            if old != new and None not in (old, new):
                begun = heads[0] if not old and ref == heads[1] else ""
                base = self._value(begun, packed[0], now=False) if begun.startswith("refs/") else begun
                found = self._moved(ref, old or "", new or "", where, base=base or "", is_head=ref == heads[1])
                commits |= found.kind != "moved"
                yield found
            elif old != new:
                yield GitChange("odd", spoken(ref)[0], repository=where)
        if heads[0] != heads[1]:
            detached = all(each and not each.startswith("refs/") for each in heads)
            if detached:
                found = self._moved("", heads[0], heads[1], where, is_head=True)
                commits |= found.kind != "moved"
                yield found
            else:
                yield GitChange("head", spoken(heads[1])[0], repository=where)
        if "index" in names and not commits:
            yield from self._index(where)

    def _moved(self, ref: str, old: str, new: str, where: str, *, is_head: bool, base: str = "") -> GitChange:
        """Return what became of a reference; a new one begins at `base`."""
        name, old = spoken(ref)[0], old or (base if base != new else "")
        commit = self._commit(new) if new and is_head else None
        if commit is None or f"{self._path}/objects/{new[:2]}/{new[2:]}" not in self._after:
            return GitChange("moved", name, old, new, repository=where)
        before = self._commit(old)
        files = None
        with suppress(_TooFar):
            if before is not None or not old:
                files = self._files(before.tree if before is not None else "", commit.tree)
        if commit.parents[:1] == ([old] if old else []):
            return GitChange("merge" if len(commit.parents) > 1 else "commit", name, old, new, files, where)
        amended = before is not None and before.parents == commit.parents
        return GitChange("amended" if amended else "moved", name, old, new, files if amended else None, where)

    def _index(self, where: str) -> Iterator[GitChange]:
        before, after = (self._read("index", _COUNTED, now=now) for now in (False, True))
        names = [entries_of(data) if data else {} for data in (before, after)] if after else [None]
        if None in names:
            yield GitChange("index", "", repository=where)
        elif differ := {name for name, _entry in (names[0] or {}).items() ^ (names[-1] or {}).items()}:
            yield GitChange("index", "", files=len(differ), repository=where)

    # --- references -----------------------------------------------------------------------------------------------

    def _head(self, *, now: bool) -> str:
        data = self._read("HEAD", _SMALL, now=now)
        found = _SYMBOLIC.fullmatch(data) or _NAME.fullmatch(data)
        return os.fsdecode(found[1]) if found else ""

    def _packed(self, *, now: bool = False) -> dict[str, str]:
        data = self._read("packed-refs", _LARGEST, now=now)
        return {os.fsdecode(name): value.decode() for value, name in _PACKED.findall(data)}

    def _value(self, ref: str, packed: Mapping[str, str], *, now: bool) -> str | None:
        """Return the object that a reference names, "" where it is not there; None where it names none."""
        data = self._read(ref, _SMALL, now=now)
        if not data:
            return packed.get(ref, "")
        found = _NAME.fullmatch(data)
        return found[1].decode() if found else None

    def _read(self, name: str, most: int, *, now: bool) -> bytes:
        """Return a file, as it is or as it will be; nothing where there is none, or only a larger one."""
        path = f"{self._path}/{name}"
        if now and path in self._after:
            node = self._after[path]
            fits = node is not None and node.state.kind == "file" and node.state.size <= most
            return (self._content(path, node, most) or b"") if node is not None and fits else b""
        with (
            suppress(OSError),
            closing(open_beneath(self._root, path, os.O_RDONLY | os.O_NONBLOCK, links=False)) as file,
            open(file, "rb", closefd=False) as opened,
        ):
            data = opened.read(most + 1)
            return data if len(data) <= most else b""
        return b""

    # --- objects --------------------------------------------------------------------------------------------------

    def _object(self, name: str, kind: bytes) -> bytes:
        """Return the content of a loose object.

        Raises:
            _TooFar: there is none of that kind, or enough have been read.
        """
        unpacker = zlib.decompressobj()
        try:
            data = unpacker.decompress(self._read(f"objects/{name[:2]}/{name[2:]}", _OBJECT, now=True), self._left)
        except zlib.error as error:
            raise _TooFar from error
        self._left -= len(data) + _LEAST
        if self._left <= 0:
            raise _TooFar
        make = hashlib.sha256 if len(name) > 40 else hashlib.sha1  # noqa: PLR2004 - digits of a SHA-1
        head, _, content = data.partition(b"\0")
        if not head.startswith(kind + b" ") or make(data, usedforsecurity=False).hexdigest() != name:
            raise _TooFar
        return content

    def _commit(self, name: str) -> _Commit | None:
        try:
            lines = self._object(name, b"commit").partition(b"\n\n")[0].split(b"\n")
        except _TooFar:
            return None
        tree = lines[0].removeprefix(b"tree ").decode("ascii", "replace")
        return _Commit(tree, [found[1].decode() for line in lines if (found := _PARENT.fullmatch(line))])

    def _tree(self, name: str) -> Mapping[bytes, tuple[bytes, str]]:
        """Return mode and object of each name in a tree, none for no tree; raises like `_object`."""
        content, found, at = self._object(name, b"tree") if name else b"", {}, 0
        while at < len(content):
            head, _, _rest = content[at : at + 4200].partition(b"\0")
            mode, _, entry = head.partition(b" ")
            begin = at + len(head) + 1
            at = begin + len(name) // 2
            found[entry] = (mode, content[begin:at].hex())
        return found

    def _files(self, old: str, new: str) -> int:
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
