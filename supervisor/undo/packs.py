"""Packs: one file a committed call with what it replaced, from which an undo restores it.

Rule: packs lie outside of every root. A pack is whole under its name or not there at all: it is written and synced
under a hidden name first, and locked meanwhile, so that what a killed process left behind is known by its free lock.
A finished one may be written by its owner until the decision about its call is on record, so the few that need a look
after a crash are known as well. Packs may go at any time, the oldest first; an undo then says so.
Small packs, as edits make them, and large ones, as builds do, have a budget each: neither takes the other's room.
What is in one stands in `workers.wire.pack_format`.
"""

import errno
import hashlib
import os
import secrets
import stat
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from supervisor.categories.restore import UndoConfig
from supervisor.errors import ConfigError, KeptError
from supervisor.system.safe_files import NO_LINK, own_directory, sync_directory
from supervisor.undo.pack_name import beginning_of, is_pack
from supervisor.undo.promise import PackBudget
from workers.tree.drafts import create_draft, sweep_drafts
from workers.wire import messages
from workers.wire.pack_format import HEADER, PackedContent, PackedName, PackEnd, encoded

_MB: Final = 2**20
_NAMES: Final = 256 * _MB
"""Bytes that a pack may have besides the contents: names, modes, attributes."""
_TOGETHER: Final = 2**16
"""Bytes that are written at once."""
_DRAFT: Final = "."
"""How the name of a pack begins that is being written."""
_DECIDED: Final = stat.S_IRUSR
"""The mode of a pack once the decision about its call is on record."""
_SOON_S: Final = 600.0
"""Seconds after which a pack's call is decided about, if the process that finished it lives."""
_SMALL: Final = _MB
"""Bytes of a pack that counts as small, at most, where the budget for such packs is larger than that."""
_FULL: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_WRITE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | NO_LINK


class PackStore:
    """The packs of one home.

    Args:
        directory: for packs alone; made when the first one is begun.
        limits: of what is kept, `[undo]`.
    """

    def __init__(self, directory: Path, limits: UndoConfig) -> None:
        self.directory = directory
        self.keeps = limits.total_mb > 0
        """Whether anything is kept; else there is nothing to begin."""
        whole = limits.total_mb * _MB
        reserved = whole * limits.small_percent // 100
        self._small = min(_SMALL, reserved)
        """Bytes on the disk of a small pack, at most."""
        self._limits = whole - reserved, reserved
        """Bytes of all large packs, and of all small ones."""
        total = min(limits.call_mb * _MB, self._limits[0])
        self.budget = PackBudget(min(limits.each_mb * _MB, total), total)
        """What one call's pack may have of contents (`wire.Keep`)."""
        self.restorable = False
        """Whether a worker of this process has served that can restore."""
        self._seconds = limits.days * 86400
        self._sizes: list[int] | None = None
        """Bytes of all large packs on the disk, and of all small ones; None until they were counted."""

    def begin(self, session: str, call: str) -> "Pack":
        """Return a new, empty pack; the caller ends it by `finish` or `abandon`.

        Raises:
            KeptError: it cannot be made.
        """
        try:
            if own_directory(self.directory, "Move it away.") & 0o077:
                self.directory.chmod(0o700)
            draft, file = create_draft(lambda name: os.open(self.path(name), _WRITE, 0o600), self.drop)
        except ConfigError as error:
            raise KeptError("internal", f"Nothing can be kept for undo: {error}") from error
        except OSError as error:
            raise self.problem(error) from error
        pack = Pack(self, self.path(draft), file, beginning_of(session, call) + secrets.token_hex(8))
        pack.append(HEADER)
        return pack

    def forget(self, session: str, *call: str) -> None:
        """Remove what was kept for a call that is begun anew, or for a whole session that is deleted."""
        with suppress(OSError):
            for name in os.listdir(self.directory):
                if name.startswith(beginning_of(session, *call)) and is_pack(name):
                    self.drop(name)

    def sizes(self) -> dict[str, int]:
        """Return the bytes on the disk of each session's packs, by its plain id."""
        found: dict[str, int] = {}
        with suppress(OSError), os.scandir(self.directory) as entries:
            for entry in entries:
                if is_pack(entry.name):
                    with suppress(OSError):
                        session = entry.name.partition(".")[0]
                        found[session] = found.get(session, 0) + entry.stat(follow_symlinks=False).st_blocks * 512
        return found

    def decided(self, pack: str) -> None:
        """Note that the journal names a pack."""
        with suppress(OSError):
            self.path(pack).chmod(_DECIDED)

    def forget_undecided(self, is_named: Callable[[str, str], bool]) -> int:
        """Remove packs of calls that nobody decided about, for a process was killed in between; return how many.

        Args:
            is_named: says whether the journal names a pack, the second argument, in the session of the first.
        """
        removed = 0
        with suppress(OSError), os.scandir(self.directory) as entries:
            for entry in entries:
                if self._is_undecided(entry):
                    if is_named(entry.name.partition(".")[0], entry.name):
                        self.decided(entry.name)
                    else:
                        self.drop(entry.name)
                        removed += 1
        return removed

    @staticmethod
    def _is_undecided(entry: "os.DirEntry[str]") -> bool:
        if not is_pack(entry.name):
            return False
        with suppress(OSError):
            status = entry.stat(follow_symlinks=False)
            undecided = stat.S_ISREG(status.st_mode) and stat.S_IMODE(status.st_mode) != _DECIDED
            return undecided and status.st_mtime < time.time() - _SOON_S
        return False

    def path(self, pack: str) -> Path:
        """Return where a pack is, or was."""
        return self.directory / pack

    def holds(self, pack: str) -> bool:
        """Say whether a pack is still there.

        Raises:
            KeptError: nobody let it go: the directory itself is gone, or cannot be looked into.
        """
        if not is_pack(pack):
            return False
        try:
            held = self.path(pack).is_file()
            problem = "" if held or stat.S_ISDIR(self.directory.lstat().st_mode) else "is no directory of ours"
        except OSError as error:
            gone = isinstance(error, FileNotFoundError)
            problem = "is not there" if gone else f"cannot be looked into: {error.strerror}"
        if problem:
            raise KeptError("internal", f"{self.directory} {problem}. Put back the directory that was there.")
        return held

    def drop(self, pack: str) -> None:
        """Remove a pack that no undo will need, if it is there."""
        with suppress(OSError):
            self.path(pack).unlink()

    def added(self, pack: str, size: int) -> None:
        """Take into account a pack that was finished, and make room where there is too much now."""
        small = size <= self._small
        if self._sizes is not None:
            self._sizes[small] += size
        if self._sizes is None or self._sizes[small] > self._limits[small]:
            self.tidy(but=pack)

    def tidy(self, but: str = "", now: float | None = None) -> None:
        """Remove what killed processes left, packs that are too old, and the oldest while there are too many of a size.

        What cannot be removed stays.

        Args:
            but: a pack that stays in any case.
            now: seconds since the epoch; the clock's by default.
        """
        oldest = (time.time() if now is None else now) - self._seconds
        found: list[tuple[float, str, int]] = []
        with suppress(OSError), os.scandir(self.directory) as entries:
            for entry in entries:
                with suppress(OSError):
                    status = entry.stat(follow_symlinks=False)
                    if entry.name.startswith(_DRAFT):
                        sweep_drafts([entry.path], lambda draft, _: os.unlink(draft))
                    elif is_pack(entry.name) and entry.is_file(follow_symlinks=False):
                        found.append((status.st_mtime, entry.name, status.st_blocks * 512))
        sizes = [0, 0]
        for _, _, size in found:
            sizes[size <= self._small] += size
        for modified, name, size in sorted(found):
            small = size <= self._small
            if name != but and (modified < oldest or sizes[small] > self._limits[small]):
                self.drop(name)
                sizes[small] -= size
        self._sizes = sizes

    def problem(self, error: OSError) -> KeptError:
        """Return the error for what the system refused."""
        message = f"What would be replaced cannot be kept for undo in {self.directory}: {error.strerror}. "
        if error.errno not in _FULL:
            return KeptError("internal", message + "`strongroom doctor` looks at that directory.")
        message += "Make room there, or let less be kept ([undo] total_mb in the configuration; 0 keeps nothing)."
        return KeptError("disk_full", message)


