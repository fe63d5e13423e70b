"""An open root directory: told from every other, whatever it is called later.

Rule: the descriptor is the root, and its path is what people call it. As long as it is open, the kernel gives its
number to no other directory: two roots with the same identity are one.
"""

import os
import sys
from contextlib import suppress
from ctypes import create_string_buffer
from typing import Final

from supervisor.errors import ConfigError, WorkerUnavailable
from workers import kernel

Identity = tuple[int, int]
"""What tells a directory from all others: its device and its inode."""

_HANDLE: Final = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
_EMPTY_PATH: Final = 0x1000
_BIRTH: Final = 0x800
_STATX_SIZE: Final = 256
_BORN_AT: Final = slice(80, 92)
"""AT_EMPTY_PATH, STATX_BTIME, and where `struct statx` has that time (include/uapi/linux/stat.h)."""
_DELETED: Final = " (deleted)"
"""How the kernel marks the name of what has none any more (proc(5)); a name may end like this as well."""


class RootGone(WorkerUnavailable):
    """The root directory has been deleted: no call can be made on it any more."""

    def __init__(self, path: str) -> None:
        super().__init__(
            f"The root directory {path!r} of this session is gone: it has been deleted, and whatever has its name now "
            "is another one. Open a new session."
        )


class OpenRoot:
    """An open root; whoever has it closes it.

    Args:
        path: absolute.
        place: where the directory lies, if its path need not lead there.

    Raises:
        ConfigError: it cannot be opened, or is no directory.
    """

    def __init__(self, path: str, place: str = "") -> None:
        self.path = path
        try:
            self.descriptor = os.open(place or path, _HANDLE)
        except OSError as error:
            raise ConfigError(f"The root {path!r} cannot be opened: {error.strerror}.") from error
        status = os.fstat(self.descriptor)
        self.identity: Identity = (status.st_dev, status.st_ino)
        self.is_foreign = status.st_uid != os.getuid()
        """Whether it is another user's."""
        self.place = f"/proc/self/fd/{self.descriptor}"
        """A path of this process's own that leads to the directory, wherever it is by now."""
        self._on_disk = os.major(status.st_dev) != 0

    def reopened(self) -> "OpenRoot":
        """Return the same directory under the same path, opened once more."""
        return OpenRoot(self.path, self.place)

    @property
    def gone(self) -> RootGone | None:
        """What a call is told once the directory has been deleted; None while it is there, under whatever name.

        One that is on no disk of this machine may be far away, and keep who asks waiting: what the kernel itself knows
        is asked first. Each call comes by here, and on a disk this takes 1 us, else 3.
        """
        try:
            if self._on_disk or os.readlink(self.place).endswith(_DELETED):
                return None if os.fstat(self.descriptor).st_nlink else RootGone(self.path)
        except OSError:  # closed, or not to be reached: a worker says what is wrong
            pass
        return None

    @property
    def mark(self) -> str:
        """What tells the directory from all others, also from one that later gets its number: with its time of birth.

        Source: statx(2); a file system that keeps no such time has the rest.
        """
        status = create_string_buffer(_STATX_SIZE)
        born = b""
        with suppress(OSError):
            kernel.syscall("statx", kernel.STATX, self.descriptor, b"", _EMPTY_PATH, _BIRTH, status)
            born = status.raw[_BORN_AT] if int.from_bytes(status.raw[:4], sys.byteorder) & _BIRTH else b""
        return f"{self.identity[0]}:{self.identity[1]}:{born.hex()}"

    @property
    def found_by_name(self) -> bool:
        """Whether its path still leads to it."""
        return identity(self.path) == self.identity

    def close(self) -> None:
        """Close the descriptor; nothing happens to one that is closed."""
        descriptor, self.descriptor = self.descriptor, -1
        self.place = f"/proc/self/fd/{self.descriptor}"
        if descriptor >= 0:
            os.close(descriptor)


def identity(path: str) -> Identity | None:
    """Return the identity of what a path leads to now; None where that cannot be said."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino
