"""A copy of the root, as a command is rehearsed in: made once, and remembered name by name.

Rule: it is measured before anything is copied. Where it is too large, what git ignores is left out, and named; where it
is too large even then, nothing is run. Content is shared with the root's where the file system can (FICLONE,
ioctl_ficlone(2)). Left out besides: what cannot be read, sockets, devices, and what is mounted in the root.
"""

import errno
import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from typing import Final, NamedTuple

from workers.errors import CannotRehearse
from workers.tree.attributes import attributes_of
from workers.tree.git_ignore import GitIgnore
from workers.tree.root import DIRECTORY, closing, open_beneath
from workers.treediff.comparison import NAMES

_MEGABYTE: Final = 2**20
_CLONE: Final = 0x40049409
"""FICLONE of linux/fs.h."""
_CHUNK: Final = 2**20
_PAGE: Final = 4096
_BLOCK: Final = 512
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_MAKE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class CopiedName(NamedTuple):
    """A name of the copy, as it was when it had been made."""

    kind: int
    """S_IFMT of its mode."""
    mode: int
    inode: int
    changed_ns: int
    """st_ctime, which no program can set."""

    @classmethod
    def of(cls, status: os.stat_result) -> "CopiedName":
        """Return it from what lstat(2) says."""
        return cls(stat.S_IFMT(status.st_mode), status.st_mode, status.st_ino, status.st_ctime_ns)


class TreeCopy:
    """A copy of the directory `root`, whose descriptor stays the caller's."""

    def __init__(self, root: int, most_mb: int) -> None:
        """Measure.

        Raises:
            CannotRehearse: it has more than `most_mb` megabytes or too many names, also without what git ignores.
            OSError: the root cannot be looked through.
        """
        self.names: dict[str, dict[str, CopiedName]] = {}
        """Directory ("" is the root) -> name in it -> what is there."""
        self.left_out: set[str] = set()
        self.size = 0
        self._root = root
        self._target = -1
        self._most = most_mb * _MEGABYTE
        self._device = os.fstat(root).st_dev
        self._shares = True
        self._linked: dict[int, str] = {}
        """Inode of the root's file with several names -> the first of them."""
        self.without_ignored = False
        try:
            self._listed = list(self._look(None))
        except CannotRehearse:
            self.without_ignored = True
            self._listed = list(self._look(GitIgnore(root)))
        self.names_in_all = sum(len(entries) for _path, entries in self._listed)

    def make(self, target: int) -> None:
        """Copy to an empty directory, to be read. The umask is 0 meanwhile, and the process must have one thread.

        Raises:
            OSError: there is no room, or a name cannot be made.
        """
        self._target = target
        before = os.umask(0)
        try:
            for path, entries in self._listed:
                self._copy_directory(path, entries)
            for path, _entries in reversed(self._listed):
                self._finish_directory(path)
            self._wait_for_the_next_moment()
        finally:
            os.umask(before)
            self._listed = []

    def _wait_for_the_next_moment(self) -> None:
        """Wait until the file system's clock, which may tick each 4 ms, tells changes from what was made here."""
        newest = max((each.changed_ns for names in self.names.values() for each in names.values()), default=0)
        times = os.fstat(self._target)
        while os.fstat(self._target).st_ctime_ns <= newest:
            os.utime(self._target, ns=(times.st_atime_ns, times.st_mtime_ns))

    def _look(self, ignore: GitIgnore | None) -> Iterator[tuple[str, list[tuple[str, os.stat_result]]]]:
        """Yield every directory and what is to be copied of its names, outer ones first."""
        self.left_out, self.size, count, pending = set(), 0, 0, [""]
        while pending:
            path = pending.pop()
            entries = []
            try:
                found = self._list(path)
            except OSError:
                if not path:
                    raise
                self.left_out.add(path)
                continue
            for name, status in found:
                below = f"{path}/{name}" if path else name
                kind = stat.S_IFMT(status.st_mode)
                is_directory = kind == stat.S_IFDIR
                if (
                    kind not in _COPIED
                    or (is_directory and status.st_dev != self._device)
                    or (ignore and ignore.ignores(below, is_directory=is_directory, was_there=True))
                ):
                    self.left_out.add(below)
                else:
                    entries.append((name, status))
                    count += 1
                    self.size += _on_disk(self._data(below, status) if kind == stat.S_IFREG else 0)
                    pending += [below] * is_directory
            if self.size > self._most or count > NAMES:
                raise _too_large(self._most if self.size > self._most else 0)
            yield path, entries

    def _data(self, path: str, status: os.stat_result) -> int:
        """Return how many bytes a file has without its holes."""
        if not _has_holes(status):
            return status.st_size
        try:
            with closing(open_beneath(self._root, path, _READ, links=False)) as file:
                return sum(end - begin for begin, end in _extents(file, status.st_size))
        except OSError:
            return status.st_size

    def _list(self, path: str) -> list[tuple[str, os.stat_result]]:
        with (
            closing(open_beneath(self._root, path or ".", DIRECTORY, links=False)) as directory,
            os.scandir(directory) as entries,
        ):
            return [(each.name, each.stat(follow_symlinks=False)) for each in entries]

    def _copy_directory(self, path: str, entries: list[tuple[str, os.stat_result]]) -> None:
        names = self.names[path] = {}
        with ExitStack() as opened:
            try:
                source = opened.enter_context(closing(open_beneath(self._root, path or ".", DIRECTORY, links=False)))
            except OSError:  # it has gone meanwhile
                return
            target = opened.enter_context(closing(os.open(path or ".", DIRECTORY, dir_fd=self._target)))
            for name, status in entries:
                below = f"{path}/{name}" if path else name
                try:
                    made = self._copy(source, target, name, below, status)
                except OSError as error:
                    if error.errno in _FULL:
                        raise
                    self.left_out.add(below)
                    with suppress(OSError):
                        os.unlink(name, dir_fd=target)
                else:
                    names[name] = CopiedName.of(made)

    def _copy(self, source: int, target: int, name: str, path: str, status: os.stat_result) -> os.stat_result:
        """Copy one name.

        Raises:
            OSError: it cannot be read, or not made.
        """
        kind = stat.S_IFMT(status.st_mode)
        if kind == stat.S_IFDIR:
            os.mkdir(name, stat.S_IRWXU, dir_fd=target)
        elif kind == stat.S_IFREG:
            if status.st_nlink > 1 and (first := self._linked.setdefault(status.st_ino, path)) != path:
                return self._link(first, target, name)
            return self._copy_file(source, target, name)
        else:
            if kind == stat.S_IFLNK:
                os.symlink(os.readlink(name, dir_fd=source), name, dir_fd=target)
            else:
                os.mkfifo(name, status.st_mode, dir_fd=target)
            os.utime(name, ns=(status.st_atime_ns, status.st_mtime_ns), dir_fd=target, follow_symlinks=False)
        return os.lstat(name, dir_fd=target)

    def _copy_file(self, source: int, target: int, name: str) -> os.stat_result:
        original = os.open(name, _READ, dir_fd=source)
        copy = -1
        try:
            status = os.fstat(original)
            if not stat.S_ISREG(status.st_mode):
                raise FileNotFoundError(errno.ENOENT, "it is another one by now", name)
            copy = os.open(name, _MAKE, stat.S_IMODE(status.st_mode), dir_fd=target)
            if status.st_size and not self._share(original, copy):
                _pour(original, copy, status)
            for attribute, value in attributes_of(original).items():
                os.setxattr(copy, attribute, value)
            os.utime(copy, ns=(status.st_atime_ns, status.st_mtime_ns))
            return os.fstat(copy)
        finally:
            os.close(original)
            if copy >= 0:
                os.close(copy)

    def _share(self, original: int, copy: int) -> bool:
        if self._shares:
            try:
                fcntl.ioctl(copy, _CLONE, original)
            except OSError:  # another file system, or one that cannot
                self._shares = False
        return self._shares

    def _link(self, first: str, target: int, name: str) -> os.stat_result:
        os.link(first, name, src_dir_fd=self._target, dst_dir_fd=target, follow_symlinks=False)
        made = os.lstat(name, dir_fd=target)
        directory, _, last = first.rpartition("/")
        self.names[directory][last] = CopiedName.of(made)  # it has changed with its new name
        return made

    def _finish_directory(self, path: str) -> None:
        """Give a directory the mode, attributes and times of the root's."""
        with suppress(FileNotFoundError), ExitStack() as opened:
            source = opened.enter_context(closing(open_beneath(self._root, path or ".", DIRECTORY, links=False)))
            target = opened.enter_context(closing(os.open(path or ".", DIRECTORY, dir_fd=self._target)))
            status = os.fstat(source)
            for attribute, value in attributes_of(source).items():
                os.setxattr(target, attribute, value)
            os.fchmod(target, stat.S_IMODE(status.st_mode))
            os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))
            if path:
                directory, _, name = path.rpartition("/")
                self.names[directory][name] = CopiedName.of(os.fstat(target))


