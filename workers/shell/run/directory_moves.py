"""Renames of directories that a command asks for on its overlay, which renames none that the root has (EXDEV).

Rule: the worker only looks whether it is a directory on the overlay that is renamed, without following a link; all else
the kernel does itself. The move is made name by name in a process of its own, without powers, while the worker looks at
the clock. What is too large, too deep or closed is left as it is, and the command learns what the kernel would say.
Sources: rename(2), seccomp_unotify(2), the kernel's Documentation/filesystems/overlayfs.rst.
"""

import errno
import os
import stat
from typing import Final, NamedTuple

from workers import kernel
from workers.confine.denylist import Notify
from workers.confine.privileges import keep_capabilities
from workers.confine.syscalls import NUMBERS
from workers.tree.attributes import attributes_of, set_attributes
from workers.tree.root import DIRECTORY, HANDLE, closing, open_beneath

_CALLS: Final = {
    number: name
    for name, number in NUMBERS.get(kernel.MACHINE, {}).items()
    if name in ("rename", "renameat", "renameat2")
}
NOTIFY: Final = tuple(Notify(name) for name in _CALLS.values())
_HERE: Final = -100
_NO_REPLACE: Final = 1
_PATH: Final = 4096
_NAMES: Final = 20_000
"""Names in a directory that is moved."""
_DEPTH: Final = 200


class Move(NamedTuple):
    """A directory, where it is and where it goes: open directories and names in them."""

    source: int
    name: str
    target: int
    new: str
    replaces: bool

    def close(self) -> None:
        os.close(self.source)
        os.close(self.target)


def wanted(pid: int, number: int, arguments: tuple[int, ...], root: str) -> Move | None:
    """Return the move of a directory that a call of a command's process stands for; None for any other.

    All processes of the namespace are the command's, so it does not matter which one a recycled number stands for.

    Args:
        pid: of the process.
        number: the call's.
        arguments: six of them.
        root: where the overlay lies in the command's tree.
    """
    name = _CALLS.get(number)
    if name is None:
        return None
    places = (arguments[0], arguments[2]) if name != "rename" else (_HERE, _HERE)
    texts = (arguments[1], arguments[3]) if name != "rename" else arguments[:2]
    flags = arguments[4] & 0xFFFFFFFF if name == "renameat2" else 0
    if flags not in (0, _NO_REPLACE):
        return None
    opened: list[int] = []
    names: list[str] = []
    try:
        for place, text in zip(places, texts, strict=True):
            directory, last = os.path.split(text_at(pid, text).rstrip("/"))
            opened.append(_parent(pid, place, directory))
            names.append(last)
            if last in ("", ".", "..") or not (len(names) > 1 or _is_directory(last, opened[0])):
                raise NotADirectoryError
        with closing(os.open(f"/proc/{pid}/root", HANDLE)) as top, closing(_beneath(top, root)) as overlay:
            device = os.fstat(overlay).st_dev
        if all(os.fstat(each).st_dev == device for each in opened):
            return Move(opened[0], names[0], opened[1], names[1], replaces=not flags)
    except (OSError, ValueError, OverflowError):
        pass
    for each in opened:
        os.close(each)
    return None


def begin(move: Move) -> int:
    """Make a move in another process, which nobody needs to wait for; return where its errno will be read, 4 bytes.

    Raises:
        OSError: there is no process or descriptor to be had.
    """
    result, to_result = os.pipe2(os.O_CLOEXEC)
    try:
        child = os.fork()
    except OSError:
        os.close(result)
        os.close(to_result)
        raise
    if child == 0:
        try:
            keep_capabilities(())
            _make(move)
            code = 0
        except OSError as error:
            code = error.errno or errno.EIO
        except BaseException:  # noqa: BLE001 - whatever it is, the command is told that it failed
            code = errno.EIO
        finally:
            os.write(to_result, code.to_bytes(4, "little"))
            os._exit(0)
    os.close(to_result)
    return result


def _beneath(directory: int, path: str) -> int:
    return open_beneath(directory, path.strip("/") or ".", HANDLE, links=False)


def _parent(pid: int, place: int, directory: str) -> int:
    number = place & 0xFFFFFFFF
    at = "cwd" if number == _HERE & 0xFFFFFFFF else f"fd/{number}"
    base = "root" if directory.startswith("/") else at
    with closing(os.open(f"/proc/{pid}/{base}", HANDLE)) as there:
        return _beneath(there, directory)


def text_at(pid: int, address: int) -> str:
    """Read a path of a process's memory."""
    return os.fsdecode(memory_at(pid, address, _PATH).split(b"\0", 1)[0])


def memory_at(pid: int, address: int, size: int) -> bytes:
    """Read as much of a process's memory, or less where it ends."""
    with closing(os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)) as memory:
        return os.pread(memory, size, address)


def _is_directory(name: str, place: int) -> bool:
    return stat.S_ISDIR(os.lstat(name, dir_fd=place).st_mode)


def _make(move: Move) -> None:
    """Move a directory, whole or not at all as far as can be told before.

    Raises:
        OSError: as rename(2).
    """
    source, name, target, new, replaces = move
    if not replaces and _is_there(new, target):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
    try:
        os.rename(name, new, src_dir_fd=source, dst_dir_fd=target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        room = os.fstatvfs(target)
        _measure(source, name, [_NAMES, room.f_bavail * room.f_frsize], _DEPTH)
        if _is_there(new, target):
            os.rmdir(new, dir_fd=target)
        _carry(source, name, target, new)


def _is_there(name: str, directory: int) -> bool:
    try:
        os.lstat(name, dir_fd=directory)
    except FileNotFoundError:
        return False
    return True


def _measure(place: int, name: str, left: list[int], depth: int) -> None:
    """Raise an OSError where a directory, and all in it, cannot be moved within what is left of names and bytes."""
    with closing(os.open(name, DIRECTORY, dir_fd=place)) as directory:
        if not os.access(".", os.R_OK | os.W_OK | os.X_OK, dir_fd=directory):
            raise PermissionError(errno.EXDEV, os.strerror(errno.EXDEV))
        for each in os.listdir(directory):
            status = os.lstat(each, dir_fd=directory)
            left[0] -= 1
            left[1] -= status.st_size
            if min(*left, depth) < 0:
                raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
            if stat.S_ISDIR(status.st_mode):
                _measure(directory, each, left, depth - 1)


def _carry(source: int, name: str, target: int, new: str) -> None:
    """Move what is at a name; a directory of the root is made anew, and gone when all in it is there."""
    try:
        os.rename(name, new, src_dir_fd=source, dst_dir_fd=target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
    else:
        return
    os.mkdir(new, 0o700, dir_fd=target)
    with (
        closing(os.open(name, DIRECTORY, dir_fd=source)) as old,
        closing(os.open(new, DIRECTORY, dir_fd=target)) as fresh,
    ):
        status = os.fstat(old)
        for each in os.listdir(old):
            _carry(old, each, fresh, each)
        set_attributes(fresh, attributes_of(old), stat.S_IMODE(status.st_mode))
        os.utime(fresh, ns=(status.st_atime_ns, status.st_mtime_ns))
    os.rmdir(name, dir_fd=source)
