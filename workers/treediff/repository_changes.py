"""Changes in git's directories by what they come to: references moved, HEAD, the index.

Rule: nothing is run, and only bytes of references, of indexes, and of loose objects that have the names of their
content count, never a message or a log. What other programs obey is told where it comes into history or the index, and
is not what lies in the work tree. Source: gitrepository-layout(5).
"""

import hashlib
import os
import posixpath
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from itertools import islice
from typing import Final

import msgspec

from workers.changes.effects import GIT, OBEYED, GitChange
from workers.tree.git_index import INDEX, entries_of
from workers.tree.obeyed_names import obeyed
from workers.tree.root import closing, open_beneath
from workers.treediff.comparison import Difference
from workers.treediff.content_diffs import Content
from workers.treediff.git_objects import Entry, GitObjects, TooFar
from workers.treediff.snapshot import Node, spoken

_INSIDE: Final = re.compile(r"((?:.*/)?\.git)/(HEAD|index|packed-refs|refs/.+)")
_NAME: Final = re.compile(rb"([0-9a-f]{40}|[0-9a-f]{64})\s*")
_SYMBOLIC: Final = re.compile(rb"ref: *(\S+)\s*")
_PACKED: Final = re.compile(rb"^([0-9a-f]{40}|[0-9a-f]{64}) (\S+)$", re.MULTILINE)
_SMALL: Final = 2**12
_LARGEST: Final = 2**24
"""Bytes of a reference, and of a list of them or a file that is compared with an object."""
_REPLACING: Final = "refs/replace/"
_PACKS: Final = 1000
"""Lists of packs that are looked through."""
_ELSEWHERE: Final = 0o160000
"""The mode of another repository's commit (gitformat-index(5))."""


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
        self._lists: list[int] | None = None
        self._open = ExitStack()
        self._indexes: dict[bool, Mapping[bytes, tuple[bytes, bytes]] | None] = {}
        self._objects = GitObjects(lambda name, most: self._read(name, most, now=True), self._pack_lists)

    def changes(self, names: set[str]) -> Iterator[GitChange]:
        """Yield what changes, the branch that is checked out first; `names` are those of the files that do."""
        with self._open:
            yield from self._all_changes(names)

    def _all_changes(self, names: set[str]) -> Iterator[GitChange]:
        where = spoken(self._path.rpartition("/")[0])[0]
        packed = [self._packed(now=now) for now in (False, True)] if "packed-refs" in names else [self._packed()] * 2
        refs = {name for name in names if name.startswith("refs/")}
        refs |= {name for name, _value in packed[0].items() ^ packed[1].items()}
        heads = [self._head(now=now) for now in (False, True)]
        head = self._value(heads[0], packed[0], now=False) if heads[0].startswith("refs/") else heads[0]
        known = {head or "", *packed[0].values()} - {""}
        commits = False
        for ref in sorted(refs, key=lambda each: (each != heads[1], each)):
            old, new = (self._value(ref, packed[now], now=bool(now)) for now in (0, 1))
            if old != new and None not in (old, new):
                begun = heads[0] if not old and ref == heads[1] else ""
                base = self._value(begun, packed[0], now=False) if begun.startswith("refs/") else begun
                found = self._moved(ref, old or "", new or "", where, base=base or "", is_head=ref == heads[1])
                commits |= found.kind != "moved"
                yield self._with_obeyed(found, known | {old or ""}, head or "")
            elif old != new:
                yield GitChange("odd", spoken(ref)[0], repository=where, unread=True)
        if heads[0] != heads[1]:
            detached = all(each and not each.startswith("refs/") for each in heads)
            if detached:
                found = self._moved("", heads[0], heads[1], where, is_head=True)
                commits |= found.kind != "moved"
                yield self._with_obeyed(found, known, head or "")
            else:
                found = GitChange("head", spoken(heads[1])[0], repository=where, unread=not heads[1])
                new = "" if heads[1].startswith("refs/") else heads[1]
                found = self._with_obeyed(found, known, head or "", new)
                new = self._known_commit(heads[1], packed)
                commit = self._objects.commit(new) if new else None
                yield msgspec.structs.replace(found, new=new, tree=commit.tree if commit is not None else "")
        if "packed-refs" in names and len(packed[1]) != self._count_packed():
            yield GitChange("odd", "packed-refs", repository=where, unread=True)
        if "index" in names:
            yield from (each for each in self._index(where) if not commits or each.obeyed or each.unread)

    def _known_commit(self, head: str, packed: Sequence[Mapping[str, str]]) -> str:
        """Return the commit that HEAD is at, where a reference named it before or it is a loose object of before."""
        if head.startswith("refs/"):
            was, now = (self._value(head, packed[at], now=bool(at)) for at in (0, 1))
            if not now or was == now or now in packed[0].values():
                return now if now and was in ("", now) else ""
            head = now if was == "" else ""
        is_new = f"{self._path}/objects/{head[:2]}/{head[2:]}" in self._after
        return head if head and not is_new and self._objects.commit(head) is not None else ""

    def _moved(self, ref: str, old: str, new: str, where: str, *, is_head: bool, base: str = "") -> GitChange:
        """Return what became of a reference; a new one begins at `base`."""
        name, old = spoken(ref)[0], old or (base if base != new else "")
        commit = self._objects.commit(new) if new and is_head else None
        if commit is None or f"{self._path}/objects/{new[:2]}/{new[2:]}" not in self._after:
            return GitChange("moved", name, old, new, repository=where)
        before = self._objects.commit(old)
        files = None
        with suppress(TooFar):
            if before is not None or not old:
                files = self._objects.files(before.tree if before is not None else "", commit.tree)
        if commit.parents[:1] == ([old] if old else []):
            return GitChange("merge" if len(commit.parents) > 1 else "commit", name, old, new, files, where)
        amended = before is not None and before.parents == commit.parents
        return GitChange("amended" if amended else "moved", name, old, new, files if amended else None, where)

    def _index(self, where: str) -> Iterator[GitChange]:
        before, after = (self._entries(now=now) for now in (False, True))
        new = dict(after.items() - (before or {}).items()) if after is not None else {}
        found = (Entry(os.fsdecode(name), int.from_bytes(mode), blob.hex()) for name, (mode, blob) in new.items())
        if before is None or after is None:
            yield GitChange("index", "", repository=where, obeyed=self._obeyed(found), unread=after is None)
        elif count := len(new.keys() | before.keys() - after.keys()):
            yield GitChange("index", "", files=count, repository=where, obeyed=self._obeyed(found))

    # --- what other programs obey ---------------------------------------------------------------------------------

    def _with_obeyed(self, change: GitChange, known: set[str], base: str, new: str = "") -> GitChange:
        """Return a change with the names that programs obey in what is new of it."""
        name = new or change.new
        if change.name.startswith(_REPLACING):
            return msgspec.structs.replace(change, obeyed=(change.name,))
        if not name or name in known:
            return change
        try:
            return msgspec.structs.replace(change, obeyed=self._obeyed(self._objects.added(name, known, base)))
        except (TooFar, OSError):
            return msgspec.structs.replace(change, unread=True)

    def _obeyed(self, entries: Iterable[Entry]) -> tuple[str, ...]:
        """Return the names of those that programs obey, and a person has neither in the work tree nor in the index."""
        found = (each.path for each in entries if _is_obeyed(each) and not self._is_there(each))
        return tuple(spoken(path)[0] for path in islice(found, OBEYED))

    def _is_there(self, entry: Entry) -> bool:
        before = self._entries(now=False) or {}
        mode, blob = before.get(os.fsencode(entry.path), (b"", b""))
        if (int.from_bytes(mode), blob.hex()) == (entry.mode, entry.name):
            return True
        data = self._read(f"../{entry.path}", _LARGEST, now=True)
        make = hashlib.sha256 if len(entry.name) > 40 else hashlib.sha1  # noqa: PLR2004 - digits of a SHA-1
        same = make(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest() == entry.name
        return same and stat.S_ISREG(entry.mode)

    def _entries(self, *, now: bool) -> Mapping[bytes, tuple[bytes, bytes]] | None:
        """Return what the index names; None where that is not known."""
        if now not in self._indexes:
            data = self._read("index", INDEX, now=now)
            self._indexes[now] = {} if not data and not self._is_held("index", now=now) else entries_of(data)
        return self._indexes[now]

    def _pack_lists(self) -> Sequence[int]:
        """Return descriptors of the lists of what packs hold, of those that were there before."""
        if self._lists is None:
            self._lists = []
            above = f"{self._path}/objects/pack"
            with (
                suppress(OSError),
                closing(open_beneath(self._root, above, os.O_RDONLY | os.O_DIRECTORY, links=False)) as directory,
            ):
                for name in sorted(each for each in os.listdir(directory) if each.endswith(".idx"))[:_PACKS]:
                    self._lists.append(open_beneath(self._root, f"{above}/{name}", os.O_RDONLY, links=False))
                    self._open.callback(os.close, self._lists[-1])
        return self._lists

    # --- references -----------------------------------------------------------------------------------------------

    def _head(self, *, now: bool) -> str:
        data = self._read("HEAD", _SMALL, now=now)
        found = _SYMBOLIC.fullmatch(data) or _NAME.fullmatch(data)
        return os.fsdecode(found[1]) if found else ""

    def _packed(self, *, now: bool = False) -> dict[str, str]:
        data = self._read("packed-refs", _LARGEST, now=now)
        return {os.fsdecode(name): value.decode() for value, name in _PACKED.findall(data)}

    def _count_packed(self) -> int:
        """Return how many lines of the list of references name one; -1 where it cannot be read."""
        data = self._read("packed-refs", _LARGEST, now=True)
        if not data and self._is_held("packed-refs", now=True):
            return -1
        return sum(line[:1] not in {b"#", b"^"} for line in data.splitlines())

    def _value(self, ref: str, packed: Mapping[str, str], *, now: bool) -> str | None:
        """Return the object that a reference names, "" where it is not there; None where it names none."""
        data = self._read(ref, _SMALL, now=now)
        if not data:
            return None if self._is_held(ref, now=now) else packed.get(ref, "")
        found = _NAME.fullmatch(data)
        return found[1].decode() if found else None

    def _is_held(self, name: str, *, now: bool) -> bool:
        """Say whether something is, or will be, there that is no directory and not empty."""
        path = f"{self._path}/{name}"
        if now and path in self._after:
            node = self._after[path]
            return node is not None and node.state.kind != "dir" and (node.state.kind != "file" or node.state.size > 0)
        with suppress(OSError), closing(open_beneath(self._root, path, os.O_PATH | os.O_NOFOLLOW, links=False)) as file:
            found = os.fstat(file)
            return not stat.S_ISDIR(found.st_mode) and (not stat.S_ISREG(found.st_mode) or found.st_size > 0)
        return False

    def _read(self, name: str, most: int, *, now: bool) -> bytes:
        """Return a file, as it is or as it will be; nothing where there is none, or only a larger one."""
        path = posixpath.normpath(f"{self._path}/{name}")
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


def _is_obeyed(entry: Entry) -> bool:
    """Say whether a file of a tree or an index is obeyed by its name, or is a commit of another repository."""
    return stat.S_IFMT(entry.mode) == _ELSEWHERE or obeyed(entry.path) is not None
