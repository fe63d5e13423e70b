"""Caches of package managers, outside of every root: filled by approved installs, and by nothing else.

Rule: what an install has left is staged under a hidden name, locked meanwhile, and moved in file by file once its
changes are committed: a process that is killed leaves a cache that works, and what it had staged goes with the next
one. What is there is never replaced by another root's, nor added to where it is a package, but for files that say what
else there is. Each address of a registry has caches of its own. The oldest go where there are too many.
"""

import fcntl
import hashlib
import os
import secrets
import shutil
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from supervisor.system.crate_index import is_crate, other_crates
from supervisor.system.safe_files import NO_LINK
from workers.kernel import syncfs
from workers.shell.cache_table import CACHES, caches_of, is_kept, renews, whole
from workers.wire import messages

_STAGE: Final = ".stage-"
_DIGITS: Final = 12
_FULL_TO: Final = 0.9
"""How much of the room is used after a clearing."""


class PackageCaches:
    """Those of one home.

    Args:
        directory: for caches alone.
        limit: bytes of all together; 0 keeps none.
    """

    def __init__(self, directory: Path, limit: int) -> None:
        self._directory = directory
        self.limit = limit

    def places(self, registries: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
        """Return the caches of registries, by name and the URL of a mirror: the name of each, and its directory."""
        if not self.limit:
            return ()
        found = ((each, hashlib.sha256(url.encode()).hexdigest()[:_DIGITS]) for each, url in registries)
        return tuple(
            (name, str(self._directory / f"{name}-{digest}")) for each, digest in found for name in caches_of(each)
        )

    def prepare(self, places: Iterable[tuple[str, str]]) -> None:
        """Make the directories of caches; one that cannot be made is not used."""
        for _, directory in places:
            with suppress(OSError):
                os.makedirs(directory, 0o700, exist_ok=True)

    def begin(self, places: Iterable[tuple[str, str]]) -> "CacheStage":
        """Return a stage for these caches, which the caller leaves; sweep those of killed processes.

        Raises:
            OSError: it cannot be made.
        """
        for name in os.listdir(self._directory):
            if name.startswith(_STAGE):
                _sweep(self._directory / name)
        return CacheStage(self, self._directory / f"{_STAGE}{secrets.token_hex(8)}", dict(places))

    def clear(self) -> None:
        """Remove the oldest where there is too much."""
        found: dict[str, tuple[float, int]] = {}
        for time, size, path in self._files():
            newest, total = found.get(path, (0.0, 0))
            found[path] = max(newest, time), total + size
        left = sum(size for _, size in found.values())
        if left <= self.limit:
            return
        for path, (_, size) in sorted(found.items(), key=lambda each: each[1]):
            if left <= self.limit * _FULL_TO:
                return
            with suppress(OSError):
                shutil.rmtree(path) if os.path.isdir(path) else os.unlink(path)
                left -= size

    def _files(self) -> Iterator[tuple[float, int, str]]:
        """Yield the time and the size of each file, and what it goes with."""
        for cache in os.scandir(self._directory):
            name = cache.name.rpartition("-")[0]
            for place, _, files in os.walk(cache.path) if name in CACHES else ():
                for file in files:
                    with suppress(OSError):
                        status = os.lstat(f"{place}/{file}")
                        path = whole(name, os.path.relpath(f"{place}/{file}", cache.path))
                        yield status.st_mtime, status.st_blocks * 512, f"{cache.path}/{path}"


class CacheStage:
    """What one install has left, until its changes are committed."""

    def __init__(self, caches: PackageCaches, directory: Path, places: dict[str, str]) -> None:
        self._caches = caches
        self._directory = directory
        self._places = places
        self._found: dict[tuple[str, str], str] = {}
        """Each cache and path in it -> where it is staged."""
        self._left = self._caches.limit
        directory.mkdir(0o700)
        self._lock = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self._file = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end_file()
        os.close(self._lock)
        shutil.rmtree(self._directory, ignore_errors=True)

    def take(self, part: messages.Original | messages.Piece) -> None:
        """Take the next file of the worker's, or the next part of its content.

        Raises:
            OSError: it cannot be written.
            ValueError: the worker has sent what no cache keeps.
        """
        if isinstance(part, messages.Piece):
            self._left -= len(part.data)
            if self._file < 0 or self._left < 0:
                raise ValueError("a cache was sent more than there is room for")
            os.write(self._file, part.data)
            return
        name, _, path = part.path.partition("/")
        if not is_kept(name, path):
            raise ValueError("a cache was sent what it does not keep")
        self._end_file()
        if name not in self._places:  # a package's script has been there
            self._file = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
            return
        unit = whole(name, path)
        staged = self._found.setdefault((name, unit), str(self._directory / str(len(self._found))))
        if unit != path:
            staged += path.removeprefix(unit)
            os.makedirs(os.path.dirname(staged), exist_ok=True)
        mode = 0o755 if part.after is not None and part.after.mode & 0o100 else 0o644
        self._file = os.open(staged, os.O_WRONLY | os.O_CREAT | os.O_EXCL | NO_LINK, mode)

    def move_in(self) -> int:
        """Move what is new into the caches; return how many files that were. Blocks.

        Raises:
            OSError: not all of it could be; what was moved works.
        """
        self._end_file()
        syncfs(self._lock)
        new = {
            (name, path): staged
            for (name, path), staged in self._found.items()
            if renews(name, path) or not os.path.lexists(Path(self._places[name], path))
        }
        if "crates" in self._places:
            crates = {path: staged for (name, path), staged in new.items() if name == "crates"}
            for other in other_crates(Path(self._places["crates"]), crates):
                os.unlink(other)
        moved = 0
        for (name, path), staged in sorted(new.items(), key=_in_order):
            if os.path.lexists(staged):
                target = Path(self._places[name], path)
                target.parent.mkdir(0o700, parents=True, exist_ok=True)
                os.rename(staged, target)
                moved += 1
        if moved:
            self._caches.clear()
        return moved

    def _end_file(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def _in_order(staged: tuple[tuple[str, str], str]) -> tuple[bool, bool]:
    """Directories come first, and crates after the index by which they count."""
    (name, path), file = staged
    return not os.path.isdir(file), name == "crates" and is_crate(path)


def _sweep(stage: Path) -> None:
    """Remove a stage that nobody holds."""
    with suppress(OSError):
        held = os.open(stage, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(stage, ignore_errors=True)
        finally:
            os.close(held)
