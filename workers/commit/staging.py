"""The directory in the root where a commit is made ready, and where old content waits until all is done.

Rule: it has the name of a write in progress, so no tool shows or writes it, and it is locked while its process lives;
one that can be locked has lost its owner, and the next commit removes it, or where its owner was in the middle of the
renames, keeps it under a name that a person sees: then something in it may be nowhere else. Everything in it is whole
and durable before the first name in the root changes. All of it is on the root's own file system, so that each change
is one rename.
"""

import errno
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from typing import Final

from workers import kernel
from workers.commit.operations import Operation
from workers.commit.removal import clear
from workers.commit.staging_lock import BEGUN, draft, keep, sweep
from workers.commit.temporary_modes import forget
from workers.tree.parent_dir import sync_directory
from workers.tree.root import closing, open_beneath
from workers.treediff.comparison import Difference
from workers.treediff.effects_of import committable
from workers.treediff.snapshot import Node, attributes_of, opened

_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_CREATE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_SMALL: Final = 2**16
"""Bytes of a file that is read and written at once; of a larger one holes stay holes."""

_ONE_BY_ONE: Final = 32
"""Files and directories that are synced each; from there on one sync of the file system costs less."""

_INHERITED: Final = "system.posix_acl_default"

_SYNCFS: Final = {"x86_64": 306, "aarch64": 267}.get(kernel.MACHINE, -1)


class Staging:
    """One staging directory. `fd` is its descriptor, `name` its name in the root."""

    def __init__(self, fd: int, name: str, root: int, upper: int, unchanged: Mapping[int, tuple[str, Node]]) -> None:
        """Take an empty, locked directory; `staging` makes one and removes it."""
        self.fd = fd
        self.name = name
        self.rescued = ""
        """The name under which the directory is kept, because it holds what could not be put back."""
        self.found: list[str] = []
        """The names under which those of killed commits are kept."""
        self._root = root
        self._upper = upper
        self._unchanged = unchanged
        self._first: dict[int, str] = {}
        self._files = 0
        with suppress(OSError):  # where the root has one: its files are given no rights that theirs does not have
            os.removexattr(fd, _INHERITED)

    def build(self, operation: Operation) -> None:
        """Make what shall be at the operation's name, under its number.

        Raises:
            OSError: the system refuses something. ESTALE: the upper layer or a file that gets a second name changed.
        """
        made = [each for each in (operation.top, *operation.inner) if each.after is not None]
        cut = len(operation.path)
        below, parent = "", self.fd
        with ExitStack() as opened_parent:
            for each in made:
                place = f"{operation.number}{each.path[cut:]}"
                above, _, name = place.rpartition("/")
                if above != below:
                    opened_parent.close()
                    handle = open_beneath(self.fd, above, _DIRECTORY, links=False) if above else os.dup(self.fd)
                    below, parent = above, opened_parent.enter_context(closing(handle))
                self._make(parent, name, place, each)
        for each in reversed(made):
            if each.after is not None and each.after.state.kind == "dir":
                self._finish_directory(f"{operation.number}{each.path[cut:]}", each, is_top=each is operation.top)

    def mark(self, *, begun: bool) -> None:
        """Say that the renames begin, or that all have been done: it is known by that what a killed commit leaves."""
        os.fchmod(self.fd, stat.S_IRWXU | (BEGUN if begun else 0))

    def sync(self) -> None:
        """Make everything here durable, if it was not done file by file."""
        if self._files > _ONE_BY_ONE:
            kernel.syscall("syncfs", _SYNCFS, self.fd)

    def sync_root(self, directories: set[str]) -> None:
        """Make the names in directories of the root durable."""
        if len(directories) > _ONE_BY_ONE:
            kernel.syscall("syncfs", _SYNCFS, self.fd)
            return
        for path in directories:
            try:
                directory = open_beneath(self._root, path, _DIRECTORY, links=False)
            except OSError:
                kernel.syscall("syncfs", _SYNCFS, self.fd)
                return
            with closing(directory):
                sync_directory(directory)

    def rescue(self) -> str:
        """Keep the directory where a person sees it; return its name in the root."""
        if not self.rescued:
            self.rescued = keep(self._root, self.name, self.fd)
        return self.rescued

    def _make(self, directory: int, name: str, place: str, difference: Difference) -> None:
        after = difference.after
        assert after is not None, "only what shall be there is made"
        mode = committable(after.state).mode
        match after.state.kind:
            case "file":
                self._file(directory, name, place, difference.path, after)
                return
            case "dir":
                os.mkdir(name, stat.S_IRWXU, dir_fd=directory)
                return
            case "link":
                target = after.state.raw_target or after.state.target
                os.symlink(os.fsdecode(target), name, dir_fd=directory)
            case "fifo":
                os.mknod(name, stat.S_IFIFO | mode, dir_fd=directory)
            case _:
                os.mknod(name, stat.S_IFSOCK | mode, dir_fd=directory)
        times = (after.state.mtime_ns, after.state.mtime_ns)
        os.utime(name, ns=times, dir_fd=directory, follow_symlinks=False)

    def _file(self, directory: int, name: str, place: str, path: str, after: Node) -> None:
        if after.links > 1:
            if after.inode in self._unchanged:
                known, seen = self._unchanged[after.inode]
                self._link(self._root, known, directory, name)
                if os.lstat(name, dir_fd=directory).st_ino != seen.inode:
                    raise OSError(errno.ESTALE, "replaced while it was linked", known)
                return
            first = self._first.setdefault(after.inode, place)
            if first != place:
                self._link(self.fd, first, directory, name)
                return
        with self._source(path, after) as source, closing(os.open(name, _CREATE, 0o600, dir_fd=directory)) as target:
            _copy(source, target, after.state.size)
            _finish(source, target, committable(after.state).mode)
            os.utime(target, ns=(after.state.mtime_ns, after.state.mtime_ns))
            self._files += 1
            if self._files <= _ONE_BY_ONE:
                os.fsync(target)

    @contextmanager
    def _source(self, path: str, seen: Node) -> Iterator[int]:
        """Open what the command left, which nothing has touched since."""
        parent, _, name = path.rpartition("/")
        with closing(open_beneath(self._upper, parent or ".", os.O_PATH | os.O_DIRECTORY, links=False)) as directory:
            status = os.lstat(name, dir_fd=directory)
            if (status.st_ino, status.st_mtime_ns, status.st_size) != (
                seen.inode,
                seen.state.mtime_ns,
                seen.state.size,
            ):
                raise OSError(errno.ESTALE, "the upper layer changed", path)
            with opened(directory, name, status, ours=True) as file:
                yield file

    def _link(self, top: int, path: str, directory: int, name: str) -> None:
        """Give a file beneath `top` another name."""
        parent, _, old = path.rpartition("/")
        with closing(open_beneath(top, parent or ".", os.O_PATH | os.O_DIRECTORY, links=False)) as source:
            os.link(old, name, src_dir_fd=source, dst_dir_fd=directory, follow_symlinks=False)

    def _finish_directory(self, place: str, difference: Difference, *, is_top: bool) -> None:
        """Give a directory its attributes and mode; the top one stays writable until it has been moved."""
        after = difference.after
        assert after is not None, "only what shall be there is finished"
        with (
            closing(open_beneath(self.fd, place, _DIRECTORY, links=False)) as target,
            closing(open_beneath(self._upper, difference.path, _DIRECTORY, links=False)) as source,
        ):
            _finish(source, target, after.state.mode | (stat.S_IRWXU if is_top else 0))


