"""Paths that configurations of repositories beneath a root name: of hooks, included files, filters, other commands.

Rule: nothing is run, no link is followed, and only what lies beneath the root is read. Git knows too many keys that
name a program to list them: every word of a value counts that could be a path, but for those of keys which are known
to name none. Source: git-config(1), gitrepository-layout(5).
"""

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import Final

from workers.tree.obeyed_names import folded
from workers.tree.root import PATH_LIMIT, closing, open_beneath

REASON: Final = "git runs or obeys it, because the configuration of its repository names it"

_MOST: Final = 2**18
"""Bytes of a configuration that are read."""
_PLACES: Final = 2**13
"""What one repository may name; where it names more, everything beneath it counts as named."""

_KEYS: Final = (
    "url pushurl fetch push merge remote pushremote insteadof pushinsteadof worktree excludesfile ignorerevsfile "
    "template name email signingkey"
)
_NO_PROGRAM: Final = frozenset(_KEYS.split())
_WITHOUT_SLASH: Final = frozenset({"hookspath", "path", "fsmonitor", "attributesfile", "templatedir"})
"""Keys whose value is a path, also where it has neither a slash nor a dot."""

_SECTION: Final = r"\s*\[\s*([\w.-]++)[^\]\n]*+\]"
_VALUE: Final = r"\s*([\w-]+)\s*=\s*(.*)"
_WORD: Final = r"""[^\s"'`;&|()<>$!=]+"""
_COMMENT: Final = "[#;]"
_GITDIR: Final = rb"gitdir:\s*([^\n]+)"
"""Compiled when a configuration is read: most workers never read one, and all would compile them for 0.3 ms."""

Place = tuple[str, ...]


class GitConfigs:
    """The configurations beneath one root, each read once; made anew for each call."""

    def __init__(self, root_fd: int) -> None:
        self._root = root_fd
        self._named: dict[Place, frozenset[Place]] = {}

    def names(self, parts: Sequence[str]) -> bool:
        """Say whether a repository that a path lies in names it, or a directory on its way."""
        named = self._of(tuple(parts[:-1]))
        if not named:
            return False
        seen = tuple(folded(part) for part in parts)
        return any(seen[:length] in named for length in range(len(seen) + 1))

    def _of(self, directory: Place) -> frozenset[Place]:
        """Return what the repositories that a directory lies in name."""
        unread = []
        while directory not in self._named:
            unread.append(directory)
            if not directory:
                break
            directory = directory[:-1]
        named = self._named.get(directory, frozenset())
        for each in reversed(unread):
            found = list(islice(self._read(each), _PLACES))
            named |= frozenset(found if len(found) < _PLACES else [()])
            self._named[each] = named
        return named

    def _read(self, directory: Place) -> Iterator[Place]:
        repository: Place | None = (*directory, ".git")
        if data := self._content((*directory, ".git")):  # a file that says where it is, as of a submodule
            found = re.match(_GITDIR, data)
            repository = _joined(directory, os.fsdecode(found[1])) if found else None
        for name in ("config", "config.worktree"):
            if repository is None:
                return
            for section, key, value in _values(self._content((*repository, name))):
                base = repository if section.startswith("include") else directory
                if key not in _NO_PROGRAM:
                    yield from _paths(base, value, bare=key in _WITHOUT_SLASH)

    def _content(self, parts: Place) -> bytes:
        with (
            suppress(OSError),
            closing(open_beneath(self._root, "/".join(parts), os.O_RDONLY | os.O_NONBLOCK, links=False)) as file,
        ):
            return os.read(file, _MOST)
        return b""


def _values(data: bytes) -> Iterator[tuple[str, str, str]]:
    """Yield section, key and value, in lower case but for the value."""
    section = ""
    for line in data.decode("utf-8", "surrogateescape").replace("\\\r\n", "").replace("\\\n", "").splitlines():
        if header := re.match(_SECTION, line):
            section, line = header[1].lower(), line[header.end() :]  # noqa: PLW2901 - a value may follow on the line
        if value := re.match(_VALUE, line):
            yield section, value[1].lower(), value[2]


def _paths(base: Place, value: str, *, bare: bool) -> Iterator[Place]:
    """Yield what of a value could be a path: from the base, or, of an absolute one, whatever it ends in."""
    whole = {text.strip().strip('"') for text in (value, re.split(_COMMENT, value)[0])}
    for word in whole if bare else whole | {*re.findall(_WORD, value)}:
        if len(word) > PATH_LIMIT:
            continue
        if word.startswith(("/", "~")):
            ends, start = [folded(part) for part in word.split("/")[1:] if part], tuple(map(folded, base))
            yield from ((*start, *ends[at:]) for at in range(len(ends)))
        elif (bare or "/" in word or "." in word[1:]) and (place := _joined(base, word)):
            yield tuple(map(folded, place))


def _joined(base: Place, path: str) -> Place | None:
    """Return a path from a directory, resolved lexically; None where it leads out, or to nothing but the directory."""
    parts = list(base)
    for part in path.strip().split("/"):
        if part == ".." and not parts:
            return None
        if part == "..":
            parts.pop()
        elif part not in {"", "."}:
            parts.append(part)
    return tuple(parts) if parts and tuple(parts) != base[: len(parts)] else None
