"""Git's ignoring beneath a root: by the `.gitignore` files and `info/exclude` that are there, and by its index.

Rule: nothing is run, no link is followed, and only what lies beneath the root is read, as it is before a command. What
git tracks is never ignored; where its index cannot be read, that may be all that is there. A path belongs to the
innermost repository around it; git's own directory to none. Where nothing is known, nothing is ignored.
"""

import os
from collections.abc import Container, Mapping
from contextlib import suppress
from typing import Final, NamedTuple

from workers.tree.git_index import INDEX, entries_of, may_name
from workers.tree.ignore_pattern import IgnorePattern, patterns_of
from workers.tree.obeyed_names import folded
from workers.tree.root import closing, open_beneath

_LARGEST: Final = 2**17
"""Bytes of one list of patterns; of a larger one nothing is taken."""
_GIT: Final = ".git"
_LOOKS: Final = 8
"""Names that are looked for in an index as it is; for more of them it is read once, which takes as long."""

Place = tuple[str, ...]


class _Directory(NamedTuple):
    """A directory that is no repository of its own, or the top of one."""

    top: int
    """How deep the top of its repository lies; that of the root where it is in none."""
    ignored: bool
    lists: tuple[tuple[int, list[IgnorePattern]], ...]
    """What counts in it, the nearest first: how deep its directory lies, and its patterns."""


class GitIgnore:
    """The lists beneath one root, each read once; made anew for each call."""

    def __init__(self, root_fd: int) -> None:
        self._root = root_fd
        self._directories: dict[Place, _Directory] = {}
        self._indexes: dict[Place, bytes] = {}
        self._tracked: dict[Place, Mapping[bytes, object] | None] = {}
        self._tops: dict[Place, bool] = {}
        self._looks = 0

    def ignores(self, path: str, *, is_directory: bool, was_there: bool) -> bool:
        """Say whether git ignores what is, or was, at a path.

        Args:
            path: relative to the root; bytes that are not UTF-8 are surrogates.
            is_directory: whether it is one.
            was_there: whether it was there before the command.
        """
        parts = tuple(path.split("/"))
        if _GIT in map(folded, parts):
            return False
        within = self._directory(parts[:-1])
        if not (within.ignored or _last_match(parts, within, is_directory=is_directory)):
            return False
        return is_directory or not self._is_tracked(parts, was_there=was_there)

    def tracks(self, path: str) -> bool:
        """Say whether any repository around what was at a path tracks it, or may."""
        parts = tuple(path.split("/"))
        tops = (depth for depth in range(len(parts)) if self._is_top(parts[:depth]))
        return any(self._names(parts, depth) is not False for depth in tops)

    def untracks(self, path: str, data: bytes, gone: Container[str] = ()) -> bool:
        """Say whether an index at `path` that becomes `data` no longer has what is there and not `gone`, or may not."""
        *top, directory, name = ("", *path.split("/"))
        top = top[1:]
        if (directory, name) != (_GIT, "index"):
            return False
        before, after = self._index(tuple(top)), entries_of(data)
        if before is None or after is None:
            return before is not after
        left = ((*top, *os.fsdecode(each).split("/")) for each in before.keys() - after.keys())
        return any(self._is_there(each) and "/".join(each) not in gone for each in left)

    def _is_top(self, place: Place) -> bool:
        """Say whether a directory is the top of a repository."""
        if place not in self._tops:
            self._tops[place] = self._is_there((*place, _GIT))
        return self._tops[place]

    def _directory(self, parts: Place) -> _Directory:
        known = len(parts)
        while known and parts[:known] not in self._directories:
            known -= 1
        if not known and () not in self._directories:
            self._directories[()] = _Directory(0, False, self._lists_of((), is_top=True))
        found = self._directories[parts[:known]]
        for depth in range(known + 1, len(parts) + 1):
            place = parts[:depth]
            if self._is_top(place):
                found = _Directory(depth, False, self._lists_of(place, is_top=True))
            else:
                ignored = found.ignored or _last_match(place, found, is_directory=True)
                found = _Directory(found.top, ignored, (*self._lists_of(place, is_top=False), *found.lists))
            self._directories[place] = found
        return found

    def _lists_of(self, place: Place, *, is_top: bool) -> tuple[tuple[int, list[IgnorePattern]], ...]:
        files = [(*place, ".gitignore")] + [(*place, _GIT, "info", "exclude")] * is_top
        lists = [patterns_of(self._content(each, _LARGEST)) for each in files]
        return tuple((len(place), each) for each in lists if each)

    def _is_tracked(self, parts: Place, *, was_there: bool) -> bool:
        """Say whether a repository around a path tracks it, or may."""
        within = parts[:-1]
        while True:
            top = within[: self._directory(within).top]
            named = self._names(parts, len(top))
            if was_there if named is None else named:
                return True
            if not top:
                return False
            within = top[:-1]

    def _names(self, parts: Place, depth: int) -> bool | None:
        """Say whether the index of the repository at a depth of a path names it; None where that is not known."""
        top, path = parts[:depth], os.fsencode("/".join(parts[depth:]))
        self._looks += 1
        if (self._looks < _LOOKS or self._index(top) is None) and not may_name(self._data(top), path):
            return False
        index = self._index(top)
        return None if index is None else path in index

    def _data(self, top: Place) -> bytes:
        if top not in self._indexes:
            self._indexes[top] = self._content((*top, _GIT, "index"), INDEX)
        return self._indexes[top]

    def _index(self, top: Place) -> Mapping[bytes, object] | None:
        """Return what a repository tracks; None where that is not known."""
        if top not in self._tracked:
            data = self._data(top)
            empty = not data and self._is_there((*top, _GIT, "HEAD")) and not self._is_there((*top, _GIT, "index"))
            self._tracked[top] = {} if empty else entries_of(data)
        return self._tracked[top]

    def _is_there(self, parts: Place) -> bool:
        """Say whether there is anything at a path, be it a link, which git may follow."""
        flags = os.O_PATH | os.O_NOFOLLOW
        with suppress(OSError), closing(open_beneath(self._root, "/".join(parts), flags, links=False)):
            return True
        return False

    def _content(self, parts: Place, most: int) -> bytes:
        """Return a file; nothing of one that is larger, or cannot be read."""
        with (
            suppress(OSError),
            closing(open_beneath(self._root, "/".join(parts), os.O_RDONLY | os.O_NONBLOCK, links=False)) as file,
            open(file, "rb", closefd=False) as content,
        ):
            data = content.read(most + 1)
            return data if len(data) <= most else b""
        return b""


def _last_match(parts: Place, within: _Directory, *, is_directory: bool) -> bool:
    """Say whether the last pattern that is about a path ignores it; the directories on its way are not."""
    name = os.fsencode(parts[-1])
    for depth, patterns in within.lists:
        path = os.fsencode("/".join(parts[depth:]))
        for each in patterns:
            about = name if each.by_name else path
            if (is_directory or not each.only_directories) and each.regex.match(about):
                return not each.negated
    return False
