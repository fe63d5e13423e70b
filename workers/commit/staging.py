"""The directory in the root where a commit is made ready, and where old content waits until all is done.

Rule: everything in it is whole and durable before the first name in the root changes. All of it is on the root's own
file system, so that each change is one rename. `staging_directory` says how it is named, locked and swept.
"""

import errno
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from typing import Final

from workers.changes.effects import NodeState
from workers.commit.commit_plan import PLAN
from workers.commit.operations import Operation
from workers.commit.staging_directory import BEGUN, draft, keep, sweep
from workers.commit.temporary_modes import forget
from workers.kernel import syncfs
from workers.tree.attributes import attributes_of, inherits, make_inheriting, set_attributes
from workers.tree.drafts import clear
from workers.tree.root import DIRECTORY, HANDLE, closing, open_beneath, parent_of, sync_directory
from workers.treediff.effects_of import committable
from workers.treediff.snapshot import Node, opened

_CREATE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_SMALL: Final = 2**16
"""Bytes of a file that is read and written at once; of a larger one holes stay holes."""

_ONE_BY_ONE: Final = 32
"""Files and directories that are synced each; from there on one sync of the file system costs less."""

_INHERITED: Final = "system.posix_acl_default"


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
        self.inodes: dict[str, int] = {}
        """Of what was made for an operation, by its number."""
        self._first: dict[int, str] = {}
        self._files = 0
        self._given = "", -1
        """The directory that was last looked at for the group that it gives, and that group."""
        with suppress(OSError):  # where the root has one: its files are given no rights that theirs does not have
            os.removexattr(fd, _INHERITED)

    def build(self, operation: Operation) -> None:
        """Make what shall be at the operation's name, under its number.

        Raises:
            OSError: the system refuses something. ESTALE: the upper layer or a file that gets a second name changed.
        """
        cut = len(operation.path)
        made = [
            (f"{operation.number}{path[cut:]}", path, after)
            for path, _before, after, _inner in (operation.top, *operation.inner)
            if after is not None
        ]
        group = self._group_of(operation)
        below, parent, inode = "", self.fd, 0
        with ExitStack() as opened_parent:
            for place, path, after in made:
                above, _, name = place.rpartition("/")
                if above != below:
                    opened_parent.close()
                    handle = open_beneath(self.fd, above, DIRECTORY, links=False) if above else os.dup(self.fd)
                    below, parent = above, opened_parent.enter_context(closing(handle))
                if after.state.kind == "file":
                    inode = self._file(parent, name, place, path, after, group if place == name else -1)
                elif after.state.kind == "dir":
                    os.mkdir(name, stat.S_IRWXU, dir_fd=parent)
                else:
                    make_special(parent, name, after.state)
        for place, path, after in reversed(made):
            if after.state.kind == "dir":
                self._finish_directory(place, path, after.state.mode)
        if len(made) > 1 or not inode:
            inode = os.lstat(operation.number, dir_fd=self.fd).st_ino
        self.inodes[operation.number] = inode

    def mark(self, *, begun: bool) -> None:
        """Say that the renames begin, or that all have been done: it is known by that what a killed commit leaves."""
        os.fchmod(self.fd, stat.S_IRWXU | (BEGUN if begun else 0))

    def sync(self) -> None:
        """Make everything here durable, if it was not done file by file."""
        if self._files > _ONE_BY_ONE:
            syncfs(self.fd)

    def sync_root(self, directories: set[str]) -> None:
        """Make the names in directories of the root durable."""
        sync_directories(self._root, self.fd, directories)

    def rescue(self) -> str:
        """Keep the directory where a person sees it; return its name in the root."""
        if not self.rescued:
            self.rescued = keep(self._root, self.name, self.fd)
        return self.rescued

    def _group_of(self, operation: Operation) -> int:
        """Return the group that a file at the operation's name is to have; -1 where that of this process will do."""
        before = operation.top.before
        if before is not None and before.state.kind == "file":
            return before.group if before.group != os.getegid() else -1
        if self._given[0] != operation.parent:
            group = -1
            with suppress(OSError), closing(open_beneath(self._root, operation.parent, HANDLE, links=False)) as parent:
                status = os.fstat(parent)
                group = status.st_gid if status.st_mode & stat.S_ISGID and status.st_gid != os.getegid() else -1
            self._given = operation.parent, group
        return self._given[1]

    def _create(self, directory: int, name: str, path: str, group: int) -> int:
        """Make a file, in a group if one is given: by asking for it, or as its directory in the root would give it."""
        if group < 0:
            return os.open(name, _CREATE, 0o600, dir_fd=directory)
        with suppress(OSError), parent_of(self._root, path) as (parent, _name):
            if inherits(parent, group):
                return make_inheriting(parent, directory, name)
        file = os.open(name, _CREATE, 0o600, dir_fd=directory)
        with suppress(OSError):
            os.chown(file, -1, group)
        return file

    def _file(self, directory: int, name: str, place: str, path: str, after: Node, group: int) -> int:
        """Make a file; return its inode, or 0 where it is another name of one."""
        if after.links > 1:
            if after.inode in self._unchanged:
                known, seen = self._unchanged[after.inode]
                self._link(self._root, known, directory, name)
                if os.lstat(name, dir_fd=directory).st_ino != seen.inode:
                    raise OSError(errno.ESTALE, "replaced while it was linked", known)
                return 0
            first = self._first.setdefault(after.inode, place)
            if first != place:
                self._link(self.fd, first, directory, name)
                return 0
        with closing(self._create(directory, name, path, group)) as target:
            state = committable(after.state)
            if after.content is not None and not state.attributes:
                if os.write(target, after.content) != state.size:
                    raise OSError(errno.EIO, "a short write")
                os.fchmod(target, state.mode)
            else:
                with self._source(path, after) as source:
                    _copy(source, target, state.size)
                    set_attributes(target, attributes_of(source), state.mode)
            os.utime(target, ns=(state.mtime_ns, state.mtime_ns))
            self._files += 1
            if self._files <= _ONE_BY_ONE:
                os.fsync(target)
            return os.fstat(target).st_ino

    @contextmanager
    def _source(self, path: str, seen: Node) -> Iterator[int]:
        """Open what the command left, which nothing has touched since."""
        with parent_of(self._upper, path) as (directory, name):
            status = os.lstat(name, dir_fd=directory)
            now = status.st_ino, status.st_mtime_ns, status.st_size
            if now != (seen.inode, seen.state.mtime_ns, seen.state.size):
                raise OSError(errno.ESTALE, "the upper layer changed", path)
            with opened(directory, name, status, ours=True) as file:
                yield file

    def _link(self, top: int, path: str, directory: int, name: str) -> None:
        """Give a file beneath `top` another name."""
        with parent_of(top, path) as (source, old):
            os.link(old, name, src_dir_fd=source, dst_dir_fd=directory, follow_symlinks=False)

    def _finish_directory(self, place: str, path: str, mode: int) -> None:
        """Give a directory its attributes and mode; the top one stays writable until it has been moved."""
        with (
            closing(open_beneath(self.fd, place, DIRECTORY, links=False)) as target,
            closing(open_beneath(self._upper, path, DIRECTORY, links=False)) as source,
        ):
            set_attributes(target, attributes_of(source), mode | (0 if "/" in place else stat.S_IRWXU))


