"""The tool list_files.

Rule: the tree is walked once, in sorted order, with the pattern's states; directories that cannot match are
not opened. Links are neither followed nor listed. One descriptor is open at a time: no depth exhausts them.
"""

from collections import Counter
from operator import itemgetter
from typing import Annotated, Final

from msgspec import Meta

from workers.errors import ToolError
from workers.files.entries import MOST, DirEntry, entries_of
from workers.tool import Args, Result, ResultWithNote, ToolContext, tool
from workers.tree.glob import SEPARATOR, Pattern, States
from workers.tree.root import PATH_LIMIT, Root, shown

FILES_LIMIT: Final = 2000
"""Paths that one answer holds."""


class ListFilesArgs(Args, frozen=True):
    """The arguments of list_files."""

    pattern: Annotated[
        str, Meta(description="Glob relative to the root, such as **/*.md or src/*.{py,toml}; ** is any depth.")
    ]


@tool(ListFilesArgs, effect=False, kind="search", subject="pattern", profiles=("vault", "code"))
def list_files(args: ListFilesArgs, context: ToolContext) -> Result:
    """List the regular files that match a glob pattern, as sorted paths relative to the root.

    `*`, `?` and `[...]` stay within one name, `**` is any depth, `{a,b}` is either. Hidden names match only
    where the pattern's component starts with a dot. Symbolic links are left out. The first 2000 are returned.
    """
    walk = _Walk(context.root, Pattern(args.pattern))
    found = walk.run()
    note = walk.note()
    if not found and not note:
        note = f"no file matches {shown(args.pattern)}"
    return ResultWithNote(list(found), note) if note else list(found)


class _Walk:
    def __init__(self, root: Root, pattern: Pattern) -> None:
        self._root = root
        self._pattern = pattern
        self._looked_at = 0
        self._remarks: Counter[str] = Counter()

    def run(self) -> list[str]:
        found: list[str] = []
        left: list[tuple[str, States | None]] = [("", self._pattern.start)]
        while left:
            path, states = left.pop()
            if states is not None:
                left.extend(self._below(path, states))
            elif len(found) == FILES_LIMIT:
                self._remarks[f"only the first {FILES_LIMIT} files are listed; use a narrower pattern"] = 1
                break
            else:
                found.append(path)
        return found

    def note(self) -> str:
        return "; ".join(text.format(count=count) for text, count in self._remarks.items())

    def _below(self, path: str, states: States) -> list[tuple[str, States | None]]:
        """Return what is to do in the directory `path`, the last first; a file has no states."""
        entries = self._entries(path)
        before = f"{path}/".replace("/", SEPARATOR) if path else ""
        matching = self._pattern.select([before + name for name, kind in entries if kind == "file"])
        left: list[tuple[str, States | None]] = [(key.replace(SEPARATOR, "/"), None) for key in matching]
        for name, kind in entries:
            if kind == "dir" and (after := self._pattern.advance(states, name)):
                left.append((f"{path}/{name}" if path else name, after))
        return sorted(left, key=itemgetter(0), reverse=True)

    def _entries(self, path: str) -> list[DirEntry]:
        if len(path.encode()) > PATH_LIMIT:
            self._remarks["{count} directories are too deep"] += 1
            return []
        if self._looked_at >= MOST:
            self._note_end()
            return []
        try:
            with self._root.listing(path or ".", links=False) as directory:
                named, unspeakable, cut = entries_of(directory, MOST - self._looked_at)
        except ToolError:
            self._remarks["{count} directories could not be read"] += 1
            return []
        self._looked_at += len(named) + unspeakable
        if cut:
            self._note_end()
        if unspeakable:
            self._remarks["{count} names that are not UTF-8 are left out"] += unspeakable
        return named

    def _note_end(self) -> None:
        self._remarks[f"the search ended after {MOST} names; use a narrower pattern"] = 1