@contextmanager
def staging(root: int, upper: int, unchanged: Mapping[int, tuple[str, Node]]) -> Iterator[Staging]:
    """Make a staging directory for the body, and remove it with what is left in it unless it was rescued.

    Raises:
        OSError: the root takes no directory.
    """
    found = sweep(root)
    name, fd = draft(root)
    made = Staging(fd, name, root, upper, unchanged)
    made.found = found
    with closing(fd):
        try:
            yield made
        finally:
            with suppress(OSError):
                if made.rescued:
                    forget(fd)
                else:
                    clear(fd)
                    os.rmdir(name, dir_fd=root)


def _copy(source: int, target: int, size: int) -> None:
    if size <= _SMALL:
        data = os.read(source, size)
        if len(data) != size or os.write(target, data) != size:
            raise OSError(errno.EIO, "a short read or write")
        return
    at = 0
    while at < size:
        try:
            at = os.lseek(source, at, os.SEEK_DATA)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            break
        end = min(os.lseek(source, at, os.SEEK_HOLE), size)
        os.lseek(target, at, os.SEEK_SET)
        while at < end:
            sent = os.sendfile(target, source, at, end - at)
            if not sent:
                raise OSError(errno.EIO, "a short read")
            at += sent
    os.ftruncate(target, size)


def _finish(source: int, target: int, mode: int) -> None:
    """Give `target` the attributes of `source`, and its mode last, because a list of access changes it."""
    for name, value in attributes_of(source).items():
        os.setxattr(target, name, value)
    os.fchmod(target, mode)
