"""Leases of sessions: a kernel lock each, so that no two processes ever run one session.

Rule: a lease is a lock on one byte of `sessions.lock`, never a file or a row of its own, so it ends with the process
that holds it, however that ends, and leaves nothing behind. The locks belong to the open file and not to the process
(open file description locks, fcntl(2)): two `Leases` exclude each other within one process as well.
"""

import errno
import fcntl
import hashlib
import os
from pathlib import Path
from typing import Final, Self

from supervisor.errors import ConfigError
from supervisor.system.safe_files import is_locked, own_file, set_lock

_BITS: Final = 62
"""A byte's offset in a file is a signed 64-bit number. That two of a million sessions share one: 1 in 9 million."""


class Leases:
    """The leases of one process, or of one part of it. Use it in `with`, or close it."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._sessions: set[str] = set()

    @classmethod
    def open(cls, home: Path) -> Self:
        """Return no leases yet; the home directory is there already.

        Raises:
            ConfigError: `sessions.lock` is a link, no regular file or another user's, or cannot be opened.
        """
        return cls(own_file(home / "sessions.lock", os.O_RDWR))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def acquire(self, session: str) -> bool:
        """Take the lease of a session; False if anybody holds it, also if that is this object.

        Raises:
            ConfigError: the file system has no such locks, or no more of them.
        """
        if session in self._sessions:
            return False
        try:
            self._set(fcntl.F_WRLCK, session)
        except OSError as error:
            if error.errno in (errno.EAGAIN, errno.EACCES):
                return False
            raise ConfigError(f"The lock of a session cannot be taken: {error.strerror}.") from error
        self._sessions.add(session)
        return True

    def release(self, session: str) -> None:
        """Give a lease back; one that is not held stays with whoever holds it."""
        if session in self._sessions:
            self._sessions.remove(session)
            self._set(fcntl.F_UNLCK, session)

    def held_elsewhere(self, session: str) -> bool:
        """Say whether somebody else holds the lease of a session.

        Raises:
            OSError: the file system has no such locks.
        """
        return is_locked(self._descriptor, offset(session), 1)

    def close(self) -> None:
        """Give all leases back."""
        self._sessions.clear()
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def _set(self, kind: int, session: str) -> None:
        set_lock(self._descriptor, kind, offset(session), 1)


def offset(session: str) -> int:
    """Return the byte that stands for a session."""
    digest = hashlib.sha256(session.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") >> (64 - _BITS)