@contextmanager
def staging(root: int, upper: int, unchanged: Mapping[int, tuple[str, Node]], files: int) -> Iterator[Staging]:
    """Make a staging directory for about so many files; remove it with what is left in it unless it was rescued.

    Raises:
        OSError: the root takes no directory.
    """
    found = sweep(root)
    name, fd = draft(root, files)
    made = Staging(fd, name, root, upper, unchanged)
    made.found = found
    with closing(fd):
        try:
            yield made
        finally:
            with suppress(OSError):
                if made.rescued:
                    forget(fd)
                    os.unlink(PLAN, dir_fd=fd)
                else:
                    clear(fd)
                    os.rmdir(name, dir_fd=root)


def sync_directories(root: int, readable: int, directories: set[str]) -> None:
    """Make the names in directories beneath the root durable; `readable` is a descriptor on its file system."""
    if len(directories) > _ONE_BY_ONE:
        syncfs(readable)
        return
    for path in directories:
        try:
            directory = open_beneath(root, path, DIRECTORY, links=False)
        except OSError:
            syncfs(readable)
            return
        with closing(directory):
            sync_directory(directory)


def make_special(directory: int, name: str, state: NodeState) -> None:
    """Make a link, a FIFO or a socket, with its time."""
    if state.kind == "link":
        os.symlink(os.fsdecode(state.raw_target or state.target), name, dir_fd=directory)
    else:
        os.mknod(name, (stat.S_IFIFO if state.kind == "fifo" else stat.S_IFSOCK) | state.mode, dir_fd=directory)
    os.utime(name, ns=(state.mtime_ns, state.mtime_ns), dir_fd=directory, follow_symlinks=False)


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
