"""One command on an overlay of the root: what it changed, and whether that becomes so.

Rule: until `commit` nothing of the root is touched, by whomever. A rehearsal is for one command; all of that is dead
before its effects are told.

    PID 1     Rehearsal(...)                              effects()  -> originals() -> commit()   close()
    child                    mount(...), the command, end
"""

import errno
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final, NamedTuple

from workers.effects import CommitOutcome, Effects, State
from workers.paths import open_beneath
from workers.rehearsal import overlay
from workers.rehearsal.checks import of_root
from workers.rehearsal.commit import Rehearsed, commit
from workers.rehearsal.comparison import Comparison
from workers.rehearsal.faults import CannotRehearse
from workers.rehearsal.removal import remove_directory
from workers.rehearsal.sight import CHUNK, Ration, Seen, attributes_of, open_seen, opened
from workers.rehearsal.telling import TEXT, told

LEFT_BEHIND: Final = 2 * 2**30
"""Bytes of files in the upper layer, holes included, that are read to be told."""

_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Original(NamedTuple):
    """A file of the root that a commit would replace or delete, for whoever keeps old versions."""

    path: str
    """Relative to the root, as os.fsdecode makes it; os.fsencode gives its bytes."""
    state: State
    chunks: Iterator[bytes] | None
    """Its content, to be read before the next one; None if it is too large or not readable any more."""


class Rehearsal:
    """The rehearsal of one command."""

    def __init__(self, root_fd: int, root_path: str, scratch: str) -> None:
        """Begin.

        Args:
            root_fd: A descriptor of the root, O_PATH suffices; it stays the caller's.
            root_path: Where the root is in this process's mount namespace.
            scratch: An empty directory on a file system of limited size that has user attributes, which only this
                process can reach.

        Raises:
            CannotRehearse: the scratch directory does not suffice.
        """
        self._root = root_fd
        self._root_path = root_path
        self._scratch = scratch
        self._upper_path = os.path.join(scratch, "upper")
        self._work_path = os.path.join(scratch, "work")
        self._since_ns = time.time_ns()
        self._rehearsed: Rehearsed | None = None
        self._effects: Effects | None = None
        self._upper = -1
        try:
            self._make()
        except OSError as error:
            self.close()
            if error.errno == errno.EOPNOTSUPP:
                raise overlay.refusal(error) from error
            raise CannotRehearse(f"it cannot be prepared: {error.strerror}") from error
        except BaseException:
            self.close()
            raise

    def mount(self, at: str) -> None:
        """Mount the overlay over the path `at`; in the command's own mount namespace, before the command.

        Raises:
            CannotRehearse: there cannot be one, and why.
        """
        overlay.mount(self._root, self._root_path, at, self._upper_path, self._work_path)

    def effects(self) -> Effects:
        """Return what the command changed. Everything of the command must be dead.

        Raises:
            CannotRehearse: it cannot be told; `TooMuch` if that is because of its size.
        """
        if self._effects is None:
            above = Ration(LEFT_BEHIND, LEFT_BEHIND, strict=True)
            comparison = Comparison(self._upper, self._root, above=above, below=of_root())
            try:
                comparison.run()
                contents = _reader(self._root, ours=False), _reader(self._upper, ours=True)
                found = tuple(comparison.differences)
                self._effects = told(found, comparison.unchanged, contents, self._since_ns)
            except OSError as error:
                raise CannotRehearse(
                    f"what the command left cannot be compared with the root: {error.strerror}"
                ) from error
            self._rehearsed = Rehearsed(self._root, self._upper, found, comparison.unchanged, self._since_ns)
        return self._effects

    def originals(self, effects: Effects, each: int) -> Iterator[Original]:
        """Read the files that a commit of `effects` would replace or delete; do so before it.

        Args:
            effects: Those of this rehearsal.
            each: Bytes of one file above which its content is not given.

        Raises:
            ValueError: they are those of another rehearsal.
        """
        for path, before, _after, _inner in self._told(effects).differences:
            if before is not None and before.state.kind == "file":
                yield Original(path, before.state, self._chunks(path, before) if before.state.size <= each else None)

    def commit(self, effects: Effects) -> CommitOutcome:
        """Apply exactly `effects` to the root, or nothing.

        Raises:
            ValueError: they are those of another rehearsal.
        """
        return commit(self._told(effects))

    def close(self) -> None:
        """Remove what is in the scratch directory."""
        if self._upper >= 0:
            os.close(self._upper)
            self._upper = -1
        with suppress(FileNotFoundError):
            scratch = os.open(self._scratch, _DIRECTORY)
            try:
                for name in ("upper", "work"):
                    with suppress(FileNotFoundError):
                        os.chmod(name, 0o700, dir_fd=scratch)
                        remove_directory(scratch, name)
            finally:
                os.close(scratch)

    def _make(self) -> None:
        """Make both directories. The upper one is what the command sees as the root, and so has its attributes."""
        root = open_beneath(self._root, ".", os.O_RDONLY | os.O_DIRECTORY, links=False)
        try:
            status = os.fstat(root)
            os.mkdir(self._work_path, 0o700)
            os.mkdir(self._upper_path, 0o700)
            self._upper = os.open(self._upper_path, _DIRECTORY)
            os.setxattr(self._upper, f"{overlay.INTERNAL}probe", b"y")
            os.removexattr(self._upper, f"{overlay.INTERNAL}probe")
            for name, value in attributes_of(root).items():
                os.setxattr(self._upper, name, value)
            os.fchmod(self._upper, status.st_mode & 0o7777)
            os.utime(self._upper, ns=(status.st_atime_ns, status.st_mtime_ns))
        finally:
            os.close(root)

    def _told(self, effects: Effects) -> Rehearsed:
        if self._rehearsed is None or self._effects is None or effects.digest != self._effects.digest:
            raise ValueError("these are not the effects of this rehearsal")
        return self._rehearsed

    def _chunks(self, path: str, seen: Seen) -> Iterator[bytes] | None:
        with suppress(OSError), _place(self._root, path, seen) as (place, name, status):
            return _read(open_seen(place, name, status))
        return None


def _reader(directory: int, *, ours: bool) -> Callable[[str, Seen], bytes | None]:
    """Return what reads short files beneath an open directory, if they are still those that were seen."""

    def content(path: str, seen: Seen) -> bytes | None:
        if seen.state.size > TEXT:
            return None
        with (
            suppress(OSError),
            _place(directory, path, seen) as (place, name, status),
            opened(place, name, status, ours=ours) as file,
        ):
            return os.read(file, seen.state.size)
        return None

    return content


@contextmanager
def _place(directory: int, path: str, seen: Seen) -> Iterator[tuple[int, str, os.stat_result]]:
    """Open the directory of a file that was seen, for the body; give the file's name and its status, too.

    Raises:
        OSError: it is gone, or another one by now.
    """
    parent, _, name = path.rpartition("/")
    place = open_beneath(directory, parent or ".", os.O_PATH | os.O_DIRECTORY, links=False)
    try:
        status = os.lstat(name, dir_fd=place)
        now = status.st_ino, status.st_size, status.st_mtime_ns
        if now != (seen.inode, seen.state.size, seen.state.mtime_ns):
            raise FileNotFoundError(path)
        yield place, name, status
    finally:
        os.close(place)


def _read(file: int) -> Iterator[bytes]:
    try:
        while chunk := os.read(file, CHUNK):
            yield chunk
    finally:
        os.close(file)
