"""The layer of an undo: what lies over the root when all is restored, made in an empty directory.

Rule: it is as an overlay would have it but for marks of deleted names, made name by name relative to open directories,
through no link. A directory that is not of the pack is as the root has it. Modes come last, for they may forbid what
comes before.
"""

import hashlib
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from workers.changes.effects import NodeState
from workers.commit.operations import OpenParents
from workers.commit.staging import make_special
from workers.restore.pack import PackEntry
from workers.restore.restore_plan import RestoreStep
from workers.tree.attributes import attributes_of, names_others, set_attributes, without_lists
from workers.tree.root import DIRECTORY, HANDLE, Root, closing, open_beneath, parent_of
from workers.treediff.snapshot import BITS, CHUNK, Node, plain_node
from workers.wire.pack_format import Broken

_CREATE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC

Content = Callable[[PackEntry], Iterator[bytes]]
"""Reads what a kept file held."""


class RestoredLayer:
    """One layer, in an empty directory whose descriptor stays the caller's."""

    def __init__(self, fd: int, root: Root, content: Content) -> None:
        self.made: set[str] = set()
        """Directories that neither the root nor the pack has."""
        self.gone: dict[str, set[str]] = {}
        """Directory -> names in it that shall not be there."""
        self.files: dict[str, Node] = {}
        """Small files without attributes, as a look at them finds them."""
        self._fd = fd
        self._parents = OpenParents(fd)
        self._root = root
        self._content = content
        self._directories: dict[str, tuple[int, Mapping[str, bytes]]] = {}
        self._covered: set[str] = set()
        """Names that are no directories here, and with them what the root has beneath."""

    def build(self, steps: Iterable[RestoreStep]) -> None:
        """Make everything. The process's umask is 0.

        Raises:
            Broken: a content is not what the pack says it is.
            OSError: the system refuses something.
        """
        top = self._as_root_has("")
        with self._parents:
            for step in steps:
                if step.entry.path == ".":
                    before = step.entry.before
                    if step.does == "restore" and before is not None:
                        top = before.mode, step.entry.attributes
                elif step.does == "stay":
                    self._directory(step.entry.path)
                elif step.does != "leave":
                    self._name(step)
        for path, (mode, attributes) in reversed(self._directories.items()):
            self._finish_directory(path, mode, attributes)
        self._finish_directory(".", *top)

    def _name(self, step: RestoreStep) -> None:
        entry, before, name = step.entry, step.entry.before, step.entry.path.rpartition("/")[2]
        if before is not None and before.kind == "dir":
            os.mkdir(name, stat.S_IRWXU, dir_fd=self._parent(entry))
            attributes, mode = _settable(entry, before)
            self._directories[entry.path] = mode, attributes
            return
        if before is None:
            if entry.parent not in self._covered and step.now is not None:
                self._directory(entry.parent)
                self.gone.setdefault(entry.parent, set()).add(name)
        elif before.kind == "file":
            self._file(self._parent(entry), name, step, before)
        else:
            make_special(self._parent(entry), name, before)
        self._covered.add(entry.path)

    def _file(self, parent: int, name: str, step: RestoreStep, before: NodeState) -> None:
        chunks = self._content(step.entry) if step.does == "restore" else self._present(step.entry.path)
        size, digest = 0, hashlib.sha256()
        with closing(os.open(name, _CREATE, 0o600, dir_fd=parent)) as file:
            for chunk in chunks:
                rest = memoryview(chunk)
                while rest:
                    rest = rest[os.write(file, rest) :]
                size += len(chunk)
                digest.update(chunk)
            if size != before.size or before.digest not in (b"", digest.digest()):
                raise Broken(f"{step.entry.path[:200]!r}: its content is another one")
            set_attributes(file, *_settable(step.entry, before))
            os.utime(file, ns=(before.mtime_ns, before.mtime_ns))
            if step.does == "restore" and step.entry.content is not None and not os.listxattr(file):
                self.files[step.entry.path] = plain_node(os.fstat(file), digest.digest(), step.entry.content)

    def _present(self, path: str) -> Iterator[bytes]:
        """Read what a file of the root holds now."""
        with closing(open_beneath(self._root.fd, path, os.O_RDONLY, links=False)) as file:
            while chunk := os.read(file, CHUNK):
                yield chunk

    def _parent(self, entry: PackEntry) -> int:
        """Return a descriptor of the directory that a name is in, until the next one; it is made if need be."""
        self._directory(entry.parent)
        return self._parents.of(entry.parent)

    def _directory(self, path: str) -> None:
        """Let the layer have a directory as the root has it, or a new one."""
        if not path or path in self._directories:
            return
        self._directory(path.rpartition("/")[0])
        try:
            self._directories[path] = self._as_root_has(path)
        except FileNotFoundError:
            self._directories[path] = 0o777 & ~self._root.umask, {}
            self.made.add(path)
        with parent_of(self._fd, path) as (parent, name):
            os.mkdir(name, stat.S_IRWXU, dir_fd=parent)

    def _as_root_has(self, path: str) -> tuple[int, Mapping[str, bytes]]:
        """Return mode and attributes of a directory of the root; none where it may not be read."""
        with closing(open_beneath(self._root.fd, path or ".", HANDLE, links=False)) as handle:
            mode = os.fstat(handle).st_mode & BITS
            try:
                with closing(os.open(".", DIRECTORY, dir_fd=handle)) as directory:
                    return mode, attributes_of(directory)
            except PermissionError:
                return mode, {}

    def _finish_directory(self, path: str, mode: int, attributes: Mapping[str, bytes]) -> None:
        with closing(open_beneath(self._fd, path, DIRECTORY, links=False)) as directory:
            set_attributes(directory, attributes, mode)


def _settable(entry: PackEntry, before: NodeState) -> tuple[Mapping[str, bytes], int]:
    """Return the attributes and the mode that a name is given, without an access list that cannot be."""
    others = names_others(entry.attributes)
    return without_lists(entry.attributes, before.mode) if others else (entry.attributes, before.mode)