_COPIED: Final = frozenset({stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK, stat.S_IFIFO})
_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EMFILE, errno.ENFILE, errno.ENOMEM})
"""What says nothing of the name that is copied."""


def _too_large(most: int) -> CannotRehearse:
    """Return why there is no copy: more bytes than `most`, or, with 0, too many names."""
    has, instead = (
        (f"{most // _MEGABYTE} MB", "Raise copy_mb of [shell], or let") if most else (f"{NAMES} names", "Let")
    )
    return CannotRehearse(
        "commands run in a copy of the root here, and it is too large: without what git ignores it has more than "
        f"{has}. {instead} the person choose a smaller root"
    )


def _on_disk(size: int) -> int:
    return -(-max(size, 1) // _PAGE) * _PAGE


def _has_holes(status: os.stat_result) -> bool:
    return status.st_size > _CHUNK and status.st_blocks * _BLOCK < status.st_size


def _extents(file: int, size: int) -> Iterator[tuple[int, int]]:
    """Yield where in a file there is something, from lseek(2); all of it where the file system does not say."""
    at = 0
    while at < size:
        try:
            begin = os.lseek(file, at, os.SEEK_DATA)
        except OSError as error:
            if error.errno != errno.ENXIO:
                yield at, size
            return
        at = min(os.lseek(file, begin, os.SEEK_HOLE), size)
        yield begin, at


def _pour(original: int, copy: int, status: os.stat_result) -> None:
    """Copy at most as many bytes as the file has, and its holes as holes."""
    size = status.st_size
    if _has_holes(status):
        os.ftruncate(copy, size)
        for begin, end in _extents(original, size):
            os.lseek(original, begin, os.SEEK_SET)
            os.lseek(copy, begin, os.SEEK_SET)
            _send(original, copy, end - begin)
    elif size <= _CHUNK:
        content = os.read(original, size)
        if os.write(copy, content) != len(content):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    else:
        _send(original, copy, size)


def _send(original: int, copy: int, size: int) -> None:
    while size and (sent := os.sendfile(copy, original, None, min(size, _CHUNK * 64))):
        size -= sent
