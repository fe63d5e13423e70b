"""Contents: images and documents that models were shown, and texts of documents, in files beside the journal.

Rule: a content is whole under its name, the SHA-256 of its bytes, or not there at all: it is written and synced under a
hidden name before the fact that names it is recorded, and compared with its name whenever it is read. An empty file
beside it, DIGEST.SESSION, says which session names it: what no session names any more goes, and where there is too
much, what was not looked at for longest. Whoever misses a content says so, and goes on without it.
"""

import binascii
import errno
import hashlib
import os
import re
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from supervisor.categories.media import MediaConfig
from supervisor.errors import ConfigError, KeptError
from supervisor.system.plain_name import plain
from supervisor.system.safe_files import NO_LINK, own_directory, read_bytes, sync_directory
from workers.tree.drafts import create_draft, is_draft, sweep_drafts
from workers.wire.media_types import MEDIA_LIMIT

_MB: Final = 2**20
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | NO_LINK
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")
_AT_HAND: Final = 16 * _MB
"""Characters of base64 that are kept in memory while turns run that need them."""
_FULL: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class ContentStore:
    """The contents of one home, in the one process that changes them. In threads, for it waits for the disk.

    Args:
        directory: for contents alone; made when the first one is put there.
        limits: `[media]`.
    """

    def __init__(self, directory: Path, limits: MediaConfig) -> None:
        self.directory = directory
        self.limits = limits
        self._size: int | None = None
        """Bytes of all contents; None until they were counted."""
        self._changing = threading.Lock()
        self._guard = threading.Lock()
        self._at_hand: OrderedDict[str, str] = OrderedDict()
        self._users = 0

    def path(self, digest: str) -> Path:
        """Return where a content is, or was."""
        return self.directory / digest

    def put(self, session: str, content: bytes) -> str:
        """Keep a content for a session, durably; return its digest. One that is there already is not written again.

        Raises:
            KeptError: it cannot be kept.
        """
        digest = hashlib.sha256(content).hexdigest()
        try:
            with self._changing:
                if own_directory(self.directory, "Move it away.") & 0o077:
                    self.directory.chmod(0o700)
                os.close(os.open(self.path(f"{digest}.{plain(session)}"), os.O_WRONLY | os.O_CREAT | NO_LINK, 0o600))
                if not self._holds(digest, content):
                    self._write(digest, content)
                sync_directory(self.directory)
        except ConfigError as error:
            raise KeptError("internal", f"No image and no document can be kept: {error}") from error
        except OSError as error:
            message = f"It cannot be kept in {self.directory}: {error.strerror}. Make room there, or mend it."
            raise KeptError("disk_full" if error.errno in _FULL else "internal", message) from error
        return digest

    def _holds(self, digest: str, content: bytes) -> bool:
        """Say whether a content is there, whole; it counts as new then."""
        with suppress(OSError):
            if read_bytes(self.path(digest), len(content), own=True) == content:
                os.utime(self.path(digest))
                return True
        return False

    def _write(self, digest: str, content: bytes) -> None:
        name, file = create_draft(lambda draft: os.open(self.path(draft), _NEW, 0o600), self._drop)
        try:
            rest = memoryview(content)
            while rest:
                rest = rest[os.write(file, rest) :]
            os.fsync(file)
            os.rename(self.path(name), self.path(digest))
        except OSError:
            self._drop(name)
            raise
        finally:
            os.close(file)
        self._size = None if self._size is None else self._size + len(content)
        if self._size is None or self._size > self._limit:
            self._tidy(but=digest)

    def read(self, digest: str) -> bytes:
        """Return a content.

        Raises:
            KeptError: it is not there any more, or is no longer what it was.
        """
        if _DIGEST.fullmatch(digest) is None:
            raise KeptError("internal", "That is no content's digest.")
        try:
            content = read_bytes(self.path(digest), MEDIA_LIMIT, own=True)
            os.utime(self.path(digest))
        except OSError as error:
            raise KeptError("internal", f"{self.path(digest)} cannot be read: {error.strerror}.") from error
        if hashlib.sha256(content).hexdigest() != digest:
            raise KeptError("internal", f"{self.path(digest)} is no longer what it was.")
        return content

    # --- what running turns need -------------------------------------------------------------------------------------

    def encoded(self, digest: str) -> str:
        """Return a content in base64; raises as `read`. It stays at hand for a while if a turn uses contents."""
        if (known := self.at_hand(digest)) is not None:
            return known
        text = binascii.b2a_base64(self.read(digest), newline=False).decode()
        with self._guard:
            if self._users:
                self._at_hand[digest] = text
                while sum(map(len, self._at_hand.values())) > _AT_HAND:
                    self._at_hand.popitem(last=False)
        return text

    def at_hand(self, digest: str) -> str | None:
        """Return a content in base64 if it is at hand; no file is touched."""
        with self._guard:
            if digest in self._at_hand:
                self._at_hand.move_to_end(digest)
            return self._at_hand.get(digest)

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Keep contents at hand meanwhile; with the last user they go from memory."""
        with self._guard:
            self._users += 1
        try:
            yield
        finally:
            with self._guard:
                self._users -= 1
                if not self._users:
                    self._at_hand.clear()

    def share(self, session: str, digests: Iterable[str]) -> None:
        """Name contents that are kept in another session, too: as long as that is there, they are not forgotten."""
        with self._changing:
            for digest in dict.fromkeys(digests):
                with suppress(OSError):
                    if self.path(digest).exists():
                        os.close(os.open(self.path(f"{digest}.{plain(session)}"), _NEW, 0o600))

    # --- what goes ---------------------------------------------------------------------------------------------------

    def forget(self, session: str) -> None:
        """Remove what this session alone has named."""
        with self._changing, suppress(OSError):
            marks = [name for name in os.listdir(self.directory) if name.endswith(f".{plain(session)}")]
            for mark in marks:
                self._drop(mark)
            if marks:
                self._tidy()

    def sizes(self) -> dict[str, int]:
        """Return the bytes of what each session alone has named, by its plain id; 0 where it shares them all."""
        named: dict[str, list[str]] = {}
        with suppress(OSError):
            for name in os.listdir(self.directory):
                digest, _, session = name.partition(".")
                if session and _DIGEST.fullmatch(digest):
                    named.setdefault(digest, []).append(session)
        found = dict.fromkeys((each for sessions in named.values() for each in sessions), 0)
        for digest, sessions in named.items():
            if len(sessions) == 1:
                with suppress(OSError):
                    found[sessions[0]] += self.path(digest).lstat().st_size
        return found

    def tidy(self) -> None:
        """Remove what killed processes left, what no session names, and the oldest while there is too much."""
        with self._changing:
            self._tidy()

    @property
    def _limit(self) -> int:
        return self.limits.total_mb * _MB

    def _tidy(self, but: str = "") -> None:
        """Do so; the content `but` stays in any case."""
        found: list[tuple[float, str, int]] = []
        marks: dict[str, list[str]] = {}
        with suppress(OSError), os.scandir(self.directory) as entries:
            for entry in entries:
                digest, _, session = entry.name.partition(".")
                if is_draft(entry.name):
                    sweep_drafts([entry.path], lambda draft, _: os.unlink(draft))
                elif session:
                    marks.setdefault(digest, []).append(entry.name)
                elif _DIGEST.fullmatch(digest):
                    with suppress(OSError):
                        status = entry.stat(follow_symlinks=False)
                        found.append((status.st_mtime, digest, status.st_size))
        size = sum(each for _, _, each in found)
        for _looked_at, digest, bytes_of in sorted(found):
            if digest != but and (digest not in marks or size > self._limit):
                for name in (digest, *marks.get(digest, ())):
                    self._drop(name)
                size -= bytes_of
        for digest in marks.keys() - {each for _, each, _ in found}:  # a process was killed between the two
            for name in marks[digest] if _DIGEST.fullmatch(digest) else ():
                self._drop(name)
        self._size = size

    def _drop(self, name: str) -> None:
        with suppress(OSError):
            self.path(name).unlink()
