"""Calls of a command in a copy that its worker answers: what makes processes, and what changes modes, owners and times.

Rule: without a PID namespace nothing else counts processes, so each new one waits for the worker's word; a bomb stops
at the limit, and nothing can fork once the worker no longer listens. Modes, owners and times go by names that lead
anywhere and that neither Landlock nor a filter can judge: the worker resolves the name itself, holds what it found, and
makes the change there if that lies in the command's own places, into which nothing from outside can be moved or linked
(Landlock).
Sources: seccomp_unotify(2), proc_pid_fd(5).
"""

import errno
import os
import re
import struct
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from workers import kernel
from workers.confine.command_policy import ASKED_IN_A_COPY, FORKS
from workers.confine.syscalls import NUMBERS
from workers.shell.run.attempts import KERNEL
from workers.shell.run.directory_moves import memory_at
from workers.shell.run.process_group import ProcessGroup
from workers.tree.root import closing

_NUMBERS: Final = NUMBERS.get(kernel.MACHINE, {})
_CALLS: Final = {_NUMBERS[name]: name for name in ASKED_IN_A_COPY if name in _NUMBERS}
FORKING: Final = frozenset(_NUMBERS[name] for name in FORKS if name in _NUMBERS)
_HERE: Final = -100
_NO_FOLLOW: Final = 0x100
_EMPTY_PATH: Final = 0x1000
_PATH: Final = 4096
_NO_MAGICLINKS: Final = 0x02
_OPEN_HOW: Final = struct.Struct("=QQQ")
_DESCRIPTOR: Final = re.compile(r"/proc/(?:self|thread-self|[0-9]+)/fd/([0-9]+)")
_TIMES: Final = {"utime": ("=2q", 1, 0), "utimes": ("=4q", 2, 1000), "futimesat": ("=4q", 2, 1000)}
"""How times lie in memory: all of it, how many words each has, and the nanoseconds of the second word's unit."""
_TWO_TIMES: Final = struct.Struct("=4q")


class _Form:
    """Where among a call's arguments what it is about stands."""

    def __init__(self, place: int, path: int, value: int, flags: int = -1, *, follows: bool = True) -> None:
        self.place = place
        self.path = path
        self.value = value
        self.flags = flags
        self.follows = follows


_FORMS: Final[Mapping[str, _Form]] = MappingProxyType(
    {
        "chmod": _Form(-1, 0, 1),
        "fchmod": _Form(0, -1, 1),
        "fchmodat": _Form(0, 1, 2),
        "fchmodat2": _Form(0, 1, 2, 3),
        "chown": _Form(-1, 0, 1),
        "lchown": _Form(-1, 0, 1, follows=False),
        "fchown": _Form(0, -1, 1),
        "fchownat": _Form(0, 1, 2, 4),
        "utime": _Form(-1, 0, 1),
        "utimes": _Form(-1, 0, 1),
        "futimesat": _Form(0, 1, 2),
        "utimensat": _Form(0, 1, 2, 3),
    }
)


class CopyCalls:
    """Answers for one command."""

    def __init__(self, group: ProcessGroup, places: tuple[str, ...], processes: int) -> None:
        """Begin.

        Args:
            group: all of its processes.
            places: the directories, absolute and without links, in which it may change what there is.
            processes: how many processes and threads it may have.
        """
        self._group = group
        self._places = places
        self._most = processes
        self._left = 0
        """How many more may be made before they are counted anew."""

    def __call__(self, pid: int, number: int, arguments: tuple[int, ...]) -> int:
        """Answer one call, as `attempts.Answer`."""
        name = _CALLS.get(number)
        if name is None:
            return errno.ENOSYS
        if name in FORKS:
            return self._fork()
        try:
            self._change(pid, name, _FORMS[name], arguments)
        except OSError as error:
            return error.errno or errno.EIO
        except (ValueError, OverflowError, struct.error):
            return errno.EINVAL
        return 0

    def _fork(self) -> int:
        if self._left <= 0:
            self._left = self._most - sum(map(_threads, self._group.pids()))
            if self._left <= 0:
                return errno.EAGAIN
        self._left -= 1
        return KERNEL

    def _change(self, pid: int, name: str, form: _Form, arguments: tuple[int, ...]) -> None:
        place = _int(arguments[form.place]) if form.place >= 0 else _HERE
        address = arguments[form.path] if form.path >= 0 else 0
        flags = _int(arguments[form.flags]) if form.flags >= 0 else 0
        if flags & ~(_NO_FOLLOW | _EMPTY_PATH):
            raise OSError(errno.EINVAL, "flags")
        follows = form.follows and not flags & _NO_FOLLOW
        with closing(_object(pid, place, address, follows=follows)) as found:
            lies = os.readlink(f"/proc/self/fd/{found}")
            if not any(lies == each or lies.startswith(f"{each}/") for each in self._places):
                raise PermissionError(errno.EPERM, "outside of the copy")
            there = f"/proc/self/fd/{found}"
            if "chmod" in name:
                os.chmod(there, arguments[form.value] & 0o1777)
            elif "chown" in name:
                os.chown(there, *map(_int, arguments[form.value : form.value + 2]))
            else:
                _call("utimensat", _HERE, there.encode(), _times(pid, name, arguments[form.value]), 0)


def _object(pid: int, place: int, address: int, *, follows: bool) -> int:
    """Open what a process means, without a right to it.

    Raises:
        OSError: it is not there, or the process is not ours to look into.
    """
    path = memory_at(pid, address, _PATH).split(b"\0", 1)[0] if address else b""
    if descriptor := _DESCRIPTOR.fullmatch(os.fsdecode(path)):  # as libraries name one; ours has the same name
        path, place = b"", int(descriptor[1])
    if not path and place == _HERE:
        raise FileNotFoundError(errno.ENOENT, "no path")
    base = os.open(f"/proc/{pid}/{'cwd' if place == _HERE else f'fd/{place}'}", os.O_PATH | os.O_CLOEXEC)
    if not path:
        return base
    with closing(base):
        flags = os.O_PATH | os.O_CLOEXEC | (0 if follows else os.O_NOFOLLOW)
        how = _OPEN_HOW.pack(flags, 0, _NO_MAGICLINKS)
        return kernel.syscall("openat2", kernel.OPENAT2, base, path, how, len(how))


def _times(pid: int, name: str, address: int) -> bytes | int:
    """Return both times of a call as utimensat(2) wants them; 0 for now."""
    if not address:
        return 0
    if name not in _TIMES:
        return memory_at(pid, address, _TWO_TIMES.size)
    form, words, unit = _TIMES[name]
    values = struct.unpack(form, memory_at(pid, address, struct.calcsize(form)))
    seconds = values[::words]
    parts = values[1::words] if words > 1 else (0, 0)
    return _TWO_TIMES.pack(seconds[0], parts[0] * unit, seconds[1], parts[1] * unit)


def _threads(pid: str) -> int:
    found = kernel.read_proc(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    return int(found[17]) if len(found) > 17 else 0  # noqa: PLR2004 - num_threads of proc_pid_stat(5)


def _int(value: int) -> int:
    """Return an argument as the int that the kernel takes it for."""
    value &= 0xFFFFFFFF
    return value - 2**32 if value >> 31 else value


def _call(name: str, *arguments: int | bytes) -> None:
    kernel.syscall(name, _NUMBERS.get(name, -1), *arguments)
