"""The layer that lies over the root when all is restored, as an overlay would have it.

Rule: it is made in a directory that belongs to this process alone, name by name relative to open directories, through
no link. A directory that is not of the pack is as the root has it. Modes come last, for they may forbid what comes
before.
"""

import hashlib
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from workers.changes.effects import NodeState
from workers.restore.pack import PackEntry
from workers.restore.restore_plan import RestoreStep
from workers.tree.root import Root, closing, open_beneath
from workers.treediff.snapshot import BITS, CHUNK, attributes_of
from workers.wire.pack_format import Broken

_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_CREATE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC

Content = Callable[[PackEntry], Iterator[bytes]]
"""Reads what a kept file held."""


class RestoredLayer:
    """One layer, in an empty directory whose descriptor stays the caller's."""

    def __init__(self, fd: int, root: Root, content: Content) -> None:
        self.made: set[str] = set()
        """Directories that neither the root nor the pack has."""
        self._fd = fd
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
        entry, before = step.entry, step.entry.before
        name = entry.path.rpartition("/")[2]
        if before is None:
            if entry.parent not in self._covered and step.now is not None:
                with self._parent(entry) as parent:
                    os.mknod(name, stat.S_IFCHR, 0, dir_fd=parent)
            self._covered.add(entry.path)
            return
        with self._parent(entry) as parent:
            if before.kind == "dir":
                os.mkdir(name, stat.S_IRWXU, dir_fd=parent)
                self._directories[entry.path] = before.mode, entry.attributes
                return
            self._covered.add(entry.path)
            if before.kind == "file":
                self._file(parent, name, step, before)
                return
            if before.kind == "link":
                os.symlink(os.fsdecode(before.raw_target or before.target), name, dir_fd=parent)
            else:
                os.mknod(name, stat.S_IFIFO | before.mode, dir_fd=parent)
            os.utime(name, ns=(before.mtime_ns, before.mtime_ns), dir_fd=parent, follow_symlinks=False)

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
            _give(file, step.entry.attributes, before.mode)
            os.utime(file, ns=(before.mtime_ns, before.mtime_ns))

    def _present(self, path: str) -> Iterator[bytes]:
        """Read what a file of the root holds now."""
        with closing(open_beneath(self._root.fd, path, os.O_RDONLY, links=False)) as file:
            while chunk := os.read(file, CHUNK):
                yield chunk

    @contextmanager
    def _parent(self, entry: PackEntry) -> Iterator[int]:
        """Open the directory that a name is in, for the body; it is made if need be."""
        self._directory(entry.parent)
        with closing(open_beneath(self._fd, entry.parent or ".", _DIRECTORY, links=False)) as parent:
            yield parent

    def _directory(self, path: str) -> None:
        """Let the layer have a directory as the root has it, or a new one."""
        if not path or path in self._directories:
            return
        above, _, name = path.rpartition("/")
        self._directory(above)
        try:
            self._directories[path] = self._as_root_has(path)
        except FileNotFoundError:
            self._directories[path] = 0o777 & ~self._root.umask, {}
            self.made.add(path)
        with closing(open_beneath(self._fd, above or ".", _DIRECTORY, links=False)) as parent:
            os.mkdir(name, stat.S_IRWXU, dir_fd=parent)

    def _as_root_has(self, path: str) -> tuple[int, Mapping[str, bytes]]:
        """Return mode and attributes of a directory of the root; none where it may not be read."""
        with closing(open_beneath(self._root.fd, path or ".", os.O_PATH | os.O_DIRECTORY, links=False)) as handle:
            mode = os.fstat(handle).st_mode & BITS
            try:
                with closing(os.open(".", _DIRECTORY, dir_fd=handle)) as directory:
                    return mode, attributes_of(directory)
            except PermissionError:
                return mode, {}

    def _finish_directory(self, path: str, mode: int, attributes: Mapping[str, bytes]) -> None:
        with closing(open_beneath(self._fd, path, _DIRECTORY, links=False)) as directory:
            _give(directory, attributes, mode)


def _give(file: int, attributes: Mapping[str, bytes], mode: int) -> None:
    """Set attributes and then the mode, because a list of access changes it."""
    for name, value in attributes.items():
        os.setxattr(file, name, value)
    os.fchmod(file, mode)
