"""The upper layer of what a command left in its copy: what is another is moved there, what is gone is listed.

Rule: a name that is the one that was copied (inode and time of change, which no program sets) is as it was. What was
left out of the copy is not touched through it: a command that removed or made such a name has run on something that is
not the root, and nothing of it is kept.
"""

import os
import stat
import time
from collections.abc import Iterator
from typing import Final

from workers.errors import CannotRehearse, TooMuch
from workers.shell.copies.tree_copy import CopiedName, TreeCopy
from workers.tree.attributes import attributes_of, set_attributes
from workers.tree.root import DIRECTORY, PATH_LIMIT, closing, shown
from workers.treediff.comparison import NAMES

_OPEN: Final = stat.S_IRWXU
_NONE: Final[dict[str, CopiedName]] = {}


class CopyLayer:
    """Takes what changed out of a copy, which is of no use afterwards."""

    def __init__(self, copy: TreeCopy, copied: int, upper: int, until: float) -> None:
        """Begin, once everything of the command is dead.

        Args:
            copy: of the root.
            copied: a descriptor of its directory.
            upper: that of an empty one beside it.
            until: when to give up (time.monotonic).
        """
        self.gone: dict[str, set[str]] = {}
        """Directory -> names in it that are gone."""
        self.needed: set[str] = set()
        """Names of the root that the changes stand on: those that were changed, and the directories of new ones."""
        self._copy = copy
        self._copied = copied
        self._upper = upper
        self._until = until
        self._modes: dict[str, int] = {}
        """Of the directories in the layer, what they have at the end."""
        self._as_left: dict[str, int] = {}
        """Of directories of the copy that were closed, the mode that the command left."""
        self._seen = 0
        self._holds = {above for path in copy.left_out for above in _above(path)}
        """Directories in which something was left out, the root among them."""

    def build(self) -> None:
        """Build it.

        Raises:
            CannotRehearse: something of it cannot be told, or was left out of the copy.
            OSError: a name cannot be moved.
        """
        mode = stat.S_IMODE(os.fstat(self._copied).st_mode)
        if mode & _OPEN != _OPEN:
            self._as_left[""] = mode
            os.fchmod(self._copied, mode | _OPEN)
        self._make_alike("")
        pending = [""]
        while pending:
            path = pending.pop()
            if len(os.fsencode(path)) > PATH_LIMIT:
                raise TooMuch("the command left a tree behind that is deeper than a path can be long")
            with closing(self._opened(path)) as directory:
                pending += self._compare(path, directory)
        for path, mode in reversed(self._modes.items()):
            os.chmod(path or ".", mode, dir_fd=self._upper)

    def _compare(self, path: str, directory: int) -> list[str]:
        """Take what is another in one directory; return those in it that are to be looked into."""
        known = self._copy.names.get(path, _NONE)
        there, below = set(), []
        with os.scandir(directory) as entries:
            found = [(each.name, each.stat(follow_symlinks=False)) for each in entries]
        self._seen += len(found)
        if self._seen > 2 * NAMES or time.monotonic() > self._until:
            raise TooMuch("the command left more names behind than can be compared")
        for name, status in found:
            inner = f"{path}/{name}" if path else name
            there.add(name)
            was, now = known.get(name), CopiedName.of(status)
            if not self._is_same(inner, was, now):
                self._take(inner, directory, name, now.mode)
                self.needed.add(path if was is None else inner)
            elif now.kind == stat.S_IFDIR:
                below.append(inner)
        for name in known.keys() - there:
            inner = f"{path}/{name}" if path else name
            self._is_same(inner, known[name], None)
            self._make_alike(path)
            self.gone.setdefault(path, set()).add(name)
        return below

    def _is_same(self, path: str, was: CopiedName | None, now: CopiedName | None) -> bool:
        """Say whether a name need not be taken: it is as it was, or a directory that is looked into.

        Raises:
            CannotRehearse: it is another, and something of it was left out of the copy.
        """
        directories = was is not None and now is not None and was.kind == now.kind == stat.S_IFDIR
        if was is not None and now is not None and directories:
            if was.mode != now.mode:
                self._make_alike(path)
            if was.inode == now.inode:
                return True
        if was != now and (path in self._holds or path in self._copy.left_out):
            raise _left_out(path)
        return directories or was == now

    def _take(self, path: str, directory: int, name: str, mode: int) -> None:
        with closing(self._place(path.rpartition("/")[0])) as place:
            closed = stat.S_ISDIR(mode) and mode & _OPEN != _OPEN
            if closed:  # it could not be told that it lies elsewhere
                os.chmod(name, stat.S_IMODE(mode) | _OPEN, dir_fd=directory)
            os.rename(name, name, src_dir_fd=directory, dst_dir_fd=place)
            if closed:
                os.chmod(name, stat.S_IMODE(mode), dir_fd=place)

    def _place(self, path: str) -> int:
        """Return a descriptor of the same directory in the layer, which the caller closes; it is made if need be."""
        self._make_alike(path)
        return os.open(path or ".", DIRECTORY, dir_fd=self._upper)

    def _make_alike(self, path: str) -> None:
        """Let the layer have a directory as it is in the copy by now."""
        if path in self._modes:
            return
        if path:
            self._make_alike(path.rpartition("/")[0])
            os.mkdir(path, _OPEN, dir_fd=self._upper)
        with (
            closing(os.open(path or ".", DIRECTORY, dir_fd=self._upper)) as made,
            closing(self._opened(path)) as copied,
        ):
            set_attributes(made, attributes_of(copied), _OPEN)
            self._modes[path] = self._as_left.get(path, stat.S_IMODE(os.fstat(copied).st_mode))

    def _opened(self, path: str) -> int:
        """Open a directory of the copy, and let us in for good where its mode forbids it."""
        mode = stat.S_IMODE(os.lstat(path or ".", dir_fd=self._copied).st_mode)
        if mode & _OPEN != _OPEN:
            self._as_left.setdefault(path, mode)
            os.chmod(path or ".", mode | _OPEN, dir_fd=self._copied)
        return os.open(path or ".", DIRECTORY, dir_fd=self._copied)


def _above(path: str) -> Iterator[str]:
    while path := path.rpartition("/")[0]:
        yield path


def _left_out(path: str) -> CannotRehearse:
    return CannotRehearse(
        f'it made, removed or replaced "{shown(path)}", which is not in the copy of the root, or not all of it: raise '
        "copy_mb of [shell] so that all of the root is copied"
    )