@dataclass(eq=False)
class Pack:
    """A pack that is being written; left by an exception, it is abandoned."""

    store: PackStore
    draft: Path
    file: int
    name: str

    def __post_init__(self) -> None:
        self._room = self.store.budget.total + _NAMES
        self._digest = hashlib.sha256()
        self._unwritten = bytearray()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.abandon()

    def add(self, part: messages.Original | messages.Piece) -> None:
        """Append one part.

        Raises:
            KeptError: the disk is full, or there is more than a pack may have.
        """
        if isinstance(part, messages.Original):
            fields = part.path, part.before, part.after, part.raw_path, part.attributes, part.kept, part.gist
            self.append(encoded(PackedName(*fields)))
        else:
            self.append(encoded(PackedContent(part.data)))

    def append(self, data: bytes) -> None:
        """Append bytes of the format; raises like `add`, and leaves nothing then."""
        self._room -= len(data)
        if self._room < 0:
            raise KeptError("too_large", "What would be replaced is more than one call may keep for undo.")
        self._unwritten += data
        if len(self._unwritten) < _TOGETHER:
            return
        try:
            self._write()
        except OSError as error:
            self.abandon()
            raise self.store.problem(error) from error

    def finish(self) -> str:
        """Give the pack its end, make it durable under its name, and return that.

        Raises:
            KeptError: it cannot be done; nothing is left.
        """
        try:
            self._write()
            self._unwritten += encoded(PackEnd(self._digest.digest()))
            self._write()
            os.fsync(self.file)
            size = os.fstat(self.file).st_blocks * 512
            os.rename(self.draft, self.store.path(self.name))
            sync_directory(self.store.directory)
        except OSError as error:
            self.store.drop(self.name)
            self.abandon()
            raise self.store.problem(error) from error
        os.close(self.file)
        self.file = -1
        self.store.added(self.name, size)
        return self.name

    def abandon(self) -> None:
        """Remove it; nothing happens to a finished one."""
        if self.file < 0:
            return
        with suppress(OSError):
            self.draft.unlink()
        os.close(self.file)
        self.file = -1

    def _write(self) -> None:
        data, self._unwritten = self._unwritten, bytearray()
        self._digest.update(data)
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self.file, rest) :]
